package disk

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
)

// Barrier returns when everything appended before the call is durable, and the
// name of the file with it. Callers that wait at the same time share one sync.
func (l *Log) Barrier() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	for goal := l.written; l.synced < goal; {
		if err := l.vol.Err(); err != nil {
			return err
		}
		if l.closed {
			return fs.ErrClosed
		}
		if l.syncing {
			l.cond.Wait()
			continue
		}
		if err := l.syncOnce(); err != nil {
			return err
		}
	}

	return l.vol.Err()
}

// syncOnce is one sync for all who wait. It is called with l.mu held and lets go
// of it meanwhile; syncing keeps Reload, Replace and Close from closing the file.
func (l *Log) syncOnce() error {
	l.syncing = true
	f, named, here := l.f, l.named, !l.mirrored.on || !l.vol.elsewhere
	l.mu.Unlock()
	if here {
		l.vol.enter()
	}

	// What it covers is looked up only when its turn has come, so that all who
	// appended while it waited are covered too.
	l.mu.Lock()
	covers := l.written
	next, lacks := l.mirrored.shipment(l.id.size)
	l.mu.Unlock()

	replicated := func() error { return nil }
	if lacks {
		replicated = l.ship(f, next)
	}
	var err error
	if here {
		err = l.syncHere(f, named)
	}
	if err == nil || l.vol.Err() == nil { // else nothing is written any more
		err = errors.Join(err, replicated())
	}

	l.mu.Lock()
	l.syncing = false
	l.cond.Broadcast()
	if err != nil {
		return err
	}

	l.named = l.named || here
	l.synced = max(l.synced, covers)
	return nil
}

// syncHere is the sync on this disk, between enter and leave; named is set where the
// directory entry of the file is durable.
func (l *Log) syncHere(f *os.File, named bool) error {
	err := l.vol.syncEntered(l.steps.sync, f)
	l.vol.leave()
	if err != nil || named {
		return err
	}

	// The file may be new, or new under this name: without its entry in the
	// directory what is in it could not be found again.
	return l.vol.SyncDir("log.dirsync", filepath.Dir(l.path))
}

// Durable reports whether everything appended is behind a barrier.
func (l *Log) Durable() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.synced >= l.written
}

// settle waits for a sync in progress, so that its file can be closed.
func (l *Log) settle() {
	for l.syncing {
		l.cond.Wait()
	}
}
