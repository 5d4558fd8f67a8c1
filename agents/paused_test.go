package agents

import (
	"context"
	"encoding/json"
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"daycare/agents/providers"
	"daycare/engine/address"
	"daycare/engine/event"
	"daycare/engine/inbox"
	"daycare/engine/message"
	"daycare/engine/permission"
	"daycare/engine/record"
)

// reached is what a ledger refuses requests with.
type reached struct{ permission.Budget }

func (r reached) Error() string               { return "the budget budget.total is used up: 10 of 10 tokens" }
func (r reached) Request() permission.Request { return r.Budget.Request(r.Error()) }

// purse is a model with a number of requests that may be spent, and what raises that.
type purse struct {
	Model
	mu     sync.Mutex
	room   int
	raised []string // decision and token
	broken error    // why it cannot be raised
}

func (p *purse) Call(ctx context.Context, req *providers.Request, watch func(providers.Event)) (*providers.Response, error) {
	p.mu.Lock()
	p.room--
	full := p.room < 0
	p.mu.Unlock()
	if full {
		return nil, &providers.Failure{Kind: providers.Budget, Provider: "p",
			Err: reached{permission.Budget{Scope: permission.BudgetTotal, Unit: permission.Tokens, Limit: 10, More: 10}}}
	}
	return p.Model.Call(ctx, req, watch)
}

func (p *purse) raise(b permission.Budget, d permission.Decision, token, by string) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.broken != nil {
		return p.broken
	}
	if s := string(d) + " " + token; !slices.Contains(p.raised, s) {
		p.raised, p.room = append(p.raised, s), 2
	}
	return nil
}

const pausedScript = `
rules:
  - { contains: step, round: 1, reply: [ { calls: [ { name: tell, arguments: {} } ] } ] }
  - { contains: "continue where you stopped", reply: [ { text: "went on" } ] }
  - { reply: [ { text: "heard {{.Text}}" } ] }
`

func newPurse(b *bench, room int) *purse {
	p := &purse{Model: b.model, room: room}
	b.opts.Model = func(record.Model) Model { return p }
	b.opts.Raise = p.raise
	return p
}

// waiting are the requests that wait.
func (b *bench) waiting() []permission.Pending { return b.opts.Permits.(*permission.Queue).List() }

// turns waits until history has that many ended turns, and returns the reasons.
func (b *bench) turns(n int) (reasons []string) {
	b.t.Helper()
	for deadline := time.Now().Add(time.Minute); b.count("turn_end") < n; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			b.t.Fatalf("%d turns ended, want %d\n%s", b.count("turn_end"), n, b.history())
		}
	}
	for line := range strings.Lines(b.history()) {
		var r struct{ Type, Reason string }
		if json.Unmarshal([]byte(line), &r) == nil && r.Type == "turn_end" {
			reasons = append(reasons, r.Reason)
		}
	}
	return reasons
}

// At a limit a user is asked, once; the work continues where it stopped when it is raised,
// with what came meanwhile, also over a restart.
func TestAnAgentPausesAtABudgetAndGoesOn(t *testing.T) {
	for _, decision := range []permission.Decision{permission.Once, permission.Always, permission.Freed} {
		for _, restart := range []bool{false, true} {
			b := newBench(t, pausedScript, teller{})
			p := newPurse(b, 1)
			b.run()
			if o := b.outcome(b.say("step")); o.Reason != record.ReasonBudget {
				t.Fatalf("the turn ended %q\n%s", o.Reason, b.history())
			}
			b.outcome(b.say("meanwhile"))
			if restart {
				b.halt()
				b.openBox()
				b.run()
			}
			if n := len(b.waiting()); n != 1 {
				t.Fatalf("%d requests wait, want 1", n)
			}
			token := b.waiting()[0].Token
			if decision == permission.Freed {
				p.mu.Lock()
				p.room = 2
				p.mu.Unlock()
			}
			b.decide(decision)
			reasons := b.turns(3)
			if reasons[2] != record.ReasonDone {
				t.Errorf("%s: after the answer the turn ended %q\n%s", decision, reasons[2], b.history())
			}
			if want := string(decision) + " " + token; decision != permission.Freed && !slices.Equal(p.raised, []string{want}) {
				t.Errorf("raised is %q, want %q", p.raised, want)
			}
			last := b.model.request(b.model.calls() - 1)
			for _, want := range []string{"step", "meanwhile", "tell", "continue where you stopped"} {
				if !strings.Contains(last, want) {
					t.Errorf("%s: the model does not see %q:\n%s", decision, want, last)
				}
			}
			if strings.Contains(last, "I paused") {
				t.Errorf("the model sees what daycare said:\n%s", last)
			}
			within(t, "three answers", func() bool { return len(b.texts()) == 3 })
			texts := b.texts()
			if !strings.Contains(texts[0], "I paused: the budget budget.total is used up") || texts[2] != "went on" {
				t.Errorf("the person read %q", texts)
			}
			if n := len(b.waiting()); n != 0 {
				t.Errorf("%d requests wait after the answer", n)
			}
			b.halt()
		}
	}
}

// Who says stop, or nothing, ends the work: the turn that follows is refused as well, and
// nobody is asked again until they write.
func TestAStopAtABudgetEndsTheTurn(t *testing.T) {
	for _, decision := range []permission.Decision{permission.Deny, permission.Expired} {
		b := newBench(t, pausedScript, teller{})
		p := newPurse(b, 1)
		b.run()
		b.outcome(b.say("step"))
		b.decide(decision)
		if reasons := b.turns(2); reasons[1] != record.ReasonBudget || len(b.waiting()) != 0 || len(p.raised) != 0 {
			t.Errorf("%s: the turns ended %q, %d requests wait, raised is %q", decision, reasons, len(b.waiting()), p.raised)
		}
		within(t, "the person reads that it stopped",
			func() bool { return strings.Contains(strings.Join(b.texts(), ""), "I stopped: the budget") })
		if _, err := b.box.Accept(t.Context(), inbox.Item{Kind: message.System, Origin: "heartbeat", Text: "tick"}); err != nil {
			t.Fatal(err)
		}
		b.turns(3)
		if n := len(b.waiting()); n != 0 {
			t.Errorf("%s: the clock had %d requests asked", decision, n)
		}
		b.outcome(b.say("please"))
		if n := len(b.waiting()); n != 1 {
			t.Errorf("%s: after another message %d requests wait, want 1", decision, n)
		}
		b.halt()
	}
}

// Where the settings say so, a turn ends at a limit and nobody is asked.
func TestStopAtLimitAsksNobody(t *testing.T) {
	b := newBench(t, pausedScript)
	newPurse(b, 0)
	b.opts.Settings.StopAtLimit = true
	b.run()
	if o := b.outcome(b.say("hello")); o.Reason != record.ReasonBudget || !strings.Contains(o.Text, "I stopped: ") ||
		len(b.waiting()) != 0 {
		t.Errorf("%+v, %d requests wait", o, len(b.waiting()))
	}
}

// remedied is a limit that says what can be done.
type remedied struct{ reached }

func (remedied) Remedy() string { return "Wait for Monday" }

// Who is stopped at a limit reads what can be done, as the limit says it.
func TestALimitSaysWhatCanBeDone(t *testing.T) {
	for want, why := range map[string]error{"Wait for Monday": remedied{}, "Raise it in the settings": reached{}} {
		b := newBench(t, pausedScript)
		b.opts.Settings.StopAtLimit = true
		b.opts.Model = func(record.Model) Model {
			return thinker(func(context.Context, *providers.Request, func(providers.Event)) (*providers.Response, error) {
				return nil, &providers.Failure{Kind: providers.Budget, Provider: "p", Err: why}
			})
		}
		b.run()
		if o := b.outcome(b.say("hello")); !strings.Contains(o.Text, want+", and say") {
			t.Errorf("it says %q, want %q", o.Text, want)
		}
		b.halt()
	}
}

// The agent that works for another does not report while it is paused, and does when it
// was stopped.
func TestAPausedAgentReportsWhenItEnds(t *testing.T) {
	for decision, want := range map[permission.Decision]string{permission.Once: "went on", permission.Deny: "I stopped: "} {
		b := newBench(t, pausedScript, teller{})
		newPurse(b, 1)
		b.opts.Meta.Descriptor = address.Descriptor{Type: address.Subagent}
		b.opts.Reports = Reports{To: "parent", Told: func(record.ToolCall) bool { return false }, Waits: func() bool { return false }}
		oversees := &overseeing{}
		b.opts.Overseer = oversees
		b.run()
		b.outcome(b.say("step"))
		if texts := b.texts(); len(texts) != 0 {
			t.Errorf("while paused it reports %q", texts)
		}
		if got := b.waiting()[0].Owner; got.UserID != "ada" {
			t.Errorf("asked is %+v, want the overseer's person", got)
		}
		b.decide(decision)
		b.turns(2)
		b.halt()
		if texts := b.texts(); len(texts) != 1 || !strings.HasPrefix(texts[0], want) {
			t.Errorf("%s: it reports %q, want %q", decision, texts, want)
		}
		if len(oversees.notes) != 2 || !strings.HasPrefix(oversees.notes[0], "ask ") || !strings.HasPrefix(oversees.notes[1], "decided ") {
			t.Errorf("the person's agent was told %q", oversees.notes)
		}
	}
}

// An answer that cannot be stored is neither lost nor half applied.
func TestARaiseThatCannotBeStoredIsTriedAgain(t *testing.T) {
	t.Parallel()
	b := newBench(t, pausedScript, teller{})
	p := newPurse(b, 1)
	p.broken = errors.New("settings.yaml is read-only")
	told := b.watched()
	b.run()
	b.outcome(b.say("step"))
	ask := b.waiting()[0]
	if _, err := b.box.Accept(t.Context(), inbox.Item{Kind: message.Permission, Dedupe: ask.DedupeKey(), Token: ask.Token,
		Decision: string(permission.Always), By: "ada", Tag: ask.Request.Tag, SHA256: ask.SHA256}); err != nil {
		t.Fatal(err)
	}
	within(t, "it is reported that the budget cannot be raised", func() bool { return len(told.of(event.FileInvalid)) > 0 })
	settings := filepath.Join(filepath.Dir(filepath.Dir(b.dir)), "settings.yaml")
	if f := told.of(event.FileInvalid)[0].Body.(event.File); f.File != settings ||
		!strings.Contains(f.Text, "does not apply yet, because the file could not be changed: ") ||
		!strings.Contains(f.Text, "settings.yaml is read-only") {
		t.Errorf("reported is %+v, want the reason and the file %s", f, settings)
	}
	p.mu.Lock()
	p.broken = nil
	p.mu.Unlock()
	if reasons := b.turns(2); reasons[1] != record.ReasonDone {
		t.Errorf("the turns ended %q", reasons)
	}
}

// A crash after the question and before the end of the turn asks it no second time.
func TestAnOpenQuestionIsNotAskedTwiceAfterADeath(t *testing.T) {
	b := newBench(t, pausedScript, teller{})
	newPurse(b, 0)
	need := reached{permission.Budget{Scope: permission.BudgetTotal, Unit: permission.Tokens, Limit: 10, More: 10}}.Request()
	p, _, err := b.opts.Permits.Ask(b.opts.Meta.ID, permission.Owner{}, need)
	if err != nil {
		t.Fatal(err)
	}
	item := b.say("step")
	b.remember(&record.TurnBegin{Turn: "t1", Items: []string{item}, Attempt: 1}, &record.User{Item: item, Text: "step"},
		&record.Permission{Token: p.Token, Event: "asked", Tag: need.Tag, SHA256: p.SHA256})
	b.run()
	if o := b.outcome(item); o.Reason != record.ReasonBudget || len(b.waiting()) != 1 || !strings.Contains(o.Text, p.Token) {
		t.Errorf("%+v, %d requests wait\n%s", o, len(b.waiting()), b.history())
	}
}
