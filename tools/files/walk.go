package files

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"

	"daycare/engine/beneath"
)

// Bounds of one search.
const (
	maxVisits = 200_000 // names looked at
	maxDepth  = 64      // folders below each other; each is held open
)

// errEnough ends a walk early, without being an error.
var errEnough = errors.New("enough")

// A visit is one regular file met on a walk.
type visit struct {
	dir  *os.Root
	name string
	rel  string // from where the walk began, with slashes
	info os.FileInfo
}

// walker goes through a folder and all below it, in the order of names. It
// follows no symbolic link and leaves out .git and what is out of reach.
type walker struct {
	ctx    context.Context
	reach  *reach
	own    bool
	ignore bool // leave out what .gitignore says
	visits int
	visit  func(visit) error
}

// walk starts at p, a folder that it opens. full is false if there was more to
// look at than the bounds allow.
func (r *reach) walk(ctx context.Context, p *place, ignore bool, f func(visit) error) (full bool, err error) {
	if err := p.into(); err != nil {
		return false, err
	}
	w := &walker{ctx: ctx, reach: r, own: p.own, ignore: ignore, visit: f}
	err = w.folder(p.dir, p.real, "", nil, 0)
	if errors.Is(err, errEnough) {
		err = nil
	}

	return w.visits <= maxVisits, err
}

func (w *walker) folder(dir *os.Root, real, rel string, rules []ignoreRules, depth int) error {
	entries, _ := fs.ReadDir(dir.FS(), ".") // none where it cannot be read: the rest still counts
	if w.ignore {
		if own := readIgnore(dir, rel); len(own.rules) > 0 {
			rules = append(rules[:len(rules):len(rules)], own)
		}
	}

	for _, e := range entries {
		if w.visits++; w.visits > maxVisits {
			return errEnough
		}
		if err := w.ctx.Err(); err != nil {
			return err
		}
		if err := w.entry(dir, real, rel, e, rules, depth); err != nil {
			return err
		}
	}

	return nil
}

func (w *walker) entry(dir *os.Root, real, rel string, e fs.DirEntry, rules []ignoreRules, depth int) error {
	name := e.Name()
	if strings.EqualFold(name, ".git") || !e.IsDir() && !e.Type().IsRegular() {
		return nil
	}
	below := path.Join(rel, name)
	if ignored(rules, below, e.IsDir()) {
		return nil
	}

	info, err := dir.Lstat(name)
	if err != nil || !w.own && w.reach.forbiddenIn(real, name, info) {
		return nil
	}
	if info.Mode().IsRegular() {
		return w.visit(visit{dir, name, below, info})
	}
	if !info.IsDir() || depth >= maxDepth {
		return nil
	}

	sub, err := beneath.Enter(dir, name, info)
	if err != nil {
		return nil // swapped in between, or out of reach
	}
	defer sub.Close()

	return w.folder(sub, filepath.Join(real, name), below, rules, depth+1)
}
