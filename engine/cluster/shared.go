package cluster

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"daycare/engine/beneath"
	"daycare/engine/disk"
)

// Files that belong to all machines, such as tasks and memory, are on each of them, and in the
// bucket "dc-files" under their names. A machine that finds one of its own changed, by a user, a
// tool or itself, writes it there if the one that is there is the one that it knows (a
// compare-and-set); one that hears of a change writes its own. Where both happened at once the
// bucket wins, and what was here is kept beside it as NAME.conflict-TIME; of a ledger, whose
// lines are independent of each other, both have all lines. A file that was removed by one and edited
// by another stays, unless its name never comes again.
//
// What the bucket and a machine agreed on last is in shared.json of the machine. So a file that
// was changed or removed while the machine was not running is distinguished from one that the others changed.

// Shared says which files belong to all machines.
type Shared struct {
	Tops   []string               // folders and files in .daycare
	Covers func(name string) bool // of the files in them, by their names in .daycare with slashes
	Ledger func(name string) bool // its lines are merged
	Once   func(name string) bool // its name does not come again: where it was removed, it is removed for all
	// Changed is called after a file was written here because another machine did so, and Leaving
	// before one is removed.
	Changed, Leaving func(name string)
}

// Bounds of shared files.
const (
	sharedMost  = 8 << 20     // bytes of one; a larger one stays where it is
	againFirst  = time.Second // before what could not be shared is tried again, at least,
	againLast   = time.Minute // and at most
	sharedTries = 5           // of a file that cannot be read or written here, before a machine leads without it
)

// sharedFile is the name of the file in .daycare with what was agreed on.
const sharedFile = "shared.json"

// A shared is a file in the bucket.
type shared struct {
	SHA    string `json:"sha,omitempty"` // "": it was removed
	Object bool   `json:"obj,omitempty"` // the content is in the object store
	Data   []byte `json:"data,omitempty"`

	revision uint64
}

// sharing keeps the shared files of a machine.
type sharing struct {
	Shared
	root string
	vol  *disk.Volume
	keep *natsStore
	away func() bool
	log  *slog.Logger

	bucket
	looking
	agreement
}

// An agreement is what the bucket and this machine have agreed on. The loop alone uses it.
type agreement struct {
	base    map[string]string   // name -> SHA-256
	offered map[string][]string // name -> SHA-256 of what was given since without an answer
	saved   bool                // it is in the file
	failed  int                 // tries in a row that left something
}

func newSharing(o Shared, c Config, keep *natsStore, away func() bool) *sharing {
	s := &sharing{Shared: o, root: c.Root, vol: c.Volume, keep: keep, away: away, log: c.Log,
		bucket:    newBucket(),
		looking:   looking{folders: map[string]bool{}, seen: map[string]sight{}},
		agreement: agreement{base: map[string]string{}, offered: map[string][]string{}, saved: true}}
	if data, _, err := beneath.Own(filepath.Join(c.Root, sharedFile), 64<<20); err == nil {
		if err := json.Unmarshal(data, &s.base); err != nil { // then what differs is kept aside
			c.Log.Warn("cannot read what this machine shared last", "file", sharedFile, "err", err)
		}
	}

	return s
}

// sharedKey is the key of a file. Names have characters that keys have not.
func sharedKey(name string) string { return base64.RawURLEncoding.EncodeToString([]byte(name)) }

// named is the name of a key, if it is that of a shared file.
func (s Shared) named(key string) (name string, ok bool) {
	data, err := base64.RawURLEncoding.DecodeString(key)
	name = string(data)
	return name, err == nil && s.covers(name)
}

// covers reports whether a name is that of a shared file, wherever it comes from.
func (s Shared) covers(name string) bool {
	if !filepath.IsLocal(filepath.FromSlash(name)) || filepath.ToSlash(filepath.Clean(name)) != name || strings.ContainsRune(name, 0) {
		return false
	}
	parts := strings.Split(name, "/")
	for _, p := range parts {
		if strings.HasPrefix(p, ".") || strings.HasSuffix(p, "~") || strings.Contains(p, ".conflict-") {
			return false
		}
	}

	return s.isTop(parts[0]) && s.Covers(name)
}

// isTop reports whether a name in .daycare is that of a folder with shared files, or of one.
func (s Shared) isTop(name string) bool { return slices.Contains(s.Tops, name) }

// recover ends what a crash left half done. Nothing else writes these files yet.
func (s *sharing) recover() error {
	err := s.vol.Recover(s.root, s.Tops...)
	for _, top := range s.Tops {
		_ = filepath.WalkDir(filepath.Join(s.root, top), func(path string, d fs.DirEntry, werr error) error {
			if werr == nil && d.IsDir() {
				err = errors.Join(err, s.vol.Recover(path))
			}
			return nil // what cannot be listed is not shared
		})
	}
	if err != nil {
		return fmt.Errorf("look after what belongs to all machines: %w", err)
	}

	return nil
}

// run keeps the files until ctx ends.
func (s *sharing) run(ctx context.Context) error {
	var watching sync.WaitGroup
	defer watching.Wait()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	s.begin(s)
	watching.Go(func() { _ = s.watcher.Run(ctx) }) // it ends with ctx alone
	for pause := againFirst; ; {
		s.lookAtHints(s)
		var again <-chan time.Time
		if s.settle(ctx) {
			pause = againFirst
		} else {
			again = time.After(pause)
			pause = min(2*pause, againLast)
		}

		select {
		case <-s.ring:
		case <-again:
		case <-ctx.Done():
			return nil
		}
	}
}

// settle brings the files that may differ together. done: they are, or the servers say when they can be.
func (s *sharing) settle(ctx context.Context) (done bool) {
	names, upTo, _ := s.take()
	if s.away() {
		s.note(names...)
		return len(names) == 0
	}

	done = true
	for _, name := range names {
		if err := s.agree(ctx, name); err != nil && ctx.Err() == nil {
			done = false
			s.note(name)
			s.log.Debug("shared file not settled yet", "file", name, "err", err)
		}
	}
	s.save()
	if s.failed++; done || s.failed >= sharedTries { // what still differs cannot be read or written here
		s.failed = 0
		s.tried(upTo)
	}

	return done
}

// save keeps what was agreed on.
func (s *sharing) save() {
	if s.saved {
		return
	}
	if err := s.vol.WriteDraft("commons", filepath.Join(s.root, sharedFile), append(jsonOf(s.base), '\n')); err != nil {
		s.log.Info("what machines share is not noted", "err", err)
		return
	}
	s.saved = true
}

// agreedOn notes a state of a file that this machine and the bucket have.
func (s *sharing) agreedOn(name, sha string) {
	delete(s.offered, name)
	if s.base[name] == sha {
		return
	}
	s.saved = false
	if s.base[name] = sha; sha == "" {
		delete(s.base, name)
	}
}

// agree brings one file here and in the bucket together.
func (s *sharing) agree(ctx context.Context, name string) error {
	there, known := s.of(name)
	release := func() {}
	if s.Ledger(name) { // its writer is at no line, and does not rotate it
		release = s.vol.Turn(s.path(name))
	}
	data, ok, err := s.here(name)
	release()
	if err != nil || !ok {
		return err
	}
	sha := ""
	if data != nil {
		sha = sum(data)
	}
	if known && slices.Contains(s.offered[name], there.SHA) { // it arrived, though its answer did not
		s.agreedOn(name, there.SHA)
	}

	switch base := s.base[name]; {
	case known && sha == there.SHA, !known && data == nil:
		s.agreedOn(name, sha)
		return nil
	case known && there.SHA == "" && s.Once(name):
		return s.adopt(ctx, name, data, there)
	case !known || there.SHA == base || there.SHA == "" && sha != base: // an edit is worth more than a removal
		return s.give(ctx, name, data, there, known)
	case sha == base || data == nil:
		return s.adopt(ctx, name, data, there)
	case s.Ledger(name):
		return s.merge(ctx, name, data, there)
	}
	if err := s.putAside(name, data); err != nil {
		return err
	}

	return s.adopt(ctx, name, data, there)
}

// Tend keeps the files that belong to all machines the same, until ctx ends.
func (n leader) Tend(ctx context.Context) error {
	if n.files == nil {
		<-ctx.Done()
		return nil
	}

	return n.files.run(ctx)
}

// catchUpFor bounds how long a machine waits for what the last leader left. It continues without what does not arrive: a
// slot or a message that is begun again is known by its key.
const catchUpFor = 10 * time.Second

// catchUp waits until this machine has what all have at this moment.
func (n leader) catchUp(ctx context.Context) error {
	if n.files == nil {
		return nil
	}
	waiting, cancel := context.WithTimeout(ctx, catchUpFor)
	defer cancel()
	if err := n.files.caughtUp(waiting); err != nil && ctx.Err() == nil {
		n.p.log.Info("continuing without the newest shared files", "err", err)
	}

	return ctx.Err()
}
