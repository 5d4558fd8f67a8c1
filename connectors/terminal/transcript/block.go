package transcript

import (
	"encoding/json"
	"strings"
	"time"

	"daycare/connectors/terminal/markdown"
)

// kind is what a block is.
type kind int

const (
	person   kind = iota // what a user wrote
	system               // what another agent or the runtime wrote
	answer               // what the model said
	thinking             // what it thought
	card                 // a tool call
	note                 // what happened beside it
	trouble              // what went wrong: never folded away
	shell                // a command that the user ran here
)

// A block is one piece of a conversation: what it says, and how it was set last.
type block struct {
	position // Seq is 0 until it is recorded; Item is that of the inbox
	kind     kind
	text     string
	files    []file
	from     string // system: who speaks
	tool     *tool  // card
	layout
	streak bool   // the current answer: its end may change
	before int64  // person: the record to rewind to, to say it anew; 0: none
	mark   string // note: name of the mark that it reports
	fresh  bool   // note: a conversation begins here
	gone   bool   // it was rewound: it is no longer in the model's context
}

// A layout is how a block is drawn.
type layout struct {
	open    bool // foldable blocks: all of it is shown
	set     setting
	growing markdown.Stream // streak
	grown   strings.Builder // its text, which is not copied with every piece
}

// A tool is a call and what is known of its run.
type tool struct {
	call
	status   string // "" while it runs
	output   string
	diff     string
	progress string // what it printed so far
	ms       int64
	began    time.Time
	sub      *sub   // the agent that it started, as far as events told
	token    string // of the request that it waits for; "": it asked nothing
	answer   *reply // to that request, nil: none yet
}

// A reply is a user's answer to a request, or that there was none.
type reply struct {
	words   string // by whom, too
	refused bool
}

// A setting is a block as lines, kept until what it depends on changes.
type setting struct {
	width int
	theme any
	open  bool
	size  int // of the text it was made from
	child Child
	lines []string
}

// foldable blocks have more than they show at first.
func (b *block) foldable() bool {
	switch b.kind {
	case thinking, card, shell:
		return true
	case person, system:
		return b.long() > longMessage
	}

	return false
}

// long is how many lines a message has.
func (b *block) long() int { return strings.Count(strings.TrimRight(b.text, "\n"), "\n") + 1 }

// volatile blocks look different each second.
func (b *block) volatile() bool { return b.kind == card && b.tool.status == "" }

// touch drops what was set: the block has changed.
func (b *block) touch() { b.set.lines = nil }

// needsApproval begins the result of a call that a user has to allow; the token of
// the request follows.
const needsApproval = "needs approval "

// finish takes over how a call ended.
func (b *block) finish(status, output, diff string, ms int64) {
	b.tool.status, b.tool.ms = status, ms
	switch {
	case status == "":
		b.tool.status = "ok"
	case status == "denied" && strings.HasPrefix(output, needsApproval):
		b.tool.status = asks
		b.tool.token, _, _ = strings.Cut(strings.TrimPrefix(output, needsApproval), ":")
	}
	if len(output) >= len(b.tool.output) { // an event has the beginning only
		b.tool.output = output
	}
	if diff != "" {
		b.tool.diff = markdown.Clean(diff)
	}
	b.touch()
}

func (b *block) result(r *record) {
	b.finish(r.Status, r.Output.Text, r.Output.diff(), r.MS)
	b.files = r.Files
}

// blocksOf are the blocks that a record adds. Results are not blocks: they
// complete the card of their call.
func blocksOf(r *record) []*block {
	at := func(k kind, text string) *block {
		return &block{kind: k, position: r.position, text: text}
	}
	one := func(k kind, text string) []*block { return []*block{at(k, text)} }
	switch r.Type {
	case "user_message":
		b := at(person, r.Text)
		b.files = r.Files
		if r.Origin != "" {
			b.kind, b.from = system, r.Origin
		}
		if r.Origin == ShellOrigin {
			shellBlock(b)
		}
		return []*block{b}
	case "assistant_message":
		return answerOf(r, at)
	case "turn_begin":
		if r.Attempt > 1 {
			return one(note, "resuming after an interruption")
		}
	case "turn_end":
		return endOf(r, one)
	case "reset":
		b := at(note, resetText(r))
		b.fresh = true
		return []*block{b}
	case "summary":
		b := at(note, "the conversation so far was compacted to a summary")
		return []*block{b}
	case "permission":
		if r.Event != "asked" { // the card of the call that asks says so
			return one(note, permissionText(r))
		}
	case "delivery":
		if r.Final {
			return one(trouble, "an answer could not be delivered: "+r.Error)
		}
	case "mark":
		b := at(note, "checkpoint "+r.Name)
		b.mark = r.Name
		return []*block{b}
	case "rewind":
		return one(note, "rewound: greyed messages are no longer in context")
	case "note":
		return one(note, r.Text)
	}

	return nil
}

func answerOf(r *record, at func(kind, string) *block) []*block {
	var list []*block
	for _, t := range r.Thinking {
		if t.Text != "" {
			list = append(list, at(thinking, t.Text))
		}
	}
	if r.Text != "" {
		k := answer
		if r.Finish == "error" {
			k = trouble
		}
		list = append(list, at(k, r.Text))
	}
	for _, c := range r.ToolCalls {
		b := at(card, "")
		b.tool = &tool{call: c, began: r.At}
		list = append(list, b)
	}
	switch r.Finish {
	case "interrupted":
		if r.Text != "" { // else the record is there for what the call cost
			list = append(list, at(note, "interrupted; retrying"))
		}
	case "max_tokens":
		list = append(list, at(trouble, "the answer was cut off at the model's limit"))
	}

	return list
}

func endOf(r *record, one func(kind, string) []*block) []*block {
	switch r.Reason {
	case "done", "":
		return nil
	case "waiting":
		return one(note, "it continues when its agents have reported")
	case "canceled":
		return one(note, "stopped")
	case "limit":
		return one(trouble, "stopped at the limit of tool rounds; write \"go on\" to continue")
	case "loop":
		return one(trouble, "stopped: it kept repeating the same tool call")
	case "budget":
		return one(trouble, "ended: the budget is used up")
	}

	return one(trouble, joined(": ", "the turn ended with "+r.Reason, r.Error))
}

func resetText(r *record) string {
	return joined(": ", "new conversation", r.Message)
}

// replyOf is the answer that a record of a permission gives, nil if it gives none.
func replyOf(r *record) *reply {
	switch r.Event {
	case "once":
		return &reply{words: joined(" by ", "allowed once", r.By)}
	case "always":
		return &reply{words: joined(" by ", "allowed from now on", r.By)}
	case "prefix":
		return &reply{words: joined(" by ", "allowed from now on, as "+r.Tag, r.By)}
	case "deny":
		return &reply{joined(" by ", "denied", r.By), true}
	case "freed":
		return &reply{words: "the budget allows more again"}
	case "expired":
		return &reply{"nobody answered in time", true}
	}

	return nil
}

func permissionText(r *record) string {
	what := r.Request
	if what == "" {
		what = r.Tag
	}
	if a := replyOf(r); a != nil {
		return a.words + ": " + what
	}

	return "permission " + r.Event + ": " + what
}

func joined(sep string, parts ...string) string {
	out := ""
	for _, p := range parts {
		if p == "" {
			continue
		}
		if out != "" {
			out += sep
		}
		out += p
	}

	return out
}

// decode reads the lines of a page; one that cannot be read is left out.
func decode(lines []json.RawMessage) []*record {
	list := make([]*record, 0, len(lines))
	for _, line := range lines {
		r := &record{}
		if json.Unmarshal(line, r) == nil {
			list = append(list, r)
		}
	}

	return list
}
