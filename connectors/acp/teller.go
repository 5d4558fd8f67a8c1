package acp

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	acp "github.com/coder/acp-go-sdk"

	"daycare/engine/event"
	"daycare/engine/message"
	"daycare/engine/record"
)

const (
	// maxProgress is how much of what a running tool prints is shown, in bytes: its end.
	maxProgress = 16 << 10
	// progressEvery is how often that is sent at most.
	progressEvery = 200 * time.Millisecond
	// maxOutput is how much of a result is shown, in bytes: its beginning.
	maxOutput = 32 << 10
)

// A teller makes updates of a session of records and events. Records are what counts; events
// bring text earlier, and what they brought is not said again. It is not safe for concurrent use.
type teller struct {
	root  string
	say   func(acp.SessionUpdate)
	seq   int64           // of the newest record that was sent
	mine  map[string]bool // items that this editor sent: it shows them itself
	calls map[string]*call
	asks  map[string]*call // calls that wait for an answer, by token
	again map[string]*call // calls that were allowed and will be made again, by what they do

	answer, thought []byte           // what was said of the current answer
	recorded        time.Time        // when the newest answer was recorded
	newest          record.Assistant // it
	plan            plan
}

// A plan is what an agent submitted last.
type plan struct {
	steps    []acp.PlanEntry
	approved bool
}

func newTeller(root string, say func(acp.SessionUpdate)) *teller {
	return &teller{root: root, say: say, mine: map[string]bool{}, calls: map[string]*call{}, asks: map[string]*call{},
		again: map[string]*call{}}
}

// A call is a tool call. One that is made again when it was allowed stays the same to the editor.
type call struct {
	id       acp.ToolCallId
	does     string // tool and arguments
	progress string
	told     time.Time // when progress was sent
	over     bool
}

// beginsAgain is said between an answer that was cut off and its next try.
const beginsAgain = "\n\n*(cut off; the answer begins again)*\n\n"

// record tells what a record adds to what was said already.
func (t *teller) record(e *record.Entry) {
	t.seq = max(t.seq, e.Seq)
	switch r := e.Rec.(type) {
	case *record.User:
		t.user(r)
	case *record.Assistant:
		t.assistant(r)
		t.recorded, t.newest = e.At, *r
	case *record.ToolResult:
		t.result(r)
	case *record.Permission:
		t.decision(r)
	case *record.TurnBegin:
		t.cut() // it was opened again: after a crash, or after an orderly stop
	case *record.TurnEnd:
		t.ended(r)
	case *record.Reset:
		t.note("A new conversation begins.")
	case *record.Rewind:
		t.note("Rewound: the messages after the checkpoint are no longer in context.")
	case *record.Summary:
		t.note("The conversation so far was compacted to a summary.")
	}
}

// user tells messages that were not typed in this editor.
func (t *teller) user(r *record.User) {
	if t.mine[r.Item] {
		return
	}
	if r.Origin != "" {
		if !r.Silent {
			t.note("Message of " + r.Origin + ": " + r.Text)
		}
		return
	}
	t.say(acp.UpdateUserMessageText(r.Text))
	for _, f := range r.Files {
		t.say(acp.UpdateUserMessage(linkTo(f)))
	}
}

func linkTo(f message.File) acp.ContentBlock {
	b := acp.ResourceLinkBlock(f.Name, "file://"+f.Path)
	b.ResourceLink.MimeType = &f.MimeType
	return b
}

func (t *teller) note(text string) { t.say(acp.UpdateAgentThoughtText(text + "\n\n")) }

func (t *teller) assistant(r *record.Assistant) {
	thought := ""
	for _, block := range r.Thinking {
		thought += block.Text
	}
	if rest := unsaid(string(t.thought), thought); rest != "" {
		t.say(acp.UpdateAgentThoughtText(rest))
	}
	if rest := unsaid(string(t.answer), r.Text); rest != "" {
		t.say(acp.UpdateAgentMessageText(rest))
	}
	shown := len(t.answer) + len(r.Text)
	t.answer, t.thought = nil, nil
	if r.Finish == record.FinishInterrupted && shown > 0 {
		t.say(acp.UpdateAgentMessageText(beginsAgain))
	}
	for _, c := range r.ToolCalls {
		t.start(c.ID, c.Name, c.Arguments, acp.ToolCallStatusPending)
	}
}

// unsaid is what of a text is still to be said.
func unsaid(said, text string) string {
	if rest, ok := strings.CutPrefix(text, said); ok {
		return rest
	}
	if strings.HasPrefix(said, text) {
		return ""
	}

	return "\n\n" + text // it was streamed otherwise: what is recorded counts
}

// late reports whether a piece is of an answer that is recorded, and so was said.
func (t *teller) late(at time.Time) bool { return !at.After(t.recorded) }

// cut: what streamed so far will not be continued.
func (t *teller) cut() {
	if len(t.answer) > 0 {
		t.say(acp.UpdateAgentMessageText(beginsAgain))
	}
	t.answer, t.thought = nil, nil
}

// begins reports whether a piece begins an answer while another one is in progress that has no
// record.
func (t *teller) begins(thinking bool, d event.Delta) bool {
	said := t.answer
	if thinking {
		said = t.thought
	}

	return d.Offset == 0 && len(said) > 0 && !strings.HasPrefix(string(said), d.Text)
}

// delta says a piece that streams. It reports a hole: text was missed before it.
func (t *teller) delta(thinking bool, d event.Delta) (hole bool) {
	said, update := &t.answer, acp.UpdateAgentMessageText
	if thinking {
		said, update = &t.thought, acp.UpdateAgentThoughtText
	}
	have := len(*said)
	switch {
	case d.Offset > have:
		return true
	case d.Offset+len(d.Text) > have:
		rest := d.Text[have-d.Offset:]
		*said = append(*said, rest...)
		t.say(update(rest))
	}

	return false
}

// draft says what of the current answer was missed.
func (t *teller) draft(d event.Draft) {
	old := d.Turn == t.newest.Turn && strings.HasPrefix(t.newest.Text, d.Text) && t.newest.Text != ""
	if d.Turn == "" || old { // it is removed a moment after its record was written
		return
	}
	if strings.HasPrefix(d.Thinking, string(t.thought)) {
		t.delta(true, event.Delta{Text: d.Thinking})
	}
	if strings.HasPrefix(d.Text, string(t.answer)) {
		t.delta(false, event.Delta{Text: d.Text})
	}
}

// start reports a call, or that it is repeated because it is allowed now.
func (t *teller) start(id, tool string, raw json.RawMessage, status acp.ToolCallStatus) {
	if _, known := t.calls[id]; known {
		return
	}
	does := tool + "\x00" + string(raw)
	if c := t.again[does]; c != nil {
		delete(t.again, does)
		c.over, c.progress = false, ""
		t.calls[id] = c
		t.say(acp.UpdateToolCall(c.id, acp.WithUpdateStatus(acp.ToolCallStatusInProgress), acp.WithUpdateContent(nil)))
		return
	}

	a := argumentsOf(raw)
	t.calls[id] = &call{id: acp.ToolCallId(id), does: does}
	update := acp.StartToolCall(acp.ToolCallId(id), titleOf(tool, a), acp.WithStartKind(kindOf(tool)), acp.WithStartStatus(status))
	update.ToolCall.RawInput = raw
	update.ToolCall.Locations = locations(t.root, a)
	t.say(update)
	if tool == "submit_plan" {
		t.plan = plan{steps: planOf(a.Plan)}
		t.say(acp.UpdatePlan(t.plan.steps...))
	}
}

// runs: a call has begun.
func (t *teller) runs(e event.Tool) {
	if c := t.calls[e.Call]; c != nil && !c.over {
		t.say(acp.UpdateToolCall(c.id, acp.WithUpdateStatus(acp.ToolCallStatusInProgress)))
		return
	}
	t.start(e.Call, e.Name, e.Arguments, acp.ToolCallStatusInProgress)
}

// progress shows what a running call prints.
func (t *teller) progress(p event.Progress, now time.Time) {
	c := t.calls[p.Call]
	if c == nil || c.over {
		return
	}
	c.progress += p.Text
	if over := len(c.progress) - maxProgress; over > 0 {
		c.progress = strings.ToValidUTF8(c.progress[over:], "")
	}
	if now.Sub(c.told) >= progressEvery {
		c.told = now
		t.say(acp.UpdateToolCall(c.id, acp.WithUpdateContent([]acp.ToolCallContent{fenced(c.progress)})))
	}
}

// needsApproval begins the result of a call that a user has to allow; the token follows.
const needsApproval = "needs approval "

func (t *teller) result(r *record.ToolResult) {
	c := t.calls[r.ToolCallID]
	if c == nil { // its answer was read before a hand edit, or is gone
		t.start(r.ToolCallID, r.Name, nil, acp.ToolCallStatusPending)
		c = t.calls[r.ToolCallID]
	}
	c.over = true
	if rest, waits := strings.CutPrefix(r.Output.Text, needsApproval); waits && r.Status == record.StatusDenied {
		token, _, _ := strings.Cut(rest, ":")
		t.asks[token] = c
		t.say(acp.UpdateToolCall(c.id, acp.WithUpdateStatus(acp.ToolCallStatusPending)))
		return
	}

	status := acp.ToolCallStatusCompleted
	if r.Status != record.StatusOK {
		status = acp.ToolCallStatusFailed
	}
	content, at := changes(t.root, r.Output)
	if len(content) == 0 && strings.TrimSpace(r.Output.Text) != "" {
		content = []acp.ToolCallContent{fenced(shortened(r.Output.Text))}
	}
	for _, f := range r.Files {
		content = append(content, acp.ToolContent(linkTo(f)))
	}
	update := acp.UpdateToolCall(c.id, acp.WithUpdateStatus(status), acp.WithUpdateContent(content))
	update.ToolCallUpdate.Locations = at
	t.say(update)
	t.plan.approved = t.plan.approved || r.Name == "submit_plan" && r.Status == record.StatusOK
}

func shortened(text string) string {
	if len(text) <= maxOutput {
		return text
	}
	return strings.ToValidUTF8(text[:maxOutput], "") + fmt.Sprintf("\n… %d more bytes", len(text)-maxOutput)
}

// decision says on the card of a call how its request was answered.
func (t *teller) decision(r *record.Permission) {
	c := t.asks[r.Token]
	words, allowed := answerIn(r)
	if c == nil || words == "" {
		return
	}
	delete(t.asks, r.Token)
	status := acp.ToolCallStatusFailed
	if allowed {
		status = acp.ToolCallStatusCompleted
		t.again[c.does] = c
	}
	t.say(acp.UpdateToolCall(c.id, acp.WithUpdateStatus(status),
		acp.WithUpdateContent([]acp.ToolCallContent{acp.ToolContent(acp.TextBlock(words))})))
}

// answerIn is the answer that a record gives, "" if it gives none.
func answerIn(r *record.Permission) (words string, allowed bool) {
	by := ""
	if r.By != "" {
		by = " by " + r.By
	}
	switch r.Event {
	case "once":
		return "Allowed once" + by + ".", true
	case "always", "prefix":
		return "Allowed from now on" + by + ".", true
	case "freed":
		return "The budget allows more again.", true
	case "deny":
		return "Denied" + by + ".", false
	case "expired":
		return "Nobody answered in time.", false
	}

	return "", false
}

func (t *teller) ended(r *record.TurnEnd) {
	t.answer, t.thought = nil, nil
	if r.Reason != record.ReasonDone || !t.plan.approved {
		return
	}
	t.plan.approved = false
	for i := range t.plan.steps {
		t.plan.steps[i].Status = acp.PlanEntryStatusCompleted
	}
	t.say(acp.UpdatePlan(t.plan.steps...))
}
