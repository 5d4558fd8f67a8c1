package cluster

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"daycare/engine/crash"
	"daycare/engine/cuid"
	"daycare/engine/disk"
	"daycare/engine/message"
)

// claimFor bounds how long one claim tries.
const claimFor = 10 * time.Second

// badID reports whether something cannot be the id of an agent, which becomes a name of a folder.
func badID(agent string) bool { return agent == "" || strings.ContainsAny(agent, `/\. `) }

// Acquire is that of engine.Peers.
func (n *Node) Acquire(agent string) error {
	if badID(agent) {
		return fmt.Errorf("%q is not the id of an agent", agent)
	}
	one := n.claims(agent)
	one.Lock()
	defer one.Unlock()

	n.units.mu.Lock()
	u := n.owned[agent]
	n.units.mu.Unlock()
	if u != nil {
		u.mu.Lock()
		fenced := u.fenced
		u.mu.Unlock()
		if fenced {
			return disk.ErrFenced // its files are not closed yet
		}
		return nil
	}
	if n.Away() {
		return disk.ErrAway
	}

	ctx, cancel := context.WithTimeout(n.ctx, claimFor)
	defer cancel()
	return answered(ctx, claimFor, func(ctx context.Context) error { return n.claim(ctx, agent) })
}

// claim makes this machine the owner of an agent that nobody else alive owns.
func (n *Node) claim(ctx context.Context, agent string) (err error) {
	if err := n.mayWork(agent); err != nil {
		return err
	}
	var noted uint64          // the revision of the note that this machine takes the agent; 0: it is not known
	tried := n.inDoubt(agent) // there may be such a note
	defer func() { n.doubt(agent, tried && err != nil) }()
	for {
		old, err := readMark(n.folder(agent))
		if err != nil {
			return err
		}
		head, err := n.links.caughtUp(ctx, agent, old.N)
		if err != nil {
			return err
		}
		if head.seq > 0 && !head.released && head.owner != n.boot && !n.links.dead(head.owner) {
			if tried {
				err = n.presence.gaveWay(ctx, agent, head.owner, noted)
				tried = err != nil
			}
			return errors.Join(&message.Elsewhere{Node: head.owner}, err)
		}

		segments, err := n.opening(ctx, agent, head, old.N)
		if err != nil {
			return err
		}
		// Before the claim: the list may name too many, never too few.
		tried = true
		if noted, err = n.presence.took(ctx, agent); err != nil {
			return err
		}
		end := n.before(ctx, agent, head)
		m := logged{n: max(end.n, old.N) + 1, owner: n.boot, id: cuid.Unique(), body: encode(segments)}
		seq, err := n.publishOnce(ctx, agent, end.seq, m)
		if _, refused := errors.AsType[*wrongSequence](err); refused {
			select {
			case <-time.After(10 * time.Millisecond):
				continue
			case <-ctx.Done():
				return ctx.Err()
			}
		}
		if err != nil {
			return err
		}

		return n.own(ctx, agent, head, old, place{seq, m.n}, segments)
	}
}

// behindFor is for how long a server may be behind that does not know what this machine has had of an agent. After
// that the log has lost its end.
const behindFor = time.Second

// caughtUp is the end of a log, of which this machine has had message upTo.
func (l links) caughtUp(ctx context.Context, agent string, upTo uint64) (logged, error) {
	for end := time.Now().Add(behindFor); ; {
		head, err := l.store.last(ctx, agent)
		if err != nil || head.n >= upTo || head.retired || time.Now().After(end) {
			return head, err
		}
		select {
		case <-time.After(20 * time.Millisecond):
		case <-ctx.Done():
			return logged{}, ctx.Err()
		}
	}
}

// before is the message that a claim follows: the one that was read.
func (l links) before(ctx context.Context, agent string, head logged) logged {
	if crash.Bug("noclaim") { // or what came until the folder was built
		time.Sleep(800 * time.Millisecond)
		if newest, err := l.store.last(ctx, agent); err == nil && newest.seq > head.seq {
			return newest
		}
	}

	return head
}

// begins reports whether a log is to begin with the message that is appended to it next by a machine that had
// it up to a number: it is empty, or servers have lost its end. Numbers grow for ever, so that a folder from before a wipe is
// older than all that came after it.
func (l logged) begins(upTo uint64) bool { return l.seq == 0 || l.retired || upTo > l.n }

// opening is what a claim appends to a log that ends with head. A log begins with all that its
// folder has: one with a claim alone, as a crash would leave it, would be an agent without files
// for whoever reads it next.
func (n *Node) opening(ctx context.Context, agent string, head logged, upTo uint64) ([]segment, error) {
	claim := segment{Op: opClaim}
	if !head.begins(upTo) {
		return []segment{claim}, nil
	}
	if head.seq > 0 && !head.retired {
		n.log.Warn("the servers have lost the end of the log of an agent; written again from the folder of this machine",
			"agent", agent, "upTo", head.n, "had", upTo)
	}
	if !head.retired {
		if err := (memory{n}).check(ctx, agent, had{n.boot, upTo}); err != nil {
			return nil, err
		}
	}
	if !disk.Exists(n.folder(agent)) {
		if head.retired { // what removed it may have ended before all machines knew
			return nil, errors.Join(fmt.Errorf("%w: %s was removed", message.ErrUnknownAgent, agent), n.cards.withdraw(agent))
		}
		return nil, fmt.Errorf("%w: only another machine has the folder of %s", disk.ErrAway, agent)
	}
	removed, err := n.outlived(agent, head)
	if err != nil {
		return nil, err
	}
	if removed {
		return nil, fmt.Errorf("%w: %s was removed on another machine", message.ErrUnknownAgent, agent)
	}
	found, err := n.list(n.folder(agent))
	if err != nil {
		return nil, err
	}
	whole, err := n.fit(append([]segment{{Op: opSnapshot}}, all(found)...))

	return append([]segment{claim}, whole...), err
}

// publishOnce publishes a message and, if the answer is lost, finds out whether it is there.
func (l links) publishOnce(ctx context.Context, agent string, expect uint64, m logged) (uint64, error) {
	for {
		seq, err := l.store.publish(ctx, agent, expect, m)
		if err == nil {
			return seq, nil
		}
		if newest, rerr := l.store.last(ctx, agent); rerr == nil && newest.id == m.id {
			return newest.seq, nil
		}
		if errors.As(err, new(*wrongSequence)) {
			return 0, err
		}

		select {
		case <-time.After(50 * time.Millisecond):
		case <-ctx.Done():
			return 0, err
		}
	}
}

// own makes the folder of a unit that was just claimed with segments, and the unit. head is the
// message before the claim, and old the mark of the folder that is here.
func (n *Node) own(ctx context.Context, agent string, head logged, old mark, at place, segments []segment) (err error) {
	dir := n.folder(agent)
	unmark := func() error { return n.vol.Remove("claim", filepath.Join(dir, markName)) }

	u := &unit{node: n, agent: agent, place: at, files: map[string]*copied{}}
	switch {
	case head.begins(old.N): // what is here is all there is
		u.note(segments)
	case !old.Owned && old.Seq == head.seq && old.N == head.n:
		if u.files, err = n.asItWas(dir, old); err != nil {
			return err
		}
	default:
		files, err := n.readLog(ctx, agent, head.seq, n.covers)
		if err != nil {
			return err // the mark stays: it says how much of the log is here
		}
		if err := unmark(); err != nil {
			return err
		}
		if u.files, err = n.build(ctx, n.store, agent, files, old); err != nil {
			return err
		}
	}

	// What differs from the log was changed by hand while nobody owned the folder.
	found, err := n.list(dir)
	if err != nil {
		return err
	}
	if differ := differences(u.files, found); len(differ) > 0 {
		if differ, err = n.fit(append([]segment{{Op: opSnapshot}}, all(found)...)); err != nil {
			return err
		}
		if err := u.commit(&commit{segments: differ}); err != nil {
			return err
		}
	}

	n.writeMark(agent, mark{Seq: at.last, N: at.n, Owned: true, Boot: n.boot})

	n.units.mu.Lock()
	defer n.units.mu.Unlock()
	n.owned[agent] = u

	return nil
}

// all are the segments of whole files.
func all(files map[string][]byte) (segments []segment) {
	for name, data := range files {
		segments = append(segments, content(opPut, name, 0, data))
	}
	return segments
}

// asItWas are the files of a folder that are as they were when it was given up.
func (w *workingCopy) asItWas(dir string, old mark) (map[string]*copied, error) {
	found, err := w.list(dir)
	if err != nil {
		return nil, err
	}
	files := map[string]*copied{}
	for name, noted := range old.Files {
		c := &copied{size: -1} // it was changed or removed
		if data, ok := found[name]; ok && noted == (stamp{int64(len(data)), sum(data)}) {
			c = newCopied(data)
		}
		files[name] = c
	}

	return files, nil
}

// readLog reads the log of a unit up to the message that was claimed on. A server that is
// behind is asked again.
func (l links) readLog(ctx context.Context, agent string, upTo uint64, covers func(string) bool) (map[string]file, error) {
	for {
		log, err := l.store.read(ctx, agent)
		if err != nil {
			return nil, err
		}
		for len(log) > 0 && log[len(log)-1].seq > upTo {
			log = log[:len(log)-1] // the claim itself
		}
		if crash.Bug("stale") && len(log) > 1 {
			log = log[:len(log)-1] // as a server answers that is behind
		}

		err = errHole
		if len(log) > 0 && (log[len(log)-1].seq == upTo || crash.Bug("stale")) {
			var files map[string]file
			if files, err = fold(ctx, l.store, log, covers); err == nil {
				return files, nil
			}
		}
		if !errors.Is(err, errHole) {
			return nil, fmt.Errorf("read the log of %s: %w", agent, err)
		}

		select {
		case <-time.After(20 * time.Millisecond):
		case <-ctx.Done():
			return nil, fmt.Errorf("read the log of %s: %w", agent, err)
		}
	}
}
