package engine

import (
	"context"
	"errors"
	"path/filepath"
	"time"

	"daycare/engine/address"
	"daycare/engine/disk"
	"daycare/engine/inbox"
	"daycare/engine/message"
	"daycare/engine/watch"
)

// A letter is a file that somebody put into drop/: it is taken like any message.
// The steps are such that a crash between any two of them neither loses the letter
// nor delivers it twice: it is renamed into drop/.taken under the id of its item,
// accepted under a dedupe key made of that id, and unlinked.

// letterDebounce is short: a letter moved in is complete when it appears.
const letterDebounce = 20 * time.Millisecond

// letterRetry is the pause after which a letter is tried again that found no room,
// or a disk that failed.
const letterRetry = 5 * time.Second

// watchLetters takes letters until ctx ends, each when the slot is seen to change.
func (s *System) watchLetters(ctx context.Context, w *watch.Watcher) {
	hints := make(chan struct{}, 1)
	dir := filepath.Join(s.root, "drop")
	w.Add(dir, watch.Options{Debounce: letterDebounce}, func(watch.Hint) {
		select {
		case hints <- struct{}{}:
		default:
		}
	})
	defer w.Remove(dir)
	for {
		var again <-chan time.Time
		if wait := s.takeLetters(ctx); wait > 0 {
			again = time.After(wait)
		}
		select {
		case <-hints:
		case <-again:
		case <-ctx.Done():
			return
		}
	}
}

// TakeLetters takes the letters that came while nothing ran. Whoever calls it before
// anything else can deliver has them before all that comes from now on. Its error is
// that of the volume; letters that cannot be delivered wait, and are tried again.
func (s *System) TakeLetters(ctx context.Context) error {
	s.takeLetters(ctx)
	return s.vol.Err()
}

// takeLetters takes what is ready, in the order in which it came. again > 0: look
// once more after that time, because a letter is still being written or there was no
// room for one.
func (s *System) takeLetters(ctx context.Context) (again time.Duration) {
	// Those that were taken and not delivered come first. Where one still cannot be,
	// the others to the same agent queue up behind it in .taken.
	stuck := map[string]bool{}
	taken, err := s.slot.Taken()
	if err != nil {
		s.log.Warn("taken letters cannot be read", "err", err)
	}
	for _, l := range taken {
		s.inOrder(ctx, l, stuck)
	}
	names, again, err := s.slot.Ready(time.Now())
	if err != nil {
		s.log.Error("letters cannot be listed", "err", err)
		return again
	}
	for _, name := range names {
		if ctx.Err() != nil {
			return again
		}
		letter, err := s.slot.Take(name)
		if errors.Is(err, disk.ErrFull) {
			return letterRetry
		}
		if err != nil {
			s.log.Warn("letter not taken", "letter", name, "err", err)
			again = letterRetry
			continue
		}
		s.inOrder(ctx, letter, stuck)
	}
	if len(stuck) > 0 {
		again = letterRetry
	}
	return again
}

// inOrder delivers a letter, unless one before it to the same agent could not be:
// the agents of such are in stuck.
func (s *System) inOrder(ctx context.Context, l inbox.Letter, stuck map[string]bool) {
	if stuck[l.Ref] {
		return
	}
	if err := s.open(ctx, l); err != nil {
		s.log.Warn("letter not delivered", "letter", l.Name, "err", err)
		stuck[l.Ref] = true
	}
}

// open delivers one letter that was taken and removes it; one that cannot be
// delivered goes to drop/bad with the reason.
func (s *System) open(ctx context.Context, l inbox.Letter) error {
	in := incoming(l)
	_, err := s.Deliver(ctx, in)
	switch {
	case err == nil:
		return s.slot.Finish(l)
	case !final(err) || ctx.Err() != nil:
		return err // it stays in .taken
	}
	s.log.Warn("letter refused", "letter", l.Name, "err", err)
	return s.slot.Refuse(l.Name, err)
}

// final reports whether trying again would be no use: the fault is in the letter.
func final(err error) bool {
	return errors.Is(err, message.ErrUnknownAgent) || errors.As(err, new(*address.Ambiguous)) ||
		errors.Is(err, ErrEmpty) || errors.Is(err, inbox.ErrTooLarge)
}

// incoming is a letter as a message. One without an agent is for the terminal's.
func incoming(l inbox.Letter) message.Incoming {
	it := l.Item
	in := message.Incoming{Agent: l.Ref, Kind: it.Kind, ID: it.ID, Dedupe: it.Dedupe, Context: it.Context,
		Route: it.Route, Text: it.Text, Files: it.Files, Origin: it.Origin, Silent: it.Silent, Queue: it.Queue}
	if l.Ref == "" {
		in.From = Terminal()
	}
	return in
}
