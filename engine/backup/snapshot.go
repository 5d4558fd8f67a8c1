package backup

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"daycare/engine/beneath"
	"daycare/engine/crash"
	"daycare/engine/disk"
	"daycare/engine/tarball"
)

const (
	// short files are copied at the moment itself, in bytes.
	short = 64 << 10
	// spoolPrefix begins the name of the copy of short files. disk removes what is left of it.
	spoolPrefix = ".tmp-backup-"
)

// A snapshot is what a workspace was at one moment.
type snapshot struct {
	opts    Options
	home    string // .daycare, which may be a link
	at      time.Time
	files   []seen
	leftOut []string
	spool   *os.File // what was copied at that moment; it has no name any more
	spooled int64
	names   map[string]bool // of the files so far, in lower case
}

// A seen file of the snapshot.
type seen struct {
	tarball.Entry
	info   fs.FileInfo
	at     int64 // where it is in the spool; -1: still to be read
	theirs bool  // agents can write where it is
}

// take looks at a workspace at one moment. The caller closes the spool.
func take(o Options) (s *snapshot, err error) {
	s = &snapshot{opts: o, names: map[string]bool{}}
	if s.home, err = filepath.EvalSymlinks(o.Place.Data); err != nil {
		return nil, err
	}
	if s.spool, err = os.CreateTemp(s.home, spoolPrefix); err != nil {
		return nil, err
	}
	if err := os.Remove(s.spool.Name()); err != nil {
		return nil, errors.Join(err, s.spool.Close())
	}

	release := crash.Hold()
	defer release()
	s.at = time.Now()
	if err = s.walk(); err == nil {
		err = s.named()
	}
	release()
	if err == nil {
		err = s.later()
	}
	if err != nil {
		return nil, errors.Join(err, s.spool.Close())
	}

	return s, nil
}

// later copies the long files of agents, while nothing waits for it. They can change at any time: each is what it is
// when it is opened, and one that cannot be opened is left out.
func (s *snapshot) later() error {
	all := s.files
	s.files = nil
	for _, f := range all {
		if f.at >= 0 || !f.theirs {
			s.files = append(s.files, f)
			continue
		}
		file, info, err := s.current(f)
		if err != nil {
			s.leave(f.Name, err.Error())
			continue
		}
		err = errors.Join(s.copy(see(f.Name, info, true), io.LimitReader(file, info.Size())), file.Close())
		if err != nil {
			return err
		}
		if s.files[len(s.files)-1].Size < info.Size() {
			s.leave(f.Name, "its end, which it lost while it was copied")
		}
	}

	return nil
}

// current opens what a file of agents is now; one that is replaced in this moment is looked at again.
func (s *snapshot) current(f seen) (file *os.File, info fs.FileInfo, err error) {
	rel := filepath.FromSlash(strings.TrimPrefix(f.Name, home+"/"))
	dir, err := beneath.Dir(s.home, filepath.Dir(rel))
	if err != nil {
		return nil, nil, err
	}
	defer dir.Close()
	for range 10 {
		if info, err = dir.Lstat(filepath.Base(rel)); err != nil {
			return nil, nil, err
		}
		if beneath.Links(info) > 1 {
			return nil, nil, beneath.ErrNames
		}
		if file, err = beneath.Open(dir, filepath.Base(rel), info); !errors.Is(err, beneath.ErrRace) {
			break
		}
	}

	return file, info, err
}

// walk looks at all of .daycare.
func (s *snapshot) walk() error {
	var all []seen
	err := filepath.WalkDir(s.home, func(full string, d fs.DirEntry, err error) error {
		rel, _ := filepath.Rel(s.home, full) // it is below it
		name := path.Join(home, filepath.ToSlash(rel))
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return nil // it went away
		case err != nil:
			return err
		case passing(name) && d.IsDir():
			return fs.SkipDir
		case d.IsDir() || passing(name) || s.private(name):
			return nil
		case !d.Type().IsRegular():
			s.leave(name, "it is not a regular file")
			return nil
		}

		info, err := d.Info()
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err == nil {
			all = append(all, see(name, info, ofAgents(name)))
		}

		return err
	})
	if err != nil {
		return err
	}

	for _, f := range s.once(all) {
		if !s.restorable(f.Name) {
			continue
		}
		if err := s.keep(f); err != nil {
			return err
		}
	}

	return nil
}

func see(name string, info fs.FileInfo, theirs bool) seen {
	return seen{Entry: tarball.Entry{Name: name, Size: info.Size(), Mode: info.Mode().Perm(), ModTime: info.ModTime()},
		info: info, at: -1, theirs: theirs}
}

// ofAgents reports whether agents can write at a place in .daycare.
func ofAgents(name string) bool {
	return strings.HasPrefix(name, home+"/cron/") && strings.Contains(name, "/files/")
}

// restorable leaves out a file that Restore refuses by its name: one of them must not cost the whole backup. Agents can
// give their files such names.
func (s *snapshot) restorable(name string) bool {
	key := strings.ToLower(name)
	switch {
	case !tarball.Plain(name):
		s.leave(strconv.Quote(name), "its name has a backslash or a control character, or is not UTF-8; rename it")
	case hiddenOutside(name):
		s.leave(name, "part of its path begins with a dot, which is not restored outside of "+home+"; rename it")
	case s.names[key]:
		s.leave(name, "another file has a name that differs in upper and lower case only; rename one of them")
	default:
		s.names[key] = true
		return true
	}

	return false
}

func (s *snapshot) private(name string) bool {
	return !s.opts.Secrets && slices.Contains(s.opts.Private, name)
}

func (s *snapshot) leave(name, why string) { s.leftOut = append(s.leftOut, name+": "+why) }

// once leaves out the second names of files. A rotation or a dropped message that is being
// taken has two for a moment; without the hidden or deeper one it has not begun. Messages in
// drop/ are put in the order in which they came.
func (s *snapshot) once(all []seen) (some []seen) {
	slices.SortStableFunc(all, func(a, b seen) int {
		return cmp.Or(cmp.Compare(hidden(a.Name), hidden(b.Name)), strings.Count(a.Name, "/")-strings.Count(b.Name, "/"),
			cmp.Compare(a.Name, b.Name))
	})
	have := map[beneath.ID]bool{}
	for _, f := range all {
		if beneath.Links(f.info) > 1 {
			if f.theirs {
				s.leave(f.Name, beneath.ErrNames.Error())
				continue
			}
			id := beneath.IDOf(f.info)
			if have[id] {
				continue
			}
			have[id] = true
		}

		some = append(some, f)
	}

	slices.SortStableFunc(some, func(a, b seen) int {
		if letters(a.Name) && letters(b.Name) {
			return beneath.ChangedAt(a.info).Compare(beneath.ChangedAt(b.info))
		}
		return strings.Compare(path.Dir(a.Name), path.Dir(b.Name))
	})

	return some
}

func letters(name string) bool { return strings.HasPrefix(name, home+"/drop/") }

func hidden(name string) int {
	if strings.Contains(strings.TrimPrefix(name, home), "/.") {
		return 1
	}
	return 0
}

// keep copies a file of .daycare if it is one that is copied at once.
func (s *snapshot) keep(f seen) error {
	if f.Size > short && grows(f.Name) {
		s.files = append(s.files, f)
		return nil
	}
	file, err := s.reopen(f, f.Name)
	switch {
	case errors.Is(err, fs.ErrNotExist) && disk.Hidden(path.Base(f.Name)), errors.Is(err, fs.ErrNotExist) && f.theirs:
		return nil // what makes temporary names does not wait
	case f.theirs && err != nil:
		s.leave(f.Name, err.Error())
		return nil
	case err != nil:
		return fmt.Errorf("%s: %w", f.Name, err)
	}
	defer file.Close()

	return s.copy(f, io.LimitReader(file, f.Size))
}

// copy takes the content of a file now.
func (s *snapshot) copy(f seen, content io.Reader) error {
	var err error
	f.at = s.spooled
	if f.Size, err = io.Copy(s.spool, content); err != nil {
		return fmt.Errorf("copy %s: %w", f.Name, err)
	}

	s.spooled += f.Size
	if f.Name == home+"/settings.yaml" && !s.opts.Secrets {
		if f, err = s.scrub(f); err != nil {
			return err
		}
	}

	s.files = append(s.files, f)
	return nil
}

// scrub takes the secrets out of settings that were copied.
func (s *snapshot) scrub(f seen) (seen, error) {
	content, err := io.ReadAll(io.NewSectionReader(s.spool, f.at, f.Size))
	if err != nil {
		return f, err
	}
	if content, err = s.opts.Scrub(content); err != nil {
		return f, err
	}

	f.at = s.spooled
	n, err := s.spool.Write(content)
	f.Size, s.spooled = int64(n), s.spooled+int64(n)

	return f, err
}

// grows reports whether a file is only appended to, or never changed. An inbox is made again
// now and then, and what was in it is then nowhere else.
func grows(name string) bool {
	if path.Ext(name) == ".jsonl" {
		return path.Base(name) != "inbox.jsonl"
	}
	rel := strings.TrimPrefix(name, home+"/")
	return strings.Contains(rel, "/blobs/") || strings.HasPrefix(rel, "files/") ||
		strings.HasPrefix(rel, "trash/") || ofAgents(name)
}

// open opens what was seen: from the spool, or as much of the file as there was then.
func (s *snapshot) open(f seen) (content io.Reader, closing func() error, err error) {
	if f.at >= 0 {
		return io.NewSectionReader(s.spool, f.at, f.Size), func() error { return nil }, nil
	}
	file, err := s.reopen(f, f.Name)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, beneath.ErrRace) {
		file, err = s.rotated(f)
	}
	if err != nil {
		return nil, nil, fmt.Errorf("%s changed while it was copied: %w\ntry again", f.Name, err)
	}

	return io.LimitReader(file, f.Size), file.Close, nil
}

// reopen opens the very file that was seen, under a name. Where no agent can write, no folder
// on the way is looked at: there are many files.
func (s *snapshot) reopen(f seen, name string) (*os.File, error) {
	rel := filepath.FromSlash(strings.TrimPrefix(name, home+"/"))
	if f.theirs {
		dir, err := beneath.Dir(s.home, filepath.Dir(rel))
		if err != nil {
			return nil, err
		}
		defer dir.Close()
		return beneath.Open(dir, filepath.Base(rel), f.info)
	}

	file, info, err := beneath.OpenOwn(filepath.Join(s.home, rel))
	if err == nil && !os.SameFile(info, f.info) {
		err = errors.Join(beneath.ErrRace, file.Close())
	}

	return file, err
}

// rotated finds a log again that was closed meanwhile: NAME.jsonl is then in NAME/.
func (s *snapshot) rotated(f seen) (*os.File, error) {
	folder := strings.TrimSuffix(f.Name, ".jsonl")
	entries, _ := os.ReadDir(filepath.Join(s.home, filepath.FromSlash(strings.TrimPrefix(folder, home+"/"))))
	for _, e := range slices.Backward(entries) {
		if file, err := s.reopen(f, path.Join(folder, e.Name())); err == nil {
			return file, nil
		}
	}

	return nil, beneath.ErrRace
}

// maxNamed bounds a file outside of .daycare that settings name, in bytes.
const maxNamed = 16 << 20

// named copies the files of the workspace that the settings name. Agents can write there.
func (s *snapshot) named() error {
	dir, err := os.OpenRoot(s.opts.Place.Dir)
	if err != nil {
		return err
	}
	defer dir.Close()

	for _, name := range s.opts.Named {
		if s.private(name) || strings.HasPrefix(name, home+"/") {
			continue
		}
		content, info, err := beneath.Read(dir, filepath.FromSlash(name), maxNamed)
		if err != nil {
			s.leave(name, err.Error())
			continue
		}
		if !s.restorable(name) {
			continue
		}
		if err := s.copy(see(name, info, true), bytes.NewReader(content)); err != nil {
			return err
		}
	}

	return nil
}
