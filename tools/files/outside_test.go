package files

import (
	"cmp"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"daycare/engine/message"
	"daycare/engine/permission"
	"daycare/tools"
)

// unasked is a call of an agent that has no request_permission: what it needs, and then what
// it gives when that was allowed.
func (w *world) unasked(tool string, args a) (*permission.Request, func() tools.Result) {
	w.t.Helper()
	data, err := json.Marshal(args)
	must(w.t, err)
	call := tools.Call{ID: "c", Name: tool, Agent: agent, Access: w.access, Arguments: data, Unasked: true, Progress: func(string) {}}
	need, err := w.tools[tool].(tools.Asks).Needs(call)
	must(w.t, err)
	return need, func() tools.Result {
		res, err := w.tools[tool].Run(w.t.Context(), call)
		must(w.t, err)
		return res
	}
}

// sending adds send_file to the tools.
func (w *world) sending() {
	keep := func(name, mime string, data []byte) (message.File, error) {
		return message.File{Name: name, Size: int64(len(data))}, nil
	}
	w.tools["send_file"] = NewSend(Options{Data: filepath.Join(w.ws, ".daycare"), Home: w.home, Folders: w.folders, Keep: keep},
		func(context.Context, tools.Call, string, message.File) error { return nil })
}

// outsideItsFolders is why such a write asks.
const outsideItsFolders = "writes outside its folders"

// Whatever file tool it is: an agent that cannot ask for a folder has the call ask for what
// is outside, and it is done when a user allowed it, once.
func TestACallAsksForWhatIsOutsideItsFolders(t *testing.T) {
	for tool, tt := range map[string]struct {
		args func(out string) a
		tag  string // with the path below the folder outside
		card string // of the diff; "" for the path alone
		done string
		why  string // "": to read
	}{
		"read":      {func(out string) a { return a{"path": out + "/f.txt"} }, "@read:/f.txt", "", "old text", ""},
		"ls":        {func(out string) a { return a{"path": out} }, "@read:", "", "f.txt", ""},
		"glob":      {func(out string) a { return a{"pattern": out + "/*.txt"} }, "@read:", "", "f.txt", ""},
		"grep":      {func(out string) a { return a{"pattern": "old", "path": "../outside"} }, "@read:", "", "old text", ""},
		"send_file": {func(out string) a { return a{"path": out + "/f.txt"} }, "@read:/f.txt", "", "sent ", ""},
		"write": {func(out string) a { return a{"path": out + "/sub/new.txt", "content": "new\n"} },
			"@write:/sub/new.txt", "+new", "new.txt", outsideItsFolders},
		"edit": {func(out string) a { return a{"path": out + "/f.txt", "old": "old", "new": "NEW"} },
			"@write:/f.txt", "-old text\n+NEW text", "changed line 1", outsideItsFolders},
		"apply_patch": {func(out string) a {
			return a{"patch": "*** Begin Patch\n*** Add File: " + out + "/p.txt\n+added\n*** End Patch"}
		}, "@write:/p.txt", "+added", "p.txt", outsideItsFolders},
	} {
		t.Run(tool, func(t *testing.T) {
			w := newWorld(t)
			w.sending()
			w.file(w.outside+"/f.txt", "old text\n")
			args := tt.args(w.outside)
			kind, below, _ := strings.Cut(tt.tag, ":")
			need, run := w.unasked(tool, args)
			if need == nil || need.Tag != kind+":"+w.outside+below {
				t.Fatalf("it asks for %+v, want %s:%s%s", need, kind, w.outside, below)
			}
			if want := cmp.Or(tt.why, "read outside its folders"); need.Reason != want {
				t.Errorf("it asks because it %q, want %q", need.Reason, want)
			}
			if tt.card != "" && !strings.Contains(need.Detail.Diff, tt.card) || tt.card == "" && need.Detail.Path != w.outside+below {
				t.Errorf("the card shows %+v", need.Detail)
			}
			if _, err := os.Lstat(w.outside + "/sub"); err == nil {
				t.Error("asking made a folder")
			}

			w.want(run(), tools.OK, tt.done)
			w.want(run(), tools.Denied, "outside the folders you may use") // it was for one call

			w.want(w.call(tool, args), tools.Denied, "ask with request_permission") // of an agent that has it
			access, err := permission.Parse(need.Tag)
			must(t, err)
			w.access, err = w.access.Grant(permission.Grant{Tag: access.Tag()})
			must(t, err)
			if need, _ := w.unasked(tool, args); need != nil {
				t.Errorf("with the right it asks for %+v", need)
			}
		})
	}
}

// The question says nothing about what is there: neither that a file is missing, nor
// whether some text is in it.
func TestTheQuestionTellsNothingOfWhatIsOutside(t *testing.T) {
	w := newWorld(t)
	w.file(w.outside+"/f.txt", "secret\n")
	for name, args := range map[string]a{"missing": {"path": w.outside + "/none", "old": "x", "new": "y"},
		"other text": {"path": w.outside + "/f.txt", "old": "guess", "new": "y"}, "a folder": {"path": w.outside, "old": "x", "new": "y"},
		"no folder": {"path": w.outside + "/no/such/f.txt", "old": "x", "new": "y"}} {
		need, run := w.unasked("edit", args)
		if need == nil || need.Detail.Path == "" || need.Tag != "@write:"+need.Detail.Path {
			t.Errorf("%s: it asks for %+v", name, need)
		}
		w.want(run(), tools.Failed) // what was allowed is tried
	}
	if need, run := w.unasked("write", a{"path": w.outside + "/f.txt", "content": "secret\n"}); need == nil ||
		need.Tag != "@write:"+w.outside+"/f.txt" {
		t.Errorf("the same text: it asks for %+v", need)
	} else {
		w.want(run(), tools.OK, "has this content already")
	}

	w.file(w.outside+"/more/.daycare/x", "x")
	w.file(w.outside+"/more/y", "x")
	need, run := w.unasked("grep", a{"path": w.outside + "/more", "pattern": "x"})
	if res := run(); need == nil || res.Text != w.outside+"/more/y:1: x\n" {
		t.Errorf("a search asks for %+v and gives %q", need, res.Text)
	}
	if need, _ := w.unasked("read", a{"path": w.outside + "/no/such/f.txt"}); need == nil {
		t.Error("reading what is not there does not ask")
	}
	w.file(w.home+"/.ssh/id", "key")
	if need, _ := w.unasked("read", a{"path": w.home + "/.ssh/id"}); need == nil || need.Reason != "read what holds secrets" {
		t.Errorf("a key is asked for with %+v", need)
	}
	if need, _ := w.unasked("write", a{"path": w.home + "/.bashrc", "content": "x"}); need == nil ||
		!strings.Contains(need.Reason, "runs later") {
		t.Errorf("what runs later is asked for with %+v", need)
	}

	w.access.ReadDirs = append(w.access.ReadDirs, w.outside)
	must(t, os.Symlink(w.home+"/target", w.outside+"/link"))
	w.file(w.home+"/target", "x")
	if need, _ := w.unasked("write", a{"path": w.outside + "/link", "content": "y"}); need == nil ||
		need.Tag != "@write:"+w.home+"/target" {
		t.Errorf("a link in a folder to read: it asks for %+v", need)
	}
}

// What a user allowed is the file whose name they read: not where a link leads that was
// put there since, nor another file of the same call.
func TestWhatIsAllowedOutsideIsThatFile(t *testing.T) {
	w := newWorld(t)
	w.file(w.outside+"/dir/f.txt", "mine\n")
	w.file(w.home+"/dir/f.txt", "theirs\n")
	w.link(w.outside+"/dir", "link")
	need, run := w.unasked("read", a{"path": "link/f.txt"})
	if need == nil || need.Tag != "@read:"+w.outside+"/dir/f.txt" {
		t.Fatalf("it asks for %+v", need)
	}

	w.want(run(), tools.OK, "mine")
	for name, swap := range map[string]func(){
		"the link in the workspace": func() { must(t, os.Remove(w.ws+"/link")); w.link(w.home+"/dir", "link") },
		"a folder outside": func() {
			must(t, os.Rename(w.outside+"/dir", w.outside+"/old"))
			must(t, os.Symlink(w.home+"/dir", w.outside+"/dir"))
		},
	} {
		_, run = w.unasked("read", a{"path": "link/f.txt"})
		swap()
		if res := run(); res.Status != tools.Denied || strings.Contains(res.Text, "theirs") {
			t.Errorf("%s was exchanged: %q %q", name, res.Status, res.Text)
		}
		must(t, os.RemoveAll(w.outside+"/dir"))
		w.file(w.outside+"/dir/f.txt", "mine\n")
		must(t, os.Remove(w.ws+"/link"))
		w.link(w.outside+"/dir", "link")
	}

	patch := "*** Begin Patch\n*** Update File: " + w.outside + "/dir/f.txt\n@@\n-no\n+yes\n*** Add File: " +
		w.outside + "/two.txt\n+x\n*** End Patch"
	data, err := json.Marshal(a{"patch": patch})
	must(t, err)
	if need, err := w.tools["apply_patch"].(tools.Asks).Needs(tools.Call{ID: "d", Agent: agent, Access: w.access,
		Arguments: data, Unasked: true}); err == nil {
		t.Errorf("two files are asked for as %+v", need)
	}
}

// What is never open is not asked for either.
func TestWhatIsNeverOpenIsNotAskedFor(t *testing.T) {
	w := newWorld(t)
	w.file(".daycare/auth.json", "key")
	w.file(w.outside+"/.git/config", "")
	for _, path := range []string{".daycare/auth.json", w.outside + "/.git/config", w.outside + "/.daycare/x"} {
		for tool, args := range map[string]a{"read": {"path": path}, "write": {"path": path, "content": "x"}} {
			need, run := w.unasked(tool, args)
			if need != nil {
				t.Errorf("%s %s asks for %+v", tool, path, need)
			}
			w.want(run(), tools.Denied)
		}
	}
}
