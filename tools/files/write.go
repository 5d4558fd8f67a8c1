package files

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/aymanbagabas/go-udiff"

	"daycare/engine/beneath"
	"daycare/engine/changes"
	"daycare/engine/crash"
	"daycare/engine/disk"
	"daycare/tools"
)

const (
	// maxChange bounds the files that write and edit take, in bytes.
	maxChange = 10 << 20
	// maxDiff bounds what a diff is made of, in bytes of both sides together.
	maxDiff = 256 << 10
)

type writeArgs struct {
	Path    string `json:"path"`
	Content string `json:"content"`
}

func write(ctx context.Context, r *reach, a writeArgs) (tools.Result, error) {
	if len(a.Content) > maxChange {
		return tools.Errorf("the content has %s; at most %s can be written at once", size(int64(len(a.Content))), size(maxChange)), nil
	}
	p, err := r.locate(a.Path, true)
	if err != nil {
		return tools.Result{}, err
	}
	defer p.close()
	name := r.shown(p.abs)
	old, existed, err := p.before(name)
	if err != nil {
		return tools.Result{}, err
	}
	if existed && string(old) == a.Content {
		r.note(p, p.info)
		return tools.Result{Text: fmt.Sprintf("%s has this content already", name)}, nil
	}
	if err := r.seen.stale(r.agent, p, name); err != nil {
		return tools.Result{}, err
	}
	if err := p.makeParents(); err != nil {
		return tools.Result{}, fmt.Errorf("make the folder of %s: %s", name, plain(err))
	}
	if err := ctx.Err(); err != nil {
		return tools.Result{}, err
	}
	if err := p.replace([]byte(a.Content)); err != nil {
		return tools.Result{}, fmt.Errorf("write %s: %s", name, plain(err))
	}

	r.noteWritten(p)
	verb := "created"
	if existed {
		verb = "overwrote"
	}

	res := tools.Result{Text: fmt.Sprintf("%s %s (%s, %s)", verb, name, countLines(a.Content), size(int64(len(a.Content))))}
	if !isBinary(old[:min(len(old), sniff)]) {
		res.Blocks = diff(name, string(old), a.Content)
	}

	return res, nil
}

// before is what the file holds that is to be written, and whether it may be.
func (p *place) before(name string) (old []byte, existed bool, err error) {
	if p.info == nil {
		return nil, false, nil
	}
	if err := p.writable(name); err != nil {
		return nil, false, err
	}
	if p.info.Size() > maxDiff {
		return nil, true, nil
	}

	old, err = readAll(p, name, maxDiff)
	return old, true, err
}

// writable refuses what must not be replaced: a file of several names may be one
// that is out of reach, and one that its owner made read-only is so on purpose.
func (p *place) writable(name string) error {
	switch {
	case p.info.IsDir():
		return fmt.Errorf("%s is a folder", name)
	case !p.info.Mode().IsRegular():
		return fmt.Errorf("%s is not a regular file", name)
	case beneath.Links(p.info) > 1:
		return refuse("%s has several names (hard links); it is not written", name)
	case p.info.Mode().Perm()&0o200 == 0:
		return refuse("%s is read-only", name)
	}

	return nil
}

// makeParents makes the folders that are missing before the last name and goes
// into them.
func (p *place) makeParents() error {
	if p.trial != nil {
		return nil
	}
	for len(p.below) > 0 {
		err := disk.MkdirIn("tool.file", p.dir, p.name, 0o755)
		if err == nil {
			err = p.descend(p.name, p.real, nil)
		}
		if err != nil {
			return err
		}

		p.name, p.real, p.below = p.below[0], filepath.Join(p.real, p.below[0]), p.below[1:]
	}

	return nil
}

// replace puts content in place of the file in one step, with its mode, durably. What
// is there must still be what was looked at, so no other save is lost.
func (p *place) replace(content []byte) error {
	if p.trial != nil {
		p.trial.changed = true
		return nil
	}
	after := changes.StateOf(content, cmp.Or(p.mode, 0o644))
	if p.info != nil {
		after.Mode = p.info.Mode().Perm()
	}
	if err := p.keep(after, content); err != nil {
		return err
	}
	o := disk.InOptions{Mode: cmp.Or(p.mode, 0o644), Exact: p.info != nil || p.mode != 0, Check: p.unchanged}
	if p.info != nil {
		o.Mode = p.info.Mode().Perm() // the umask does not count for a file that exists
	}

	return disk.ReplaceIn("tool.file", p.dir, p.name, content, o)
}

// remove removes the file, which must still be what was looked at.
func (p *place) remove() error {
	if p.trial != nil {
		p.trial.changed = true
		return nil
	}
	if err := errors.Join(p.unchanged(), p.keep(changes.State{}, nil)); err != nil {
		return err
	}
	if err := p.dir.Remove(p.name); err != nil {
		return err
	}

	return disk.SyncIn("tool.file", p.dir, ".")
}

// written is where a place notes what becomes of its file.
type written struct {
	note              func(agent string, w changes.Written, before, after []byte) error // nil: nowhere
	agent, turn, call string
	ground            string // the folder that the place was walked to from, without symbolic links
}

// keep notes what the file holds and is going to hold. What is in a folder of the agent's own in
// .daycare is not part of the workspace.
func (p *place) keep(after changes.State, content []byte) error {
	if p.write.note == nil || p.own {
		return nil
	}
	rel, _ := filepath.Rel(p.write.ground, p.real) // both are absolute
	w := changes.Written{At: disk.StampOf(crash.Now()), Turn: p.write.turn, Call: p.write.call, Folder: p.write.ground,
		Path: filepath.ToSlash(rel), After: after}
	var before []byte
	if p.info != nil {
		f, err := p.open()
		if err == nil {
			defer f.Close()
			w.Before, before, err = changes.ReadFile(f, p.info.Mode(), p.info.Size())
		}
		if err != nil {
			return err
		}
	}
	if err := p.write.note(p.write.agent, w, before, content); err != nil {
		return fmt.Errorf("what it holds now cannot be kept: %w", err)
	}

	return nil
}

func (p *place) unchanged() error {
	now, err := p.dir.Lstat(p.name)
	switch {
	case errors.Is(err, fs.ErrNotExist) && p.info == nil:
		return nil
	case err != nil:
		return err
	case p.info == nil || !os.SameFile(p.info, now) || now.Size() != p.info.Size() || !now.ModTime().Equal(p.info.ModTime()):
		return errors.New("the file has changed in the meantime; read it again")
	}

	return nil
}

func countLines(s string) string {
	n := strings.Count(s, "\n")
	if s != "" && s[len(s)-1] != '\n' {
		n++
	}
	if n == 1 {
		return "1 line"
	}

	return fmt.Sprintf("%d lines", n)
}

// diff is a unified diff for users, nothing if it would be too long.
func diff(name, before, after string) []tools.Block {
	if len(before)+len(after) > maxDiff {
		return nil
	}
	old, changed := "a/"+name, "b/"+name
	if filepath.IsAbs(name) {
		old, changed = name, name
	}

	return []tools.Block{{Type: "diff", Text: udiff.Unified(old, changed, before, after)}}
}
