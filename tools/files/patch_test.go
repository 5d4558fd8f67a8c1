package files

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"daycare/tools"
)

const source = "package main\n\nimport \"fmt\"\n\nfunc a() {\n\tfmt.Println(1)\n}\n\nfunc b() {\n\tfmt.Println(1)\n}\n"

func patchOf(lines ...string) a {
	return a{"patch": "*** Begin Patch\n" + strings.Join(lines, "\n") + "\n*** End Patch\n"}
}

func TestPatchChangesSeveralFiles(t *testing.T) {
	w := newWorld(t)
	w.file("main.go", source)
	w.file("old.txt", "gone\n")
	w.file("run.sh", "one\r\ntwo\r\nthree\r\n")
	if err := os.Chmod(filepath.Join(w.ws, "run.sh"), 0o755); err != nil {
		t.Fatal(err)
	}

	res := w.call("apply_patch", patchOf(
		"*** Update File: main.go", "@@ func b() {", "-\tfmt.Println(1)", "+\tfmt.Println(2)", "+\tfmt.Println(3)",
		"*** Add File: new/deep/file.txt", "+hello", "+", "+world",
		"*** Delete File: old.txt",
		"*** Update File: run.sh", "*** Move to: bin/run.sh", " one", "-two", "+2", " three"))
	w.want(res, tools.OK, "changed main.go\ncreated new/deep/file.txt\ndeleted old.txt\nchanged run.sh, which is bin/run.sh now")
	if got := w.content("main.go"); got != strings.Replace(source, "func b() {\n\tfmt.Println(1)",
		"func b() {\n\tfmt.Println(2)\n\tfmt.Println(3)", 1) {
		t.Errorf("main.go is now\n%s", got)
	}
	if got := w.content("new/deep/file.txt"); got != "hello\n\nworld\n" {
		t.Errorf("the new file is %q", got)
	}
	if got := w.content("bin/run.sh"); got != "one\r\n2\r\nthree\r\n" {
		t.Errorf("the moved file is %q", got)
	}
	if info, err := os.Stat(filepath.Join(w.ws, "bin/run.sh")); err != nil || info.Mode().Perm() != 0o755 {
		t.Errorf("the moved file has %v, %v", info.Mode(), err)
	}

	for _, gone := range []string{"old.txt", "run.sh"} {
		if _, err := os.Lstat(filepath.Join(w.ws, gone)); err == nil {
			t.Errorf("%s is still there", gone)
		}
	}
	if len(res.Blocks) != 4 || res.Blocks[0].Type != "diff" || !strings.Contains(res.Blocks[0].Text, "+\tfmt.Println(3)") {
		t.Errorf("diffs for people: %+v", res.Blocks)
	}
}

// A patch that does not fit somewhere changes nothing anywhere.
func TestPatchIsAllOrNothing(t *testing.T) {
	w := newWorld(t)
	w.file("a.txt", "one\ntwo\nthree\n")
	w.file("b.bin", "x\x00y")
	w.file("c.txt", "c\n")
	w.link("c.txt", "link.txt")
	ok := []string{"*** Update File: a.txt", "-one", "+1"}
	for _, tc := range []struct {
		then   []string
		status tools.Status
		want   string
	}{
		{[]string{"*** Update File: c.txt", " nothing like it", "-zzz"}, tools.Failed,
			"line 6 of the patch: its lines with blank and - are not in c.txt"},
		{[]string{"*** Update File: c.txt", "@@ func x", "-c"}, tools.Failed, `no line "func x"`},
		{[]string{"*** Update File: none.txt", "-c"}, tools.Failed, "no such file"},
		{[]string{"*** Update File: b.bin", "-c"}, tools.Failed, "binary"},
		{[]string{"*** Update File: a.txt", "-two", "+2"}, tools.Failed, "twice"},
		{[]string{"*** Add File: c.txt", "+c"}, tools.Failed, "is there already"},
		{[]string{"*** Add File: d.txt", "+c", "*** Add File: d.txt", "+c"}, tools.Failed, "twice"},
		{[]string{"*** Delete File: ../outside/x"}, tools.Denied, "request_permission"},
		{[]string{"*** Add File: .daycare/settings.yaml", "+x"}, tools.Denied, "never open"},
		{[]string{"*** Update File: c.txt", "*** Move to: /etc/x", "-c", "+d"}, tools.Denied, "request_permission"},
		{[]string{"*** Update File: c.txt", "*** Move to: .git/hooks/pre-commit", "-c", "+d"}, tools.Denied, "never open"},
		{[]string{"*** Update File: c.txt"}, tools.Failed, "nothing is changed in c.txt"},
		{[]string{"*** Update File: c.txt", " c"}, tools.Failed, "no line with - or +"},
		{[]string{"*** Update File: c.txt", "c"}, tools.Failed, "line 6 of the patch: a line begins with"},
		{[]string{"*** Add File: e.txt", "e"}, tools.Failed, "begins with +"},
		{[]string{"*** Delete File: c.txt", "-c"}, tools.Failed, "nothing may follow"},
		{[]string{"*** Add File: "}, tools.Failed, "there is no path"},
	} {
		res := w.call("apply_patch", patchOf(append(append([]string{}, ok...), tc.then...)...))
		w.want(res, tc.status, tc.want)
		if got := w.content("a.txt") + w.content("c.txt"); got != "one\ntwo\nthree\nc\n" {
			t.Fatalf("%v: it changed something: %q", tc.then, got)
		}
	}

	for _, bad := range []string{"", "x", "*** Begin Patch\n*** End Patch", "*** Begin Patch\n-x\n*** End Patch",
		"*** Begin Patch\n*** Add File: x\n+x"} {
		w.want(w.call("apply_patch", a{"patch": bad}), tools.Failed)
	}
}

func TestPatchFindsItsPlace(t *testing.T) {
	for _, tc := range []struct{ name, before, patch, after string }{
		{"blanks at the end of lines", "a  \nb\nc\n", " a\n-b\n+B", "a  \nB\nc\n"},
		{"indentation", "\tif x {\n\t\ty()\n\t}\n", " if x {\n-y()\n+\t\tz()\n }", "\tif x {\n\t\tz()\n\t}\n"},
		{"in order", "x\ny\nx\ny\n", "@@\n x\n-y\n+1\n@@\n x\n-y\n+2", "x\n1\nx\n2\n"},
		{"end of file", "x\nend\nx\nend\n", "@@\n x\n-end\n+last\n*** End of File", "x\nend\nx\nlast\n"},
		{"append", "a\n", "@@\n+b", "a\nb\n"},
		{"append without a last newline", "a", "@@\n+b", "a\nb"},
		{"into an empty file", "", "@@\n+b", "b\n"},
		{"after a line", "a\nb\n", "@@ a\n+x", "a\nx\nb\n"},
		{"an empty line of context without its blank", "a\n\nb\n", " a\n\n-b\n+c", "a\n\nc\n"},
		{"line numbers are not trusted", "a\nb\n", "@@ -9,1 +9,1 @@\n-b\n+c", "a\nc\n"},
		{"two anchors", "class A\n def f\n  1\nclass B\n def f\n  1\n", "@@ class B\n@@ def f\n-  1\n+  2",
			"class A\n def f\n  1\nclass B\n def f\n  2\n"},
		{"all removed", "a\n", "-a", ""},
	} {
		w := newWorld(t)
		w.file("f", tc.before)
		res := w.call("apply_patch", patchOf("*** Update File: f", tc.patch))
		if got := w.content("f"); got != tc.after {
			t.Errorf("%s: %q, want %q: %s", tc.name, got, tc.after, res.Text)
		}
	}
}

func TestSeveralEditsAllOrNone(t *testing.T) {
	w := newWorld(t)
	w.file("f", "one two three two\n")
	w.want(w.call("edit", a{"path": "f",
		"edits": []a{{"old": "one", "new": "1"}, {"old": "two", "new": "2", "all": true},
			{"old": "1 2", "new": "12"}}}), tools.OK, "changed line 1 of f\nchanged 2 places")
	if got := w.content("f"); got != "12 three 2\n" {
		t.Errorf("it is %q", got)
	}

	w.want(w.call("edit", a{"path": "f",
		"edits": []a{{"old": "three", "new": "3"}, {"old": "none of it", "new": "x"}}}), tools.Failed,
		"edit 2 of 2: old is not in f", "[nothing was changed]")
	if got := w.content("f"); got != "12 three 2\n" {
		t.Errorf("half of it was done: %q", got)
	}

	w.want(w.call("edit", a{"path": "f"}), tools.Failed, "old is empty")

	w.file("g", "one two\n")
	w.want(w.call("edit", a{"path": "g", "old": "one ", "new": "", "edits": []a{{"old": "two", "new": "2"}}}), tools.OK)
	if got := w.content("g"); got != "2\n" {
		t.Errorf("of a change that removes and one that replaces: %q", got)
	}
}

// What someone else changed since the agent read it is not changed unseen.
func TestStaleFilesAreRefused(t *testing.T) {
	w := newWorld(t)
	w.file("f", "one\n")
	w.want(w.call("edit", a{"path": "f", "old": "one", "new": "two"}), tools.OK) // never read: its words are proof enough
	w.want(w.call("edit", a{"path": "f", "old": "two", "new": "three"}), tools.OK)
	w.file("f", "three, and a person's line\n")

	for name, args := range map[string]a{
		"edit": {"path": "f", "old": "three", "new": "four"}, "write": {"path": "f", "content": "four\n"},
		"apply_patch": patchOf("*** Update File: f", "-three, and a person's line", "+four"),
	} {
		w.want(w.call(name, args), tools.Denied, "read it again")
	}

	if got := w.content("f"); got != "three, and a person's line\n" {
		t.Fatalf("a person's change was lost: %q", got)
	}
	w.want(w.call("read", a{"path": "f"}), tools.OK)
	w.want(w.call("write", a{"path": "f", "content": "four\n"}), tools.OK)
	w.want(w.call("write", a{"path": "f", "content": "five\n"}), tools.OK)
	w.want(w.call("apply_patch", patchOf("*** Delete File: f")), tools.OK)
	w.file("f", "made anew by a person\n")
	w.want(w.call("write", a{"path": "f", "content": "six\n"}), tools.Denied, "read it again")

	must(t, os.Remove(filepath.Join(w.ws, "f"))) // what is gone cannot be lost
	w.want(w.call("write", a{"path": "f", "content": "seven\n"}), tools.OK)

	w.file("g", "one\n")
	w.want(w.call("write", a{"path": "g", "content": "one\n"}), tools.OK, "has this content already") // so the agent knows it
	w.file("g", "one, and a person's line\n")
	w.want(w.call("edit", a{"path": "g", "old": "one", "new": "two"}), tools.Denied, "read it again")
}

func FuzzPatch(f *testing.F) {
	for _, s := range []string{"*** Update File: f\n@@ a\n-b\n+c\n", "*** Update File: f\n a\n\n-c\n*** End of File\n",
		"*** Add File: x\n+y\n*** Delete File: z\n", "*** Update File: f\n*** Move to: g\n-a\n"} {
		f.Add(s, "a\nb\n\nc\n")
	}
	f.Fuzz(func(t *testing.T, patch, text string) {
		changes, err := parsePatch("*** Begin Patch\n" + patch + "\n*** End Patch")
		if err != nil {
			return
		}

		for _, c := range changes {
			if c.kind != "update" {
				continue
			}
			after, err := c.apply(text)
			if err != nil {
				continue
			}

			for _, h := range c.hunks {
				for _, line := range h.new {
					if !strings.Contains(strings.ReplaceAll(after, "\r\n", "\n"), strings.TrimSpace(line)) {
						t.Errorf("line %q is not in %q", line, after)
					}
				}
			}
		}
	})
}
