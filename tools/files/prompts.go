package files

import (
	"context"
	"encoding/json"
	"errors"
	"path/filepath"
	"slices"
	"strings"

	"daycare/engine/permission"
	"daycare/tools"
)

// What stands in AGENTS.md and in skills is part of the prompts of all agents, also of
// those with more rights than who writes it. So a right to the folder around does not
// reach it: each change asks a person, who is shown its diff.

// prompts reports whether the file at path, which holds no symbolic link, is part of the
// prompts of agents.
func (r *reach) prompts(path string) bool {
	if r.Data == "" {
		return false
	}
	workspace := realPath(filepath.Dir(r.Data))
	for _, top := range []string{workspace, realPath(r.Home)} {
		rel, err := filepath.Rel(top, path)
		if first, _, _ := strings.Cut(rel, string(filepath.Separator)); err == nil && strings.EqualFold(first, ".agents") {
			return true
		}
	}
	if filepath.Dir(path) != workspace {
		return false
	}
	// It may be a link, as people have it who keep one text for several programs.
	return strings.EqualFold(filepath.Base(path), agentsFile) || path == realPath(filepath.Join(workspace, agentsFile))
}

const agentsFile = "AGENTS.md"

// named reports whether a right to write names a part of the prompts that path is in.
func (r *reach) named(path string) bool {
	return slices.ContainsFunc(r.set.WriteDirs, func(dir string) bool {
		dir = realPath(dir)
		return permission.Beneath(dir, path) && r.prompts(dir)
	})
}

// A trial is a run of a tool that looks at all that it would change, and changes nothing.
type trial struct{ changed bool }

// asking is a tool that changes files: it asks before it changes prompts.
type asking[A any] struct {
	tool[A]
	paths func(A) []string // that it changes
}

// Needs is the approval of a change of prompts.
func (t asking[A]) Needs(call tools.Call) (*permission.Request, error) {
	var args A
	if json.Unmarshal(whole(call.Arguments), &args) != nil {
		return nil, nil // Run says what is wrong
	}
	r := t.base.reach(call)
	path := ""
	for _, asked := range t.paths(args) {
		p, err := r.locate(asked, true)
		if err != nil {
			return nil, nil
		}
		real := filepath.Join(append([]string{p.real}, p.below...)...)
		if p.close(); r.prompts(real) && !r.named(real) {
			path = real
		}
	}
	if path == "" {
		return nil, nil
	}
	r.trial = &trial{}
	res, err := t.run(context.Background(), r, args)
	if err != nil || res.Status != "" || !r.trial.changed {
		return nil, nil
	}
	var diff strings.Builder
	for _, b := range res.Blocks {
		diff.WriteString(b.Text)
	}
	access := permission.Write{Path: path}
	if diff.Len() == 0 {
		return nil, errors.New(r.shown(path) + " is part of the prompts of all agents, and a change of it that is too long to be shown cannot be approved; make it in smaller steps, or ask with request_permission for " + access.Tag())
	}
	return &permission.Request{Tag: access.Tag(), Reason: "changes what all agents are told", Detail: permission.Detail{Diff: diff.String()}, AskAlways: true}, nil
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
