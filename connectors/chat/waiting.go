package chat

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"slices"
	"sync"
	"time"

	"daycare/engine/disk"
	"daycare/engine/message"
)

// waitingFile is where messages wait, as a JSON array, oldest first. One that is broken is kept
// under the other name.
const (
	waitingFile = "waiting.json"
	brokenFile  = "waiting.broken.json"
)

// Limits of the queue. Beyond them a message is refused, and its sender is notified.
const (
	maxWaiting         = 20 // of one sender
	maxWaitingAll      = 500
	maxWaitingBytes    = 256 << 10 // of text of one sender
	maxWaitingBytesAll = 2 << 20
)

// waiting are messages that the engine refused because of their sender: the agent's
// inbox is full, or they write too fast. A platform that offers all messages in one row
// is told that they were received, and continues with those of others.
type waiting struct {
	connector string
	keeper    Keeper // keeps durably; nil: nothing waits here, the platform offers it again
	log       *slog.Logger
	wake      chan struct{} // capacity 1: something was added
	strikes   Strikes

	mu   sync.Mutex
	read bool
	all  []message.Incoming
	busy string          // the dedupe key of the message that is being tried
	told map[sender]bool // that what they write is not taken
}

// A sender is someone in one chat.
type sender struct{ channel, user string }

func senderOf(in message.Incoming) sender { return sender{in.From.ChannelID, in.From.UserID} }

func newWaiting(connector string, k Keeper, log *slog.Logger) *waiting {
	return &waiting{connector: connector, keeper: k, log: log, wake: make(chan struct{}, 1), told: map[sender]bool{},
		strikes: Strikes{Log: log}}
}

// load reads what waited when the process ended. Until it can be read nothing is kept: that would
// replace it. mu is held.
func (w *waiting) load() error {
	if w.read || w.keeper == nil {
		return nil
	}
	data, err := w.keeper.Load(w.connector, waitingFile)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("read messages waiting to be accepted: %w", err)
	}
	if err == nil {
		err = json.Unmarshal(data, &w.all)
	}
	if err != nil && len(data) > 0 {
		w.log.Error("cannot read messages waiting to be accepted; the file is kept", "file", waitingFile, "kept", brokenFile, "err", err)
		if err := w.keeper.Save(w.connector, brokenFile, data); err != nil {
			return fmt.Errorf("keep a broken %s: %w", waitingFile, err)
		}
	}
	w.read = true

	return nil
}

// again has the messages read anew: another machine may have received in between.
func (w *waiting) again() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.keeper != nil {
		w.read, w.all = false, nil
	}
}

// save keeps all durably. mu is held.
func (w *waiting) save() error {
	data, err := json.MarshalIndent(w.all, "", "  ")
	if err == nil {
		err = w.keeper.Save(w.connector, waitingFile, append(data, '\n'))
	}
	if err != nil {
		return fmt.Errorf("save a waiting message: %w", err)
	}

	return nil
}

// behind reports whether a message has to wait because an earlier one of its sender
// does.
func (w *waiting) behind(in message.Incoming) (bool, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	err := w.load()
	return slices.ContainsFunc(w.all, func(other message.Incoming) bool { return senderOf(other) == senderOf(in) }), err
}

// add makes a message wait, durably. false: there is no room; first says that its
// sender does not know that yet.
func (w *waiting) add(in message.Incoming) (kept, first bool, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if err := w.load(); err != nil {
		return false, false, err
	}
	who := senderOf(in)
	n, bytes, total := 0, len(in.Text), len(in.Text)
	for _, other := range w.all {
		if other.Dedupe == in.Dedupe {
			return true, false, nil // the platform offers it again
		}
		if total += len(other.Text); senderOf(other) == who {
			n, bytes = n+1, bytes+len(other.Text)
		}
	}

	if n >= maxWaiting || len(w.all) >= maxWaitingAll || bytes > maxWaitingBytes || total > maxWaitingBytesAll {
		first, w.told[who] = !w.told[who], true
		return false, first, nil
	}
	w.all = append(w.all, in)
	if err := w.save(); err != nil {
		w.all = w.all[:len(w.all)-1]
		return false, false, err
	}

	select {
	case w.wake <- struct{}{}:
	default:
	}

	return true, false, nil
}

// remove takes out a message that is done with. If that cannot be kept it is delivered
// once more after a restart, and dropped by its key.
func (w *waiting) remove(in message.Incoming) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.told, senderOf(in))
	w.all = slices.DeleteFunc(w.all, func(other message.Incoming) bool { return other.Dedupe == in.Dedupe })
	if err := w.save(); err != nil {
		w.log.Warn("cannot remove an accepted message from the waiting ones", "err", err)
	}
}

// heads are the oldest messages of each sender.
func (w *waiting) heads() (all []message.Incoming, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	err = w.load()
	seen := map[sender]bool{}
	for _, in := range w.all {
		if who := senderOf(in); !seen[who] {
			seen[who] = true
			all = append(all, in)
		}
	}

	return all, err
}

// An attempt is when a sender's oldest message is tried again.
type attempt struct {
	at time.Time
	n  int
}

// run tries what waits until ctx ends, each sender in order and none behind another.
// pause is waited after the first refusal.
func (w *waiting) run(ctx context.Context, pause time.Duration, deliver func(context.Context, message.Incoming) error) {
	tries := map[sender]attempt{}
	for {
		var next time.Time
		heads, err := w.heads()
		if err != nil {
			w.log.Warn("messages that wait are not tried yet", "err", err)
			next = time.Now().Add(pause)
		}
		for _, in := range heads {
			who := senderOf(in)
			a := tries[who]
			if now := time.Now(); !now.Before(a.at) {
				a = w.try(ctx, in, a, pause, deliver)
			}
			if ctx.Err() != nil {
				return
			}

			tries[who] = a
			if next.IsZero() || a.at.Before(next) {
				next = a.at
			}
		}

		var due <-chan time.Time
		if !next.IsZero() {
			due = time.After(time.Until(next))
		} else {
			clear(tries)
		}

		select {
		case <-ctx.Done():
			return
		case <-w.wake:
		case <-due:
		}
	}
}

// try tries one message and says when to continue with its sender.
func (w *waiting) try(ctx context.Context, in message.Incoming, a attempt, pause time.Duration,
	deliver func(context.Context, message.Incoming) error) (next attempt) {
	in, ok := w.begin(in)
	if !ok {
		return a // its sender deleted it
	}
	defer w.end()
	err := w.strikes.Guard(in.Dedupe, func() error { return deliver(ctx, in) })
	var fast *message.TooFast
	wait := min(pause<<min(a.n, 10), longPause)
	switch {
	case err == nil:
		w.remove(in)
		return attempt{at: time.Now()}
	case errors.As(err, &fast):
		wait = max(wait, fast.After)
	}

	w.log.Debug("waiting message not accepted", "err", err, "in", wait)

	return attempt{at: time.Now().Add(wait), n: a.n + 1}
}

// begin returns a message as it is now, and keeps it from being amended until end.
func (w *waiting) begin(in message.Incoming) (message.Incoming, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	i := slices.IndexFunc(w.all, func(now message.Incoming) bool { return now.Dedupe == in.Dedupe })
	if i < 0 {
		return in, false
	}
	w.busy = in.Dedupe

	return w.all[i], true
}

func (w *waiting) end() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.busy = ""
}

// ofSender reports whether a refusal concerns the sender of a message alone. A disk that
// is full or broken concerns all, and nothing can be kept then.
func ofSender(ctx context.Context, err error) bool {
	return ctx.Err() == nil && !errors.Is(err, disk.ErrFull) && !errors.Is(err, disk.ErrFailed)
}
