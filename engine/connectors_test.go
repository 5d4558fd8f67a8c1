package engine

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"daycare/engine/event"
	"daycare/engine/message"
)

// line is a connector that notes what happens to it.
type line struct {
	id    string
	notes *notes
	fail  error // of Run, at once
	send  error
}

type notes struct {
	mu  sync.Mutex
	all []string
}

func (n *notes) add(text string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.all = append(n.all, text)
}

func (n *notes) take() []string {
	n.mu.Lock()
	defer n.mu.Unlock()
	all := n.all
	n.all = nil
	slices.Sort(all)
	return all
}

func (l *line) ID() string { return l.id }
func (l *line) Run(ctx context.Context, _ message.Deliver) error {
	l.notes.add(l.id + " begins")
	if l.fail == nil {
		message.Up(ctx)
	}
	if l.fail != nil {
		return l.fail
	}
	<-ctx.Done()
	time.Sleep(time.Second) // it takes a while to end
	l.notes.add(l.id + " ended")

	return nil
}

func (l *line) Send(context.Context, message.Outgoing) (string, error) { return l.id, l.send }

// Connectors are replaced, added and removed while others continue; the old one of an
// id has ended before the new one begins.
func TestConnectorsAreChangedWhileTheyRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var n notes
		l := newConnectors(nil, func(string, error, time.Duration) {}, nil)
		a, b := &line{id: "a", notes: &n}, &line{id: "b", notes: &n}
		if err := l.set([]Connector{a, b}); err != nil {
			t.Fatal(err)
		}

		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() { l.receive(ctx); close(done) }()
		synctest.Wait()
		want := func(what string, notes ...string) {
			t.Helper()
			synctest.Wait()
			if got := n.take(); !slices.Equal(got, notes) {
				t.Errorf("%s: %q, want %q", what, got, notes)
			}
		}
		want("start", "a begins", "b begins")
		b2, c := &line{id: "b", notes: &n}, &line{id: "c", notes: &n}
		begun := make(chan error, 1)
		go func() { begun <- l.set([]Connector{a, b2, c}) }()
		want("the old one is still ending")
		if err := <-begun; err != nil {
			t.Fatal(err)
		}

		want("changed", "b begins", "b ended", "c begins")
		if got, ok := l.get("b"); !ok || got != b2 {
			t.Errorf("b is %v, want the new one", got)
		}
		if err := l.set([]Connector{a, a}); err == nil {
			t.Error("two connectors of one id were taken")
		}
		if err := l.set([]Connector{c}); err != nil {
			t.Fatal(err)
		}

		want("removed", "a ended", "b ended")
		if _, ok := l.get("a"); ok {
			t.Error("a removed connector still sends")
		}
		if got := l.services(); len(got) != 1 || got[0].ID != "c" || got[0].State != event.Running {
			t.Errorf("services %+v, want c running", got)
		}

		cancel()
		<-done
		want("end", "c ended")
	})
}

// A connector that fails is started again, and says why it failed, until it is
// replaced by one that works.
func TestAFailingConnectorIsReplaced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var n notes
		failed := 0
		stream := event.NewStream("t")
		told := stream.Subscribe(t.Context())
		l := newConnectors(nil, func(string, error, time.Duration) { failed++ }, stream)
		must(t, l.set([]Connector{&line{id: "a", notes: &n, fail: errors.New("port taken")}}))
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() { l.receive(ctx); close(done) }()
		time.Sleep(2 * restartFirst)
		synctest.Wait()
		got := l.services()[0]
		if failed < 2 || got.State != event.Degraded || got.LastError != "port taken" {
			t.Errorf("failed %d times, %+v", failed, got)
		}
		if got.Since == nil || !got.Since.Before(time.Now().Add(-restartFirst)) || got.NextTry == nil || !got.NextTry.After(time.Now()) {
			t.Errorf("since %v, next try %v: want since its first failure, and a try that is still to come", got.Since, got.NextTry)
		}

		must(t, l.set([]Connector{&line{id: "a", notes: &n}}))
		synctest.Wait()
		if got := l.services()[0]; got.State != event.Running || got.LastError != "" || got.NextTry != nil {
			t.Errorf("the new one: %+v", got)
		}
		cancel()
		<-done

		var states []string
		for len(told) > 0 {
			if e := <-told; e.Type == event.ConnectorState {
				states = append(states, e.Body.(event.Service).State)
			}
		}
		want := []string{event.Connecting, event.Degraded, event.Connecting, event.Running, event.Stopped}
		if !slices.Equal(states, want) {
			t.Errorf("events tell %q, want %q: each change once", states, want)
		}
	})
}

// A spell is a connector that works for a while each time it is started.
type spell struct {
	*line
	lasts []time.Duration
}

func (s *spell) Run(context.Context, message.Deliver) error {
	time.Sleep(s.lasts[0])
	s.lasts = s.lasts[1:]
	return errors.New("the line is dead")
}

// The pauses of a connector that fails grow, up to a bound, and begin anew after it worked.
func TestPausesOfAConnector(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		var pauses []time.Duration
		l := newConnectors(nil, func(_ string, _ error, pause time.Duration) {
			if pauses = append(pauses, pause); len(pauses) == 12 {
				cancel()
			}
		}, nil)
		lasts := make([]time.Duration, 12)
		lasts[10], lasts[11] = restartLast+time.Second, restartLast
		must(t, l.set([]Connector{&spell{&line{id: "a"}, lasts}}))
		l.receive(ctx)
		want := []time.Duration{}
		for pause := restartFirst; len(want) < 10; pause = min(2*pause, restartLast) {
			want = append(want, pause)
		}
		if want = append(want, restartFirst, 2*restartFirst); !slices.Equal(pauses, want) {
			t.Errorf("pauses %v, want %v", pauses, want)
		}
	})
}

// What was promised while a connector could not send leaves by the one that
// replaces it; where it was removed, it is given up.
func TestPromisesLeaveByTheNewConnector(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var n notes
		l := newConnectors(nil, func(string, error, time.Duration) {}, nil)
		s := newSenders(l.get, func(string) {}, Outlet{}, event.NewStream("t"), slog.New(slog.DiscardHandler))
		results := make(chan message.Result, 10)
		promise := func(id string) message.Promise {
			return message.Promise{Outgoing: message.Outgoing{ID: id, To: message.Address{Connector: "a", ChannelID: id}, Text: "x"},
				Since: time.Now(), Report: func(f message.Result) { results <- f }}
		}
		must(t, l.set([]Connector{&line{id: "a", notes: &n, send: errors.New("old token")}}))
		s.send(promise("one"))
		if f := <-results; f.Delivered() || f.Final {
			t.Errorf("first try: %+v", f)
		}

		must(t, l.set([]Connector{&line{id: "a", notes: &n}}))
		if f := <-results; !f.Delivered() || !f.Retry {
			t.Errorf("by the new connector: %+v", f)
		}
		must(t, l.set([]Connector{&line{id: "a", notes: &n, send: errors.New("old token")}}))
		s.send(promise("two"))
		<-results
		must(t, l.set(nil))
		if f := <-results; !f.Final || f.Error != "connector a was removed" {
			t.Errorf("after it was removed: %+v", f)
		}

		s.close(time.Second)
	})
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// Who writes too fast waits, alone; what was refused does not count, and nothing
// of it is remembered for long.
func TestASenderHasItsPace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		limit := 60
		var refuse error
		taken := map[string]int{}
		p := newRateLimit(func(_ context.Context, in message.Incoming) (message.Receipt, error) {
			if refuse == nil {
				taken[in.From.UserID]++
			}
			return message.Receipt{}, refuse
		}, func() int { return limit })
		write := func(user string, kind message.Kind) error {
			_, err := p.deliver(t.Context(),
				message.Incoming{Kind: kind,
					From: message.Address{Connector: "c", ChannelID: "1", UserID: user, ThreadID: fmt.Sprint(taken[user])}})
			return err
		}
		refuse = os.ErrClosed

		for range 100 {
			if err := write("ada", message.Text); err != os.ErrClosed {
				t.Fatal(err)
			}
		}
		refuse = nil
		for range 100 {
			write("ada", message.Text)
		}

		var fast *message.TooFast
		if err := write("ada", message.Text); taken["ada"] != 60 || !errors.As(err, &fast) ||
			fast.After != time.Second || fast.Seconds() != 2 {
			t.Errorf("%d taken of 100 at once, then %v; want 60, then one a second", taken["ada"], err)
		}
		must(t, write("ada", message.Reset))
		must(t, write("bob", message.Text))
		time.Sleep(10 * time.Second)
		for range 100 {
			write("ada", message.Text)
		}

		if taken["ada"] != 60+1+10 {
			t.Errorf("%d taken after ten seconds, want ten more", taken["ada"]-61)
		}
		limit = 0
		must(t, write("ada", message.Text))
		limit = 600
		time.Sleep(time.Minute)
		for i := range maxLimited + 100 {
			must(t, write(fmt.Sprint(i), message.Text))
		}

		if n := len(p.senders); n > maxLimited {
			t.Errorf("%d senders are remembered, want at most %d", n, maxLimited)
		}
	})
}
