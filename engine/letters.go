package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"daycare/engine/address"
	"daycare/engine/crash"
	"daycare/engine/disk"
	"daycare/engine/finding"
	"daycare/engine/inbox"
	"daycare/engine/message"
	"daycare/engine/watch"
)

// A dropped message is a file that somebody put into drop/: it is taken like any message.
// The steps are such that a crash between any two of them neither loses the letter
// nor delivers it twice: it is renamed into drop/.taken under the id of its item,
// accepted under a dedupe key made of that id, and unlinked.

// dropDebounce is short: a dropped message moved in is complete when it appears.
const dropDebounce = 20 * time.Millisecond

// dropRetry is the pause after which a dropped message is tried again that found no room,
// or a disk that failed.
const dropRetry = 5 * time.Second

// drops are files that become messages.
type drops struct {
	place
	mailroom   *mailroom
	dropFolder *inbox.DropFolder // nil: files are only looked at
	enclose    func(item string, n int, e inbox.Enclosure) (message.File, error)
}

// watchDrops takes letters until ctx ends, each when the slot is seen to change.
func (ls *drops) watchDrops(ctx context.Context, w *watch.Watcher) {
	hints := make(chan struct{}, 1)
	dir := filepath.Join(ls.root, "drop")
	w.Add(dir, watch.Options{Debounce: dropDebounce}, func(watch.Hint) {
		select {
		case hints <- struct{}{}:
		default:
		}
	})
	defer w.Remove(dir)
	for {
		var again <-chan time.Time
		if wait := ls.takeDropped(ctx); wait > 0 {
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

// TakeDropped takes the letters that came while nothing ran. Whoever calls it before
// anything else can deliver has them before all that comes from now on. Its error is
// that of the volume; letters that cannot be delivered wait, and are tried again.
func (ls *drops) TakeDropped(ctx context.Context) error {
	ls.takeDropped(ctx)
	return ls.vol.Err()
}

// takeDropped takes what is ready, in the order in which it came. again > 0: look
// once more after that time, because a dropped message is still being written, or one could not
// be read or delivered.
func (ls *drops) takeDropped(ctx context.Context) (again time.Duration) {
	// Those that were taken and not delivered come first. Where one still cannot be,
	// the others to the same agent stay in the slot, in the order in which they came.
	round := dropRound{drops: ls, stuck: map[string]bool{}}
	defer func() { ls.problems.Set("", filepath.Join(ls.root, "drop"), round.found) }()
	taken, err := ls.dropFolder.Taken()
	round.failed("dropped messages", err)
	for _, l := range taken {
		round.deliver(ctx, l)
	}
	names, again, err := ls.dropFolder.Ready(time.Now())
	round.failed("the drop folder", err)
	for _, name := range names {
		if ctx.Err() != nil {
			return again
		}
		if agent, err := ls.addressee(inbox.Addressee(name)); err == nil && round.stuck[agent] {
			continue
		}
		letter, err := ls.dropFolder.Take(name)
		if err != nil {
			round.failed(name, err)
			if errors.Is(err, disk.ErrFull) {
				break
			}
			continue
		}
		round.deliver(ctx, letter)
	}
	if round.retry {
		again = dropRetry
	}
	return again
}

// A dropRound is one look at the slot.
type dropRound struct {
	drops *drops
	stuck map[string]bool // agents to whom a dropped message could not be delivered
	retry bool            // something may work later
	found []finding.Finding
}

// failed notes that a dropped message was refused, or could not be read or delivered for now.
func (r *dropRound) failed(letter string, err error) {
	switch {
	case err == nil:
	case errors.Is(err, inbox.ErrRefused):
		r.drops.log.Warn("dropped message refused", "letter", letter, "err", err)
	default:
		r.retry = true
		r.found = append(r.found, finding.Finding{ID: "letter-waits", Severity: finding.Warning,
			File:   filepath.Join(r.drops.root, "drop"),
			Reason: fmt.Sprintf("%s cannot be delivered now: %v", letter, err),
			Remedy: "daycare retries every few seconds. Remove the cause, or remove the file."})
	}
}

// deliver delivers a dropped message, unless one before it to the same agent could not be. A
// letter that never can be goes to drop/bad with the reason.
func (r *dropRound) deliver(ctx context.Context, l inbox.Dropped) {
	ls := r.drops
	agent, err := ls.addressee(l.Ref)
	if err == nil && r.stuck[agent] {
		r.retry = true
		return
	}
	if err == nil {
		err = ls.open(ctx, l)
	}
	if err == nil {
		return
	}
	if final(err) && ctx.Err() == nil {
		refused := fmt.Errorf("%w: %w", inbox.ErrRefused, err)
		if err = ls.dropFolder.Refuse(l.Name, err); err == nil {
			r.failed(l.Name, refused)
			return
		}
	}
	r.failed(l.Name, err)
	// What cannot be read may stay like that until somebody gives the rights: it does
	// not keep back what comes after it.
	if !errors.As(err, new(*badEnclosure)) {
		r.stuck[agent] = true
	}
}

// addressee is the id of the agent that a dropped message is for, whichever of its names the
// letter has; "": the terminal's own, which is not there yet.
func (ls *drops) addressee(ref string) (string, error) {
	if ref != "" {
		return ls.index.Resolve(ref)
	}
	to := Terminal()
	id, _ := ls.index.Lookup(address.Descriptor{Type: address.User, Connector: to.Connector, UserID: to.UserID,
		ChannelID: to.ChannelID})
	return id, nil
}

// open delivers one letter that was taken and removes it. With an error it stays in
// .taken.
func (ls *drops) open(ctx context.Context, l inbox.Dropped) error {
	in := incoming(l)
	for i, e := range l.Files {
		f, err := ls.enclose(l.Item.ID, i, e)
		switch {
		case errors.Is(err, disk.ErrFull), errors.Is(err, disk.ErrFailed):
			return err
		case err != nil:
			return &badEnclosure{cmp.Or(e.Path, e.ID), err}
		}
		in.Files = append(in.Files, f)
	}
	if crash.Bug("finishfirst") {
		if err := ls.dropFolder.Finish(l); err != nil {
			return err
		}
	}
	if _, err := ls.mailroom.Deliver(ctx, in); err != nil {
		return err
	}
	return ls.dropFolder.Finish(l)
}

// A badEnclosure is a file of a dropped message that cannot be kept.
type badEnclosure struct {
	file string
	err  error
}

func (e *badEnclosure) Error() string { return fmt.Sprintf("file %s: %v", e.file, e.err) }
func (e *badEnclosure) Unwrap() error { return e.err }

// final reports whether trying again would be no use: the fault is in the letter.
func final(err error) bool {
	return errors.Is(err, message.ErrUnknownAgent) || errors.As(err, new(*address.Ambiguous)) ||
		errors.Is(err, ErrEmpty) || errors.Is(err, inbox.ErrTooLarge) ||
		errors.As(err, new(*badEnclosure)) && !disk.Transient(err)
}

// incoming is a dropped message as a message. One without an agent is for the terminal's.
func incoming(l inbox.Dropped) message.Incoming {
	it := l.Item
	in := message.Incoming{Agent: l.Ref, Kind: it.Kind, ID: it.ID, Dedupe: it.Dedupe, Context: it.Context,
		Route: it.Route, Text: it.Text, Origin: it.Origin, Silent: it.Silent, Queue: it.Queue}
	if l.Ref == "" {
		in.From = Terminal()
	}
	return in
}
