package guard

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"daycare/engine/beneath"
	"daycare/engine/sensitive"
)

// A Kind says what is to be done with an item.
type Kind string

const (
	Data       Kind = "data"       // of daycare: hidden
	Secret     Kind = "secret"     // hidden
	Later      Kind = "later"      // can be read
	Repository Kind = "repository" // a folder that git takes for one; what is below is up to its Inner
	Inner      Kind = "inner"      // what git obeys in a repository: can be read
	Sealed     Kind = "sealed"     // a folder whose mode keeps daycare out
	Unfinished Kind = "unfinished" // a rebase to continue with: as Inner if going on runs a program, else as data
	Socket     Kind = "socket"     // of another program, which takes orders through it: hidden
)

// An Item is one file or folder of such a kind.
type Item struct {
	Path string
	Kind Kind
}

// A Guard remembers what is in granted folders. All its methods may be called from any
// goroutine.
type Guard struct {
	table sensitive.Table
	skip  map[string]bool
	mu    sync.Mutex       // of trees and of how many use each; never held while a folder is looked into
	trees map[string]*tree // by granted folder
}

// New returns a Guard that knows nothing yet. It does not look into the folders of skip,
// which no user uses.
func New(t sensitive.Table, skip ...string) *Guard {
	g := &Guard{table: t, skip: map[string]bool{}, trees: map[string]*tree{}}
	for _, path := range skip {
		g.skip[beneath.Real(path)] = true
	}

	return g
}

// maxTrees is how many granted folders are remembered without a command in them.
const maxTrees = 64

// A Watch is one command that runs.
type Watch struct {
	guard *Guard
	roots []string // that it may write
	named []string // what a right to write names
}

// Begin looks into the folders that a command may read and write. The others are the
// paths that its rights name. Found are the items, without those that are named; End must
// be called when nothing of the command is left. All paths are without symbolic links.
// Where there is too much to look into it returns ErrTooMany, and no command must run.
func (g *Guard) Begin(read, write, namedRead, namedWrite []string) (w *Watch, found []Item, err error) {
	w = &Watch{guard: g, named: namedWrite}
	for _, root := range write {
		items, err := g.use(root).begin(root, g)
		w.roots, found = append(w.roots, root), append(found, items...)
		if err != nil {
			w.End()
			return nil, nil, err
		}
	}

	for _, root := range read {
		if slices.Contains(w.roots, root) {
			continue
		}
		t := g.use(root)
		t.mu.Lock()
		items, err := t.look(root, g.table, g.skip)
		t.mu.Unlock()
		g.leave(t)
		if err != nil {
			w.End()
			return nil, nil, err
		}

		found = append(found, items...)
	}

	return w, slices.DeleteFunc(found, func(item Item) bool {
		return item.Kind == Sealed || item.isNamed(namedWrite) || item.Kind == Secret && item.isNamed(namedRead)
	}), nil
}

// begin looks into a folder that a command may write, which from now on runs.
func (t *tree) begin(root string, g *Guard) (found []Item, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	items, err := t.look(root, g.table, g.skip)
	for _, item := range items {
		if item.Kind == Unfinished && !goesOnWithProgram(item.Path) {
			continue // the command may continue with it
		}
		if t.running == 0 {
			t.known[item.Path] = linkAt(item.Path)
		}
		if hooks := filepath.Join(item.Path, "hooks"); item.Kind == Repository && !exists(hooks) && makeHooks(root, hooks) == nil {
			t.known[hooks] = noLink
			found = append(found, Item{hooks, Inner})
		}

		found = append(found, item)
	}
	t.running++

	return found, err
}

// isNamed reports whether one of the paths is the item, or the repository that it is in.
// Data of daycare is nobody's to name, and who names a folder does not mean the repository
// that it may become.
func (i Item) isNamed(paths []string) bool {
	switch repository := filepath.Dir(i.Path); i.Kind {
	case Data, Sealed:
		return false
	case Repository:
		return isGit(i.Path) && slices.Contains(paths, i.Path)
	case Inner, Unfinished:
		return slices.Contains(paths, i.Path) || isGit(repository) && slices.Contains(paths, repository)
	}

	return slices.Contains(paths, i.Path)
}

func isGit(path string) bool { return sensitive.Fold(filepath.Base(path)) == ".git" }

// use is what is remembered of a granted folder, until leave is called.
func (g *Guard) use(root string) *tree {
	g.mu.Lock()
	defer g.mu.Unlock()
	t := g.trees[root]
	if t == nil {
		for other, old := range g.trees {
			if len(g.trees) >= maxTrees && old.users == 0 {
				delete(g.trees, other)
			}
		}
		t = &tree{folders: map[string]folder{}, known: map[string]string{}}
		g.trees[root] = t
	}
	t.users++

	return t
}

func (g *Guard) leave(t *tree) {
	g.mu.Lock()
	defer g.mu.Unlock()
	t.users--
}

// A Held is what was put aside.
type Held struct {
	Path, Aside string
	Err         error // it could not be put aside; Aside is ""
}

// End puts aside what appeared since Begin. A nil Watch has seen nothing.
func (w *Watch) End() (held []Held) {
	if w == nil {
		return nil
	}
	for _, root := range w.roots {
		t := w.guard.use(root)
		held = append(held, w.end(root, t)...)
		w.guard.leave(t)
		w.guard.leave(t) // of Begin
	}

	return held
}

// end is End for one folder.
func (w *Watch) end(root string, t *tree) (held []Held) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for { // what was put aside is a folder as others are, and looked into
		more, changed := w.settle(root, t)
		held = append(held, more...)
		if !changed {
			break
		}
	}

	if t.running--; t.running == 0 {
		t.known = map[string]string{} // what a user makes from now on is his
	}

	return held
}

// settle judges what is new in one folder. changed tells that there is more to look at.
func (w *Watch) settle(root string, t *tree) (held []Held, changed bool) {
	fine, aside := "", "" // repositories that were judged already
	items, err := t.look(root, w.guard.table, w.guard.skip)
	if err != nil {
		held = append(held, Held{Path: root, Err: err})
	}

	for _, item := range items {
		above := filepath.Dir(item.Path)
		if t.knows(item.Path) || item.isNamed(w.named) || item.Kind == Inner && above == aside {
			continue
		}
		if item.Kind == Socket || item.Kind == Unfinished && !goesOnWithProgram(item.Path) {
			continue // of the command's own making, or of a program that just started
		}

		switch {
		case item.Kind == Inner && above == fine: // follows its repository
			continue
		case item.Kind == Repository && harmless(item.Path) == nil:
			// It does not become known: another command that still runs may change it, and
			// its end judges it again.
			fine = item.Path
			continue
		case item.Kind == Repository:
			aside = item.Path
		}

		h := Held{Path: item.Path}
		if h.Aside, h.Err = putAsideIfThere(root, item); h == (Held{Path: item.Path}) {
			continue // removed meanwhile
		}
		if h.Err != nil {
			t.known[item.Path] = linkAt(item.Path) // once is enough
		}
		changed = changed || h.Err == nil
		if item.Kind != Sealed || h.Err != nil {
			held = append(held, h)
		}
	}

	return held, changed
}

// Accept has a path stay that daycare itself made, for a user who was asked.
func (g *Guard) Accept(path string) {
	g.mu.Lock()
	around := map[string]*tree{}
	for root, t := range g.trees {
		if strings.HasPrefix(path, strings.TrimSuffix(root, "/")+"/") {
			around[root] = t
		}
	}

	g.mu.Unlock()
	for root, t := range around {
		t.mu.Lock()
		for p := path; t.running > 0 && len(p) > len(root); p = filepath.Dir(p) {
			t.known[p] = noLink
		}
		t.mu.Unlock()
	}
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}
