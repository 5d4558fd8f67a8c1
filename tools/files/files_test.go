package files

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"daycare/engine/permission"
	"daycare/tools"
	"daycare/tools/toolstest"
)

const agent = "tz4a98xxat96iws9zmbrgj3a"

// world is a workspace with an agent in it, and a place beside it that the agent
// must not reach.
type world struct {
	t       *testing.T
	ws      string // the workspace
	outside string
	home    string
	access  permission.Set
	folders *permission.Folders
	tools   map[string]tools.Tool
}

func newWorld(t *testing.T) *world {
	t.Helper()
	top, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	w := &world{t: t, ws: filepath.Join(top, "ws"), outside: filepath.Join(top, "outside"),
		home: filepath.Join(top, "home"), tools: map[string]tools.Tool{}}
	for _, dir := range []string{w.ws, w.outside, w.home} {
		if err := os.Mkdir(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}

	w.access = permission.Default(w.ws)
	w.folders = permission.NewFolders(w.ws)
	for _, tool := range New(Options{Data: filepath.Join(w.ws, ".daycare"), Home: w.home, Folders: w.folders}) {
		w.tools[tool.Spec().Name] = tool
	}
	return w
}

// file makes a file of the workspace, or of anywhere if path is absolute.
func (w *world) file(path, content string) string {
	w.t.Helper()
	if !filepath.IsAbs(path) {
		path = filepath.Join(w.ws, path)
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		w.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
		w.t.Fatal(err)
	}

	return path
}

func (w *world) content(path string) string {
	w.t.Helper()
	if !filepath.IsAbs(path) {
		path = filepath.Join(w.ws, path)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		w.t.Fatal(err)
	}

	return string(data)
}

func (w *world) link(target, name string) {
	w.t.Helper()
	if err := os.Symlink(target, filepath.Join(w.ws, name)); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) call(name string, args any) tools.Result {
	w.t.Helper()
	return w.callCtx(w.t.Context(), name, args)
}

func (w *world) callCtx(ctx context.Context, name string, args any) tools.Result {
	w.t.Helper()
	data, err := json.Marshal(args)
	if err != nil {
		w.t.Fatal(err)
	}
	res, err := w.tools[name].Run(ctx, tools.Call{ID: "c", Name: name, Arguments: data, Agent: agent, Access: w.access,
		Progress: func(string) {}})
	if err != nil {
		w.t.Fatalf("%s(%s): %v", name, data, err)
	}

	return res
}

type a map[string]any

func (w *world) want(res tools.Result, status tools.Status, parts ...string) {
	w.t.Helper()
	got := res.Status
	if got == "" {
		got = tools.OK
	}
	if got != status {
		w.t.Errorf("status %q, want %q: %s", got, status, res.Text)
	}

	for _, part := range parts {
		if !strings.Contains(res.Text, part) {
			w.t.Errorf("want %q in:\n%s", part, res.Text)
		}
	}
}

func TestContract(t *testing.T) {
	w := newWorld(t)
	w.file("a.txt", "text\n")
	good := map[string]string{"read": `{"path":"a.txt"}`, "ls": `{}`, "glob": `{"pattern":"**"}`, "grep": `{"pattern":"text"}`,
		"write": `{"path":"new/b.txt","content":"x"}`, "edit": `{"path":"a.txt","old":"text","new":"text2"}`,
		"apply_patch": `{"patch":"*** Begin Patch\n*** Add File: p.txt\n+x\n*** End Patch"}`}
	bad := map[string]string{"read": `{"path":"none"}`, "ls": `{"path":"none"}`, "glob": `{"pattern":"[","path":"/"}`,
		"grep":  `{"pattern":"("}`,
		"write": `{"path":"../b.txt","content":"x"}`, "edit": `{"path":"a.txt","old":"zzz","new":"y"}`,
		"apply_patch": `{"patch":"*** Begin Patch\n*** Delete File: none\n*** End Patch"}`}
	for name, tool := range w.tools {
		t.Run(name, func(t *testing.T) {
			toolstest.Run(t, tool, toolstest.Options{Access: w.access, Good: []string{good[name]}, Bad: []string{bad[name]}})
		})
	}
}

func TestRead(t *testing.T) {
	w := newWorld(t)
	w.file("a.txt", "one\r\ntwo\n\nfour")
	w.want(w.call("read", a{"path": "a.txt"}), tools.OK, "1\tone\n2\ttwo\n3\t\n4\tfour\n")
	w.want(w.call("read", a{"path": w.ws + "/a.txt", "offset": 2, "limit": 1}), tools.OK,
		"2\ttwo\n[lines 2-2 of 4; continue with offset 3]\n")
	w.want(w.call("read", a{"path": "a.txt", "offset": 9}), tools.Failed, "has 4 lines; offset 9 is behind its end")
	w.file("empty", "")
	w.want(w.call("read", a{"path": "empty"}), tools.OK, "[empty is empty]")
	w.want(w.call("read", a{"path": "none"}), tools.Failed, "no such file: none")
	w.want(w.call("read", a{"path": "."}), tools.Failed, ". is a folder; use ls")
	w.file("bin", "ELF\x00\x01")
	w.want(w.call("read", a{"path": "bin"}), tools.Failed, "binary file of 5 B")
	w.file("latin1", "caf\xe9\n")
	w.want(w.call("read", a{"path": "latin1"}), tools.OK, "1\tcaf\uFFFD")
	w.file("sub/under.txt", "x")
	w.want(w.call("read", a{"path": "a.txt/x"}), tools.Failed, "a.txt is not a folder")
}

func TestReadIsCapped(t *testing.T) {
	w := newWorld(t)
	var b strings.Builder
	for i := range 5123 {
		fmt.Fprintf(&b, "l%d\n", i+1)
	}
	w.file("long", b.String())
	res := w.call("read", a{"path": "long"})
	w.want(res, tools.OK, "2000\tl2000\n[lines 1-2000 of 5123; continue with offset 2001]")
	w.want(w.call("read", a{"path": "long", "offset": 5000}), tools.OK, "5123\tl5123\n")
	w.file("wide", strings.Repeat(strings.Repeat("x", 1000)+"\n", 100))
	if res := w.call("read", a{"path": "wide"}); len(res.Text) > maxReadBytes+100 ||
		!strings.Contains(res.Text, "of 100; continue with offset") {
		t.Errorf("a read of %d bytes", len(res.Text))
	}

	w.file("one", strings.Repeat("y", 300_000))
	w.want(w.call("read", a{"path": "one"}), tools.OK, "298000 bytes more in this line")
}

func TestReadImage(t *testing.T) {
	w := newWorld(t)
	path := w.file("p.dat", "\x89PNG\r\n\x1a\nrest")
	res := w.call("read", a{"path": "p.dat"})
	w.want(res, tools.OK, "image/png")
	if len(res.Blocks) != 1 || res.Blocks[0].Type != "image" || res.Blocks[0].File.Path != path || res.Blocks[0].File.Size != 12 {
		t.Errorf("block %+v", res.Blocks)
	}
	if strings.Contains(res.Text, "PNG\r") {
		t.Error("the bytes of an image must not be in the text")
	}
}

// somePDF is a file of that many pages, each with its number on it.
func somePDF(pages int, text string) string {
	var b, kids strings.Builder
	b.WriteString("%PDF-1.7\n1 0 obj\n<</Type/Catalog/Pages 2 0 R>>\nendobj\n3 0 " +
		"obj\n<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>\nendobj\n")
	for i := range pages {
		content := fmt.Sprintf("BT /F1 12 Tf (%s %d) Tj ET", text, i+1)
		fmt.Fprintf(&kids, "%d 0 R ", 10+2*i)
		fmt.Fprintf(&b, "%d 0 obj\n<</Type/Page/Parent 2 0 R/Contents %d 0 R/Resources<</Font<</F1 3 0 R>>>>>>\nendobj\n", 10+2*i, 11+2*i)
		fmt.Fprintf(&b, "%d 0 obj\n<</Length %d>>stream\n%s\nendstream\nendobj\n", 11+2*i, len(content), content)
	}
	fmt.Fprintf(&b, "2 0 obj\n<</Type/Pages/Kids[%s]/Count %d>>\nendobj\ntrailer\n<</Root 1 0 R>>\n%%%%EOF\n", kids.String(), pages)

	return b.String()
}

func TestReadPDF(t *testing.T) {
	w := newWorld(t)
	path := w.file("plan.pdf", somePDF(3, "Plan"))
	res := w.call("read", a{"path": "plan.pdf"})
	w.want(res, tools.OK, "3 pages")
	if len(res.Blocks) != 1 || res.Blocks[0].Type != "document" || res.Blocks[0].File.Path != path ||
		res.Blocks[0].File.MimeType != "application/pdf" {
		t.Fatalf("blocks %+v", res.Blocks)
	}
	if text := res.Blocks[0].Text; !strings.Contains(text, "[page 1]") || !strings.Contains(text, "Plan 3") ||
		strings.Contains(res.Text, "Plan") {
		t.Errorf("the text is for models that take no PDFs:\n%s\n%s", res.Text, text)
	}

	res = w.call("read", a{"path": "plan.pdf", "offset": 2})
	w.want(res, tools.OK, "Plan 2")
	if len(res.Blocks) != 0 || strings.Contains(res.Text, "Plan 1") {
		t.Errorf("from page 2 on: %+v", res)
	}
	w.want(w.call("read", a{"path": "plan.pdf", "offset": 9}), tools.Failed, "has 3 pages; offset 9 is behind its end")
	w.file("book.pdf", somePDF(maxPages+1, strings.Repeat("long ", 100)))
	res = w.call("read", a{"path": "book.pdf"})
	w.want(res, tools.OK, "of 101; continue with offset")
	if len(res.Blocks) != 0 {
		t.Error("vendors refuse a document of more than 100 pages")
	}

	w.file("broken.pdf", "%PDF-1.7\nnothing")
	w.want(w.call("read", a{"path": "broken.pdf"}), tools.Failed, "cannot be read: it is damaged")
}

func TestWrite(t *testing.T) {
	w := newWorld(t)
	res := w.call("write", a{"path": "new/deep/a.txt", "content": "1\n2\n"})
	w.want(res, tools.OK, "created new/deep/a.txt (2 lines, 4 B)")
	if got := w.content("new/deep/a.txt"); got != "1\n2\n" {
		t.Errorf("content %q", got)
	}
	if len(res.Blocks) != 1 || !strings.Contains(res.Blocks[0].Text, "+1\n+2\n") {
		t.Errorf("diff %+v", res.Blocks)
	}

	script := w.file("run.sh", "old")
	if err := os.Chmod(script, 0o750); err != nil {
		t.Fatal(err)
	}
	w.want(w.call("write", a{"path": "run.sh", "content": "new"}), tools.OK, "overwrote run.sh")
	if info, _ := os.Stat(script); info.Mode().Perm() != 0o750 {
		t.Errorf("the mode became %v", info.Mode())
	}

	w.want(w.call("write", a{"path": "run.sh", "content": "new"}), tools.OK, "has this content already")
	w.want(w.call("write", a{"path": "new", "content": "x"}), tools.Failed, "new is a folder")
	if err := os.Chmod(script, 0o440); err != nil {
		t.Fatal(err)
	}
	w.want(w.call("write", a{"path": "run.sh", "content": "x"}), tools.Denied, "read-only")
	left, err := filepath.Glob(filepath.Join(w.ws, "*", ".tmp-*"))
	if err != nil || len(left) > 0 {
		t.Errorf("temporary files left: %v %v", left, err)
	}
}

func TestEdit(t *testing.T) {
	w := newWorld(t)
	w.file("a.go", "package a\n\nfunc one() {\n\treturn 1\n}\n\nfunc two() {\n\treturn 1\n}\n")
	res := w.call("edit", a{"path": "a.go", "old": "one() {\n\treturn 1", "new": "one() {\n\treturn 11"})
	w.want(res, tools.OK, "changed line 3 of a.go")
	if want := "-\treturn 1\n+\treturn 11\n"; !strings.Contains(res.Blocks[0].Text, want) ||
		!strings.Contains(res.Blocks[0].Text, "--- a/a.go") {
		t.Errorf("diff:\n%s", res.Blocks[0].Text)
	}
	if text := diff("/etc/hosts", "a\n", "b\n")[0].Text; !strings.HasPrefix(text, "--- /etc/hosts\n+++ /etc/hosts\n") {
		t.Errorf("diff of a file outside:\n%s", text)
	}

	w.want(w.call("edit", a{"path": "a.go", "old": "return 1", "new": "x"}), tools.Failed, "old is 2 times in a.go (lines 4, 8)")
	w.want(w.call("edit", a{"path": "a.go", "old": "return 1", "new": "return 2", "all": true}), tools.OK, "changed 2 places")
	w.want(w.call("edit", a{"path": "a.go", "old": "func tow() {", "new": "x"}), tools.Failed, "The closest line is\n7\tfunc two() {")
	w.want(w.call("edit", a{"path": "a.go", "old": "    return 21", "new": "x"}), tools.Failed, "4\t\treturn 21", "Spaces")
	w.want(w.call("edit", a{"path": "a.go", "old": "@@@@", "new": "x"}), tools.Failed, "No line is like")
	w.want(w.call("edit", a{"path": "a.go", "old": "", "new": "x"}), tools.Failed, "use write")
	w.want(w.call("edit", a{"path": "a.go", "old": "x", "new": "x"}), tools.Failed, "the same")
	w.want(w.call("edit", a{"path": "none", "old": "x", "new": "y"}), tools.Failed, "no such file")
	w.file("win.txt", "a\r\nb\r\nc\r\n")
	w.want(w.call("edit", a{"path": "win.txt", "old": "a\nb", "new": "1\n2"}), tools.OK)
	if got := w.content("win.txt"); got != "1\r\n2\r\nc\r\n" {
		t.Errorf("line ends: %q", got)
	}
}

func TestLs(t *testing.T) {
	w := newWorld(t)
	w.file("b.txt", strings.Repeat("x", 1200))
	w.file("a/x", "")
	w.file(".daycare/auth.json", "secret")
	w.link("b.txt", "l")
	res := w.call("ls", a{})
	if diff := cmp.Diff("a/\nb.txt  1.2 KB\nl -> b.txt\n", res.Text); diff != "" {
		t.Error(diff)
	}

	w.want(w.call("ls", a{"path": "b.txt"}), tools.OK, "b.txt  1.2 KB")
	w.want(w.call("ls", a{"path": "none"}), tools.Failed, "no such folder: none")
	for i := range maxEntries + 10 {
		w.file(fmt.Sprintf("many/%d", i), "")
	}
	w.want(w.call("ls", a{"path": "many"}), tools.OK, "[500 of 510 entries")
}

// A search that did not look everywhere says so, also where it has found nothing.
func TestAGlobThatStoppedEarlySaysSo(t *testing.T) {
	for full, want := range map[bool]string{true: "[no file matches]\n", false: "[no file matches]\n" + stoppedEarly} {
		if diff := cmp.Diff(want, foundText(nil, nil, full)); diff != "" {
			t.Errorf("full: %v: %s", full, diff)
		}
	}
}

func TestGlob(t *testing.T) {
	w := newWorld(t)
	for i, name := range []string{"main.go", "a/b/c.go", "a/d.md", ".git/x.go", ".daycare/y.go"} {
		path := w.file(name, "")
		at := time.Unix(int64(1000*(i+1)), 0)
		if err := os.Chtimes(path, at, at); err != nil {
			t.Fatal(err)
		}
	}

	for _, tc := range []struct {
		args a
		want string
	}{
		{a{"pattern": "**/*.go"}, "a/b/c.go\nmain.go\n"}, // newest first
		{a{"pattern": "*.go"}, "main.go\n"},
		{a{"pattern": "a/**"}, "a/d.md\na/b/c.go\n"},
		{a{"pattern": "*.md", "path": "a"}, "a/d.md\n"},
		{a{"pattern": w.ws + "/a/*.md"}, "a/d.md\n"},
		{a{"pattern": "**/*.{md,rs}"}, "a/d.md\n"},
		{a{"pattern": "**/*.py"}, "[no file matches]\n"},
	} {
		if diff := cmp.Diff(tc.want, w.call("glob", tc.args).Text); diff != "" {
			t.Errorf("%v: %s", tc.args, diff)
		}
	}

	w.want(w.call("glob", a{"pattern": "../outside/*"}), tools.Denied, "@read:")
	w.want(w.call("glob", a{"pattern": "**/[a"}), tools.Failed, "not valid")
}

func TestGrep(t *testing.T) {
	w := newWorld(t)
	w.file("main.go", "one\nfunc main() {\nthree\nfour\nfive\nfunc other() {\n")
	w.file("sub/b.txt", "FUNC x\n")
	w.file(".git/c", "func git\n")
	w.file(".daycare/d", "func secret\n")
	w.file("bin", "func\x00")
	w.file(".gitignore", "*.log\n/build/\n!keep.log\n# func comment\n")
	w.file("x.log", "func log\n")
	w.file("sub/keep.log", "func kept\n")
	w.file("build/out.go", "func built\n")

	for _, tc := range []struct {
		args a
		want string
	}{
		{a{"pattern": `func \w+\(`}, "main.go:2: func main() {\nmain.go:6: func other() {\n"},
		{a{"pattern": "^func", "ignoreCase": true, "include": "*.txt"}, "sub/b.txt:1: FUNC x\n"},
		{a{"pattern": "main", "context": 1, "path": "main.go"}, "main.go:1- one\nmain.go:2: func main() {\nmain.go:3- three\n"},
		{a{"pattern": "main|other", "context": 1, "include": "*.go"},
			"main.go:1- one\nmain.go:2: func main() {\nmain.go:3- three\n--\nmain.go:5- five\nmain.go:6: func other() {\n"},
		{a{"pattern": "func (kept|built|log|secret|git)"}, "sub/keep.log:1: func kept\n"},
		{a{"pattern": "nothing at all"}, "[no match]\n"},
	} {
		if diff := cmp.Diff(tc.want, w.call("grep", tc.args).Text); diff != "" {
			t.Errorf("%v: %s", tc.args, diff)
		}
	}

	w.file("many.txt", strings.Repeat("hit "+strings.Repeat("z", 500)+"\n", 1000))
	res := w.call("grep", a{"pattern": "hit"})
	w.want(res, tools.OK, "[more matches follow")
	if len(res.Text) > maxGrepBytes+1000 {
		t.Errorf("%d bytes", len(res.Text))
	}
}

// A search stops with its turn, however much there is to read.
func TestGrepEndsWithItsContext(t *testing.T) {
	w := newWorld(t)
	w.file("big", strings.Repeat("abcdefghij\n", 3_000_000))
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Millisecond)
	defer cancel()
	start := time.Now()
	w.want(w.callCtx(ctx, "grep", a{"pattern": `(a|b|c|d|e)+z`}), tools.Canceled)
	if took := time.Since(start); took > 10*time.Second { // all of it takes longer, on a machine that is as busy
		t.Errorf("took %v after its context", took)
	}
}

func TestIgnoreRules(t *testing.T) {
	rules := []ignoreRules{{"", parseIgnore("*.o\n/top\ndocs/*.tmp\nnode_modules/\n!ok.o\n\\#x\n[bad\n")}, {"sub", parseIgnore("/here\n")}}
	for path, want := range map[string]bool{"a.o": true, "x/b.o": true, "x/ok.o": false, "top": true, "x/top": false,
		"docs/a.tmp": true, "x/docs/a.tmp": false, "sub/here": true, "x/node_modules": false} {
		if got := ignored(rules, path, false); got != want {
			t.Errorf("%s: ignored %v, want %v", path, got, want)
		}
	}
	if ignored([]ignoreRules{{"", parseIgnore("# x\n#y\n\n")}}, "#y", false) {
		t.Error("a comment is a rule")
	}
	if !ignored(rules, "x/node_modules", true) {
		t.Error("a folder rule does not count for a folder")
	}
}

// A call that was stopped ends where it is, with the error of its context.
func TestStoppedCalls(t *testing.T) {
	w := newWorld(t)
	w.file("a/b.txt", "x\n")
	over, cancel := context.WithCancel(t.Context())
	cancel()

	for name, args := range map[string]a{"ls": {"path": "."}, "grep": {"pattern": "x"}, "glob": {"pattern": "**/*.txt"}} {
		tool, ok := w.tools[name]
		if !ok {
			t.Errorf("there is no tool %s", name)
			continue
		}
		data, err := json.Marshal(args)
		if err != nil {
			t.Fatal(err)
		}

		res, err := tool.Run(over, tools.Call{ID: "c", Name: name, Arguments: data, Agent: agent, Access: w.access,
			Progress: func(string) {}})
		if err == nil && (res.Status == tools.OK || res.Status == "") {
			t.Errorf("%s went on: %q", name, res.Text)
		}
	}
}

// Without folders of its own a tool knows those of the workspace.
func TestFoldersOfTheWorkspace(t *testing.T) {
	ws := t.TempDir()
	given := permission.NewFolders("")
	if b := newBase(Options{Data: filepath.Join(ws, ".daycare")}); !b.Folders.Writable(filepath.Join(ws, "x")) {
		t.Error("the workspace is not known")
	}
	if b := newBase(Options{}); b.Folders == nil || b.Folders.Writable(filepath.Join(ws, "x")) {
		t.Error("a workspace that nobody named is known")
	}
	if b := newBase(Options{Data: filepath.Join(ws, ".daycare"), Folders: given}); b.Folders != given {
		t.Error("the folders that were given are others")
	}
}
