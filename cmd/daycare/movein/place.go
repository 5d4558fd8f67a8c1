package movein

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"path/filepath"
	"strings"

	"daycare/engine/beneath"
	"daycare/engine/disk"
	"daycare/engine/finding"
	"daycare/engine/schedule"
)

// step is the failpoint prefix of everything that is placed.
const step = "movein"

// maxBeside bounds how many files of one name there may be.
const maxBeside = 99

// numbered is a name for the nth of the same name: NAME, NAME-2, …
func numbered(name string, n int) string {
	if n == 1 {
		return name
	}
	return fmt.Sprintf("%s-%d", name, n)
}

// A file is placed in .daycare. Where another one has its name it goes beside it, or is not
// taken.
type file struct {
	dir, name, ext string
	content        string
	beside         bool
}

func (f file) look(w *here) spot {
	for n := 1; n <= maxBeside; n++ {
		to := path.Join(f.dir, numbered(f.name, n)+f.ext)
		have, err := w.content(to)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return spot{to: to}
		case err == nil && string(have) == f.content:
			return spot{to: to, there: true}
		case !f.beside && err != nil:
			return spot{to: to, why: beneath.Reason(err).Error()}
		case !f.beside:
			return spot{to: to, why: "a different one exists: merge the two by hand"}
		}
	}

	return spot{why: "too many files have this name"}
}

func (f file) place(w *here, at spot) error {
	full := filepath.Join(w.at.Data, filepath.FromSlash(at.to))
	if err := w.vol.MkdirAll(filepath.Dir(full)); err != nil {
		return err
	}
	_, err := w.vol.Exchange(step, full, []byte(f.content), nil)

	return err
}

// A tree is a folder of files, such as a skill.
type tree struct {
	dir, name string
	files     []leaf
}

// A leaf is one file of a tree.
type leaf struct {
	rel     string
	content []byte
	program bool // it can be run
}

func (t tree) look(w *here) spot {
	to := path.Join(t.dir, t.name)
	if w.planned[to] != nil {
		return spot{to: to, why: "another one with this name is imported"}
	}
	root, err := beneath.Dir(w.at.Data, filepath.FromSlash(to))
	if errors.Is(err, fs.ErrNotExist) {
		return spot{to: to}
	}
	if err != nil {
		return spot{to: to, why: beneath.Reason(err).Error()}
	}
	defer root.Close()

	for _, f := range t.files {
		have, _, err := beneath.Read(root, filepath.FromSlash(f.rel), int64(len(f.content))+1)
		if err != nil || string(have) != string(f.content) {
			return spot{to: to, why: "a different one exists: rename one of the two"}
		}
	}

	return spot{to: to, there: true}
}

// place builds the folder under a name that nobody looks at, and renames it when it is whole.
func (t tree) place(w *here, at spot) error {
	above := filepath.Join(w.at.Data, filepath.FromSlash(t.dir))
	if err := w.vol.MkdirAll(above); err != nil {
		return err
	}
	temp := ".new-" + t.name
	if full := filepath.Join(above, temp); disk.Exists(full) { // of an import that was cut
		trash := filepath.Join(w.at.Data, "trash")
		if err := w.vol.MkdirAll(trash); err != nil {
			return err
		}
		name := w.now.Format("20060102T150405.000Z") + "-" + t.name
		if err := w.vol.Rename(step, full, filepath.Join(trash, name)); err != nil {
			return err
		}
	}

	for _, f := range t.files {
		if err := f.write(above, path.Join(temp, f.rel)); err != nil {
			return fmt.Errorf("write %s: %w", f.rel, err)
		}
	}

	return w.vol.Rename(step, filepath.Join(above, temp), filepath.Join(w.at.Data, filepath.FromSlash(at.to)))
}

// write writes the file as rel below a folder, durably, with the folders that it needs.
func (f leaf) write(above, rel string) error {
	root, err := beneath.Root(above)
	if err != nil {
		return err
	}
	defer func() { root.Close() }()

	for name := range strings.SplitSeq(path.Dir(rel), "/") {
		if err := disk.MkdirIn(step, root, name, 0o700); err != nil {
			return err
		}
		sub, err := beneath.Enter(root, name, nil)
		if err != nil {
			return err
		}
		root.Close()
		root = sub
	}

	mode := fs.FileMode(0o600)
	if f.program {
		mode = 0o700
	}

	return disk.ReplaceIn(step, root, path.Base(rel), f.content, disk.InOptions{Mode: mode})
}

// A beat is an item of the heartbeat.
type beat struct {
	name    string
	text    string // below the keys
	keys    string // lines of front matter beside title and enabled
	enabled bool   // it is at home
}

// asFile is the file of the item.
func (b beat) asFile(on bool) file {
	title, _ := json.Marshal(b.name) // a string; JSON is YAML, too
	return file{dir: "heartbeat", name: schedule.Slug(b.name), ext: ".md", beside: true,
		content: fmt.Sprintf("---\ntitle: %s\nenabled: %t\n%s---\n%s\n", title, on, b.keys, b.text)}
}

func (b beat) look(w *here) spot {
	for _, on := range []bool{true, false} { // it is no other one if you switched it on or off since
		if at := b.asFile(on).look(w); at.there {
			return at
		}
	}

	f := b.asFile(w.enable && b.enabled)
	_, found := schedule.DecodePrompt(f.name+".md", f.name, []byte(f.content))
	if err := finding.Join(found); err != nil {
		return spot{why: err.Error()}
	}

	return f.look(w)
}

func (b beat) place(w *here, at spot) error { return b.asFile(w.enable && b.enabled).place(w, at) }
