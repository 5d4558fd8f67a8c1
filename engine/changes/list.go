package changes

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"daycare/engine/beneath"
	"daycare/engine/sensitive"
)

// A Change is a file of a copy that is not as it was copied.
type Change struct {
	Path  string `json:"path"`  // in the folder, with slashes
	Base  State  `json:"base"`  // as it was copied
	Now   State  `json:"now"`   // in the copy
	There State  `json:"there"` // in the folder that was copied
	// Later: it runs something later, or tells programs of the user what to run, so that it is
	// applied only by its name.
	Later bool `json:"later,omitempty"`
}

// Kind is "added", "changed" or "removed".
func (c Change) Kind() string {
	switch {
	case c.Base.Missing():
		return "added"
	case c.Now.Missing():
		return "removed"
	}

	return "changed"
}

// Fits reports whether the file in the folder is as it was copied, so that the change fits.
func (c Change) Fits() bool { return c.There == c.Base && c.Now.Other == "" && c.Base.Other == "" }

// Applied reports whether the file in the folder is as it is in the copy.
func (c Change) Applied() bool { return c.There == c.Now && c.Now.Other == "" }

// Why says why a change does not fit; "" if it does.
func (c Change) Why() string {
	switch {
	case c.Now.Other != "":
		return c.Now.Other
	case c.Base.Other != "":
		return c.Base.Other
	case c.There.Other != "":
		return "in the folder " + c.There.Other
	case c.There != c.Base:
		return Meanwhile
	}

	return ""
}

// Changes lists what differs from what was copied, by path. What is in .git is not part of it.
func (c Copy) Changes(ctx context.Context) ([]Change, error) {
	base, err := c.base()
	if err != nil {
		return nil, err
	}
	tree, err := beneath.Root(c.Tree())
	if err != nil {
		return nil, fmt.Errorf("read the copy: %w", err)
	}
	defer tree.Close()
	there, err := beneath.Root(c.Of)
	if err != nil {
		return nil, fmt.Errorf("read the folder of the copy: %w", err)
	}
	defer there.Close()
	now, err := scan(ctx, tree, base)
	if err != nil {
		return nil, fmt.Errorf("read the copy: %w", err)
	}

	var list []Change
	table := sensitive.Here()
	for path := range base {
		if _, stays := now[path]; !stays && !inGit(path) {
			now[path] = State{}
		}
	}
	for _, path := range slices.Sorted(maps.Keys(now)) {
		one := Change{Path: path, Base: base[path].state(), Now: now[path]}
		if f, known := base[path]; known && one.Now == one.Base || !known && one.Now.Missing() || f.Link != "" && one.Now.Other == f.Link {
			continue
		}
		if one.There, _, err = Look(there, path); err != nil {
			one.There = State{Other: beneath.Reason(err).Error()}
		}
		if !one.Applied() {
			one.Later = sensitive.Anchor("/", filepath.Join(c.Of, filepath.FromSlash(path)), table.Later) != ""
			list = append(list, one)
		}
	}

	return list, nil
}

func inGit(path string) bool {
	return slices.ContainsFunc(strings.Split(path, "/"), func(name string) bool { return sensitive.Fold(name) == ".git" })
}

// scan is what is in the copy now. A file that was not touched since is not read. The state of a
// link has its target, so that one that was not changed can be told.
func scan(ctx context.Context, tree *os.Root, base map[string]file) (map[string]State, error) {
	now := map[string]State{}
	err := fs.WalkDir(tree.FS(), ".", func(path string, d fs.DirEntry, err error) error {
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return nil // removed meanwhile
		case err != nil:
			return err
		case path != "." && (left(d.Name()) || sensitive.Fold(d.Name()) == ".git"):
			return skip(d)
		case d.IsDir():
			return ctx.Err()
		}
		if len(now) > maxEntries {
			return fmt.Errorf("there are more than %d files", maxEntries)
		}
		now[path], err = look(tree, path, base[path])
		return err
	})

	return now, err
}

func look(tree *os.Root, path string, base file) (State, error) {
	info, err := tree.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return State{}, nil
	case err != nil:
		return State{}, err
	case info.Mode()&fs.ModeSymlink != 0:
		target, err := tree.Readlink(path)
		if err == nil && base.Link != target {
			target = beneath.ErrLink.Error()
		}
		return State{Other: target}, err
	case info.Mode().IsRegular() && info.Size() == base.Size && info.Mode().Perm() == base.Mode &&
		beneath.ChangedAt(info).UnixNano() == base.Changed:
		return base.state(), nil
	}
	s, _, err := Look(tree, path)

	return s, err
}

// Contents returns what a change is about, as the copy and the folder have them; nil where nothing
// is. before is what was copied, if it is known.
func (c Copy) Contents(one Change) (before, now, there []byte, err error) {
	tree, err := beneath.Root(c.Tree())
	if err != nil {
		return nil, nil, nil, err
	}
	defer tree.Close()
	folder, err := beneath.Root(c.Of)
	if err != nil {
		return nil, nil, nil, err
	}
	defer folder.Close()
	if now, err = content(tree, one.Path, one.Now); err != nil {
		return nil, nil, nil, err
	}
	if there, err = content(folder, one.Path, one.There); err != nil {
		return nil, nil, nil, err
	}
	switch {
	case one.Base.SHA256 == "":
	case one.There == one.Base:
		before = there
	default:
		before, err = c.text(one.Base)
		if errors.Is(err, fs.ErrNotExist) {
			before, err = nil, nil // too large, or not a text
		}
	}

	return before, now, there, err
}

// content reads a file that must still be in a state.
func content(dir *os.Root, path string, want State) ([]byte, error) {
	got, data, err := Look(dir, path)
	if want.Missing() && got.Other == beneath.ErrKind.Error() {
		return nil, err // there is no file, but a folder
	}
	if err == nil && got != want {
		err = fmt.Errorf("%s changed while it was read; try again", path)
	}

	return data, err
}

// text reads a text that was kept for merging.
func (c Copy) text(of State) ([]byte, error) {
	data, _, err := beneath.Own(filepath.Join(c.Dir, textsDir, of.SHA256), maxText)
	if err == nil && StateOf(data, of.Mode) != of {
		err = fmt.Errorf("the kept text %s is damaged", of.SHA256[:12])
	}

	return data, err
}
