package engine

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"daycare/engine/address"
	"daycare/engine/event"
	"daycare/engine/inbox"
	"daycare/engine/message"
	"daycare/engine/permission"
)

// lockedLog is a log that a test reads while others write it.
type lockedLog struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedLog) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedLog) count(text string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Count(l.b.String(), text)
}

// An agent that worked well after a failure has its next failure tried again as soon as
// the first one: pauses grow only while nothing but failures comes.
func TestPausesBeginAnewAfterARunThatWorked(t *testing.T) {
	t.Parallel()
	var log lockedLog
	w := newWaker(func() int { return 1 }, func(string) {}, func(f func()) { go f() }, slog.New(slog.DiscardHandler))
	if a, b := w.failed("a", os.ErrClosed), w.failed("a", os.ErrClosed); a != restartFirst || b != 2*restartFirst {
		t.Errorf("pauses %v and %v", a, b)
	}
	w.well("a")
	if again := w.failed("a", os.ErrClosed); again != restartFirst {
		t.Errorf("after it was well: %v", again)
	}

	w.close()

	runs := 0
	s := newStill(t, func(o *Options) { o.Log = slog.New(slog.NewTextHandler(&log, nil)) })
	end := s.run(t, func(ctx context.Context, rt Runtime) error {
		if runs++; runs != 2 { // the second run works on one item: the next one is for the third
			return errors.New("seeded")
		}
		item := rt.Inbox.Open()[0].ID
		if _, err := rt.Inbox.Take(item); err != nil {
			return err
		}
		return rt.Inbox.Done(item)
	})
	_, err := s.Deliver(t.Context(), from("one", "hello"))
	must(t, err)
	waitFor(t, "the second run", func() bool { return len(s.open(t)) == 0 })
	_, err = s.Deliver(t.Context(), from("one", "again"))
	must(t, err)
	waitFor(t, "the third run", func() bool { return log.count("agent failed") == 2 })
	if n := log.count("again=1s"); n != 2 {
		t.Errorf("%d of the two failures are tried again after a second:\n%s", n, log.b.String())
	}

	end()
}

// run runs a still System, in which no files are watched.
func (s *still) run(t *testing.T, start StartFunc) (end func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- s.System.Run(ctx, start) }()
	end = sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(end)

	return end
}

// open is the items of all agents that are not done.
func (s *still) open(t *testing.T) (list []event.Waiting) {
	t.Helper()
	for _, m := range s.index.All() {
		items, err := s.Inbox(t.Context(), m.ID)
		must(t, err)
		list = append(list, items...)
	}
	return list
}

// A place that an agent in line did not want goes to the next, and the agent has none:
// when it comes again it waits like everybody.
func TestAPlaceThatIsNotWantedGoesToTheNext(t *testing.T) {
	woken := make(chan string, 10)
	var w *waker
	w = newWaker(func() int { return 1 }, func(id string) {
		if id != "gone" && w.take(id) {
			woken <- id
		}
	}, func(f func()) { go f() }, slog.New(slog.DiscardHandler))
	defer w.close()
	if !w.take("first") || w.take("gone") || w.take("next") {
		t.Fatal("there is one place")
	}

	w.free()
	if id := <-woken; id != "next" {
		t.Errorf("the place went to %s", id)
	}
	waitFor(t, "its end", func() bool { waits, _ := w.waits("gone"); return !waits })
	if w.take("gone") {
		t.Error("an agent that did not want its place has one beside the others")
	}
}

// An agent that was killed while its runs failed is not tried again, and is shown as ended.
func TestAKilledAgentIsNotTriedAgain(t *testing.T) {
	s := newStill(t)
	id := s.colleague(t)
	s.run(t, func(context.Context, Runtime) error { return errors.New("seeded") })
	_, err := s.Deliver(t.Context(), message.Incoming{Agent: id, Text: "hello"})
	must(t, err)
	state := func() event.State {
		a, err := s.Agent(t.Context(), id)
		must(t, err)
		return a.State
	}
	waitFor(t, "its failure", func() bool { return state() == event.Failing })
	must(t, s.Kill(t.Context(), id))
	if now := state(); now != event.Ended {
		t.Errorf("it is %s", now)
	}
}

// A decision that a crash kept from leaving the queue is the first answer: whoever comes
// later learns of it, and the request is over.
func TestTheFirstAnswerStandsAfterADeath(t *testing.T) {
	s := newStill(t)
	id := s.colleague(t)
	p, _, err := s.approvals.asks.Ask(id, permission.Owner{}, mustGeneral(t, "@web"))
	must(t, err)
	_, err = s.Deliver(t.Context(), message.Incoming{Agent: id, Kind: message.Permission, Dedupe: p.DedupeKey(), Token: p.Token,
		Decision: string(permission.Once), By: "ada", Tag: p.Request.Tag, SHA256: p.SHA256})
	must(t, err)
	path := filepath.Join(s.root, "permissions", "log.jsonl")
	must(t, errors.Join(os.Rename(path, path+"~"), os.Mkdir(path, 0o700)))
	if first, err := s.Decide(t.Context(), p.Token, permission.Deny, "bob"); err == nil {
		t.Errorf("an answer that cannot be noted is reported as the first: %+v", first)
	}
	must(t, errors.Join(os.Remove(path), os.Rename(path+"~", path)))
	if left, err := s.System.Asks(t.Context()); err != nil || len(left) != 1 {
		t.Errorf("%v still waits: %v", left, err)
	}
	first, err := s.Decide(t.Context(), p.Token, permission.Deny, "bob")
	if err != nil || first == nil || first.Decision != permission.Once || first.DecidedBy != "ada" {
		t.Fatalf("the first answer is %+v, %v", first, err)
	}
	if left, err := s.System.Asks(t.Context()); err != nil || len(left) != 0 {
		t.Errorf("%v still waits: %v", left, err)
	}
	if first, err = s.Decide(t.Context(), p.Token, permission.Deny, "bob"); err != nil || first == nil ||
		first.Decision != permission.Once {
		t.Errorf("asked again: %+v, %v", first, err)
	}

	p, _, err = s.approvals.asks.Ask(id, permission.Owner{}, mustGeneral(t, "@exec:git"))
	must(t, err)
	if earlier, err := s.Decide(t.Context(), p.Token, permission.Deny, "bob"); earlier != nil || err != nil {
		t.Errorf("the only answer: %+v, %v", earlier, err)
	}
	events, _ := s.events.Since(0)
	want := event.Asked{Token: p.Token, Tag: "@exec:git", Decision: string(permission.Deny), By: "bob"}
	if n := len(slices.DeleteFunc(events, func(e event.Event) bool {
		return e.Type != event.PermissionDecided || e.Agent != id || e.Body != want
	})); n != 1 {
		t.Errorf("told %d times of the decision", n)
	}
}

// A report that cannot reach a parent, now or later, is given up with the reason.
func TestReportsThatReachNobodyAreGivenUp(t *testing.T) {
	s := newStill(t)
	child, none := s.colleague(t), strings.Repeat("a", 24)
	for name, out := range map[string]message.Outgoing{
		"without a sender":    {Text: "x", To: message.Address{ChannelID: child}},
		"of an agent gone":    {Text: "x", To: message.Address{ChannelID: child}, Report: &message.Report{From: none}},
		"to a parent's ghost": {Text: "x", To: message.Address{ChannelID: none}, Report: &message.Report{From: child}},
	} {
		_, err := parentConnector{s.System.mailroom}.Send(t.Context(), out)
		var ns *message.NotSent
		if !errors.As(err, &ns) || !ns.Final {
			t.Errorf("%s: %v, want it given up", name, err)
		}
	}
}

// An agent that a budget has stopped is paused, and says by which; one that asks for
// anything else waits.
func TestWhatAnAgentThatAsksIsShownAs(t *testing.T) {
	s := newStill(t)
	budget := permission.Budget{Scope: permission.BudgetTotal, Unit: permission.USD, Limit: 5, More: 5}.Request("5 of 5 dollars are spent")
	for tag, want := range map[string]event.State{budget.Tag: event.Paused, "@web": event.WaitingPermission} {
		id, r := s.colleague(t), budget
		if tag == "@web" {
			r = mustGeneral(t, tag)
		}
		_, _, err := s.approvals.asks.Ask(id, permission.Owner{}, r)
		must(t, err)
		a, err := s.Agent(t.Context(), id)
		if err != nil || a.State != want || want == event.Paused && a.Detail != "5 of 5 dollars are spent" {
			t.Errorf("%s: %s, %q, %v; want %s", tag, a.State, a.Detail, err, want)
		}
	}
}

// An agent that was to be tried again, and does not want to work any more when its turn comes,
// is in no trouble.
func TestAnAgentThatIsNotWantedIsInNoTrouble(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWaker(func() int { return 1 }, func(string) {}, func(f func()) { go f() }, slog.New(slog.DiscardHandler))
		defer w.close()
		w.unwoken("a", os.ErrClosed)
		if waits, err := w.waits("a"); !waits || err == nil {
			t.Errorf("waits: %v, for %v", waits, err)
		}
		time.Sleep(2 * restartFirst)
		synctest.Wait()
		if waits, err := w.waits("a"); waits || err != nil {
			t.Errorf("still waits: %v, for %v", waits, err)
		}
	})
}

// After the end nothing is tried again, also not what was to be tried later.
func TestNothingIsTriedAfterTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tried := 0
		w := newWaker(func() int { return 1 }, func(string) { tried++ }, func(f func()) { f() }, slog.New(slog.DiscardHandler))
		w.failed("before", os.ErrClosed)
		w.close()
		w.failed("after", os.ErrClosed)
		time.Sleep(time.Hour)
		synctest.Wait()
		if tried > 0 || w.take("new") {
			t.Errorf("tried %d times", tried)
		}
	})
}

// An agent whose runs fail is tried after pauses that grow.
func TestPausesOfAFailingAgentGrow(t *testing.T) {
	t.Parallel()
	starts := make(chan time.Time, 10)
	s := newStill(t)
	end := s.run(t, func(context.Context, Runtime) error {
		starts <- time.Now()
		return errors.New("seeded")
	})
	_, err := s.Deliver(t.Context(), from("one", "hello"))
	must(t, err)
	<-starts
	second := <-starts
	if pause := (<-starts).Sub(second); pause < 2*restartFirst {
		t.Errorf("the second pause is %v, want %v", pause, 2*restartFirst)
	}
	end()
}

// At the start only agents with something to do are woken; each tells when it wakes and when it sleeps.
func TestWhoIsWokenAtTheStart(t *testing.T) {
	s := newStill(t)
	s.colleague(t)
	r, err := s.Deliver(t.Context(), from("one", "hello"))
	must(t, err)
	woken := make(chan string, 10)
	end := s.run(t, func(ctx context.Context, rt Runtime) error {
		woken <- rt.Meta.ID
		return echo(func(string, inbox.Item) {})(ctx, rt)
	})
	waitFor(t, "its sleep", func() bool { _, awake := s.System.awake(r.Agent); return len(s.open(t)) == 0 && !awake })
	end()
	close(woken)
	for id := range woken {
		if id != r.Agent {
			t.Errorf("%s was woken without anything to do", id)
		}
	}
	var all []event.Type
	events, _ := s.System.events.Since(0)
	for _, e := range events {
		if e.Type == event.AgentWoke || e.Type == event.AgentSlept {
			all = append(all, e.Type)
		}
	}
	if !slices.Equal(all, []event.Type{event.AgentWoke, event.AgentSlept}) {
		t.Errorf("the events are %v", all)
	}
}

// An edit of a descriptor applies to an agent that is awake also where nothing is watched.
func TestAnEditAppliesWithoutAWatcher(t *testing.T) {
	s := newStill(t)
	id := s.colleague(t)
	seen := make(chan string, 2)
	end := s.run(t, func(ctx context.Context, rt Runtime) error {
		path := filepath.Join(rt.Dir, address.File)
		data, err := os.ReadFile(path)
		if err == nil {
			err = os.WriteFile(path, bytes.Replace(data, []byte(`"Ops"`), []byte(`"Ada"`), 1), 0o600)
		}
		seen <- rt.Identity().Descriptor.Name
		<-ctx.Done()
		return err
	})
	_, err := s.Deliver(t.Context(), message.Incoming{Agent: id, Text: "hello"})
	must(t, err)
	if name := <-seen; name != "Ada" {
		t.Errorf("it is %q", name)
	}
	end()
}

// Whoever looked an agent up while it went to sleep looks again.
func TestAnEntryThatIsGone(t *testing.T) {
	s := newStill(t)
	e, err := s.System.entry(s.colleague(t))
	must(t, err)
	s.System.rest(e.meta.ID)
	if _, err := e.open(); !errors.Is(err, errGone) {
		t.Errorf("%v, want %v", err, errGone)
	}
}

// What is found in an inbox is reported when it is opened.
func TestATornInboxIsReported(t *testing.T) {
	s := newStill(t)
	r, err := s.Deliver(t.Context(), from("one", "hello"))
	must(t, err)
	path := filepath.Join(s.System.folder(r.Agent), inbox.FileName)
	writeFile(t, path, readFile(t, path)+`{"torn`)
	_, err = s.Deliver(t.Context(), from("one", "again"))
	must(t, err)
	events, _ := s.System.events.Since(0)
	if !slices.ContainsFunc(events, func(e event.Event) bool {
		f, ok := e.Body.(event.File)
		return ok && e.Type == event.FileInvalid && e.Agent == r.Agent && f.File == path
	}) {
		t.Errorf("the events are %+v", events)
	}
}
