package engine

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strings"
	"syscall"
	"testing"

	"daycare/engine/address"
	"daycare/engine/folders"
	"daycare/engine/inbox"
	"daycare/engine/message"
	"daycare/engine/permission"
)

// A message needs an agent or a whole address, and says something.
func TestMessagesThatAreForNobody(t *testing.T) {
	s := newStill(t)
	id := s.colleague(t)
	for name, tt := range map[string]struct {
		in   message.Incoming
		want error
	}{
		"no address":         {message.Incoming{Text: "x"}, message.ErrUnknownAgent},
		"a connector alone":  {message.Incoming{From: message.Address{Connector: "c"}, Text: "x"}, message.ErrUnknownAgent},
		"a channel alone":    {message.Incoming{From: message.Address{ChannelID: "1"}, Text: "x"}, message.ErrUnknownAgent},
		"no text":            {message.Incoming{Agent: id, Text: " \n"}, ErrEmpty},
		"a note without one": {message.Incoming{Agent: id, Kind: message.System}, ErrEmpty},
		"a long one":         {message.Incoming{Agent: id, Text: strings.Repeat("x", inbox.MaxItemBytes+1)}, inbox.ErrTooLarge},
		"the longest":        {message.Incoming{Agent: id, Text: strings.Repeat("x", inbox.MaxItemBytes-1000)}, nil},
		"a file alone":       {message.Incoming{Agent: id, Files: []message.File{{Name: "a.txt"}}}, nil},
		"a reset":            {message.Incoming{Agent: id, Kind: message.Reset}, nil},
	} {
		if _, err := s.Deliver(t.Context(), tt.in); !errors.Is(err, tt.want) || (err == nil) != (tt.want == nil) {
			t.Errorf("%s: %v, want %v", name, err, tt.want)
		}
	}

	if n := len(s.index.All()); n != 1 {
		t.Errorf("there are %d agents", n)
	}
}

// What has passed too many agents goes no further, and starts nothing.
func TestMessagesThatWentThroughManyAgentsEnd(t *testing.T) {
	s := newStill(t)
	one, two := s.colleague(t), s.colleague(t)
	for hops, want := range map[int]error{MaxHops: nil, MaxHops + 1: ErrHops} {
		child := fmt.Sprintf("%024d", hops)
		_, post := s.Post(t.Context(), message.Incoming{Origin: one, Agent: two, Text: "x", Hops: hops})
		_, start := s.Family.Create(t.Context(), address.Descriptor{Type: address.Subagent, ID: child, Name: "c", ParentAgentID: one},
			message.Incoming{Origin: one, Text: "x", Hops: hops})
		if !errors.Is(post, want) || !errors.Is(start, want) {
			t.Errorf("after %d agents: %v and %v, want %v", hops, post, start, want)
		}
		if _, made := s.index.Get(child); made != (want == nil) {
			t.Errorf("after %d agents a child was made: %v", hops, made)
		}
	}
}

// openFiles is how many files this process has open.
func openFiles(t *testing.T) int {
	t.Helper()
	entries, err := os.ReadDir("/dev/fd")
	if err != nil {
		t.Skip(err)
	}
	return len(entries)
}

// Whatever users do to agents that sleep leaves none of their files open.
func TestSleepingAgentsHaveNoFileOpen(t *testing.T) {
	s := newStill(t)
	first := s.colleague(t)
	_, err := s.Deliver(t.Context(), message.Incoming{Agent: first, Text: "x"})
	must(t, err)
	before := openFiles(t)
	gone, cancel := context.WithCancel(t.Context())
	cancel()

	for range 5 {
		id := s.colleague(t)
		r, err := s.Deliver(t.Context(), message.Incoming{Agent: id, Text: "x"})
		must(t, err)
		last, err := s.Deliver(t.Context(), message.Incoming{Agent: id, Text: "y", Dedupe: "k"})
		must(t, err)
		if again, err := s.Deliver(t.Context(), message.Incoming{Agent: id, Text: "y", Dedupe: "k"}); err != nil || !again.Duplicate {
			t.Errorf("%+v, %v", again, err)
		}
		if _, err := s.System.Await(gone, id, r.Item); !errors.Is(err, context.Canceled) {
			t.Error(err)
		}

		must(t, s.Front(t.Context(), id, last.Item))
		must(t, s.Drop(t.Context(), id, last.Item))
		if err := s.Drop(t.Context(), id, last.Item); err == nil {
			t.Error("an item was dropped twice")
		}
		p, _, err := s.asks.Ask(id, permission.Owner{}, mustGeneral(t, "@web"))
		must(t, err)
		_, err = s.Deliver(t.Context(), message.Incoming{Agent: id, Kind: message.Permission, Dedupe: p.DedupeKey(), Token: p.Token,
			Decision: string(permission.Once), By: "ada", Tag: "@web", SHA256: p.SHA256})
		must(t, err)
		if first, err := s.Decide(t.Context(), p.Token, permission.Deny, "bob"); err != nil || first == nil {
			t.Errorf("%+v, %v", first, err)
		}
	}

	if after := openFiles(t); after != before {
		t.Errorf("%d files are left open", after-before)
	}
}

// shortWriter takes so many bytes, and no more.
type shortWriter struct{ left int }

func (w *shortWriter) Write(p []byte) (int, error) {
	if w.left -= len(p); w.left < 0 {
		return 0, syscall.EPIPE
	}
	return len(p), nil
}

// An export whose reader goes away is an error wherever that happens: what came is no
// whole agent.
func TestAnExportThatIsCutIsAnError(t *testing.T) {
	s := newStill(t)
	id := s.colleague(t)
	spend(t, s.System, id, 1)
	for size := 0; ; size += 256 {
		err := folders.Export(s.System.root, id, &shortWriter{size})
		if err == nil {
			if size < 2048 {
				t.Errorf("%d bytes were enough", size)
			}
			break
		}
		if !errors.Is(err, syscall.EPIPE) {
			t.Fatalf("cut after %d bytes: %v", size, err)
		}
	}

	var whole strings.Builder
	must(t, folders.Export(s.System.root, id, &whole))
	for size := 0; size < whole.Len()-3*512; size += 100 { // what fills the last block, and two empty ones, may be missing
		if a, err := s.Import(t.Context(), io.LimitReader(strings.NewReader(whole.String()), int64(size)), "twin"); err == nil {
			t.Fatalf("the first %d of %d bytes became %+v", size, whole.Len(), a)
		}
	}

	if n := len(s.index.All()); n != 1 {
		t.Errorf("there are %d agents", n)
	}
}

// Idle agents are asked to leave while others wait for a place, and not afterwards; the
// timer of a trouble that is over wakes nobody.
func TestNobodyIsAskedToLeaveForNothing(t *testing.T) {
	var w *waker
	woken := make(chan string, 10)
	w = newWaker(func() int { return 1 }, func(id string) {
		if w.take(id) {
			woken <- id
		}
	}, func(f func()) { go f() }, slog.New(slog.DiscardHandler))
	defer w.close()
	if !w.take("a") || w.take("b") {
		t.Fatal("there is one place")
	}
	if n := len(w.leave); n != 1 {
		t.Errorf("%d are asked to leave for the one who waits", n)
	}

	<-w.leave // an idle agent takes it, and gets work at the same moment
	if w.stayed(); len(w.leave) != 1 {
		t.Errorf("%d others are asked to leave when one stays", len(w.leave))
	}
	w.free()
	if id := <-woken; id != "b" {
		t.Errorf("%s was woken", id)
	}
	if n := len(w.leave); n != 0 {
		t.Errorf("%d are asked to leave for nobody", n)
	}

	w.failed("c", os.ErrClosed)
	old := w.trouble["c"]
	w.well("c")
	w.due("c", old)
	if waits, _ := w.waits("c"); waits {
		t.Error("an agent that is well waits for its next try")
	}
}
