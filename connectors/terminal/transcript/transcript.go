package transcript

import (
	"strings"
	"time"

	"daycare/engine/event"
)

// A Transcript belongs to one goroutine.
type Transcript struct {
	text  text
	cards cards
	early map[string]*record // results whose calls are on an older page
	// replies are answers to requests, by token: a call may be on an older page.
	replies map[string]*reply
	last    int64  // seq of the newest record
	before  int64  // seq of the record before the turn that is being read; 0: none begins
	older   *int64 // what to ask for next, nil: the beginning is here
	loaded  bool

	turn  Turn
	usage Usage

	View View // which part of it is looked at
}

// A text is the blocks of a conversation.
type text struct {
	blocks []*block // recorded, oldest first
	live   []*block // not recorded yet
}

// cards are the blocks of tool calls, by the id of the call.
type cards map[string]*block

// A Turn is what is known of the current turn.
type Turn struct {
	ID    string // "" between turns
	Began time.Time
	Retry *event.Attempt
	Until time.Time // of the retry
}

// Usage is of the newest answer.
type Usage struct {
	Model   string
	Context int64 // tokens
}

// New makes an empty transcript.
func New() *Transcript {
	t := &Transcript{cards: cards{}, early: map[string]*record{}, replies: map[string]*reply{}}
	t.View.text = &t.text
	return t
}

// Loaded reports whether history was merged yet.
func (t *Transcript) Loaded() bool { return t.loaded }

// Turn is the current turn.
func (t *Transcript) Turn() Turn { return t.turn }

// Usage is what the newest answer used.
func (t *Transcript) Usage() Usage { return t.usage }

// Empty reports whether there is nothing to read.
func (t *Transcript) Empty() bool { return len(t.text.blocks) == 0 && len(t.text.live) == 0 }

// Merge adds what is new in the newest page of history. A page that does not
// continue what is here replaces it.
func (t *Transcript) Merge(p event.Page) {
	records := decode(p.Records)
	if !t.loaded || !continues(t.last, records) {
		t.Replace(p)
		return
	}
	for _, r := range records {
		if r.Seq > t.last {
			t.add(r)
		}
	}
	t.settle()
}

// continues: the page holds the newest record, last, or all that follows it.
func continues(last int64, records []*record) bool {
	if len(records) == 0 {
		return last == 0
	}
	return records[0].Seq <= last+1 && records[len(records)-1].Seq >= last
}

// Replace begins again with a page: history was edited, or the page is far ahead.
func (t *Transcript) Replace(p event.Page) {
	open := map[string]bool{}
	for id, b := range t.cards {
		open[id] = b.open
	}
	t.text.blocks, t.cards, t.early, t.last, t.turn.ID = nil, cards{}, map[string]*record{}, 0, ""
	t.replies = map[string]*reply{}
	t.older, t.loaded = p.Before, true
	t.View.anchor = nil
	for _, r := range decode(p.Records) {
		t.add(r)
	}
	for id, b := range t.cards {
		b.open = open[id]
	}
	t.settle()
}

// Older is the seq to ask for the page before, false if the beginning is here.
func (t *Transcript) Older() (before int64, more bool) {
	if t.older == nil {
		return 0, false
	}
	return *t.older, true
}

// Prepend adds the page before the oldest one.
func (t *Transcript) Prepend(p event.Page) {
	if before, more := t.Older(); !more || len(p.Records) == 0 || p.Before != nil && *p.Before >= before {
		t.older = nil
		return
	}
	old := &Transcript{cards: t.cards, early: t.early, replies: t.replies}
	for _, r := range decode(p.Records) {
		old.add(r)
	}
	t.text.blocks = append(old.text.blocks, t.text.blocks...)
	t.older = p.Before
}

// add takes one record.
func (t *Transcript) add(r *record) {
	t.last = max(t.last, r.Seq)
	switch r.Type {
	case "tool_result":
		if b, ok := t.cards[r.Call]; ok {
			complete(b, r, t.replies)
		} else {
			t.early[r.Call] = r
		}
		return
	case "turn_begin":
		t.before = r.Seq - 1
		t.turn.ID, t.turn.Began = r.Turn, r.At
	case "turn_end":
		if t.turn.ID == r.Turn {
			t.turn = Turn{}
		}
		t.text.orphans()
	case "assistant_message":
		if n := r.Tokens.context(); n > 0 {
			t.usage = Usage{r.Model, n}
		}
	case "reset":
		t.usage.Context = 0
	case "rewind":
		t.text.forget(r.To)
	case "permission":
		if t.reply(r) {
			return
		}
	}
	if r.Type == "turn_end" && r.Reason == "waiting" && t.cards.asked(r.Turn) {
		return // the card says that it asks
	}
	for _, b := range blocksOf(r) {
		if b.kind == person {
			b.before, t.before = t.before, 0 // what joins the turn later is no place to begin at
		}
		if n := len(t.text.blocks); b.kind == trouble && r.Type == "turn_end" && n > 0 &&
			t.text.blocks[n-1].kind == trouble && t.text.blocks[n-1].Turn == b.Turn {
			continue // a better text was shown already
		}
		t.take(b)
	}
}

// complete takes the result of a call into its card.
func complete(b *block, r *record, replies map[string]*reply) {
	b.result(r)
	b.tool.answer = replies[b.tool.token]
}

// reply takes the answer to a request, for the card of the call that asked. It reports
// whether that is enough: the card is of the newest turn that is here.
func (t *Transcript) reply(r *record) (told bool) {
	answer := replyOf(r)
	if answer == nil || r.Token == "" {
		return false
	}
	t.replies[r.Token] = answer
	for _, b := range t.cards {
		if b.tool.token == r.Token {
			b.tool.answer = answer
			b.touch()
			n := len(t.text.blocks)
			told = n > 0 && b.Turn != "" && b.Turn == t.text.blocks[n-1].Turn
		}
	}

	return told
}

// asked reports whether a call of a turn asked a user.
func (cs cards) asked(turn string) bool {
	for _, b := range cs {
		if b.Turn == turn && b.tool.token != "" {
			return true
		}
	}

	return false
}

// forget: what follows a record is not in the model's context any more.
func (x *text) forget(to int64) {
	for _, b := range x.blocks {
		if b.Seq > to && !b.gone {
			b.gone = true
			b.touch()
		}
	}
}

// take adds a recorded block in place of the one that an event created.
func (t *Transcript) take(b *block) {
	if b.kind == card {
		if early, ok := t.cards[b.tool.ID]; ok && early.Seq == 0 {
			b.tool, b.open = early.tool, early.open
		}
		t.cards[b.tool.ID] = b
		if r, ok := t.early[b.tool.ID]; ok {
			complete(b, r, t.replies)
		}
	}
	for i, l := range t.text.live {
		if l.foretells(b) {
			b.open = b.open || l.open
			t.View.moved(l, b)
			t.text.live = append(t.text.live[:i], t.text.live[i+1:]...)
			break
		}
	}
	t.text.blocks = append(t.text.blocks, b)
}

// foretells reports whether the record of b says what the live block l began.
func (l *block) foretells(b *block) bool {
	switch {
	case l.kind == card:
		return b.kind == card && l.tool.ID == b.tool.ID
	case l.kind == person:
		return l.Item != "" && l.Item == b.Item
	case l.kind == shell:
		return b.kind == shell && l.text == b.text
	case l.kind == answer && b.kind == trouble:
		return true
	case l.kind == answer, l.kind == thinking:
		return l.kind == b.kind && strings.HasPrefix(b.text, l.text)
	}

	return false
}

// settle ends what streamed once there is no turn.
func (t *Transcript) settle() {
	if t.turn.ID == "" {
		t.text.settle()
	}
}

// settle drops what no record will take the place of any more.
func (x *text) settle() {
	kept := x.live[:0]
	for _, l := range x.live {
		if l.kind == person || l.kind == shell {
			kept = append(kept, l)
		}
	}
	x.live = kept
}

// orphans: calls of a turn that is over and have no result have none.
func (x *text) orphans() {
	for i := len(x.blocks) - 1; i >= 0 && x.blocks[i].kind != person; i-- {
		if b := x.blocks[i]; b.kind == card && b.tool.status == "" {
			b.finish("canceled", "", "", 0)
		}
	}
}

// Sending shows a message that was sent and is not recorded yet; Sent names its
// item, and Unsent takes it away.
func (t *Transcript) Sending(key, text string, at time.Time) {
	t.text.live = append(t.text.live, &block{kind: person, position: position{Item: key, At: at}, text: text})
}

// Sent gives a message that is being sent the id of its item.
func (t *Transcript) Sent(key, item string) {
	for _, b := range t.text.blocks {
		if b.Item == item {
			t.Unsent(key)
			return
		}
	}
	for _, l := range t.text.live {
		if l.Item == key {
			l.Item = item
		}
	}
}

// Unsent takes a message away, which failed, or waits and is shown elsewhere, and
// gives its text.
func (t *Transcript) Unsent(key string) (text string) {
	for i, l := range t.text.live {
		if l.kind == person && l.Item == key {
			t.text.live = append(t.text.live[:i], t.text.live[i+1:]...)
			return l.text
		}
	}

	return ""
}

// Shell shows a command that the user ran, and what it printed. If the agent is
// told of it, the record takes its place.
func (t *Transcript) Shell(command, output string, at time.Time) {
	t.text.live = append(t.text.live, &block{kind: shell, text: command, position: position{At: at}, layout: layout{open: true},
		tool: &tool{status: "ok", output: output}})
}

// ShellOrigin is who tells an agent what the user did in the shell.
const ShellOrigin = "terminal"

const shellHead = "The person ran a shell command.\n$ "

// ShellNote is the text for the agent about a command that the user ran.
func ShellNote(command, output string) string { return shellHead + command + "\n" + output }

// shellBlock turns the text of ShellNote back into the command.
func shellBlock(b *block) {
	rest, ok := strings.CutPrefix(b.text, shellHead)
	if !ok {
		return
	}
	command, output, _ := strings.Cut(rest, "\n")
	b.kind, b.text, b.open, b.tool = shell, command, true, &tool{status: "ok", output: output}
}
