package permission

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"daycare/engine/beneath"
	"daycare/engine/cuid"
	"daycare/engine/disk"
	"daycare/engine/finding"
)

// saving is how long the file of a settled request is kept for an answer that is just
// being saved in it.
const saving = time.Minute

// answered ends the names of files that were set aside.
const answered = ".answered"

// TokenOf returns the token of the request that a file in the folder of requests belongs to, by the
// name of the file.
func TokenOf(name string) (token string, ok bool) {
	if ext := filepath.Ext(name); ext != ".json" && ext != answered {
		return "", false
	}
	token, _, _ = strings.Cut(name, ".")
	return token, true
}

// asides are the files of requests that were settled. An editor may have such a file open,
// and save an answer in it after another one was first. So the file is not removed: it
// becomes TOKEN.ID.answered in one step, and it goes once the answer in it was reported, or
// when a minute is over and nobody has it open for writing.
type asides struct {
	store   *store
	now     func() time.Time
	looking sync.Mutex // each answer is reported once

	mu   sync.Mutex
	list []aside
}

type aside struct {
	path  string  // "": the file was gone, which is the answer deny
	first Pending // with the answer that was first; of a file that the log does not know all but the token is missing
	until time.Time
}

// settled sets the file of a request aside that is settled now.
func (a *asides) settled(p Pending) error {
	path, err := a.store.setAside(p.Token)
	if errors.Is(err, fs.ErrNotExist) {
		path, err = "", nil
	}
	if err == nil {
		a.add(path, p)
	}

	return err
}

// anew sets a file aside that is there although its request is settled.
func (a *asides) anew(first Pending) error {
	path, err := a.store.setAside(first.Token)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err == nil {
		a.add(path, first)
	}

	return err
}

// setAside renames the file of a request, without a barrier: one that comes back after a
// power cut is in the log, so the next start sets it aside.
func (s *store) setAside(token string) (path string, err error) {
	path = filepath.Join(s.dir, token+"."+cuid.New()+answered)
	if err := s.vol.Shift("permission", s.path(token), path); err != nil {
		return "", fmt.Errorf("set answered request aside: %w", err)
	}

	return path, nil
}

func (a *asides) add(path string, first Pending) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.list = append(a.list, aside{path: path, first: first, until: a.now().Add(saving)})
}

// next is when the first file may go.
func (a *asides) next() (at time.Time, ok bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, one := range a.list {
		if !ok || one.until.Before(at) {
			at, ok = one.until, true
		}
	}

	return at, ok
}

// look reports the answers in the files that were set aside, and removes those files whose
// time is over.
func (a *asides) look(tell func(late, first Pending)) error {
	a.looking.Lock()
	defer a.looking.Unlock()
	a.mu.Lock()
	list := slices.Clone(a.list)
	a.mu.Unlock()

	var errs []error
	var left []aside
	now := a.now()
	for _, one := range list {
		over := !now.Before(one.until)
		done, err := a.lookAt(one, over, tell)
		errs = append(errs, err)
		if !done && over { // someone has it open, or it cannot be read now
			one.until = now.Add(saving)
		}
		if !done {
			left = append(left, one)
		}
	}

	a.mu.Lock()
	defer a.mu.Unlock()
	a.list = append(left, a.list[len(list):]...) // others only append
	return errors.Join(errs...)
}

// lookAt looks at one file, whose time may be over. done: it needs no further look.
func (a *asides) lookAt(one aside, over bool, tell func(late, first Pending)) (done bool, err error) {
	if one.path == "" {
		if slices.Contains([]Decision{Once, Always, Prefix}, one.first.Decision) {
			late := one.first
			late.Decision, late.DecidedBy = Deny, byFile
			tell(late, one.first)
		}
		return true, nil
	}
	late, final, err := a.read(one)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return true, nil
	case disk.Transient(err):
		return false, err
	case late.Decision != "" && (late.Decision != one.first.Decision || one.first.DecidedBy != byFile):
		tell(late, one.first)
	case !over || err == nil && !final:
		return false, nil
	}
	if err := a.store.vol.Remove("permission", one.path); err != nil {
		return true, fmt.Errorf("remove answered request, which is tried again at the next start: %w", err)
	}

	return true, nil
}

// read returns what is in a file that was set aside; no decision if it is not a request
// (yet). final: nobody has it open who could still write to it, and its name is known to nobody.
func (a *asides) read(one aside) (p Pending, final bool, err error) {
	f, _, err := beneath.OpenOwn(one.path)
	if err != nil {
		return Pending{}, false, err
	}
	defer f.Close()
	final = !disk.OpenForWriting(f) // before it is read
	data, err := io.ReadAll(io.LimitReader(f, maxRequest))
	if err != nil {
		return Pending{}, false, err
	}
	p, err = parse(a.store.path(one.first.Token), data)
	if errors.As(err, new(finding.Finding)) {
		err = nil
	}

	return p, final, err
}

// Late reports each answer, once, that was saved in the file of a request after another answer had
// won.
func (q *Queue) Late(tell func(late, first Pending)) error { return q.asides.look(tell) }

// SetAside finds files that an editor wrote again after their request was settled, so that Late
// looks at them, too. Only files of these requests are looked for; without tokens, all.
func (q *Queue) SetAside(tokens ...string) error {
	paths, err := q.gone(tokens)
	if err != nil || len(paths) == 0 {
		return err
	}
	log, err := Log(filepath.Dir(q.store.dir))
	if err != nil {
		return err
	}
	var errs []error
	for _, path := range paths {
		token, _ := TokenOf(filepath.Base(path))
		i := slices.IndexFunc(log, func(old Pending) bool { return old.Token == token })
		if _, err := readRequest(path); err != nil || i < 0 {
			continue // half saved, or wrong, which is reported at a start
		}
		errs = append(errs, q.asides.anew(log[i]))
	}

	return errors.Join(errs...)
}

// gone are the files of requests that do not wait: of these tokens, without tokens of all.
func (q *Queue) gone(tokens []string) (paths []string, err error) {
	all := []string{}
	for _, token := range tokens {
		all = append(all, q.store.path(token))
	}
	if len(tokens) == 0 {
		if all, err = disk.Glob(q.store.dir, "*.json"); err != nil {
			return nil, err
		}
	}
	q.mu.Lock()
	paths = slices.DeleteFunc(all, func(path string) bool {
		_, waits := q.waiting.byToken[strings.TrimSuffix(filepath.Base(path), ".json")]
		return waits
	})
	q.mu.Unlock()
	return slices.DeleteFunc(paths, func(path string) bool { return !disk.Exists(path) }), nil
}
