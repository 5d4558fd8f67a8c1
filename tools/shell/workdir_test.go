package shell

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"daycare/engine/permission"
	"daycare/tools"
	"daycare/tools/shell/sandbox"
)

// beyondWorld is a world with a folder that no right reaches, and a call that would start
// there.
func beyondWorld(t *testing.T, level sandbox.Level) (x *world, dir string) {
	x = newWorld(t, level)
	dir = filepath.Join(x.root, "beyond", "dir")
	for path, text := range map[string]string{"dir/note": "note-beyond", "dir/sub/note": "note-below", "secret": "canary-outside"} {
		path = filepath.Join(x.root, "beyond", path)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}

	return x, dir
}

// TestACommandInAFolderBeyondItsOwnAsks: the card names folder and command, and what is
// allowed is to read that folder, for that call.
func TestACommandInAFolderBeyondItsOwnAsks(t *testing.T) {
	asEverybody(t, func(t *testing.T, level sandbox.Level) {
		x, dir := beyondWorld(t, level)
		call := newCall(t, x.access, a{"command": "cat note sub/note; cat ../secret; touch new; echo end", "workdir": dir})
		if res := run(t, t.Context(), x.exec, call); res.Status != tools.Denied || strings.Contains(res.Text, "note-") {
			t.Errorf("nobody was asked: %q %s", res.Status, res.Text)
		}
		need, err := x.exec.Needs(call)
		if err != nil || need == nil || need.Tag != "@read:"+dir || !need.AskAlways || need.Prefix != "" {
			t.Fatalf("it asks for %+v, %v", need, err)
		}

		for _, want := range []string{"    cat note sub/note; cat ../secret; touch new; echo end\n", "folder      " + dir + "\n",
			"sandbox     " + string(x.exec.confine.runner.Level) + "\n", "in a folder outside its own"} {
			if !strings.Contains(need.Card(), want) {
				t.Errorf("the card does not show %q:\n%s", want, need.Card())
			}
		}

		res := run(t, t.Context(), x.exec, call)
		if !strings.Contains(res.Text, "note-beyond") || !strings.Contains(res.Text, "note-below") ||
			!strings.Contains(res.Text, "end") || printed(res.Text) != "" || exists(dir+"/new") {
			t.Errorf("allowed: %q %s", res.Status, res.Text)
		}
		if res := run(t, t.Context(), x.exec, call); res.Status != tools.Denied {
			t.Errorf("once more without a question: %q %s", res.Status, res.Text)
		}
	})
}

// TestTheFolderThatWasAllowedIsNotExchanged: between question and answer.
func TestTheFolderThatWasAllowedIsNotExchanged(t *testing.T) {
	asEverybody(t, func(t *testing.T, level sandbox.Level) {
		x, dir := beyondWorld(t, level)
		link := filepath.Join(x.w, "sub", "way")
		if err := os.Symlink(dir, link); err != nil {
			t.Fatal(err)
		}
		call := newCall(t, x.access, a{"command": "pwd; cat secret note", "workdir": "sub/way"})
		if need, err := x.exec.Needs(call); err != nil || need == nil || need.Tag != "@read:"+dir {
			t.Fatalf("a link on the way: it asks for %+v, %v", need, err)
		}
		if err := os.Remove(link); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(filepath.Dir(dir), link); err != nil {
			t.Fatal(err)
		}
		if res := run(t, t.Context(), x.exec, call); res.Status != tools.Denied || printed(res.Text) != "" {
			t.Errorf("another folder than was allowed: %q %s", res.Status, res.Text)
		}
	})
}

// What a question is for, and what it does not tell.
func TestQuestionsForFoldersOfCommands(t *testing.T) {
	x, dir := beyondWorld(t, sandbox.Landlock)
	needs := func(args a) *permission.Request {
		t.Helper()
		need, err := x.exec.Needs(newCall(t, x.access, args))
		if err != nil {
			t.Fatal(err)
		}
		return need
	}
	for _, never := range []string{x.d, filepath.Join(x.root, "other", ".daycare", "agents"), ".daycare/agents"} {
		if need := needs(a{"command": "ls", "workdir": never}); need != nil {
			t.Errorf("%s is asked for: %+v", never, need)
		}
	}

	gone := a{"command": "ls", "workdir": dir + "/gone"}
	if need := needs(gone); need == nil || need.Tag != "@read:"+dir+"/gone" {
		t.Errorf("the question tells whether a folder is there: %+v", need)
	}
	if need := needs(a{"command": "ls", "workdir": dir + "/note"}); need == nil {
		t.Errorf("the question tells what is a file")
	}
	if need := needs(a{"command": "ls", "workdir": filepath.Join(x.root, ".ssh")}); need == nil ||
		!strings.Contains(need.Reason, "secrets") {
		t.Errorf("a folder of keys: %+v", need)
	}

	// One answer is for all that the call needs, and each of it is named.
	need := needs(a{"command": "ls", "workdir": dir, "allowedDomains": []string{"a.example", "b.example", "a.example"}})
	if need == nil || !slices.Equal(append([]string{need.Tag}, need.Also...),
		[]string{"@read:" + dir, "@web:a.example", "@web:b.example"}) {
		t.Errorf("folder and hosts: %+v", need)
	}
	x.exec.options.Mode = Ask
	if need := needs(a{"command": "git push", "workdir": dir}); need == nil || need.Tag != "@exec:git push" ||
		!slices.Equal(need.Also, []string{"@read:" + dir}) || need.Prefix != "" {
		t.Errorf("command and folder: %+v", need)
	}
}
