package chat

import (
	"context"
	"errors"
	"fmt"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"daycare/engine/disk"
	"daycare/engine/inbox"
	"daycare/engine/message"
)

// from is a message of someone.
func from(user, key, text string) Post {
	return Post{Key: key, From: message.Address{ChannelID: "c-" + user, UserID: user}, Text: text}
}

// Of a sender who is refused so much waits and no more: then they are told, once. It
// is kept over a restart, and others are not touched.
func TestWaitingIsBounded(t *testing.T) {
	w := newWorld()
	w.refuse = inbox.ErrFull
	d := w.desk(Options{Settings: Settings{Allow: []string{"eve", "bob"}}}, talker{w})
	for i := range maxWaiting + 10 {
		if err := d.Take(t.Context(), w.deliver, from("eve", fmt.Sprint(i), "hello")); err != nil {
			t.Fatal(err)
		}
	}

	long := from("bob", "long", strings.Repeat("x", maxWaitingBytes+1))
	if err := errors.Join(d.Take(t.Context(), w.deliver, from("bob", "b", "hi")), d.Take(t.Context(), w.deliver, long)); err != nil {
		t.Fatal(err)
	}
	if said := w.heard(); len(said) != 2 || !strings.HasPrefix(said[0], "c-eve: Too many") ||
		!strings.HasPrefix(said[1], "c-bob: Too many") {
		t.Errorf("said %q, want each told once", said)
	}

	w.refuse = nil
	d = w.desk(Options{Settings: Settings{Allow: []string{"eve", "bob"}}}, talker{w}) // a new process
	ctx, cancel := context.WithCancel(t.Context())
	var run sync.WaitGroup
	run.Go(func() { d.Run(ctx, w.deliver, time.Millisecond) })
	for end := time.Now().Add(30 * time.Second); len(headsOf(d)) > 0 && time.Now().Before(end); {
		time.Sleep(time.Millisecond)
	}

	cancel()
	run.Wait()
	if len(w.taken) != maxWaiting+1 {
		t.Errorf("%d messages were delivered, want %d", len(w.taken), maxWaiting+1)
	}
}

// Who writes too fast is tried again when they may write, and not before.
func TestWaitingForWhoIsTooFast(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		d := w.desk(Options{}, talker{w})
		var tried []time.Duration
		begin := time.Now()
		deliver := func(ctx context.Context, in message.Incoming) (message.Receipt, error) {
			if tried = append(tried, time.Since(begin)); len(tried) < 3 {
				return message.Receipt{}, &message.TooFast{After: time.Minute}
			}
			return w.deliver(ctx, in)
		}
		ctx, cancel := context.WithCancel(t.Context())
		go d.Run(ctx, deliver, time.Second)
		if err := d.Take(ctx, deliver, post("hello")); err != nil {
			t.Fatal(err)
		}

		time.Sleep(5 * time.Minute)
		cancel()
		synctest.Wait()
		if fmt.Sprint(tried) != "[0s 0s 1m0s]" || len(w.taken) != 1 {
			t.Errorf("tried at %v, %d delivered", tried, len(w.taken))
		}
	})
}

// What cannot be kept, and what concerns everybody, stays with the platform.
func TestNotKeptIsRefused(t *testing.T) {
	for _, refusal := range []error{disk.ErrFull, disk.ErrFailed} {
		w := newWorld()
		w.refuse = refusal
		if err := w.desk(Options{}, talker{w}).Take(t.Context(), w.deliver, post("hello")); !errors.Is(err, refusal) {
			t.Errorf("Take = %v, want %v", err, refusal)
		}
	}

	w := newWorld()
	w.refuse, w.keepErr = inbox.ErrFull, errors.New("no space")
	d := w.desk(Options{}, talker{w})
	for range 2 {
		if err := d.Take(t.Context(), w.deliver, post("hello")); !errors.Is(err, inbox.ErrFull) {
			t.Errorf("Take = %v, want %v", err, inbox.ErrFull)
		}
	}

	w.keepErr = nil
	w.hints = map[string][]byte{waitingFile: []byte("\x00\x00{")} // lost, and no end of anything
	w.refuse = nil
	d = w.desk(Options{}, talker{w})
	if err := d.Take(t.Context(), w.deliver, post("hello")); err != nil || len(w.taken) != 1 {
		t.Errorf("with a broken file Take = %v, %d delivered", err, len(w.taken))
	}
}

// A message that breaks its handler again and again is passed over.
func TestWaitingThatBreaks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		w.refuse = inbox.ErrFull
		d := w.desk(Options{}, talker{w})
		if err := d.Take(t.Context(), w.deliver, post("bad")); err != nil {
			t.Fatal(err)
		}

		w.refuse = nil
		ctx, cancel := context.WithCancel(t.Context())
		go d.Run(ctx, func(ctx context.Context, in message.Incoming) (message.Receipt, error) {
			if in.Text == "bad" {
				panic("broken on purpose")
			}
			return w.deliver(ctx, in)
		}, time.Second)

		time.Sleep(time.Minute)
		cancel()
		synctest.Wait()
		if len(headsOf(d)) != 0 || !strings.Contains(w.log.String(), "broken on purpose") {
			t.Errorf("%d messages wait, log:\n%s", len(headsOf(d)), &w.log)
		}
	})
}

func TestRefuse(t *testing.T) {
	for _, tt := range []struct {
		err   error
		code  int
		after string
	}{
		{&message.TooFast{After: 6 * time.Second}, 429, "7"}, {inbox.ErrFull, 429, "5"},
		{disk.ErrFull, 503, "30"}, {errors.New("any"), 503, ""},
	} {
		r := httptest.NewRecorder()
		if Refuse(r, tt.err); r.Code != tt.code || r.Header().Get("Retry-After") != tt.after {
			t.Errorf("%v: %d after %q, want %d after %q", tt.err, r.Code, r.Header().Get("Retry-After"), tt.code, tt.after)
		}
	}
}

// headsOf are the messages that are tried next.
func headsOf(d *Desk) []message.Incoming {
	all, err := d.waiting.heads()
	if err != nil {
		panic(err)
	}
	return all
}

// Messages that wait and cannot be read at this moment are not replaced by those that come: all else
// is refused, which the platform offers again, until they can be read. Then they come first.
func TestWaitingThatCannotBeReadNow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		w.refuse = inbox.ErrFull
		if err := w.desk(Options{}, talker{w}).Take(t.Context(), w.deliver, post("before")); err != nil {
			t.Fatal(err)
		}
		kept := string(w.hints[waitingFile])
		w.loadErr = syscall.EMFILE
		d := w.desk(Options{}, talker{w}) // the next process
		ctx, cancel := context.WithCancel(t.Context())
		go d.Run(ctx, w.deliver, time.Second)
		for _, refused := range []error{inbox.ErrFull, nil} {
			w.refuse = refused
			if err := d.Take(t.Context(), w.deliver, post("now")); !errors.Is(err, syscall.EMFILE) {
				t.Errorf("Take = %v", err)
			}
			if done, err := d.waiting.amend(message.Amendment{MessageID: "1", Deleted: true}); done || !errors.Is(err, syscall.EMFILE) {
				t.Errorf("amend = %v, %v", done, err)
			}
			time.Sleep(time.Minute)
		}
		if string(w.hints[waitingFile]) != kept || len(w.taken) != 0 {
			t.Errorf("%q became %q, %d delivered", kept, w.hints[waitingFile], len(w.taken))
		}

		w.mu.Lock()
		w.loadErr = nil
		w.mu.Unlock()
		time.Sleep(time.Minute)
		if err := d.Take(t.Context(), w.deliver, post("now")); err != nil {
			t.Error(err)
		}
		cancel()
		synctest.Wait()
		if got := w.texts(); !slices.Equal(got, []string{"before", "now"}) {
			t.Errorf("delivered are %q", got)
		}
	})
}

// A file of messages that wait which is broken is kept beside the next one.
func TestWaitingThatIsBroken(t *testing.T) {
	w := newWorld()
	w.hints, w.refuse = map[string][]byte{waitingFile: []byte(`[{"text":"lost`)}, inbox.ErrFull
	w.keepErr = errors.New("no space")
	if err := w.desk(Options{}, talker{w}).Take(t.Context(), w.deliver, post("hello")); err == nil {
		t.Error("what cannot be kept is kept")
	}
	w.keepErr = nil
	if err := w.desk(Options{}, talker{w}).Take(t.Context(), w.deliver, post("hello")); err != nil {
		t.Fatal(err)
	}
	if string(w.hints[brokenFile]) != `[{"text":"lost` || !strings.Contains(string(w.hints[waitingFile]), "hello") {
		t.Errorf("%q and %q", w.hints[brokenFile], w.hints[waitingFile])
	}
}
