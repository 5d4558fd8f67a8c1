package files

import (
	"cmp"
	"context"
	"fmt"
	"path/filepath"
	"strings"

	"daycare/tools"
)

type patchArgs struct {
	Patch string `json:"patch"`
}

// A step is one file of a patch, looked at and ready to be written.
type step struct {
	change        change
	from, to      *place // from nil: a new file; to nil: it goes
	name, toName  string
	before, after string
}

// applyPatch changes several files. All of them are looked at before the first is
// written: a patch that does not fit changes nothing.
func applyPatch(ctx context.Context, r *reach, a patchArgs) (tools.Result, error) {
	if len(a.Patch) > maxChange {
		return tools.Errorf("the patch has %s; at most %s can be applied at once", size(int64(len(a.Patch))), size(maxChange)), nil
	}
	changes, err := parsePatch(a.Patch)
	if err != nil {
		return tools.Errorf("%v", err), nil
	}

	var steps []*step
	defer func() {
		for _, s := range steps {
			s.close()
		}
	}()

	taken := map[string]bool{}
	for _, c := range changes {
		s, err := r.plan(c)
		if s != nil {
			steps = append(steps, s)
		}
		if err != nil {
			return tools.Result{}, err
		}

		for _, path := range s.paths() {
			if taken[path] {
				return tools.Errorf("line %d of the patch: %s is in the patch twice; put its changes together", c.line, c.path), nil
			}
			taken[path] = true
		}
	}

	if err := ctx.Err(); err != nil {
		return tools.Result{}, err
	}

	return r.carryOut(steps)
}

// carryOut writes the steps. One that fails leaves those before it done, and the
// result says which.
func (r *reach) carryOut(steps []*step) (tools.Result, error) {
	var res tools.Result
	var done strings.Builder
	for _, s := range steps {
		if err := s.write(); err != nil {
			return tools.Result{Status: tools.Failed, Blocks: res.Blocks,
				Text: fmt.Sprintf("%s: %s\n%s", s.change.path, plain(err), orNothing(done.String()))}, nil
		}

		switch {
		case s.to == nil:
			fmt.Fprintf(&done, "deleted %s\n", s.name)
		case s.from == nil:
			fmt.Fprintf(&done, "created %s\n", s.toName)
			r.noteWritten(s.to)
		case s.from != s.to:
			fmt.Fprintf(&done, "changed %s, which is %s now\n", s.name, s.toName)
			r.noteWritten(s.to)
		default:
			fmt.Fprintf(&done, "changed %s\n", s.name)
			r.noteWritten(s.to)
		}

		res.Blocks = append(res.Blocks, diff(cmp.Or(s.toName, s.name), s.before, s.after)...)
	}

	res.Text = strings.TrimSuffix(done.String(), "\n")
	return res, nil
}

func orNothing(done string) string {
	if done == "" {
		return "[nothing was changed]"
	}
	return "[done before that]\n" + done
}

// paths are the files that the step touches.
func (s *step) paths() (list []string) {
	if s.from != nil {
		list = append(list, s.from.real)
	}
	if s.to != nil && s.to != s.from {
		list = append(list, filepath.Join(append([]string{s.to.real}, s.to.below...)...))
	}

	return list
}

func (s *step) close() {
	if s.from != nil {
		s.from.close()
	}
	if s.to != nil && s.to != s.from {
		s.to.close()
	}
}

// plan looks at the file of a change. The step may hold open folders also with an
// error.
func (r *reach) plan(c change) (*step, error) {
	s := &step{change: c, after: strings.Join(c.added, "")}
	if c.kind != "add" {
		if err := r.planOld(s); err != nil {
			return s, err
		}
	}

	switch {
	case c.kind == "delete":
		return s, nil
	case c.kind == "update" && c.moveTo == "":
		s.to, s.toName = s.from, s.name
	default:
		path := c.path
		if c.moveTo != "" {
			path = c.moveTo
		}
		p, err := r.locate(path, true)
		if err != nil {
			return s, err
		}

		s.to, s.toName = p, r.shown(p.abs)
		if p.info != nil {
			return s, fmt.Errorf("line %d of the patch: %s is there already", c.line, s.toName)
		}
	}

	if len(s.after) > maxChange {
		return s, fmt.Errorf("%s would have %s; at most %s can be written", s.toName, size(int64(len(s.after))), size(maxChange))
	}

	return s, nil
}

// planOld reads the file that is changed or goes.
func (r *reach) planOld(s *step) error {
	p, err := r.file(s.change.path, true)
	if err != nil {
		return err
	}
	s.from, s.name = p, r.shown(p.abs)
	if err := p.writable(s.name); err != nil {
		return err
	}
	if err := r.seen.stale(r.agent, p, s.name); err != nil {
		return err
	}
	if s.change.kind == "delete" && p.info.Size() > maxDiff {
		return nil // it is not read to be deleted; there is no diff
	}

	data, err := readAll(p, s.name, maxChange)
	if err != nil {
		return err
	}
	binary := isBinary(data[:min(len(data), sniff)])
	if s.change.kind == "delete" {
		if !binary {
			s.before = string(data)
		}
		return nil
	}
	if binary {
		return fmt.Errorf("%s is a binary file", s.name)
	}

	s.before = string(data)
	s.after, err = s.change.apply(s.before)
	return err
}

func (s *step) write() error {
	if s.to != nil && s.to != s.from {
		if err := s.to.makeParents(); err != nil {
			return err
		}
	}
	if s.to != nil {
		if s.from != nil && s.to != s.from {
			s.to.mode = s.from.info.Mode().Perm()
		}
		if err := s.to.replace([]byte(s.after)); err != nil {
			return err
		}
	}
	if s.from == nil || s.from == s.to {
		return nil
	}

	return s.from.remove()
}
