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

// A file that someone moves into drop/ becomes a message. A crash between any two steps
// neither loses it nor delivers it twice: the file is renamed into drop/.taken under the
// id of its item, accepted under a dedupe key made of that id, and unlinked.

// dropDebounce is short: a file that is moved in is complete when it appears.
const dropDebounce = 20 * time.Millisecond

// dropRetry is the pause before a message that found no room, or a failing disk, is tried
// again.
const dropRetry = 5 * time.Second

// drops deliver the files of the drop folder as messages.
type drops struct {
	place
	mailroom   *mailroom
	dropFolder *inbox.DropFolder // nil: the files are only read
	enclose    func(item string, n int, e inbox.Enclosure) (message.File, error)
}

// watchDrops delivers dropped messages until ctx ends, whenever the drop folder changes.
func (d *drops) watchDrops(ctx context.Context, w *watch.Watcher) {
	hints := make(chan struct{}, 1)
	dir := filepath.Join(d.root, "drop")
	w.Add(dir, watch.Options{Debounce: dropDebounce}, func(watch.Hint) {
		select {
		case hints <- struct{}{}:
		default:
		}
	})
	defer w.Remove(dir)

	for {
		var again <-chan time.Time
		if wait := d.takeDropped(ctx); wait > 0 {
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

// TakeDropped delivers the messages that were dropped while daycare was not running. Call
// it before anything else can deliver: then they come before all new messages. It returns
// the error of the volume; messages that cannot be delivered now are retried later.
func (d *drops) TakeDropped(ctx context.Context) error {
	d.takeDropped(ctx)
	return d.vol.Err()
}

// takeDropped delivers what is ready, in order of arrival. again > 0 asks for another
// look after that time, because a file is still being written, or one could not be read
// or delivered.
func (d *drops) takeDropped(ctx context.Context) (again time.Duration) {
	// Messages that were claimed but not delivered come first. If one still cannot be
	// delivered, the others for the same agent stay in the drop folder, in their order.
	round := dropRound{drops: d, stuck: map[string]bool{}}
	defer func() { d.problems.Set("", filepath.Join(d.root, "drop"), round.found) }()
	taken, err := d.dropFolder.Taken()
	round.failed("dropped messages", err)
	for _, l := range taken {
		round.deliver(ctx, l)
	}

	names, again, err := d.dropFolder.Ready(time.Now())
	round.failed("the drop folder", err)
	for _, name := range names {
		if ctx.Err() != nil {
			return again
		}
		if agent, err := d.addressee(inbox.Addressee(name)); err == nil && round.stuck[agent] {
			continue
		}

		dropped, err := d.dropFolder.Take(name)
		if err != nil {
			round.failed(name, err)
			if errors.Is(err, disk.ErrFull) {
				break
			}
			continue
		}

		round.deliver(ctx, dropped)
	}

	if round.retry {
		again = dropRetry
	}

	return again
}

// A dropRound is one pass over the drop folder.
type dropRound struct {
	drops *drops
	stuck map[string]bool // agents that a message could not be delivered to
	retry bool            // some message can be retried later
	found []finding.Finding
}

// failed records that a file was refused, or cannot be read or delivered now.
func (r *dropRound) failed(file string, err error) {
	switch {
	case err == nil:
	case errors.Is(err, inbox.ErrRefused):
		r.drops.log.Warn("dropped message refused", "file", file, "err", err)
	default:
		r.retry = true
		r.found = append(r.found, finding.Finding{ID: "letter-waits", Severity: finding.Warning,
			File:   filepath.Join(r.drops.root, "drop"),
			Reason: fmt.Sprintf("%s cannot be delivered now: %v", file, err),
			Remedy: "daycare retries every few seconds. Remove the cause, or remove the file."})
	}
}

// deliver delivers a message, unless an earlier one for the same agent could not be
// delivered. A message that can never be delivered goes to drop/bad with the reason.
func (r *dropRound) deliver(ctx context.Context, l inbox.Dropped) {
	d := r.drops
	agent, unknown := d.addressee(l.Ref)
	if unknown == nil && r.stuck[agent] {
		r.retry = true
		return
	}
	err := unknown
	if err == nil {
		err = d.open(ctx, l)
	}
	if err == nil {
		return
	}
	if final(err) && ctx.Err() == nil && !d.mayCome(err, l) {
		why := err
		if err = d.dropFolder.Refuse(l.Name, why); err == nil {
			d.log.Warn("dropped message refused", "file", l.Name, "err", why)
			return
		}
	}

	r.failed(l.Name, err)
	// A file that cannot be read may stay unreadable until someone changes its mode, so
	// it does not hold back later messages.
	if !errors.As(err, new(*badEnclosure)) && unknown == nil {
		r.stuck[agent] = true
	}
}

// newHere is how long another machine may take to make an agent known that it has just made.
const newHere = time.Minute

// mayCome reports whether a message may be for an agent that another machine has just made.
func (d *drops) mayCome(err error, l inbox.Dropped) bool {
	return d.mailroom.peers != nil && errors.Is(err, message.ErrUnknownAgent) && time.Since(l.Item.At) < newHere
}

// addressee returns the id of the agent that a message is for, by any of the agent's names.
// It returns "" for the terminal's own agent while that does not exist yet.
func (d *drops) addressee(ref string) (string, error) {
	if ref != "" {
		return d.index.Resolve(ref)
	}
	to := Terminal()
	id, _ := d.index.Lookup(address.Descriptor{Type: address.User, Connector: to.Connector, UserID: to.UserID,
		ChannelID: to.ChannelID})

	return id, nil
}

// open delivers one claimed message and removes its file. On an error the file stays in
// .taken.
func (d *drops) open(ctx context.Context, l inbox.Dropped) error {
	in := incoming(l)
	for i, e := range l.Files {
		f, err := d.enclose(l.Item.ID, i, e)
		switch {
		case errors.Is(err, disk.ErrFull), errors.Is(err, disk.ErrFailed):
			return err
		case err != nil:
			return &badEnclosure{cmp.Or(e.Path, e.ID), err}
		}
		in.Files = append(in.Files, f)
	}

	if crash.Bug("finishfirst") {
		if err := d.dropFolder.Finish(l); err != nil {
			return err
		}
	}
	if _, err := d.mailroom.Deliver(ctx, in); err != nil {
		return err
	}

	return d.dropFolder.Finish(l)
}

// A badEnclosure is an attached file that cannot be kept.
type badEnclosure struct {
	file string
	err  error
}

func (e *badEnclosure) Error() string { return fmt.Sprintf("file %s: %v", e.file, e.err) }
func (e *badEnclosure) Unwrap() error { return e.err }

// final reports whether a retry is useless because the message itself is wrong.
func final(err error) bool {
	return errors.Is(err, message.ErrUnknownAgent) || errors.As(err, new(*address.Ambiguous)) ||
		errors.Is(err, ErrEmpty) || errors.Is(err, inbox.ErrTooLarge) ||
		errors.As(err, new(*badEnclosure)) && !disk.Transient(err)
}

// incoming converts a dropped message. One without an agent is for the terminal's agent.
func incoming(l inbox.Dropped) message.Incoming {
	it := l.Item
	in := message.Incoming{Agent: l.Ref, Kind: it.Kind, ID: it.ID, Dedupe: it.Dedupe, Context: it.Context,
		Route: it.Route, Text: it.Text, Origin: it.Origin, Silent: it.Silent, Queue: it.Queue}
	if l.Ref == "" {
		in.From = Terminal()
	}

	return in
}
