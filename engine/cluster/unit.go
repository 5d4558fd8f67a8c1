package cluster

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"time"

	"daycare/engine/beneath"
	"daycare/engine/crash"
	"daycare/engine/cuid"
	"daycare/engine/disk"
	"daycare/engine/message"
)

// Sizes, in bytes. A server takes messages of 1 MiB if nobody said otherwise.
const (
	inlineMost = 64 << 10  // of a file in a message; larger ones are objects
	appendMost = 256 << 10 // of one appended piece
	bodyMost   = 512 << 10 // of a message, before one more segment
	// snapshotAt is after how many bytes, and as many as the files have, a log is shortened.
	snapshotAt = 1 << 20
	// snapshotAfter is after how many messages.
	snapshotAfter = 400
)

// publishFor bounds one try of an append; it is made again until it is answered.
const publishFor = 2 * time.Second

// A unit is the folder of an agent that this machine owns: what its log has, and what is
// about to be appended to it.
type unit struct {
	node  *Node
	agent string

	mu      sync.Mutex
	files   map[string]*copied // what the log has, by name
	pending []*commit
	busy    bool // somebody is publishing
	fenced  bool
	place

	written int64 // since the last snapshot, bytes
	since   int   // and messages
}

// A place is where the log ends, as its writer knows it.
type place struct {
	last uint64 // sequence in the stream
	n    uint64 // number in the unit
}

// copied is what the log has of a file.
type copied struct {
	size int64
	hash hash.Hash
}

func (c *copied) sum() string { return hex.EncodeToString(c.hash.Sum(nil)) }

// newCopied describes a content.
func newCopied(data []byte) *copied {
	c := &copied{size: int64(len(data)), hash: sha256.New()}
	c.hash.Write(data)
	return c
}

// A commit is what one caller waits for.
type commit struct {
	segments []segment
	ending
	done chan error
}

// size returns how much the log has of a file.
func (u *unit) size(name string) int64 {
	u.mu.Lock()
	defer u.mu.Unlock()
	if c := u.files[name]; c != nil {
		return c.size
	}

	return 0
}

// commit appends segments to the log, in one message, and returns when they are durable. All
// who come while a message is on its way share the next one. Errors: disk.ErrFenced, and
// that of the node's end.
func (u *unit) commit(c *commit) error { return <-u.begin(c) }

// begin is commit without waiting.
func (u *unit) begin(c *commit) <-chan error {
	c.done = make(chan error, 1)
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.fenced {
		c.done <- disk.ErrFenced
		return c.done
	}
	u.pending = append(u.pending, c)
	if !u.busy {
		u.busy = true
		go u.work()
	}

	return c.done
}

// work publishes what is pending, and returns when nothing is.
func (u *unit) work() {
	for {
		u.mu.Lock()
		batch := u.take()
		u.busy = len(batch) > 0
		u.mu.Unlock()
		if len(batch) == 0 {
			return
		}

		var segments []segment
		var end ending
		for _, c := range batch {
			segments = append(segments, c.segments...)
			end = ending{end.released || c.released, end.retired || c.retired}
		}
		if crash.Bug("ackfirst") {
			for _, c := range batch {
				c.done <- nil
			}
			batch = nil
		}
		err := u.publish(segments, end)
		if end.released && err == nil {
			u.mu.Lock()
			u.fenced = true // nothing may come behind it
			u.mu.Unlock()
		}
		for _, c := range batch {
			c.done <- err
		}
		if err == nil && !end.released {
			u.shorten()
		}
	}
}

// take takes as many commits as fit into a message. The lock is held.
func (u *unit) take() (batch []*commit) {
	size, sizes := 0, map[string]int64{}
	for len(u.pending) > 0 && size < bodyMost {
		c := u.pending[0]
		u.pending = u.pending[1:]
		if err := u.continues(sizes, c.segments); err != nil {
			c.done <- err
			continue
		}

		batch = append(batch, c)
		for _, s := range c.segments {
			size += len(s.data) + 200
		}
	}

	return batch
}

// continues checks that segments append where their files end: a log with a hole could not be
// read any more. sizes are those of files that earlier segments change. The lock is held.
func (u *unit) continues(sizes map[string]int64, segments []segment) error {
	for _, s := range segments {
		size, changed := sizes[s.File]
		if c := u.files[s.File]; c != nil && !changed {
			size = c.size
		}
		switch s.Op {
		case opAppend:
			if s.At != size {
				return fmt.Errorf("append to %s at %d: the log has %d bytes of it", s.File, s.At, size)
			}
			sizes[s.File] = size + int64(len(s.data))
		case opPut:
			sizes[s.File] = int64(len(s.data))
		case opRemove:
			sizes[s.File] = 0
		}
	}

	return nil
}

// follow brings the log to what a file of JSON is, until it is that: it may be written meanwhile. One that is missing or half
// written is left as it was.
func (u *unit) follow(name string) error {
	for {
		data, _, err := beneath.Own(filepath.Join(u.node.folder(u.agent), filepath.FromSlash(name)), followMost)
		if errors.Is(err, fs.ErrNotExist) || err == nil && !json.Valid(data) {
			return nil
		}
		if err != nil {
			return err
		}
		u.mu.Lock()
		c := u.files[name]
		same := c != nil && c.size == int64(len(data)) && c.sum() == sum(data)
		u.mu.Unlock()
		if same {
			return nil
		}
		if err := u.replace(name, data); err != nil {
			return err
		}
	}
}

// followMost bounds a file that is edited by hand while its agent is awake, in bytes.
const followMost = 8 << 20

// replace makes a content that of a file in the log. Where servers do not answer within releaseFor it is disk.ErrAway.
func (u *unit) replace(name string, data []byte) error {
	ctx, cancel := context.WithTimeout(u.node.ctx, releaseFor)
	defer cancel()
	fitting, err := fit(ctx, u.node.store, []segment{content(opPut, name, 0, data)})
	if err != nil {
		return fmt.Errorf("%w: %w", disk.ErrAway, err)
	}
	select {
	case err := <-u.begin(&commit{segments: fitting}):
		return err
	case <-ctx.Done():
		return disk.ErrAway // it comes when the servers are back
	}
}

// publish appends one message, trying until it is known to be in the log or never to come
// into it.
func (u *unit) publish(segments []segment, end ending) error {
	u.mu.Lock()
	at, fenced := u.place, u.fenced
	u.mu.Unlock()
	if fenced {
		return disk.ErrFenced
	}

	m := logged{n: at.n + 1, owner: u.node.boot, id: cuid.Unique(), ending: end, body: encode(segments)}
	for pause := 20 * time.Millisecond; ; pause = min(2*pause, time.Second) {
		seq, err := u.try(at, m)
		switch {
		case err == nil:
			u.appended(place{seq, m.n}, segments, len(m.body))
			return nil
		case errors.Is(err, disk.ErrFenced):
			u.fence()
			return err
		case errors.Is(err, errForgotten):
			var begun place
			begun, err = u.seed()
			if errors.Is(err, disk.ErrFenced) {
				u.fence()
				return err
			}
			if err == nil { // else the message must not begin the log
				at, m.n = begun, begun.n+1
				continue
			}
		}

		if noRoom(err) {
			u.node.presence.refused(err)
		}
		u.node.log.Debug("not appended yet", "agent", u.agent, "err", err)
		select {
		case <-time.After(pause):
		case <-u.node.trying.Done():
			return fmt.Errorf("%w: %w", disk.ErrAway, err)
		}
	}
}

// errForgotten: the store has less of the log than was acknowledged.
var errForgotten = errors.New("the cluster has lost the end of the log")

// try appends a message once. Errors: disk.ErrFenced, errForgotten; with any other it is
// tried again.
func (u *unit) try(at place, m logged) (seq uint64, err error) {
	ctx, cancel := context.WithTimeout(u.node.ctx, publishFor)
	defer cancel()
	seq, err = u.node.store.publish(ctx, u.agent, at.last, m)
	refused, ok := errors.AsType[*wrongSequence](err)
	if !ok {
		return seq, err
	}

	newest, rerr := u.node.store.last(ctx, u.agent)
	switch {
	case rerr != nil:
		return 0, rerr
	case newest.id == m.id:
		return newest.seq, nil // an earlier try of it
	case newest.seq > at.last && crash.Bug("deaf"):
		m.n = newest.n + 1
		return u.node.store.publish(ctx, u.agent, newest.seq, m)
	case newest.seq > at.last:
		return 0, disk.ErrFenced
	case !refused.known || refused.last >= at.last:
	case newest.seq <= refused.last && (newest.seq == 0 || newest.owner == u.node.boot):
		return 0, errForgotten
	case newest.seq == refused.last:
		return 0, disk.ErrFenced // another machine has begun the log anew
	}

	return 0, err // another message is on its way, or the answer came from a server that is behind
}

// appended notes what the log has now.
func (u *unit) appended(at place, segments []segment, bytes int) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.place, u.since, u.written = at, u.since+1, u.written+int64(bytes)
	u.note(segments)
}

// note notes what segments do to the files. The lock is held.
func (u *unit) note(segments []segment) {
	for _, s := range segments {
		switch s.Op {
		case opSnapshot:
			clear(u.files)
			u.note(s.inner)
		case opPut:
			u.files[s.File] = newCopied(s.data)
		case opAppend:
			c := u.files[s.File]
			if c == nil {
				c = newCopied(nil)
				u.files[s.File] = c
			}
			c.size += int64(len(s.data))
			c.hash.Write(s.data)
		case opRemove:
			delete(u.files, s.File)
		}
	}
}

// fence ends the unit: another machine owns it.
func (u *unit) fence() {
	u.mu.Lock()
	u.fenced = true
	rest := u.pending
	u.pending = nil
	u.mu.Unlock()
	for _, c := range rest {
		c.done <- disk.ErrFenced
	}
	u.node.lost(u)
}

// shorten writes all that there is into one message, and removes those before it, if the log
// has become long. It fails in silence: the log is as good as before, only longer.
func (u *unit) shorten() {
	u.mu.Lock()
	size := int64(snapshotAt)
	var live int64
	for _, c := range u.files {
		live += c.size
	}
	due := u.written > max(size, live) || u.since > snapshotAfter
	u.mu.Unlock()
	if !due {
		return
	}

	body, err := u.snapshot(true)
	if err == nil {
		err = u.publish(body, ending{})
	}
	if err != nil {
		u.node.log.Info("log not shortened", "agent", u.agent, "err", err)
		return
	}
	u.mu.Lock()
	u.written, u.since = 0, 0
	below := u.last
	u.mu.Unlock()
	u.purge(below)
}

// purge removes the messages before one, which stands for all of them.
func (u *unit) purge(below uint64) {
	ctx, cancel := context.WithTimeout(u.node.ctx, publishFor)
	defer cancel()
	if err := u.node.store.purge(ctx, u.agent, below); err != nil {
		u.node.log.Info("log not shortened", "agent", u.agent, "err", err)
	}
}

// snapshot returns all files as segments. With exact it fails if what is on disk is not what
// the log has: somebody is editing the file, and what they leave comes by itself.
func (u *unit) snapshot(exact bool) ([]segment, error) {
	u.mu.Lock()
	want := make(map[string]*copied, len(u.files))
	sums := make(map[string]string, len(u.files))
	for name, c := range u.files {
		want[name], sums[name] = &copied{size: c.size}, c.sum()
	}
	u.mu.Unlock()

	segments := []segment{{Op: opSnapshot}}
	for name, c := range want {
		data, err := readFirst(filepath.Join(u.node.folder(u.agent), filepath.FromSlash(name)), c.size)
		if err != nil {
			return nil, err
		}
		if exact && sum(data) != sums[name] {
			return nil, fmt.Errorf("%s is being edited", name)
		}
		segments = append(segments, content(opPut, name, 0, data))
	}

	return u.node.fit(segments)
}

// readFirst reads the first n bytes of a file.
func readFirst(path string, n int64) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data := make([]byte, n)
	if _, err := io.ReadFull(f, data); err != nil {
		return nil, fmt.Errorf("read %s: %w", path, err)
	}

	return data, nil
}

// seed writes all that there is into a store that has lost the end of the log: the folder of
// the owner is the second copy. Another machine may have taken over before, in what the store has lost: disk.ErrFenced.
func (u *unit) seed() (place, error) {
	ctx, cancel := context.WithTimeout(u.node.ctx, 10*publishFor)
	defer cancel()
	if err := u.latest(ctx); err != nil {
		return place{}, err
	}

	segments, err := u.snapshot(false)
	if err != nil {
		return place{}, err
	}
	newest, err := u.node.store.last(ctx, u.agent)
	if err != nil {
		return place{}, err
	}

	u.mu.Lock()
	m := logged{n: u.n + 1, owner: u.node.boot, id: cuid.Unique(), body: encode(segments)}
	u.mu.Unlock()
	seq, err := u.node.store.publish(ctx, u.agent, newest.seq, m)
	if err != nil {
		return place{}, err
	}

	u.node.log.Warn("the cluster had lost the log of an agent; written again from its folder", "agent", u.agent)
	at := place{seq, m.n}
	u.appended(at, segments, len(m.body))

	return at, nil
}

// latest makes sure that no other machine had the agent after this one: disk.ErrFenced if one had; disk.ErrAway while that is not known.
func (u *unit) latest(ctx context.Context) error {
	if crash.Bug("blindseed") {
		return nil
	}
	u.mu.Lock()
	last := had{u.node.boot, u.n}
	u.mu.Unlock()
	err := (memory{u.node}).check(ctx, u.agent, last)
	if other, ok := errors.AsType[*message.Elsewhere](err); ok {
		return fmt.Errorf("%w: %w", disk.ErrFenced, other)
	}

	return err
}
