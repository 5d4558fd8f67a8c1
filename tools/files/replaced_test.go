package files

import (
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"daycare/engine/attacktest"
	"daycare/engine/permission"
	"daycare/tools"
)

// replaced are the ways in which the folder of a colleague, sub/mole, becomes another one.
func replaced(w *world) map[string]func() {
	mole := filepath.Join(w.ws, "sub", "mole")
	away := func(name string) { must(w.t, os.Rename(filepath.Join(w.ws, name), filepath.Join(w.ws, "away"))) }
	return map[string]func(){
		"link to the root":         func() { away("sub/mole"); must(w.t, os.Symlink("/", mole)) },
		"link to the outside":      func() { away("sub/mole"); must(w.t, os.Symlink(w.outside, mole)) },
		"relative link":            func() { away("sub/mole"); must(w.t, os.Symlink("../../outside", mole)) },
		"link to .daycare":         func() { away("sub/mole"); must(w.t, os.Symlink(w.ws+"/.daycare", mole)) },
		"link inside":              func() { away("sub/mole"); must(w.t, os.Symlink(w.ws+"/private", mole)) },
		"link above":               func() { away("sub"); w.link(w.ws+"/decoy", "sub") },
		"link above to outside":    func() { away("sub"); must(w.t, os.MkdirAll(w.outside+"/mole", 0o755)); w.link(w.outside, "sub") },
		"another folder":           func() { away("sub/mole"); must(w.t, os.Rename(w.ws+"/private", mole)) },
		"another folder above":     func() { away("sub"); must(w.t, os.Rename(w.ws+"/decoy", w.ws+"/sub")) },
		"a new folder of the name": func() { away("sub/mole"); must(w.t, os.Mkdir(mole, 0o755)) },
	}
}

// An agent that works in sub/mole keeps its folder, whatever someone with more rights puts in
// its place: nothing of what is there is read, listed, searched or written.
func TestReplacedFolderIsNotTheGrantedOne(t *testing.T) {
	for name := range replaced(newWorld(t)) {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			for _, path := range []string{"secret", "private/secret", "decoy/mole/secret", ".daycare/secret",
				w.outside + "/secret", w.outside + "/mole/secret"} {
				w.file(path, secret)
			}
			w.file("sub/mole/note", "mine")
			w.access = permission.Default(w.ws + "/sub/mole")
			must(t, w.folders.Know(w.access))
			w.want(w.call("read", a{"path": "note"}), tools.OK, "mine")
			replaced(w)[name]()

			for tool, args := range map[string]a{
				"read": {"path": "secret"}, "write": {"path": "new", "content": "owned"},
				"edit": {"path": "secret", "old": secret, "new": "owned"},
				"ls":   {"path": "."}, "grep": {"path": ".", "pattern": "."}, "glob": {"pattern": "**"},
				"apply_patch": {"patch": "*** Begin Patch\n*** Add File: new\n+owned\n*** End Patch\n"},
			} {
				res := w.call(tool, args)
				if res.Status != tools.Denied || strings.Contains(res.Text, secret) {
					t.Errorf("%s is %q: %s", tool, res.Status, res.Text)
				}
			}

			w.want(w.call("read", a{"path": "note"}), tools.Denied, "is not the folder that access was granted to",
				"daycare permissions grant")
			attacktest.Held(t, attacktest.Row{Class: "file tools: replaced folders", How: "the grant is pinned to the folder", Name: name})
		})
	}

	attacktest.AsUser(t)
}

// The same between two agents of which each was granted a folder by itself.
func TestNestedGrantsOfTwoAgents(t *testing.T) {
	w := newWorld(t)
	w.file(w.outside+"/secret", secret)
	other := t.TempDir()
	outer, err := filepath.EvalSymlinks(other)
	must(t, err)
	w.file(outer+"/inner/note", "mine")
	must(t, w.folders.Know(permission.Set{WorkingDir: outer}))
	w.access = permission.Set{WorkingDir: w.ws, ReadDirs: []string{outer + "/inner"}}
	must(t, w.folders.Know(w.access))
	w.want(w.call("read", a{"path": outer + "/inner/note"}), tools.OK, "mine")
	must(t, os.Rename(outer+"/inner", outer+"/away"))
	must(t, os.Symlink(w.outside, outer+"/inner"))
	w.want(w.call("read", a{"path": outer + "/inner/secret"}), tools.Denied, "symbolic link")

	// Back again, it is the folder that was given.
	must(t, os.Remove(outer+"/inner"))
	must(t, os.Rename(outer+"/away", outer+"/inner"))
	w.want(w.call("read", a{"path": outer + "/inner/note"}), tools.OK, "mine")
	attacktest.AsUser(t)
}

// What the owner gives again is the new folder; what an agent replaced before it was ever used
// is not followed either.
func TestOwnerGivesANewFolder(t *testing.T) {
	w := newWorld(t)
	w.file("proj/note", "old")
	w.access = permission.Default(w.ws + "/proj")
	must(t, w.folders.Know(w.access))
	must(t, os.Rename(w.ws+"/proj", w.ws+"/away")) // removed, its inode might be used again
	w.file("proj2/note", "cloned anew")
	must(t, os.Rename(w.ws+"/proj2", w.ws+"/proj"))
	w.want(w.call("read", a{"path": "note"}), tools.Denied, "another folder now has its name")
	must(t, w.folders.Give(permission.Write{Path: w.ws + "/proj"}))
	w.want(w.call("read", a{"path": "note"}), tools.OK, "cloned anew")
	w.file(w.outside+"/secret", secret)
	w.link(w.outside, "fresh")
	w.access = permission.Default(w.ws + "/fresh")
	must(t, w.folders.Know(w.access))
	must(t, w.folders.Give(permission.Write{Path: w.ws + "/fresh"}))
	w.want(w.call("read", a{"path": "secret"}), tools.Denied, "symbolic link")
}

// Someone exchanges the granted folder for a link out, or for another folder, as fast as they
// can. DAYCARE_LONG=1 makes it a minute each.
func TestGrantedFolderSwapper(t *testing.T) {
	runFor := 500 * time.Millisecond
	if os.Getenv("DAYCARE_LONG") != "" {
		runFor = time.Minute
	}
	link := func(w *world) string { w.link(w.outside, "l"); return "l" }
	folder := func(w *world) string { w.file("private/f.txt", secret); return "private" }

	// With moments in which there is nothing of the name.
	renames := func(a, b string) {
		os.Rename(a, b+"2")
		os.Rename(b, a)
		os.Rename(a, b)
		os.Rename(b+"2", a)
	}
	for name, race := range map[string]struct {
		other func(w *world) string
		swap  func(a, b string)
	}{"link": {link, exchange}, "folder": {folder, exchange}, "link, with gaps": {link, renames}, "folder, with gaps": {folder, renames}} {
		t.Run(name, func(t *testing.T) {
			w, other, swap := newWorld(t), race.other, race.swap
			w.file(w.outside+"/f.txt", secret)
			w.file("sub/mole/f.txt", "harmless\n")
			w.access = permission.Default(w.ws + "/sub/mole")
			must(t, w.folders.Know(w.access))
			with := filepath.Join(w.ws, other(w))
			var stop atomic.Bool
			var wg sync.WaitGroup
			wg.Go(func() {
				for !stop.Load() {
					swap(w.access.WorkingDir, with)
				}
			})
			defer wg.Wait()
			defer stop.Store(true)
			seen, tries, wins := map[tools.Status]int{}, 0, 0

			// However the machine shares its time out, both of the two were met in the end.
			met := func() bool { return seen[""] > 0 && seen[tools.Denied] > 0 }
			end := time.Now().Add(runFor)
			for last := end.Add(time.Minute); time.Now().Before(end) || !met() && time.Now().Before(last); {
				for tool, args := range map[string]a{"read": {"path": "f.txt"}, "grep": {"pattern": "."},
					"edit": {"path": "f.txt", "old": secret, "new": "owned"}} {
					res := w.call(tool, args)
					if tries++; strings.Contains(res.Text, secret) {
						wins++
					}
					seen[res.Status]++
				}
			}
			t.Logf("%d tries: %v, %d wins", tries, seen, wins)
			if wins > 0 || w.content(w.outside+"/f.txt") != secret {
				t.Errorf("%d wins in %d tries", wins, tries)
			}
			if !met() {
				t.Errorf("%v: nothing was swapped", seen)
			}
		})
	}
}
