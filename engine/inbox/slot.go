package inbox

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"daycare/engine/beneath"
	"daycare/engine/disk"
)

// A Slot is the letter slot, one folder for all agents: who puts a file into it
// has sent a message. A letter goes through
//
//	drop/NAME            as it was dropped
//	drop/.taken/ID__NAME taken: ID is the item it becomes (Take); first beside drop/NAME,
//	                     so that it has a durable name at each moment, then alone
//	gone                 after the item is durable in its inbox (Finish)
//	drop/bad/NAME        or refused, with NAME.reason.txt beside it (Refuse)
//
// so a crash at any step leaves a letter that Taken finds again, and the item's
// dedupe key tells whether its inbox has it already. Only one goroutine of the
// process that holds the lock uses a Slot; anybody may drop.
type DropFolder struct {
	vol  *disk.Volume
	dir  string
	seen map[string]sight // by name, of what was there at the last look
}

// A sight is what a look at a letter saw, as long as its inode did not change: a letter
// is read once, however often the folder is looked at while it waits.
type sight struct {
	touched  time.Time
	size     int64
	readable bool // it can be parsed
}

// ErrRefused: the file can never become a message; it is in bad/ now.
var ErrRefused = errors.New("refused")

// OpenDropFolder opens the slot in the folder dir, which it makes if need be.
func OpenDropFolder(vol *disk.Volume, dir string) (*DropFolder, error) {
	s := &DropFolder{vol: vol, dir: dir}
	for _, d := range []string{dir, s.takenDir(), s.badDir()} {
		if err := vol.MkdirAll(d); err != nil {
			return nil, fmt.Errorf("create drop folder: %w", err)
		}
	}
	return s, nil
}

func (s *DropFolder) takenDir() string { return filepath.Join(s.dir, ".taken") }
func (s *DropFolder) badDir() string   { return filepath.Join(s.dir, "bad") }

const (
	// quiet is how long a letter that can be read must not have changed: somebody
	// may be writing it in place.
	quiet = time.Second
	// patience is the same for one that cannot be read (yet).
	patience = 5 * time.Second
)

// Ready lists the letters that can be taken, in the order in which they came. again > 0 says that another may be
// ready after that time. Names that begin with a dot or end in ~ are left alone,
// and so are folders.
//
// A letter is ready when it can be read and has not changed for a second. That
// second is saved for JSON, which can only be read when it is complete, and for
// what was moved in: then its inode changed after its content did. A letter that
// cannot be read is ready, to be refused, when it has not changed for a while.
func (s *DropFolder) Ready(now time.Time) (letters []string, again time.Duration, err error) {
	entries, err := arrivals(s.dir, func(name string) string { return name })
	if err != nil {
		return nil, 0, fmt.Errorf("read drop folder: %w", err)
	}
	before := s.seen
	s.seen = make(map[string]sight, len(entries))
	for _, e := range entries {
		name := e.Name()
		if e.IsDir() || strings.HasPrefix(name, ".") || strings.HasSuffix(name, "~") {
			continue
		}
		wait := s.ripens(name, now, before[name])
		switch {
		case wait < 0: // gone again
		case wait == 0:
			letters = append(letters, name)
		case again == 0 || wait < again:
			again = wait
		}
	}
	return letters, again, nil
}

// arrivals lists a folder in the order in which its files came there, which is that
// of the last change of their inodes: a rename is one. Those of one tick of the file
// system's clock are ordered by their names.
func arrivals(dir string, named func(string) string) ([]fs.DirEntry, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	came := make(map[string]time.Time, len(entries))
	for _, e := range entries {
		if info, err := e.Info(); err == nil {
			came[e.Name()] = beneath.ChangedAt(info)
		}
	}
	slices.SortFunc(entries, func(a, b fs.DirEntry) int {
		return cmp.Or(came[a.Name()].Compare(came[b.Name()]), strings.Compare(named(a.Name()), named(b.Name())))
	})
	return entries, nil
}

// ripens is how long the letter still has to lie; negative: it is not there. before is
// what the last look saw of it.
func (s *DropFolder) ripens(name string, now time.Time, before sight) time.Duration {
	path := filepath.Join(s.dir, name)
	info, err := os.Lstat(path)
	if err != nil {
		return -1
	}
	touched := beneath.ChangedAt(info)
	lain := now.Sub(touched).Abs() // a clock that was set back must not keep it for ever
	is := sight{touched: touched, size: info.Size(), readable: before.readable}
	if is != before {
		_, err = s.parse(path, name)
		is.readable = err == nil
	}
	if errors.Is(err, fs.ErrNotExist) {
		return -1
	}
	if !disk.Transient(err) {
		s.seen[name] = is
	}
	switch {
	case !is.readable:
		return max(0, patience-lain)
	case touched.After(info.ModTime()), isJSON(name):
		return 0
	}
	return max(0, quiet-lain)
}

// parse reads a letter of that name.
func (s *DropFolder) parse(path, name string) (Fields, error) {
	content, err := readLetter(path)
	if err != nil {
		return Fields{}, err
	}
	return parseLetter(name, content)
}

func isJSON(name string) bool { return strings.EqualFold(filepath.Ext(name), ".json") }

// readLetter reads a letter, which must be a regular file of bounded size.
func readLetter(path string) ([]byte, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if errors.Is(err, syscall.ELOOP) || errors.Is(err, syscall.ENXIO) {
		return nil, errors.New("it is not a regular file")
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, errors.New("it is not a regular file")
	}
	limit := int64(MaxItemBytes)
	if isJSON(path) {
		limit = maxDroppedFile
	}
	content, err := io.ReadAll(io.LimitReader(f, limit+1))
	if err == nil && int64(len(content)) > limit {
		err = fmt.Errorf("%w: the file is over %d bytes", ErrTooLarge, limit)
	}
	return content, err
}

// Take takes a letter: decides its item's id and puts it aside under it. What is not a
// letter is refused, and the error, which wraps ErrRefused, says why. One that cannot
// be read at the moment stays where it is: too many open files, missing rights or a
// disk that does not answer say nothing about what is in it.
func (s *DropFolder) Take(name string) (Dropped, error) {
	from := filepath.Join(s.dir, name)
	l, err := s.open(from, name)
	if err != nil {
		return Dropped{}, err
	}
	taken := l.idOr() + "__" + name
	to := filepath.Join(s.takenDir(), taken)
	if disk.Exists(to) {
		return Dropped{}, fmt.Errorf("pick up %s: a dropped message with the same name and id is being picked up", name)
	}
	if err := s.aside(from, to); err != nil {
		return Dropped{}, fmt.Errorf("pick up %s: %w", name, err)
	}
	// It is read once more: until now somebody may have written to it.
	return s.taken(taken)
}

// aside gives a letter its name among those that are taken, durably. taken takes the one
// it was dropped under away. A file system that has no second names gets a rename, which
// one without a journal may lose at a power cut.
func (s *DropFolder) aside(from, to string) error {
	err := s.vol.Link("letter", from, to)
	switch {
	case err == nil:
		return s.vol.SyncDir("letter.dirsync", s.takenDir())
	case errors.Is(err, fs.ErrPermission), errors.Is(err, errors.ErrUnsupported), errors.Is(err, syscall.EMLINK),
		errors.Is(err, syscall.EXDEV):
		return s.vol.Rename("letter", from, to)
	}
	return err
}

// leave takes the name away that a taken letter was dropped under, before it is delivered:
// a power cut must not leave one that would be taken again. Whoever has put another file
// in its place meanwhile has sent another letter, which this takes as well.
func (s *DropFolder) leave(taken fs.FileInfo, name string) error {
	from := filepath.Join(s.dir, name)
	if now, err := os.Lstat(from); err != nil || !os.SameFile(now, taken) {
		return nil
	}
	to := filepath.Join(s.takenDir(), newID()()+"__"+name)
	if err := s.vol.Rename("letter", from, to); err != nil {
		return err
	}
	if now, err := os.Lstat(to); err != nil || !os.SameFile(now, taken) {
		return err
	}
	return s.drop(to)
}

// drop removes one of several names of a taken letter, durably.
func (s *DropFolder) drop(path string) error {
	if err := s.vol.Remove("letter", path); err != nil {
		return err
	}
	return s.vol.SyncDir("letter.dirsync", s.takenDir())
}

// open reads a letter, or refuses what is none.
func (s *DropFolder) open(path, name string) (Fields, error) {
	l, err := s.parse(path, name)
	switch {
	case err == nil:
		return l, nil
	case errors.Is(err, fs.ErrNotExist), disk.Transient(err):
		return Fields{}, fmt.Errorf("dropped message %s: %w", name, err)
	}
	return Fields{}, s.refused(filepath.Base(path), err)
}

// refused refuses what is no letter.
func (s *DropFolder) refused(name string, why error) error {
	if err := s.Refuse(name, why); err != nil {
		return err
	}
	return fmt.Errorf("dropped message %s: %w: %w", name, ErrRefused, why)
}

// taken reads a letter that is taken; its item has the id that it was taken under.
func (s *DropFolder) taken(taken string) (Dropped, error) {
	id, name, ok := strings.Cut(taken, "__")
	if !ok || !itemID.MatchString(id) {
		return Dropped{}, s.refused(taken, errors.New("its name does not start with an item id"))
	}
	path := filepath.Join(s.takenDir(), taken)
	l, err := s.open(path, name)
	if err != nil {
		return Dropped{}, err
	}
	info, err := os.Lstat(path)
	if err != nil {
		return Dropped{}, fmt.Errorf("dropped message %s: %w", name, err)
	}
	if err := s.leave(info, name); err != nil {
		return Dropped{}, fmt.Errorf("dropped message %s: %w", name, err)
	}
	return Dropped{Name: taken, Ref: Addressee(name), Item: l.item(id, info.ModTime()), Files: l.Files}, nil
}

// Taken lists the letters that were taken and not finished, in the order in which
// they were taken: what a crash left, and what found no room. The error says which of
// them were refused (ErrRefused), and which cannot be read at the moment.
func (s *DropFolder) Taken() ([]Dropped, error) {
	entries, err := arrivals(s.takenDir(), func(taken string) string {
		_, name, _ := strings.Cut(taken, "__")
		return name
	})
	if err != nil {
		return nil, fmt.Errorf("list dropped messages: %w", err)
	}
	var all []Dropped
	var failed error
	several := map[string][]fs.FileInfo{} // by the name they were dropped under: a power cut may leave one letter twice
	for _, e := range entries {
		if e.IsDir() || strings.HasPrefix(e.Name(), ".") {
			continue
		}
		if info, err := e.Info(); err == nil && beneath.Links(info) > 1 {
			_, name, _ := strings.Cut(e.Name(), "__")
			if slices.ContainsFunc(several[name], func(one fs.FileInfo) bool { return os.SameFile(one, info) }) {
				failed = errors.Join(failed, s.drop(filepath.Join(s.takenDir(), e.Name())))
				continue
			}
			several[name] = append(several[name], info)
		}
		l, err := s.taken(e.Name())
		if err != nil {
			failed = errors.Join(failed, err)
			continue
		}
		all = append(all, l)
	}
	return all, failed
}

// Finish removes a letter whose item is durable in its inbox.
func (s *DropFolder) Finish(l Dropped) error {
	if err := s.vol.Remove("letter", filepath.Join(s.takenDir(), l.Name)); err != nil {
		return fmt.Errorf("finish dropped message %s: %w", l.Name, err)
	}
	return nil
}

// Refuse moves a letter to bad/ and writes the reason beside it, the reason first: a
// letter without one would be a riddle. name is a Letter's, or that of a file in the slot.
func (s *DropFolder) Refuse(name string, reason error) error {
	from, plain := filepath.Join(s.takenDir(), name), name
	if disk.Exists(from) {
		if id, rest, ok := strings.Cut(name, "__"); ok && itemID.MatchString(id) {
			plain = rest
		}
	} else {
		from = filepath.Join(s.dir, name)
	}
	to := freeName(s.badDir(), plain)
	err := s.vol.WriteFile("refused", to+".reason.txt", []byte(reason.Error()+"\n"))
	if err == nil {
		err = s.vol.Rename("refused", from, to)
	}
	if err != nil {
		return fmt.Errorf("refuse dropped message %s: %w", name, err)
	}
	return nil
}

// freeName is a name in dir that is not used, made of name.
func freeName(dir, name string) string {
	if len(name) > maxDroppedName {
		name = strings.ToValidUTF8(name[len(name)-maxDroppedName:], "")
	}
	path := filepath.Join(dir, name)
	ext := filepath.Ext(name)
	for n := 2; disk.Exists(path); n++ {
		path = filepath.Join(dir, fmt.Sprintf("%s-%d%s", strings.TrimSuffix(name, ext), n, ext))
	}
	return path
}
