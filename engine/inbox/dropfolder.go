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
	"daycare/engine/cuid"
	"daycare/engine/disk"
)

// A DropFolder is drop/, one folder for all agents: a file that is put into it is a
// message. It goes through
//
//	drop/NAME            as it was dropped
//	drop/.taken/ID__NAME claimed: ID is the item it becomes (Take); at first next to
//	                     drop/NAME, so that it always has a durable name, then alone
//	gone                 after the item is durable in its inbox (Finish)
//	drop/bad/NAME        or refused, with NAME.reason.txt beside it (Refuse)
//
// A crash at any step leaves a file that Taken finds again, and the item's dedupe key
// tells whether the inbox already has it. Only one goroutine of the process that holds the
// lock uses a DropFolder; any program may drop files.
type DropFolder struct {
	vol  *disk.Volume
	dir  string
	seen map[string]sight // by file name, from the last look
}

// A sight caches what was seen of a file until its inode changes: a file is read once,
// however often the folder is read while the file waits.
type sight struct {
	touched  time.Time
	size     int64
	readable bool // it can be parsed
}

// ErrRefused means that a file can never become a message and was moved to bad/.
var ErrRefused = errors.New("refused")

// OpenDropFolder opens dir and creates it if it does not exist.
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
	// quiet is how long a file that can be parsed must not have changed: a program may
	// be writing it in place.
	quiet = time.Second
	// patience is the same for a file that cannot be parsed (yet).
	patience = 5 * time.Second
)

// Ready lists the files that can be claimed, in order of arrival. again > 0 means that
// another one may be ready after that time. It ignores folders and names that begin with
// a dot or end in ~.
//
// A file is ready when it can be parsed and has not changed for a second. JSON, which
// parses only when it is complete, and files that were moved in, whose inode changed
// after their content, need not wait that second. A file that cannot be parsed is ready,
// to be refused, when it has not changed for a while.
func (s *DropFolder) Ready(now time.Time) (names []string, again time.Duration, err error) {
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
		wait := s.readyIn(name, now, before[name])
		switch {
		case wait < 0: // gone again
		case wait == 0:
			names = append(names, name)
		case again == 0 || wait < again:
			again = wait
		}
	}

	return names, again, nil
}

// arrivals lists a folder in order of arrival: by the last change of the inodes, which a
// rename is. Files of one tick of the file system's clock are ordered by name.
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

// readyIn returns how long to wait until a file is ready, negative if it does not exist.
// before is what the last look saw of it.
func (s *DropFolder) readyIn(name string, now time.Time, before sight) time.Duration {
	path := filepath.Join(s.dir, name)
	info, err := os.Lstat(path)
	if err != nil {
		return -1
	}

	touched := beneath.ChangedAt(info)
	lain := now.Sub(touched).Abs() // a clock that was set back must not keep it forever
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

// parse reads a file as the message that its name says.
func (s *DropFolder) parse(path, name string) (Fields, error) {
	content, err := readDropped(path)
	if err != nil {
		return Fields{}, err
	}

	return parseDropped(name, content)
}

func isJSON(name string) bool { return strings.EqualFold(filepath.Ext(name), ".json") }

// readDropped reads a file, which must be regular and not too large.
func readDropped(path string) ([]byte, error) {
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

// Take claims a file: it chooses the id of the item and moves the file into .taken under
// it. A file that is not a message is refused with an error that wraps ErrRefused. A file
// that cannot be read at the moment stays where it is: too many open files, missing
// permissions or a failing disk say nothing about its content.
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

	// It is read once more: until now a program could have written to it.
	return s.taken(taken)
}

// aside durably gives a file its name in .taken; leave then removes the original name. On a
// file system without hard links it renames, which a file system without a journal may
// lose in a power cut.
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

// leave removes the name that a claimed file was dropped under before the message is
// delivered: a power cut must not leave a file that would be claimed again. If another
// file has taken its place meanwhile, that is another message, and leave claims it too.
func (s *DropFolder) leave(taken fs.FileInfo, name string) error {
	from := filepath.Join(s.dir, name)
	if now, err := os.Lstat(from); err != nil || !os.SameFile(now, taken) {
		return nil
	}
	to := filepath.Join(s.takenDir(), cuid.Unique()+"__"+name)
	if err := s.vol.Rename("letter", from, to); err != nil {
		return err
	}
	if now, err := os.Lstat(to); err != nil || !os.SameFile(now, taken) {
		return err
	}

	return s.drop(to)
}

// drop durably removes one of several names of a claimed file.
func (s *DropFolder) drop(path string) error {
	if err := s.vol.Remove("letter", path); err != nil {
		return err
	}
	return s.vol.SyncDir("letter.dirsync", s.takenDir())
}

// open reads a file as a message, or refuses it.
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

// refused refuses a file that is not a message.
func (s *DropFolder) refused(name string, why error) error {
	if err := s.Refuse(name, why); err != nil {
		return err
	}
	return fmt.Errorf("dropped message %s: %w: %w", name, ErrRefused, why)
}

// taken reads a claimed file; its item has the id in the file's name.
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

// Taken lists the messages that were claimed and not finished, in the order in which they
// were claimed: what a crash left, and what found no room. The error tells which of them
// were refused (ErrRefused) and which cannot be read at the moment.
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
	several := map[string][]fs.FileInfo{} // by dropped name: a power cut may leave one message twice
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

// Finish removes the file of a message whose item is durable in its inbox.
func (s *DropFolder) Finish(l Dropped) error {
	if err := s.vol.Remove("letter", filepath.Join(s.takenDir(), l.Name)); err != nil {
		return fmt.Errorf("finish dropped message %s: %w", l.Name, err)
	}
	return nil
}

// Refuse moves a file to bad/. The reason is written next to it first: no file is there
// without one. name is the Name of a Dropped, or of a file in the drop folder.
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
