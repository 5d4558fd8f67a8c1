package backup

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"daycare/engine/beneath"
	"daycare/engine/disk"
	"daycare/engine/tarball"
	"daycare/engine/workspace"
)

// ErrBad: the file is not a backup, or not a whole one.
var ErrBad = errors.New("not a complete daycare backup")

const (
	maxHead  = 1 << 20
	maxFiles = 2 << 20
	// maxTotal bounds all files of a backup where the room on a disk does not, in bytes.
	maxTotal = 1 << 50
)

// Verify reads a backup from its beginning to its end without writing anything. Errors: ErrBad.
func Verify(from io.Reader) (Head, error) { return unpack(from, nil, maxTotal) }

// An unpacking is a backup that is being read.
type unpacking struct {
	to   *os.Root // nil: it is only verified
	room int64    // bytes that its files may have
	head Head
	sums map[string]string // of the files so far, by name
	size int64
	done bool // the sums came, and were right
}

// unpack writes the files of a backup beneath to. Errors: ErrBad.
func unpack(from io.Reader, to *os.Root, room int64) (Head, error) {
	u := unpacking{to: to, room: room, sums: map[string]string{}}
	zip, err := gzip.NewReader(bufio.NewReader(from))
	if err == nil {
		err = tarball.Read(zip, tarball.Limits{File: maxTotal, Total: maxTotal, Files: maxFiles}, u.take)
	}
	if err == nil && !u.done {
		err = errors.New("it is truncated")
	}
	if err == nil {
		err = atEnd(zip)
	}
	if errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF) {
		err = fmt.Errorf("it is truncated: %w", err)
	}
	if err != nil {
		return u.head, fmt.Errorf("%w: %w", ErrBad, err)
	}

	return u.head, nil
}

// maxTail is how many bytes may follow the files: tar fills its last block.
const maxTail = 1 << 20

// atEnd reads to the end, where gzip has its own checksum.
func atEnd(r io.Reader) error {
	n, err := io.Copy(io.Discard, io.LimitReader(r, maxTail))
	if err == nil && n == maxTail {
		err = errors.New("there is data after its last file")
	}

	return err
}

// take takes one file.
func (u *unpacking) take(e tarball.Entry, content io.Reader) error {
	switch {
	case e.Name == failName:
		why, _ := io.ReadAll(io.LimitReader(content, 4<<10))
		return fmt.Errorf("it could not be finished: %s", bytes.TrimSpace(why))
	case u.done:
		return fmt.Errorf("%q follows the checksums", e.Name)
	case len(u.sums) == 0 && e.Name != headName:
		return fmt.Errorf("its first file is %q instead of %s", e.Name, headName)
	case len(u.sums) == 0:
		return u.begin(e, content)
	case e.Name == sumsName:
		return u.compare(content)
	case e.Name == home || hiddenOutside(e.Name):
		return fmt.Errorf("it contains %q", e.Name)
	}
	if u.size += e.Size; u.size > u.head.Bytes || len(u.sums) > u.head.Files {
		return fmt.Errorf("it contains more than the declared %d bytes in %d files", u.head.Bytes, u.head.Files)
	}
	sum := sha256.New()
	content = io.TeeReader(content, sum)
	var err error
	if u.to == nil {
		_, err = io.Copy(io.Discard, content)
	} else {
		err = tarball.Put(u.to, e, content)
	}
	u.sums[e.Name] = hex.EncodeToString(sum.Sum(nil))
	return err
}

// hiddenOutside reports whether part of a path outside of .daycare begins with a dot: such a file may be one that a
// shell or git runs.
func hiddenOutside(name string) bool {
	hidden := func(part string) bool { return strings.HasPrefix(part, ".") }
	return !strings.HasPrefix(name, home+"/") && slices.ContainsFunc(strings.Split(name, "/"), hidden)
}

// begin reads what the backup says of itself.
func (u *unpacking) begin(e tarball.Entry, content io.Reader) error {
	data, err := io.ReadAll(io.LimitReader(content, maxHead))
	if err != nil {
		return err
	}
	if err := json.Unmarshal(data, &u.head); err != nil {
		return fmt.Errorf("%s: %w", headName, err)
	}
	switch {
	case u.head.Format != format:
		return fmt.Errorf("its format is %d (written by daycare %s); this daycare reads format %d",
			u.head.Format, u.head.Version, format)
	case u.head.Bytes < 0 || u.head.Files < 0 || u.head.Bytes > u.room:
		return fmt.Errorf("its files need %d bytes; free: %d", u.head.Bytes, u.room)
	}
	sum := sha256.Sum256(data)
	u.sums[e.Name] = hex.EncodeToString(sum[:])
	return nil
}

// compare holds the files against the checksums.
func (u *unpacking) compare(content io.Reader) error {
	var wrong error
	lines := bufio.NewScanner(content)
	for lines.Scan() {
		if wrong == nil { // the last line of a truncated list is part of one
			wrong = u.compareOne(lines.Text())
		}
	}
	if err := lines.Err(); err != nil {
		return err
	}
	if n := len(u.sums); wrong == nil && n > 0 {
		wrong = fmt.Errorf("%d of its files have no checksum", n)
	}

	u.done = wrong == nil
	return wrong
}

// compareOne holds one file against its line of the checksums.
func (u *unpacking) compareOne(line string) error {
	sum, name, _ := strings.Cut(line, "  ")
	switch got, ok := u.sums[name]; {
	case !ok:
		return fmt.Errorf("%q is missing", name)
	case got != sum:
		return fmt.Errorf("%q was damaged or changed: its SHA-256 is %s, expected %s", name, got, sum)
	}
	delete(u.sums, name)

	return nil
}

// A Restored workspace came out of a backup.
type Restored struct {
	Head
	Aside []string `json:"aside,omitempty"` // where what was there before is now, in the workspace
}

// stagePrefix begins the name of the folder in which a backup is unpacked.
const stagePrefix = ".daycare-restore-"

// reserve is the room on the disk that a restore leaves, in bytes.
const reserve = 64 << 20

// Restore puts a backup in place in a workspace. What is there before is moved aside. It is
// unpacked and verified as a whole beside its place first, so after an error everything is as it
// was. The caller has made sure that nothing runs. Errors: ErrBad.
func Restore(from io.Reader, at workspace.Place) (r Restored, err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("restore: %w", err)
		}
	}()
	if at.Elsewhere() {
		if err := disk.NewVolume(filepath.Dir(at.Data)).MkdirAll(filepath.Dir(at.Data)); err != nil {
			return r, err
		}
	}
	root, err := os.OpenRoot(filepath.Dir(at.Data))
	if err != nil {
		return r, err
	}
	defer root.Close()
	stage := stagePrefix + rand.Text()
	if err := root.Mkdir(stage, 0o700); err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, root.RemoveAll(stage)) }()
	free, _, _ := disk.Space(root.Name()) // none, where it is not known
	dir, err := root.OpenRoot(stage)
	if err != nil {
		return r, err
	}
	defer dir.Close()
	if r.Head, err = unpack(from, dir, max(0, free-reserve)); err != nil {
		return r, err
	}
	if _, err := dir.Stat(home); err != nil {
		return r, fmt.Errorf("%w: it contains no %s", ErrBad, home)
	}
	if at.Elsewhere() {
		record := at.Record()
		e := tarball.Entry{Name: home + "/" + workspace.FileName, Mode: 0o600, Size: int64(len(record)), ModTime: time.Now()}
		if err := tarball.Put(dir, e, bytes.NewReader(record)); err != nil {
			return r, err
		}
	}
	work, err := os.OpenRoot(at.Dir)
	if err != nil {
		return r, err
	}
	defer work.Close()
	p := placing{own: root, work: work, stage: stage, data: filepath.Base(at.Data), apart: at.Elsewhere()}
	r.Aside, err = p.place()
	return r, err
}

// A placing moves what was unpacked to its places: .daycare, and the files of the workspace that may be on another disk.
type placing struct {
	own   *os.Root // the folder that the data folder is in, with the stage
	work  *os.Root // the workspace
	stage string
	data  string // name of the data folder
	apart bool   // it is not in the workspace
	undo  []func() error
}

// target is where a file of the stage comes to.
func (p *placing) target(name string) (in *os.Root, to string) {
	if name == home {
		return p.own, p.data
	}
	return p.work, name
}

// move renames, until it is undone.
func (p *placing) move(in *os.Root, from, to string) error {
	if err := in.Rename(from, to); err != nil {
		return err
	}
	p.undo = append(p.undo, func() error { return in.Rename(to, from) })
	return nil
}

// bring moves a file of the stage to its place, or copies it there, where that may be on another disk.
func (p *placing) bring(name string, in *os.Root, to string) error {
	from := filepath.Join(p.stage, name)
	if in == p.own || !p.apart {
		return p.move(p.own, from, to)
	}
	content, info, err := beneath.Read(p.own, from, maxNamed)
	if err != nil {
		return err
	}
	p.undo = append(p.undo, func() error { return in.RemoveAll(to) })
	e := tarball.Entry{Name: filepath.ToSlash(to), Mode: info.Mode().Perm(), Size: info.Size(), ModTime: info.ModTime()}
	return tarball.Put(in, e, bytes.NewReader(content))
}

// place puts all in place, .daycare last. Nothing outside of the workspace and the data folder is
// touched, whatever links are in it. If that fails, what was done is undone.
func (p *placing) place() (aside []string, err error) {
	syscall.Sync() // all files, before one of them has its name
	defer func() {
		if err == nil {
			return
		}
		for _, back := range slices.Backward(p.undo) {
			err = errors.Join(err, back())
		}
	}()
	names, err := inOrder(filepath.Join(p.own.Name(), p.stage))
	if err != nil {
		return nil, err
	}
	mark := ".before-" + time.Now().UTC().Format("20060102T150405.000Z")
	for _, name := range names {
		in, to := p.target(name)
		if err := in.MkdirAll(filepath.Dir(to), 0o700); err != nil {
			return nil, err
		}
		if same(p.own, filepath.Join(p.stage, name), in, to) {
			continue
		}
		if _, err := in.Lstat(to); err == nil {
			if err := p.move(in, to, to+mark); err != nil {
				return nil, err
			}
			if p.apart && in == p.own {
				aside = append(aside, filepath.Join(in.Name(), to+mark))
			} else {
				aside = append(aside, to+mark)
			}
		}
		if err := p.bring(name, in, to); err != nil {
			return nil, err
		}
	}
	syscall.Sync()
	return aside, nil
}

// same reports whether two files have the same content.
func same(in *os.Root, a string, other *os.Root, b string) bool {
	one, _, err := beneath.Read(in, a, maxNamed)
	two, _, oerr := beneath.Read(other, b, maxNamed)
	return err == nil && oerr == nil && bytes.Equal(one, two)
}

// inOrder lists what was unpacked: the files beside .daycare, then .daycare as a whole.
func inOrder(stage string) (names []string, err error) {
	err = filepath.WalkDir(stage, func(full string, d os.DirEntry, err error) error {
		rel, _ := filepath.Rel(stage, full) // it is below it
		switch {
		case err != nil:
			return err
		case d.IsDir() && rel == home:
			return filepath.SkipDir
		case !d.IsDir():
			names = append(names, rel)
		}
		return nil
	})
	return append(names, home), err
}
