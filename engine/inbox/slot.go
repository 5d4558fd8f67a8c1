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

	"daycare/engine/crash"
	"daycare/engine/disk"
)

// A Slot is the letter slot, one folder for all agents: who puts a file into it
// has sent a message. A letter goes through
//
//	drop/NAME            as it was dropped
//	drop/.taken/ID__NAME taken: ID is the item it becomes (Take)
//	gone                 after the item is durable in its inbox (Finish)
//	drop/bad/NAME        or refused, with NAME.reason.txt beside it (Refuse)
//
// so a crash at any step leaves a letter that Taken finds again, and the item's
// dedupe key tells whether its inbox has it already. Only one goroutine of the
// process that holds the lock uses a Slot; anybody may drop.
type Slot struct {
	vol *disk.Volume
	dir string
}

// OpenSlot opens the slot in the folder dir, which it makes if need be.
func OpenSlot(vol *disk.Volume, dir string) (*Slot, error) {
	s := &Slot{vol: vol, dir: dir}
	for _, d := range []string{dir, s.takenDir(), s.badDir()} {
		if err := os.Mkdir(d, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
			return nil, fmt.Errorf("make letter slot: %w", err)
		}
	}
	return s, nil
}

func (s *Slot) takenDir() string { return filepath.Join(s.dir, ".taken") }
func (s *Slot) badDir() string   { return filepath.Join(s.dir, "bad") }

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
func (s *Slot) Ready(now time.Time) (letters []string, again time.Duration, err error) {
	entries, err := arrivals(s.dir, func(name string) string { return name })
	if err != nil {
		return nil, 0, fmt.Errorf("look into letter slot: %w", err)
	}
	for _, e := range entries {
		name := e.Name()
		if e.IsDir() || strings.HasPrefix(name, ".") || strings.HasSuffix(name, "~") {
			continue
		}
		wait := s.ripens(name, now)
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
			came[e.Name()] = inodeTime(info)
		}
	}
	slices.SortFunc(entries, func(a, b fs.DirEntry) int {
		return cmp.Or(came[a.Name()].Compare(came[b.Name()]), strings.Compare(named(a.Name()), named(b.Name())))
	})
	return entries, nil
}

// ripens is how long the letter still has to lie; negative: it is not there.
func (s *Slot) ripens(name string, now time.Time) time.Duration {
	path := filepath.Join(s.dir, name)
	info, err := os.Lstat(path)
	if err != nil {
		return -1
	}
	touched := inodeTime(info)
	lain := now.Sub(touched).Abs() // a clock that was set back must not keep it for ever
	content, err := readLetter(path)
	if errors.Is(err, fs.ErrNotExist) {
		return -1
	}
	if err == nil {
		_, err = parseLetter(name, content)
	}
	switch {
	case err != nil:
		return max(0, patience-lain)
	case touched.After(info.ModTime()), isJSON(name):
		return 0
	}
	return max(0, quiet-lain)
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
		limit = maxLetterFile
	}
	content, err := io.ReadAll(io.LimitReader(f, limit+1))
	if err == nil && int64(len(content)) > limit {
		err = fmt.Errorf("%w: the file is over %d bytes", ErrTooLarge, limit)
	}
	return content, err
}

// Take takes a letter: decides its item's id and puts it aside under it. A letter
// that cannot be read is refused, and the error says why.
func (s *Slot) Take(name string) (Letter, error) {
	from := filepath.Join(s.dir, name)
	l, err := s.open(from, name)
	if err != nil {
		return Letter{}, err
	}
	taken := l.idOr() + "__" + name
	to := filepath.Join(s.takenDir(), taken)
	if disk.Exists(to) {
		return Letter{}, fmt.Errorf("take letter %s: one with its name and id is being taken", name)
	}
	if err := crash.Do("letter.rename", func() error { return os.Rename(from, to) }); err != nil {
		return Letter{}, fmt.Errorf("take letter %s: %w", name, err)
	}
	for _, dir := range []string{s.takenDir(), s.dir} {
		if err := s.vol.SyncDir("letter.dirsync", dir); err != nil {
			return Letter{}, fmt.Errorf("take letter %s: %w", name, err)
		}
	}
	// It is read once more: until the rename somebody may have written to it.
	return s.taken(taken)
}

// open reads a letter, or refuses it.
func (s *Slot) open(path, name string) (Fields, error) {
	content, err := readLetter(path)
	if errors.Is(err, fs.ErrNotExist) {
		return Fields{}, fmt.Errorf("take letter: %w", err)
	}
	var l Fields
	if err == nil {
		l, err = parseLetter(name, content)
	}
	if err != nil {
		return Fields{}, errors.Join(fmt.Errorf("letter %s: %w", name, err), s.Refuse(filepath.Base(path), err))
	}
	return l, nil
}

// taken reads a letter that is taken; its item has the id that it was taken under.
func (s *Slot) taken(taken string) (Letter, error) {
	id, name, ok := strings.Cut(taken, "__")
	if !ok || !itemID.MatchString(id) {
		err := errors.New("its name has no item id in front")
		return Letter{}, errors.Join(fmt.Errorf("letter %s: %w", taken, err), s.Refuse(taken, err))
	}
	path := filepath.Join(s.takenDir(), taken)
	l, err := s.open(path, name)
	if err != nil {
		return Letter{}, err
	}
	info, err := os.Lstat(path)
	if err != nil {
		return Letter{}, fmt.Errorf("letter %s: %w", name, err)
	}
	return Letter{Name: taken, Ref: Addressee(name), Item: l.item(id, info.ModTime()), Files: l.Files}, nil
}

// Taken lists the letters that were taken and not finished, in the order in which
// they were taken: what a crash left, and what found no room. One that cannot be read any more is refused.
func (s *Slot) Taken() ([]Letter, error) {
	entries, err := arrivals(s.takenDir(), func(taken string) string {
		_, name, _ := strings.Cut(taken, "__")
		return name
	})
	if err != nil {
		return nil, fmt.Errorf("look for taken letters: %w", err)
	}
	var all []Letter
	var refused error
	for _, e := range entries {
		if e.IsDir() || strings.HasPrefix(e.Name(), ".") {
			continue
		}
		l, err := s.taken(e.Name())
		if err != nil {
			refused = errors.Join(refused, err)
			continue
		}
		all = append(all, l)
	}
	return all, refused
}

// Finish removes a letter whose item is durable in its inbox.
func (s *Slot) Finish(l Letter) error {
	err := crash.Do("letter.unlink", func() error { return os.Remove(filepath.Join(s.takenDir(), l.Name)) })
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("finish letter %s: %w", l.Name, err)
	}
	return nil
}

// Refuse moves a letter to bad/ and writes the reason beside it. name is a
// Letter's, or that of a file in the slot.
func (s *Slot) Refuse(name string, reason error) error {
	from, plain := filepath.Join(s.takenDir(), name), name
	if disk.Exists(from) {
		if id, rest, ok := strings.Cut(name, "__"); ok && itemID.MatchString(id) {
			plain = rest
		}
	} else {
		from = filepath.Join(s.dir, name)
	}
	to := freeName(s.badDir(), plain)
	if err := os.Rename(from, to); err != nil {
		return fmt.Errorf("refuse letter %s: %w", name, err)
	}
	if err := os.WriteFile(to+".reason.txt", []byte(reason.Error()+"\n"), 0o600); err != nil {
		return fmt.Errorf("say why letter %s was refused: %w", name, err)
	}
	return nil
}

// freeName is a name in dir that is not used, made of name.
func freeName(dir, name string) string {
	if len(name) > maxLetterName {
		name = strings.ToValidUTF8(name[len(name)-maxLetterName:], "")
	}
	path := filepath.Join(dir, name)
	ext := filepath.Ext(name)
	for n := 2; disk.Exists(path); n++ {
		path = filepath.Join(dir, fmt.Sprintf("%s-%d%s", strings.TrimSuffix(name, ext), n, ext))
	}
	return path
}
