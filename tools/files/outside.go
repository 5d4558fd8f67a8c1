package files

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"

	"daycare/engine/beneath"
	"daycare/engine/permission"
	"daycare/engine/sensitive"
	"daycare/tools"
)

// An agent without request_permission cannot ask for a folder. Where it names a path
// outside of its folders the call itself asks, for that path, as a command or a fetch does.

// reading is a tool that reads: it asks so.
type reading[A any] struct {
	tool[A]
	path func(A) string // what it reads
}

// Needs is the approval of reading outside of the agent's folders.
func (t reading[A]) Needs(call tools.Call) (*permission.Request, error) {
	var args A
	if !call.Unasked || json.Unmarshal(whole(call.Arguments), &args) != nil {
		return nil, nil // Run says what is wrong
	}

	return t.base.askToRead(call, t.path(args))
}

// askToRead is the approval of reading a path outside of an agent's folders; nil for one
// that it may read, or that is never open.
func (b *base) askToRead(call tools.Call, path string) (*permission.Request, error) {
	r := b.reach(call)
	r.looking = true
	p, err := r.locate(path, false)
	if err == nil {
		p.close()
	}

	var no *refusal
	if len(r.wanted) == 0 || errors.As(err, &no) {
		return nil, nil
	}

	// Whether anything is there is not said before it is allowed.
	asked := r.wanted[len(r.wanted)-1]
	reason := "read outside its folders"
	if sensitive.Anchor("/", asked, r.table.Secret) != "" {
		reason = "read what holds secrets"
	}

	need, err := permission.General(permission.Read{Path: asked}.Tag(), reason)
	b.asked.Put(call.ID, r.wanted)
	return &need, err
}

// covered reports whether a path is in a folder of the agent.
func (r *rights) covered(path string, write bool) bool {
	roots := r.set.ReadRoots()
	if write {
		roots = r.set.WriteRoots()
	}

	for _, root := range append(roots, r.own(write)...) {
		if permission.Beneath(root, path) {
			return true
		}
	}

	return !write && r.attached(path)
}

// canonical is a path as it is asked for: outside of the agent's folders without symbolic
// links, so that what a user allows is the file that they read the name of.
func (r *rights) canonical(path string, write bool) string {
	if !r.asks || r.covered(path, write) {
		return path
	}
	return beneath.Real(path)
}

// beyond is the folder from which a path outside of the agent's folders is walked to: a
// person has allowed that path, or is going to be asked.
func (r *reach) beyond(path string) (root string, ok bool) {
	switch {
	case r.looking && r.asks:
		r.wanted, r.outside = append(r.wanted, path), append(r.outside, path)
	case !slices.Contains(r.approved, path):
		return "", false
	}

	for root = path; root != filepath.Dir(root); root = filepath.Dir(root) {
		if info, err := os.Lstat(root); err == nil && info.IsDir() {
			break
		}
	}

	return root, true
}

// moved reports whether a folder outside of the agent's own was opened elsewhere than where
// its path says: a link was put there since it was allowed.
func (r *rights) moved(at, real string) bool { return r.asks && at != real && !r.covered(at, false) }

// inWhole is the approval of one path as such, where there is no diff to show.
func inWhole(paths []string) (*permission.Request, error) {
	paths = slices.Compact(slices.Sorted(slices.Values(paths)))
	if len(paths) != 1 {
		return nil, errors.New("several files outside the folders you may use; change them one at a time")
	}
	need, err := permission.General(permission.Write{Path: filepath.Clean(paths[0])}.Tag(), "write outside its folders")

	return &need, err
}
