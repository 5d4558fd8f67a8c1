package files

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"daycare/engine/beneath"
	"daycare/engine/permission"
)

// A place is where a path led: an open folder and a name in it that is no
// symbolic link.
type place struct {
	dir   *os.Root
	name  string      // "." is dir itself
	info  os.FileInfo // nil: there is nothing of that name
	abs   string      // the path that was asked for, links resolved below the root
	real  string      // the same with the links of the root resolved too
	below []string    // names behind name, if name is missing
	own   bool        // in one of the agent's own folders in .daycare
	mode  fs.FileMode // of a new file; 0: the usual one
	trial *trial      // nil: what is changed is changed
	write written     // what is written is noted
}

func (p *place) close() { p.dir.Close() }

var errLinks = errors.New("too many symbolic links")

const maxLinks = 40 // as the Linux kernel has it

// locate walks path. What it returns must be closed.
func (r *reach) locate(path string, write bool) (*place, error) {
	abs, err := r.abs(path)
	if err != nil {
		return nil, err
	}
	abs = r.canonical(abs, write)
	for range maxLinks {
		p, next, err := r.walkTo(abs, write)
		if err != nil {
			return nil, err
		}
		if next == "" {
			return p, nil
		}
		abs = r.canonical(next, write) // a link was met; where it leads is judged from the start
	}

	return nil, errLinks
}

// walkTo walks from the permitted folder that abs is in, name by name. At a
// symbolic link it returns the path with the link replaced.
func (r *reach) walkTo(abs string, write bool) (p *place, next string, err error) {
	g, err := r.ground(abs, write)
	if err != nil {
		return nil, "", err
	}
	dir, at, real, err := r.openGround(g)
	if err != nil {
		return nil, "", err
	}

	p = &place{dir: dir, name: ".", abs: abs, real: real, own: g.own, trial: r.trial,
		write: written{note: r.Written, agent: r.agent, turn: r.turn, call: r.call, ground: real}}
	if next, err = r.walkOn(p, at); err != nil || next != "" {
		p.close()
		return nil, next, err
	}

	return p, "", nil
}

// walkOn walks p from the open folder at to p.abs.
func (r *reach) walkOn(p *place, at string) (next string, err error) {
	rel, _ := filepath.Rel(at, p.abs) // both are absolute
	names := strings.Split(rel, string(filepath.Separator))
	for i, name := range names {
		link, err := r.enter(p, name, names[i+1:])
		if err != nil || p.name != "." { // it is there
			return "", err
		}
		if link != "" {
			if !filepath.IsAbs(link) {
				link = filepath.Join(at, filepath.Join(names[:i]...), link)
			}
			return filepath.Join(link, filepath.Join(names[i+1:]...)), nil
		}
	}

	return "", nil
}

// openGround opens a permitted folder, if it still is the one that was given. A
// grant of a single file opens the folder that it is in; ground has seen to it that
// only this file is asked for.
func (r *reach) openGround(g ground) (dir *os.Root, at, real string, err error) {
	root := g.root
	if g.own {
		real = beneath.Real(root)
		dir, err = os.OpenRoot(real)
		return dir, root, real, r.inWords(root, err)
	}
	if dir, at, real, err = r.Folders.Around(root); err != nil {
		return nil, "", "", r.inWords(root, err)
	}
	if r.moved(at, real) {
		dir.Close()
		return nil, "", "", refuse("%s leads elsewhere than what was allowed", r.shown(root))
	}

	// Some folder above may be out of reach under another name.
	for up := real; ; up = filepath.Dir(up) {
		if info, _ := os.Stat(up); r.forbidden(up, info) {
			dir.Close()
			return nil, "", "", r.never(root)
		}
		if up == filepath.Dir(up) {
			return dir, at, real, nil
		}
	}
}

// inWords is an error of openGround as the model reads it.
func (r *rights) inWords(at string, err error) error {
	var other *permission.Replaced
	switch {
	case errors.As(err, &other):
		return refuse("%v", other)
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("no such folder: %s", r.shown(at))
	}

	return err
}

// enter goes one name further: into a folder, to a last name, which the place has
// then, or to a symbolic link, whose target it returns.
func (r *reach) enter(p *place, name string, rest []string) (link string, err error) {
	real := filepath.Join(p.real, name)
	info, err := p.dir.Lstat(name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		if !p.own && r.forbidden(filepath.Join(real, filepath.Join(rest...)), nil) {
			return "", r.never(p.abs)
		}
		p.name, p.real, p.below = name, real, rest
		return "", nil
	case err != nil:
		return "", err
	case info.Mode()&fs.ModeSymlink != 0:
		return p.dir.Readlink(name)
	case !p.own && r.forbidden(real, info):
		return "", r.never(p.abs)
	case len(rest) == 0:
		p.name, p.real, p.info = name, real, info
		return "", nil
	case !info.IsDir():
		return "", fmt.Errorf("%s is not a folder", filepath.Base(real))
	}

	return "", p.descend(name, real, info)
}

// descend makes the folder name the open one. That it is the folder that was
// looked at is checked after it is open: no link swapped in is followed.
func (p *place) descend(name, real string, info os.FileInfo) error {
	sub, err := beneath.Enter(p.dir, name, info)
	if err != nil {
		return err
	}
	p.dir.Close()
	p.dir, p.real = sub, real

	return nil
}

// open opens the regular file at the place for reading.
func (p *place) open() (*os.File, error) { return beneath.Open(p.dir, p.name, p.info) }

// file locates an existing regular file.
func (r *reach) file(path string, write bool) (*place, error) {
	p, err := r.locate(path, write)
	if err != nil {
		return nil, err
	}

	switch shown := r.shown(p.abs); {
	case p.info == nil:
		err = fmt.Errorf("no such file: %s", shown)
	case p.info.IsDir():
		err = fmt.Errorf("%s is a folder; use ls", shown)
	case !p.info.Mode().IsRegular():
		err = fmt.Errorf("%s is not a regular file", shown)
	default:
		return p, nil
	}

	p.close()
	return nil, err
}
