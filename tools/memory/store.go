package memory

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
	"sync"
	"time"

	"daycare/engine/beneath"
	"daycare/engine/disk"
)

const (
	maxFile  = 1 << 20 // bytes of one file; a longer one is not searched
	maxFiles = 50_000
	maxDepth = 5
)

// A store is the folder with its index. All methods may be called from any
// goroutine.
type store struct {
	dir string

	mu    sync.Mutex
	index *index
	known map[string]stamp
}

// stamp is by what a changed file is known.
type stamp struct {
	at   time.Time
	size int64
}

type entry struct {
	name string // relative to the folder, with slashes
	info fs.FileInfo
}

func newStore(dir string) *store {
	return &store{dir: dir, index: newIndex(), known: map[string]stamp{}}
}

// open opens the folder; nil if there is none yet. Everything is reached from it, so
// no link leads out.
func (s *store) open(make bool) (*os.Root, error) {
	if make {
		if err := disk.NewVolume(s.dir).MkdirAll(s.dir); err != nil {
			return nil, fmt.Errorf("make folder of memory: %w", err)
		}
	}
	root, err := beneath.Root(s.dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("open memory: %w", err)
	}

	return root, nil
}

// list are the Markdown files, by name. What cannot be looked at is left out.
func list(root *os.Root) (all []entry) {
	_ = fs.WalkDir(root.FS(), ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return nil // gone, or not ours to read
		}
		base := path.Base(name)
		switch {
		case name == ".":
			return nil
		case strings.HasPrefix(base, "."), strings.HasSuffix(base, "~"):
			return skip(d)
		case d.IsDir():
			if strings.Count(name, "/") >= maxDepth {
				return fs.SkipDir
			}
			return nil
		case !d.Type().IsRegular() || !strings.HasSuffix(base, ".md"):
			return nil
		}
		if len(all) >= maxFiles {
			return fs.SkipAll
		}
		if info, err := d.Info(); err == nil {
			all = append(all, entry{name, info})
		}
		return nil
	})
	return all
}

func skip(d fs.DirEntry) error {
	if d.IsDir() {
		return fs.SkipDir
	}
	return nil
}

// search looks which files changed, reads those, and ranks.
func (s *store) search(query string, limit int) ([]hit, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.refresh(); err != nil {
		return nil, err
	}

	return s.index.search(query, limit), nil
}

func (s *store) refresh() error {
	root, err := s.open(false)
	if err != nil {
		return err
	}
	var files []entry
	if root != nil {
		defer root.Close()
		files = list(root)
	}
	seen := make(map[string]bool, len(files))
	for _, f := range files {
		seen[f.name] = true
		now := stamp{f.info.ModTime(), f.info.Size()}
		// A file that was changed within the clock's step of being read looks as it
		// did: what is that young is read again.
		if s.known[f.name] == now && time.Since(now.at) > 2*time.Second {
			continue
		}
		text, err := readFile(root, f.name)
		if err != nil {
			delete(seen, f.name) // gone meanwhile, or too long: it is not found any more
			continue
		}
		s.index.put(f.name, text)
		s.known[f.name] = now
	}
	for name := range s.known {
		if !seen[name] {
			s.index.remove(name)
			delete(s.known, name)
		}
	}

	return nil
}

func readFile(root *os.Root, name string) (string, error) {
	data, _, err := beneath.Read(root, name, maxFile)
	if err != nil {
		return "", fmt.Errorf("%s: %w", name, beneath.Reason(err))
	}

	return strings.ToValidUTF8(string(data), "\uFFFD"), nil
}

// fileName checks a name that a model gave.
func fileName(name string) (string, error) {
	clean := path.Clean(strings.TrimPrefix(strings.TrimSpace(name), "memory/"))
	if !strings.HasSuffix(clean, ".md") {
		clean += ".md"
	}
	parts := strings.Split(clean, "/")
	bad := len(parts) > maxDepth || len(clean) > 200 || slices.ContainsFunc(parts, func(p string) bool {
		return p == "" || strings.HasPrefix(p, ".") || strings.ContainsAny(p, "\\\x00\n\r\t:") || len(p) > 100
	})
	if bad || !fs.ValidPath(clean) {
		return "", fmt.Errorf("%q is not a valid name; use one such as entities/anna.md", name)
	}

	return clean, nil
}

// change rewrites a file by what edit makes of it. If someone else changed it
// meanwhile, it begins anew with their version.
func (s *store) change(name string, edit func(old string) string) (before, after string, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	root, err := s.open(true)
	if err != nil {
		return "", "", err
	}
	defer root.Close()
	for range 5 {
		info, err := root.Lstat(name)
		if err == nil {
			if before, err = readFile(root, name); err != nil {
				return "", "", err
			}
		} else if !errors.Is(err, fs.ErrNotExist) {
			return "", "", err
		}
		after = edit(before)
		if len(after) > maxFile {
			return "", "", fmt.Errorf("%s would have %d bytes; %d are allowed: begin another file", name, len(after), maxFile)
		}
		switch done, err := replace(root, name, info, after); {
		case err != nil:
			return "", "", err
		case done:
			return before, after, nil
		}
	}

	return "", "", fmt.Errorf("%s keeps changing; try again later", name)
}

// replace writes the file in one step; false: it is not the one that info is of.
func replace(root *os.Root, name string, info fs.FileInfo, text string) (bool, error) {
	if dir := path.Dir(name); dir != "." {
		if err := root.MkdirAll(dir, 0o700); err != nil {
			return false, err
		}
	}
	folder, err := root.OpenRoot(path.Dir(name))
	if err != nil {
		return false, err
	}
	defer folder.Close()
	err = disk.ReplaceIn("memory", folder, path.Base(name), []byte(text), disk.InOptions{Check: func() error {
		if !same(root, name, info) {
			return disk.ErrChanged
		}
		return nil
	}})
	if errors.Is(err, disk.ErrChanged) {
		return false, nil
	}
	if err != nil {
		return false, err
	}

	return true, syncFolders(root, path.Dir(name))
}

// syncFolders makes the names of a folder and of those above it durable: what the model
// was told is saved survives a power cut.
func syncFolders(root *os.Root, dir string) error {
	for dir != "." {
		dir = path.Dir(dir)
		if err := disk.SyncIn("memory", root, dir); err != nil {
			return err
		}
	}

	return nil
}

func same(root *os.Root, name string, info fs.FileInfo) bool {
	now, err := root.Stat(name)
	if info == nil || err != nil {
		return info == nil && errors.Is(err, fs.ErrNotExist)
	}

	return os.SameFile(info, now) && now.Size() == info.Size() && now.ModTime().Equal(info.ModTime())
}
