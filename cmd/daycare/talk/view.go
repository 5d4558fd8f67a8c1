package talk

import (
	"fmt"
	"io"
	"strings"

	"daycare/cmd/daycare/show"
	"daycare/cmd/daycare/term"
	"daycare/engine/control"
	"daycare/engine/event"
	"daycare/engine/record"
)

// A view prints the turns of one agent while they happen: the answer on stdout,
// everything about it on stderr. It gets events, which may be lost, and at the
// end the whole text, which cannot; what was not printed by then is printed then.
type view struct {
	out, talk io.Writer
	style     term.Style // of talk
	raw       bool       // stdout is not a terminal: the text goes out as it is

	turn   string          // the current turn, "" between turns
	answer strings.Builder // of the current answer, what stands on stdout
	last   string          // the answer before, complete
	broken bool            // the line on stdout is not ended
	typing bool            // neither is that on stderr: the prompt stands there
	wrote  bool            // something was printed since the last prompt
	closed map[string]bool // turns that were finished on screen
}

func newView(c *term.App) *view {
	return &view{out: c.Out, talk: c.Err, style: c.ErrStyle(), raw: !term.IsTerminal(c.Out),
		closed: map[string]bool{}}
}

// event shows one event of the agent. What comes late, after the turn was closed
// with its whole text, is not shown again.
func (v *view) event(e control.RawEvent) error {
	if v.closed[e.Turn] {
		return nil
	}
	switch e.Type {
	case event.TurnStarted:
		v.begin(e)
	case event.MessageDelta:
		return decode(e, v.delta)
	case event.ToolStarted:
		v.endAnswer()
		return decode(e, func(t event.Tool) { v.note("→ %s", show.Call(t.Name, t.Arguments)) })
	case event.ToolFinished:
		return decode(e, v.toolFinished)
	case event.Retry:
		return decode(e, v.retry)
	case event.SubAgentStart, event.SubAgentEnd:
		return decode(e, func(s subAgent) { v.subAgent(e.Type, s) })
	case event.AgentCompacted:
		return decode(e, v.compacted)
	case event.AgentReset:
		v.note("new conversation")
	case event.BudgetReached:
		v.note("the budget is used up")
	case event.HookSaid:
		return decode(e, func(r event.Reason) { v.note("a hook says: %s", r.Reason) })
	case control.GapType:
		v.note("some events were missed")
	case event.TurnFinished:
		return decode(e, func(f event.Finished) { v.finish(e.Turn, f.Reason, f.Text) })
	}

	return nil
}

func (v *view) compacted(c event.Compacted) {
	switch {
	case c.Failed != "":
		v.note("not compacted: %s", c.Failed)
	case c.RequestCut > 0:
		v.note("the conversation was compacted to a summary; the last message is too long "+
			"for the model, which sees all but %s of it", term.Size(int64(c.RequestCut)))
	default:
		v.note("the conversation was compacted to a summary")
	}
}

// decode decodes the body of an event for f.
func decode[T any](e control.RawEvent, f func(T)) error {
	body, err := control.Body[T](e)
	if err != nil {
		return err
	}
	f(body)

	return nil
}

func (v *view) begin(e control.RawEvent) {
	v.endAnswer()
	v.turn, v.last = e.Turn, ""
	_ = decode(e, func(s event.Started) {
		if s.Attempt > 1 {
			v.note("resuming after an interruption (attempt %d)", s.Attempt)
		}
	})
}

// delta prints the part of the text that continues where the printed part ends. What
// follows a hole waits for the end of the turn.
func (v *view) delta(d event.Delta) {
	have := v.answer.Len()
	switch {
	case d.Offset == 0 && have > 0:
		v.endAnswer()
		have = 0
	case d.Offset > have, d.Offset+len(d.Text) <= have:
		return
	}
	v.print(d.Text[have-d.Offset:])
}

func (v *view) print(text string) {
	if text == "" {
		return
	}
	v.answer.WriteString(text)
	v.wrote = true
	v.broken = !strings.HasSuffix(text, "\n")
	if !v.raw {
		text = term.Clean(text)
	}

	io.WriteString(v.out, text)
}

// endAnswer ends the line of the current answer, which is complete.
func (v *view) endAnswer() {
	if v.answer.Len() > 0 {
		v.last = v.answer.String()
	}
	v.answer.Reset()
	v.newline()
}

func (v *view) newline() {
	if v.typing {
		io.WriteString(v.talk, "\n")
		v.typing = false
	}
	if v.broken {
		io.WriteString(v.out, "\n")
		v.broken = false
	}
}

// note says something beside the answer.
func (v *view) note(format string, args ...any) {
	v.newline()
	v.wrote = true
	_ = term.Printf(v.talk, "%s\n", v.style.Dim(fmt.Sprintf(format, args...)))
}

// prompt stands before what a user types.
func (v *view) prompt(text string) {
	v.newline()
	v.wrote, v.typing = false, true
	_ = term.Printf(v.talk, "%s", v.style.Bold(text))
}

func (v *view) toolFinished(t event.Tool) {
	switch record.Status(t.Status) {
	case record.StatusOK, "":
		return
	}
	v.note("  %s %s: %s", t.Name, t.Status, term.OneLine(t.Output, 120))
}

func (v *view) retry(a event.Attempt) {
	what := fmt.Sprintf("retry %d/%d in %s: %s", a.N, a.Of, seconds(a.InMS), cause(a))
	if a.Fallback != "" {
		what = fmt.Sprintf("trying %s: %s", a.Fallback, cause(a))
	}
	if a.Discard && v.answer.Len() > 0 {
		// What stands on the screen cannot be taken back; say that it does not count.
		v.newline()
		v.answer.Reset()
		what += "; the answer above was cut off and starts again"
	}

	v.note("%s", what)
}

func cause(a event.Attempt) string {
	if a.Status > 0 && !strings.Contains(a.Reason, fmt.Sprint(a.Status)) {
		return strings.TrimSpace(fmt.Sprintf("%d %s", a.Status, a.Reason))
	}
	return a.Reason
}

func seconds(ms int64) string { return fmt.Sprintf("%.3g s", float64(ms)/1000) }

// subAgent is the part of sub_agent_* events that is shown.
type subAgent struct {
	Name string `json:"subAgentName"`
}

func (v *view) subAgent(t event.Type, s subAgent) {
	v.endAnswer()
	if t == event.SubAgentStart {
		v.note("  %s started", s.Name)
		return
	}
	v.note("  %s is done", s.Name)
}

// finish prints what is missing of the final answer and closes the turn on screen.
// A turn is closed once, whoever tells first.
func (v *view) finish(turn, reason, text string) {
	if v.closed[turn] {
		return
	}
	if turn != "" {
		v.closed[turn] = true
	}
	v.complete(reason, text)
	v.endAnswer()
	v.turn, v.last = "", ""
}

func (v *view) complete(reason, text string) {
	printed := v.answer.String()
	switch {
	case reason == record.ReasonError || reason == record.ReasonPoison:
		// The text is what went wrong: the error of the command, not its output.
	case printed == "" && text == v.last, text == "":
	case strings.HasPrefix(text, printed):
		v.print(text[len(printed):])
	case strings.TrimSpace(text) != strings.TrimSpace(printed):
		v.note("part of the answer was missed; this is the whole answer")
		v.answer.Reset()
		v.print(text)
	}
}
