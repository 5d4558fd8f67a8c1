package engine

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"daycare/engine/address"
	"daycare/engine/event"
	"daycare/engine/inbox"
)

// waitFor polls for something that another goroutine does soon.
func waitFor(t *testing.T, what string, is func() bool) {
	t.Helper()
	for end := time.Now().Add(time.Minute); !is(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("never: " + what)
		}
	}
}

func TestAgentsBeyondTheLimitAreWokenAsPlacesBecomeFree(t *testing.T) {
	const limit, many = 3, 30
	var mu sync.Mutex
	awake, most, handled := 0, 0, map[string]bool{}
	h := newHouseWith(t, t.TempDir(), func(ctx context.Context, rt Runtime) error {
		mu.Lock()
		awake++
		most = max(most, awake)
		mu.Unlock()
		defer func() {
			mu.Lock()
			awake--
			mu.Unlock()
		}()

		err := echo(func(_ string, it inbox.Item) {
			mu.Lock()
			handled[it.Text] = true
			mu.Unlock()
		})(ctx, rt)
		if err != nil {
			return err
		}

		select { // idle, and in no hurry to leave
		case <-rt.Leave():
		case <-ctx.Done():
		}
		return nil
	}, Options{Awake: func() int { return limit }})
	for i := range many {
		h.deliver(from(fmt.Sprint("chat", i), fmt.Sprint("message", i)))
	}

	waitFor(t, "all messages handled", func() bool {
		mu.Lock()
		defer mu.Unlock()
		return len(handled) == many
	})
	if most > limit {
		t.Errorf("%d agents were awake at once, want at most %d", most, limit)
	}

	h.waker.mu.Lock()
	defer h.waker.mu.Unlock()
	if len(h.waker.line) > 0 || len(h.waker.granted) > 0 {
		t.Errorf("nobody has work, but %v wait and %v have unused places", h.waker.line, h.waker.granted)
	}
}

func TestAnAgentThatCouldNotBeWokenIsTriedAgain(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	hold := make(chan struct{})
	h := newHouse(t, root, func(ctx context.Context, _ Runtime) error { <-ctx.Done(); return nil })
	r := h.deliver(from("one", "kept"))
	if err := h.end(); err != nil {
		t.Fatal(err)
	}

	path := filepath.Join(root, "agents", r.Agent, inbox.FileName)
	if err := errors.Join(os.Rename(path, path+".away"), os.Mkdir(path, 0o700)); err != nil {
		t.Fatal(err)
	}
	h = newHouse(t, root, echo(func(string, inbox.Item) { close(hold) }))
	waitFor(t, "the failed wake is noted", func() bool { waits, err := h.waker.waits(r.Agent); return waits && err != nil })
	if a, err := h.Agent(t.Context(), r.Agent); err != nil || a.State != event.Failing || a.Detail == "" {
		t.Errorf("the agent is shown as %s (%s), %v; want failing and why", a.State, a.Detail, err)
	}
	if err := errors.Join(os.Remove(path), os.Rename(path+".away", path)); err != nil {
		t.Fatal(err)
	}

	select {
	case <-hold:
	case <-time.After(30 * time.Second):
		t.Error("the agent was never woken again")
	}
}

func TestFailedWakesPauseLongerAndAreLoggedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		var w *waker
		tries := map[string][]time.Time{}
		var mu sync.Mutex
		lack := fmt.Errorf("open inbox: %w", syscall.EMFILE)
		w = newWaker(func() int { return 10 }, func(id string) {
			mu.Lock()
			defer mu.Unlock()
			if !w.take(id) {
				return
			}
			tries[id] = append(tries[id], time.Now())
			if len(tries[id]) < 9 {
				w.unwoken(id, lack)
			} else {
				w.woke(id)
			}
			w.free()
		}, func(f func()) { go f() }, slog.New(slog.NewTextHandler(&log, nil)))
		ids := []string{"a", "b", "c"}
		for _, id := range ids {
			w.try(id)
		}

		time.Sleep(10 * time.Minute)
		synctest.Wait()
		for _, id := range ids {
			var pauses []string
			for i := range len(tries[id]) - 1 {
				pauses = append(pauses, tries[id][i+1].Sub(tries[id][i]).String())
			}
			if got, want := strings.Join(pauses, " "), "1s 2s 4s 8s 16s 32s 1m0s 1m0s"; got != want {
				t.Errorf("agent %s was tried after %s, want %s", id, got, want)
			}
		}

		if n := strings.Count(log.String(), "cannot wake"); n != 1 {
			t.Errorf("%d lines for one shortage of three agents:\n%s", n, &log)
		}
		if !strings.Contains(log.String(), "woken again") {
			t.Errorf("nothing says that it is over:\n%s", &log)
		}
	})
}

// A cause that an agent has alone is logged when it begins, and not at each try.
func TestAFailedWakeIsLoggedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		w := newWaker(func() int { return 1 }, func(string) {}, func(f func()) { go f() }, slog.New(slog.NewTextHandler(&log, nil)))
		defer w.close()
		for range 3 {
			w.unwoken("a", errors.New("broken"))
		}
		if n := strings.Count(log.String(), "again=1s"); n != 1 || strings.Count(log.String(), "cannot wake") != 1 {
			t.Errorf("logged is\n%s", &log)
		}
		w.well("a")
	})
}

// A shortage is logged when it begins, and its end once: the next one is a new one, and what has no shortage before it has no end.
func TestEachShortageIsLoggedWithItsEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		w := newWaker(func() int { return 1 }, func(string) {}, func(f func()) { go f() }, slog.New(slog.NewTextHandler(&log, nil)))
		defer w.close()
		for i := range 2 {
			w.unwoken("a", fmt.Errorf("open inbox: %w", syscall.EMFILE))
			w.unwoken("b", fmt.Errorf("open inbox: %w", syscall.EMFILE))
			w.woke("a")
			if n := strings.Count(log.String(), "woken again"); n != i {
				t.Errorf("the end is logged %d times, want %d while one agent is not back:\n%s", n, i, &log)
			}

			w.woke("b")
			w.unwoken("c", errors.New("broken"))
			w.woke("c")
			begins, ends := strings.Count(log.String(), syscall.EMFILE.Error()), strings.Count(log.String(), "woken again")
			if begins != i+1 || ends != i+1 {
				t.Errorf("after shortage %d: %d begins and %d ends are logged:\n%s", i+1, begins, ends, &log)
			}
		}
	})
}

// With a single place, whoever waits for another agent must not hold it.
func TestAnAgentThatWaitsForAnotherLendsItsPlace(t *testing.T) {
	var family *Family
	var h *house
	var other address.Meta
	done := make(chan error, 1)
	h = newHouseWith(t, t.TempDir(), func(ctx context.Context, rt Runtime) error {
		return echo(func(_ string, it inbox.Item) {
			if it.Text != "ask the other" {
				return
			}
			r, err := h.Deliver(ctx, from(other.Descriptor.ChannelID, "please"))
			if err == nil {
				_, err = family.Await(ctx, r.Agent, r.Item)
			}
			done <- err
		})(ctx, rt)
	}, Options{Awake: func() int { return 1 }})
	family = NewFamily(h.System, func() Limits { return Limits{} })
	var err error
	if other, err = h.lifecycle.registrar.create(address.Descriptor{
		Type: address.User, Connector: "c", ChannelID: "other", UserID: "u"}); err != nil {
		t.Fatal(err)
	}

	h.deliver(from("one", "ask the other"))
	select {
	case err := <-done:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(time.Minute):
		t.Fatal("the two wait for each other")
	}
}

// An agent whose runs fail has no place while it waits for its next one.
func TestFailingAgentsDoNotKeepThePlacesOfOthers(t *testing.T) {
	h := newHouseWith(t, t.TempDir(), func(ctx context.Context, rt Runtime) error {
		if strings.HasPrefix(rt.Meta.Descriptor.ChannelID, "bad") {
			return errors.New("seeded")
		}
		return echo(func(string, inbox.Item) {})(ctx, rt)
	}, Options{Awake: func() int { return 2 }})
	for i := range 4 {
		h.deliver(from(fmt.Sprint("bad", i), "x"))
	}

	for i := range 10 {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		r := h.deliver(from(fmt.Sprint("good", i), "x"))
		if _, err := h.Await(ctx, r.Agent, r.Item); err != nil {
			t.Errorf("agent %d waited for a failing one: %v", i, err)
		}
		cancel()
	}
}

func TestAnAgentThatEndsGivesUpItsPlaceInLine(t *testing.T) {
	busy, release := make(chan string, 1), make(chan struct{})
	h := newHouseWith(t, t.TempDir(), echo(func(agent string, it inbox.Item) {
		if it.Text == "long" {
			busy <- agent
			<-release
		}
	}), Options{Awake: func() int { return 1 }})
	h.deliver(from("one", "long"))
	<-busy
	two := h.deliver(from("two", "x"))
	three := h.deliver(from("three", "x"))
	if _, err := h.Remove(t.Context(), two.Agent, true); err != nil {
		t.Fatal(err)
	}

	close(release)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if _, err := h.Await(ctx, three.Agent, three.Item); err != nil {
		t.Errorf("the one behind the removed one: %v", err)
	}
}

func TestTheLimitOfAwakeAgentsFollowsTheDescriptors(t *testing.T) {
	var l syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &l); err != nil {
		t.Fatal(err)
	}
	if got := awakeLimit(1 << 30); uint64(got) > uint64(l.Cur) {
		t.Errorf("%d agents may be awake with %d descriptors", got, l.Cur)
	}
	if got := awakeLimit(5); got != 5 {
		t.Errorf("a setting of 5 gives %d", got)
	}
	if l.Cur != l.Max {
		t.Errorf("the soft limit %d is not the hard one %d", l.Cur, l.Max)
	}
}

// A raised limit applies at the next try of an agent that waits.
func TestARaisedLimitCountsAtOnce(t *testing.T) {
	limit, granted := 1, make(chan string, 1)
	w := newWaker(func() int { return limit }, func(id string) { granted <- id }, func(f func()) { go f() }, slog.New(slog.DiscardHandler))
	if !w.take("a") || w.take("b") {
		t.Fatal("with one place the first agent gets it, and the second one waits")
	}

	limit = 2
	w.take("b")
	if id := <-granted; id != "b" || !w.take("b") {
		t.Errorf("%s was given a place, want the agent that waits", id)
	}
}
