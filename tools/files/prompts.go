package files

import (
	"context"
	"encoding/json"
	"errors"
	"path/filepath"
	"slices"
	"strings"

	"daycare/engine/beneath"
	"daycare/engine/permission"
	"daycare/engine/sensitive"
	"daycare/tools"
)

// The content of AGENTS.md and of skills is part of the prompts of all agents, also of
// those with more rights than who writes it. So a right to the folder around does not
// reach it: each change asks a user, who is shown its diff.

// prompts reports whether the file at path, which holds no symbolic link, is part of the
// prompts of agents.
func (r *rights) prompts(path string) bool {
	workspace := beneath.Real(r.workspace)
	for _, top := range []string{workspace, beneath.Real(r.Home)} {
		rel, err := filepath.Rel(top, path)
		if first, _, _ := strings.Cut(rel, string(filepath.Separator)); err == nil && sensitive.Fold(first) == ".agents" {
			return true
		}
	}

	if filepath.Dir(path) != workspace {
		return false
	}
	return slices.ContainsFunc(agentsFiles, func(name string) bool {
		// It may be a link, as users have it who keep one text for several programs.
		return sensitive.Fold(filepath.Base(path)) == sensitive.Fold(name) || path == beneath.Real(filepath.Join(workspace, name))
	})
}

// agentsFiles are the files of the workspace that are part of the prompts; the second where
// the first is not there.
var agentsFiles = []string{"AGENTS.md", "CLAUDE.md"}

// named reports whether a right to write names a part of the prompts that path is in.
func (r *rights) named(path string) bool {
	return slices.ContainsFunc(r.set.WriteDirs, func(dir string) bool {
		dir = beneath.Real(dir)
		return permission.Beneath(dir, path) && r.prompts(dir)
	})
}

// A trial is a run of a tool that looks at all that it would change, and changes nothing.
type trial struct{ changed bool }

// asking is a tool that changes files: it asks before it changes prompts and what runs
// later.
type asking[A any] struct {
	tool[A]
	paths func(A) []string // that it changes
}

// Needs is the approval of such a change.
func (t asking[A]) Needs(call tools.Call) (*permission.Request, error) {
	var args A
	if json.Unmarshal(whole(call.Arguments), &args) != nil {
		return nil, nil // Run says what is wrong
	}
	r := t.base.reach(call)
	r.looking = true
	need := permission.Request{Reason: "changes what runs later, or what programs of yours obey"}
	path := ""
	for _, asked := range t.paths(args) {
		p, err := r.locate(asked, true)
		if err != nil {
			return nil, nil
		}
		real := filepath.Join(append([]string{p.real}, p.below...)...)
		if p.close(); r.prompts(real) && !r.named(real) {
			path, need.Reason, need.AskAlways = real, "changes what all agents are told", true
		}
	}

	if path == "" && len(r.wanted) > 0 {
		path = r.wanted[len(r.wanted)-1]
	}
	if path == "" {
		return nil, nil
	}

	wanted, outside := slices.Clone(r.wanted), slices.Clone(r.outside)
	if len(outside) > 0 && sensitive.Anchor("/", path, r.table.Later) == "" {
		need.Reason = "writes outside its folders"
	}
	r.trial = &trial{}
	res, err := t.run(context.Background(), r, args)
	if len(outside) > 0 && (err != nil || res.Status != "" || !r.trial.changed) { // what is there is not said before it is allowed
		t.base.asked.Put(call.ID, outside)
		return inWhole(outside)
	}
	if err != nil || res.Status != "" || !r.trial.changed {
		return nil, nil
	}

	for _, b := range res.Blocks {
		need.Detail.Diff += b.Text
	}
	need.Tag = permission.Write{Path: path}.Tag()
	if need.Detail.Diff == "" {
		return nil, errors.New(r.shown(path) +
			" is part of the prompts of all agents or runs something later, and a change of it that is too long to be " +
			"shown cannot be approved; make it in smaller steps, or ask with request_permission for " + need.Tag)
	}

	t.base.asked.Put(call.ID, wanted)
	return &need, nil
}

// patched are the paths that a patch changes; none if it cannot be read.
func patched(a patchArgs) (paths []string) {
	changes, err := parsePatch(a.Patch)
	if err != nil {
		return nil
	}

	for _, c := range changes {
		paths = append(paths, c.path)
		if c.moveTo != "" {
			paths = append(paths, c.moveTo)
		}
	}

	return paths
}
