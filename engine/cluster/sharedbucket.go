package cluster

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

// A bucket is what is known of the one with the files, and which of them may differ from those here.
type bucket struct {
	ring chan struct{} // there is something to do

	mu      sync.Mutex
	there   map[string]shared
	given   map[string]shared // what this machine wrote since the watch began, until all of the bucket is known
	whole   bool              // and that is all of it
	heardTo uint64            // the newest revision in it
	triedTo uint64            // up to here files were brought together
	more    chan struct{}     // closed, and made again, when that grew
	pending map[string]bool   // names to look at
}

func newBucket() bucket {
	return bucket{ring: make(chan struct{}, 1), there: map[string]shared{}, more: make(chan struct{}), pending: map[string]bool{},
		given: map[string]shared{}}
}

// note has files looked at.
func (b *bucket) note(names ...string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, name := range names {
		b.pending[name] = true
	}
}

// take is what to look at, if all of the bucket is known, and the newest revision in it.
func (b *bucket) take() (names []string, upTo uint64, whole bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.whole {
		return nil, 0, false
	}
	delete(b.pending, "") // what is not shared
	names = slices.Sorted(maps.Keys(b.pending))
	clear(b.pending)

	return names, b.heardTo, true
}

// tried notes that files were brought together, up to a revision.
func (b *bucket) tried(upTo uint64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.triedTo = upTo
	close(b.more)
	b.more = make(chan struct{})
}

func (b *bucket) of(name string) (f shared, known bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	f, known = b.there[name]
	return f, known
}

// anew begins a watch. What it brings first is all that there is, also where that has lower revisions: servers were
// restored then.
func (b *bucket) anew() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.given = map[string]shared{}
}

// replace takes what a watch brought first as the whole bucket, with what this machine has written since the watch began.
func (b *bucket) replace(all map[string]shared) {
	b.mu.Lock()
	for name, f := range b.given {
		if all[name].revision <= f.revision {
			all[name] = f
		}
	}
	b.given = nil
	b.heardTo = 0
	for _, f := range all {
		b.heardTo = max(b.heardTo, f.revision)
	}
	for _, files := range []map[string]shared{b.there, all} {
		for name := range files {
			b.pending[name] = true
		}
	}
	b.there, b.whole = all, true
	b.mu.Unlock()
	b.wake()
}

// heard takes in one file of the bucket. One that this machine has written or removed since comes late, and is not taken in:
// the file here would be changed back.
func (b *bucket) heard(name string, f shared) {
	b.mu.Lock()
	if now := b.there[name]; f.revision > now.revision || f.revision == now.revision && now.SHA != "" {
		b.there[name] = f
	}
	b.pending[name] = true
	b.heardTo = max(b.heardTo, f.revision)
	whole := b.whole
	b.mu.Unlock()
	if whole {
		b.wake()
	}
}

// gave takes in what this machine wrote itself, or removed: then the revision is that of what it removed. It is heard of, too.
func (b *bucket) gave(name string, f shared) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.there[name].revision > f.revision {
		return
	}
	if b.there[name] = f; b.given != nil {
		b.given[name] = f
	}
}

func (b *bucket) wake() {
	select {
	case b.ring <- struct{}{}:
	default:
	}
}

// caughtUp waits until this machine has what is in the bucket now.
func (s *sharing) caughtUp(ctx context.Context) error {
	var status jetstream.KeyValueStatus
	err := answered(ctx, askFor, func(ctx context.Context) (err error) {
		status, err = s.keep.handles.files.Status(ctx)
		return err
	})
	if err != nil {
		return fmt.Errorf("ask for the newest of what belongs to all machines: %w", err)
	}
	now, ok := status.(*jetstream.KeyValueBucketStatus)
	if !ok {
		return fmt.Errorf("the newest of what belongs to all machines is not known: %T", status)
	}

	newest := now.StreamInfo().State.LastSeq
	if now.Values() == 0 {
		newest = 0 // there is no message with it
	}
	for {
		s.bucket.mu.Lock()
		there, more := s.whole && s.triedTo >= newest, s.more
		s.bucket.mu.Unlock()
		if there {
			return nil
		}
		select {
		case <-more:
		case <-ctx.Done():
			return fmt.Errorf("wait for what belongs to all machines: %w", ctx.Err())
		}
	}
}

// watch follows the bucket until ctx ends.
func (s *sharing) watch(ctx context.Context) {
	for ctx.Err() == nil {
		s.anew()
		w, err := s.keep.handles.files.WatchAll(ctx)
		if err == nil {
			s.follow(ctx, w)
			_ = w.Stop() // it has ended, or the connection has
		}
		select {
		case <-time.After(200 * time.Millisecond):
		case <-ctx.Done():
		}
	}
}

// follow takes in what the bucket has and each change, until the watch or ctx ends.
func (s *sharing) follow(ctx context.Context, w jetstream.KeyWatcher) {
	all := map[string]shared{}
	for {
		select {
		case e, ok := <-w.Updates():
			if !ok {
				return
			}
			if e == nil { // all that were there have come
				s.replace(all)
				all = nil
				continue
			}
			name, f := s.received(e)
			if all != nil {
				all[name] = f
			}
			s.heard(name, f)
		case <-ctx.Done():
			return
		}
	}
}

// received is a file of the bucket. One that is not shared, or cannot be read, has no name, so that nothing is
// done with it.
func (s *sharing) received(e jetstream.KeyValueEntry) (name string, f shared) {
	f.revision = e.Revision()
	name, ok := s.named(e.Key())
	if !ok {
		return "", f
	}
	if e.Operation() == jetstream.KeyValuePut && json.Unmarshal(e.Value(), &f) != nil {
		s.log.Warn("a shared file cannot be read", "file", name)
		return "", f
	}

	return name, f
}
