package cluster

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"maps"
	"strings"
	"sync"

	"github.com/nats-io/nats.go/jetstream"

	"daycare/engine/disk"
)

// Figures are what each machine says of itself and all need, such as what it has spent. A machine writes those under its own
// id alone, and each is a whole, not a difference: so nothing is counted twice, whatever is said again, heard again, or
// heard late. They are in the bucket "dc-figures" under <id of the machine>.<name>.

// A Figure is one of them.
type Figure struct {
	Machine string // Config.ID of who says it
	Name    string // letters, digits, - and dots
	Data    []byte
}

// Figures is who needs them.
type Figures interface {
	// Join is called first, with the id of this machine and all figures that are there.
	Join(own string, there iter.Seq[Figure])
	// Heard is called with each that changes, also with those of this machine.
	Heard(Figure)
	// All are those of all machines as far as is known here, for servers that were wiped.
	All() iter.Seq[Figure]
}

// figures are those of the cluster.
type figures struct {
	own   string // id of this machine; "": it says nothing
	keep  *natsStore
	away  func() bool
	notes *slog.Logger

	mu      sync.Mutex
	early   map[string]Figure // heard before there was a listener, by key
	listens Figures           // nil: not yet
}

// load reads all that is there.
func (f *figures) load(ctx context.Context) error {
	w, err := f.keep.handles.figures.WatchAll(ctx, jetstream.IgnoreDeletes())
	if err != nil {
		return fmt.Errorf("read what the machines have spent: %w", err)
	}
	defer w.Stop() // nothing more is needed of it
	if err := eachThere(ctx, w, f.note); err != nil {
		return fmt.Errorf("read what the machines have spent: %w", err)
	}

	return nil
}

// note takes in a change of the bucket.
func (f *figures) note(e jetstream.KeyValueEntry) {
	machine, name, ok := strings.Cut(e.Key(), ".")
	if !ok || e.Operation() != jetstream.KeyValuePut {
		return
	}
	one := Figure{machine, name, e.Value()}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.listens == nil {
		f.early[e.Key()] = one
		return
	}
	f.listens.Heard(one)
}

// Listen has a listener hear all figures, those that are there before it returns.
func (f *figures) Listen(l Figures) {
	f.mu.Lock()
	defer f.mu.Unlock()
	l.Join(f.own, maps.Values(f.early))
	f.early, f.listens = nil, l
}

// Say writes a figure of this machine. Errors: disk.ErrAway.
func (f *figures) Say(ctx context.Context, name string, data []byte) error {
	if f.away() {
		return disk.ErrAway
	}
	ctx, cancel := context.WithTimeout(ctx, askFor)
	defer cancel()
	if _, err := f.keep.handles.figures.Put(ctx, f.own+"."+name, data); err != nil {
		return fmt.Errorf("%w: tell the other machines: %w", disk.ErrAway, err)
	}

	return nil
}

// restore writes what this machine knows into a bucket that was lost. What another machine has written of itself stays.
func (f *figures) restore(ctx context.Context) {
	f.mu.Lock()
	l := f.listens
	f.mu.Unlock()
	if l == nil {
		return
	}
	for one := range l.All() {
		if err := f.again(ctx, one); err != nil {
			f.notes.Info("what a machine has spent is not written again yet", "machine", one.Machine, "err", err)
			return
		}
	}
}

func (f *figures) again(ctx context.Context, one Figure) error {
	key, bucket := one.Machine+"."+one.Name, f.keep.handles.figures
	if one.Machine != f.own {
		_, err := bucket.Create(ctx, key, one.Data)
		if errors.Is(err, jetstream.ErrKeyExists) { // its machine was quicker
			return nil
		}
		return err
	}
	e, err := bucket.Get(ctx, key)
	if errors.Is(err, jetstream.ErrKeyNotFound) || err == nil && !bytes.Equal(e.Value(), one.Data) {
		_, err = bucket.Put(ctx, key, one.Data)
	}

	return err
}
