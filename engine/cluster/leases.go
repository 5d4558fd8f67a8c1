package cluster

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"daycare/engine/disk"
)

// A leader knows the other machines, and does what one of them does at a time.
type leader struct {
	p     *presence
	files *sharing // nil: machines share no files
}

// Lead is that of engine.Peers. What one machine does at a time begins with what the last one left: Tend has to run.
func (n leader) Lead(ctx context.Context, name string, do func(context.Context) error) error {
	l := lease{name: name, boot: n.p.boot, ttl: n.p.lease, kv: n.p.store.handles.leases}
	for {
		if err := l.take(ctx); err != nil {
			return err
		}
		held, cancel := context.WithCancel(ctx)
		done := make(chan error, 1)
		go func() {
			if err := n.catchUp(held); err != nil {
				done <- err
				return
			}
			done <- do(held)
		}()
		lost, err := l.keep(ctx, done)
		cancel()
		if lost {
			n.p.log.Warn("a lease was lost; another machine may take over", "lease", name)
			<-done
			continue
		}
		l.give()

		return err
	}
}

// Leading is the machine that does what is done by one at a time, as its lease says; "": none.
func (n leader) Leading(ctx context.Context, name string) (boot string, err error) {
	e, err := n.p.store.handles.leases.Get(ctx, name)
	if errors.Is(err, jetstream.ErrKeyNotFound) {
		return "", nil
	}
	if err != nil {
		return "", fmt.Errorf("%w: who leads %s: %w", disk.ErrAway, name, err)
	}

	return string(e.Value()), nil
}

// usedFor is how long Once remembers, at least. Signatures of webhooks are good for 5 minutes, by
// clocks that may differ by as much.
const usedFor = 15 * time.Minute

// Once is the value that a key was first given on any machine, in the last minutes: this one, if it
// is new. A key has letters, digits, - and _. Errors: disk.ErrAway.
func (n leader) Once(ctx context.Context, key, value string) (first string, err error) {
	ctx, cancel := context.WithTimeout(ctx, askFor)
	defer cancel()
	return n.p.cards.first(ctx, n.p.store.handles.used, key, value)
}

// A lease is a key that one machine has at a time, which is gone when it is not renewed.
type lease struct {
	name, boot string
	ttl        time.Duration
	kv         jetstream.KeyValue
	revision   uint64
	renewed    time.Time // when the last renewal was begun that was answered
}

// take waits until the lease is free, and takes it. While another machine has it, this one hears its renewals and asks
// nothing.
func (l *lease) take(ctx context.Context) error {
	watching, cancel := context.WithCancel(ctx)
	defer cancel()
	var changes <-chan jetstream.KeyValueEntry
	for {
		began := time.Now()
		trying, cancel := context.WithTimeout(ctx, l.ttl/2)
		revision, err := l.kv.Create(trying, l.name, []byte(l.boot))
		cancel()
		if err == nil {
			l.revision, l.renewed = revision, began
			return nil
		}

		if changes == nil {
			if w, err := l.kv.Watch(watching, l.name, jetstream.UpdatesOnly()); err == nil {
				changes = w.Updates()
			}
		}
		if changes = l.await(ctx, changes); ctx.Err() != nil {
			return fmt.Errorf("take the lease of %s: %w", l.name, ctx.Err())
		}
	}
}

// await returns when the lease may be free: it was given back, or not renewed for as long as it lasts; also soon if nothing
// is heard of it. It returns the changes that are left; nil: the watch has ended.
func (l *lease) await(ctx context.Context, changes <-chan jetstream.KeyValueEntry) <-chan jetstream.KeyValueEntry {
	silent := time.NewTimer(min(l.ttl/3, time.Second))
	defer silent.Stop()
	for {
		select {
		case e, ok := <-changes:
			switch {
			case !ok:
				changes = nil
			case e == nil: // all that were there have come
			case e.Operation() != jetstream.KeyValuePut:
				return changes
			default:
				silent.Reset(l.ttl)
			}
		case <-silent.C:
			return changes
		case <-ctx.Done():
			return changes
		}
	}
}

// keep renews the lease until done, whose error it returns, or until the lease is lost: then
// others may take it before long.
func (l *lease) keep(ctx context.Context, done <-chan error) (lost bool, err error) {
	for {
		select {
		case err := <-done:
			return false, err
		case <-time.After(l.ttl / 4):
		}
		if ctx.Err() != nil {
			continue // do ends, too
		}
		began := time.Now()
		trying, cancel := context.WithTimeout(ctx, l.ttl/4)
		revision, err := l.kv.Update(trying, l.name, []byte(l.boot), l.revision)
		cancel()
		if err == nil {
			l.revision, l.renewed = revision, began
		} else if time.Since(l.renewed) > l.ttl/2 {
			return true, nil
		}
	}
}

// give gives the lease back.
func (l *lease) give() {
	ctx, cancel := context.WithTimeout(context.Background(), l.ttl/2)
	defer cancel()
	_ = l.kv.Delete(ctx, l.name, jetstream.LastRevision(l.revision)) // else it lapses
}
