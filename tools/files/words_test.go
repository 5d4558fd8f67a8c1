package files

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"

	"daycare/tools"
)

// As many lines are shown as were asked for and there is room for, and it is said where to go
// on.
func TestWhichLinesAreShown(t *testing.T) {
	var long, wide strings.Builder
	for n := range 2500 {
		fmt.Fprintf(&long, "l%d\n", n+1)
	}
	for n := range 60 { // each is shown as 1,000 bytes
		fmt.Fprintf(&wide, "%s\n", strings.Repeat("x", 1000-2-len(fmt.Sprint(n+1))))
	}
	for _, tt := range []struct {
		text           string
		offset, limit  int
		first, last, n int
		note           string
	}{
		{long.String(), 1, 0, 1, 2000, 2000, "[lines 1-2000 of 2500; continue with offset 2001]"},
		{long.String(), 501, 0, 501, 2500, 2000, ""},
		{long.String(), 500, 9999, 500, 2499, 2000, "[lines 500-2499 of 2500; continue with offset 2500]"},
		{long.String(), 2500, 5, 2500, 2500, 1, ""},
		{long.String(), 3, 2, 3, 4, 2, "[lines 3-4 of 2500; continue with offset 5]"}, {long.String(), 2499, 2, 2499, 2500, 2, ""},
		{wide.String(), 1, 0, 1, 51, 51, "[lines 1-51 of 60; continue with offset 52]"}, {"a\r\nb", 1, 0, 1, 2, 2, ""},
	} {
		res, err := readText(t.Context(), "f", bufio.NewReader(strings.NewReader(tt.text)), tt.offset, tt.limit)
		if err != nil {
			t.Fatal(err)
		}
		lines := strings.Split(strings.TrimSuffix(res.Text, "\n"), "\n")
		note := ""
		if strings.HasPrefix(lines[len(lines)-1], "[") {
			lines, note = lines[:len(lines)-1], lines[len(lines)-1]
		}
		if len(lines) != tt.n || note != tt.note || !strings.HasPrefix(lines[0], fmt.Sprint(tt.first, "\t")) ||
			!strings.HasPrefix(lines[len(lines)-1], fmt.Sprint(tt.last, "\t")) {
			t.Errorf("%d lines from %d: %d are shown, %q", tt.limit, tt.offset, len(lines), note)
		}
	}
	broken := bufio.NewReader(io.MultiReader(strings.NewReader("a\n"), iotest.ErrReader(errors.New("input/output error"))))
	if res, err := readText(t.Context(), "f", broken, 1, 0); err == nil || !strings.Contains(err.Error(), "read f: input/output error") {
		t.Errorf("of a broken file: %+v, %v", res, err)
	}
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := readText(gone, "f", bufio.NewReader(strings.NewReader("a\n")), 1, 0); !errors.Is(err, context.Canceled) {
		t.Errorf("stopped: %v", err)
	}
}

// A long line is shown by its beginning, with how much more there is.
func TestALongLineIsCut(t *testing.T) {
	for _, tt := range []struct {
		line string
		kept int
		cut  int
	}{{strings.Repeat("x", maxLine), maxLine, 0}, {strings.Repeat("x", maxLine+1), maxLine, 1},
		{strings.Repeat("x", 100_000), maxLine, 98_000}, {"", 0, 0}} {
		for _, end := range []string{"\n", "\r\n"} {
			in := bufio.NewReaderSize(strings.NewReader(tt.line+end+"next"), 64)
			line, cut, err := readLine(in)
			if len(line) != tt.kept || cut != tt.cut || err != nil {
				t.Errorf("of %d bytes %d are kept and %d cut, %v", len(tt.line), len(line), cut, err)
			}
			if line, _, err := readLine(in); string(line) != "next" || err != nil {
				t.Errorf("behind it is %q, %v", line, err)
			}
			if _, _, err := readLine(in); err != io.EOF {
				t.Errorf("at the end: %v", err)
			}
		}
	}
}

// Sizes are said as users read them.
func TestSizes(t *testing.T) {
	for n, want := range map[int64]string{0: "0 B", 999: "999 B", 1000: "1.0 KB", 999_949: "999.9 KB", 1_000_000: "1.0 MB",
		2_500_000: "2.5 MB", 1_000_000_000: "1.0 GB"} {
		if got := size(n); got != want {
			t.Errorf("%d is %q, want %q", n, got, want)
		}
	}
}

// A miss says where else the text stands, or which line is most like it.
func TestWhatIsSaidOfAMiss(t *testing.T) {
	many := strings.Repeat("x\n", 12)
	for _, tt := range []struct{ text, old, want string }{
		{"a\nx\nx x\n", "x", "2, 3, 3"}, {many, "x", "1, 2, 3, 4, 5, 6, 7, 8, 9, 10, …"}, {many[:20], "x", "1, 2, 3, 4, 5, 6, 7, 8, 9, 10"},
		{"a", "x", ""},
	} {
		if got := where(tt.text, tt.old); got != tt.want {
			t.Errorf("%q stands in lines %q, want %q", tt.old, got, tt.want)
		}
	}
	const again = "Read the file again and copy the text exactly, without line numbers."
	for _, tt := range []struct{ text, old, want string }{
		{"one\nfunc main() {\nthree\n", "func mian() {", " The closest line is\n2\tfunc main() {\n" + again},
		{"  func main() {\r\n", "\n func main() {\nx",
			" The closest line is\n1\t  func main() {\nSpaces, or the lines after it, differ. " + again},
		{"abcd\nabce\n", "abcf", " The closest line is\n1\tabcd\n" + again}, // the first of equals
		{"zzz\n", "abc", " No line is like its first one. Read the file again."},
		{"x\n", " \n\n", " Read the file again and copy the text exactly."},
		{strings.Repeat("a", 400) + "\n", strings.Repeat("a", 400), " The closest line is\n1\t" + strings.Repeat("a", maxCompare) +
			"\n" + again},
	} {
		if diff := cmp.Diff(tt.want, closest(tt.text, tt.old)); diff != "" {
			t.Errorf("%.40q (-want +got):\n%s", tt.old, diff)
		}
	}
	for _, tt := range []struct {
		a, b string
		want float64
	}{{"night", "nacht", 0.25}, {"abc", "abc", 1}, {"a", "b", 0}, {"ab", "a", 0}, {"ab", "ba", 0}, {"aaaa", "aa", 0.5},
		{"ab", "ab ", 2.0 / 3}} {
		if got := alike(bigrams(tt.a), tt.a, tt.b); got != tt.want {
			t.Errorf("%q and %q are alike by %v, want %v", tt.a, tt.b, got, tt.want)
		}
	}
}

// Line ends are those of the file, whatever the model writes.
func TestAnEditKeepsTheLineEnds(t *testing.T) {
	for _, tt := range []struct{ text, old, new, want string }{
		{"a\r\nb\r\n", "a\nb", "1\n2", "1\r\n2\r\n"}, {"a\r\nb\r\n", "a\r\nb", "1\n2", "1\n2\r\n"},
		{"a\nb\n", "a\nb", "1\r\n2", "1\r\n2\n"},
		{"a\r\nb\nc\n", "b\nc", "1\n2", "a\r\n1\n2\n"},
	} {
		if got, _, err := (swap{Old: tt.old, New: tt.new}).in(tt.text, "f"); got != tt.want || err != nil {
			t.Errorf("%q becomes %q, %v, want %q", tt.text, got, err, tt.want)
		}
	}
}

// A change is shown to users as a diff, unless it is too long to be read.
func TestADiffHasAnEnd(t *testing.T) {
	half := strings.Repeat("x", maxDiff/2)
	for added, shown := range map[string]bool{half: true, half + "y": false} {
		if got := diff("f", half, added); (len(got) == 1) != shown {
			t.Errorf("a change of %d bytes has %d diffs", len(half)+len(added), len(got))
		}
	}
}

// Each kind of entry is told from the others, and no name breaks its line.
func TestWhatAListShows(t *testing.T) {
	w := newWorld(t)
	w.file("d/sub/x", "")
	w.file("d/a\nb\x7f", "12")
	w.link("nowhere\n", "d/link")
	must(t, syscall.Mkfifo(filepath.Join(w.ws, "d/pipe"), 0o600))
	must(t, os.Mkdir(filepath.Join(w.ws, "empty"), 0o755))
	if diff := cmp.Diff("a?b?  2 B\nlink -> nowhere?\npipe  [p---------]\nsub/\n", w.call("ls", a{"path": "d"}).Text); diff != "" {
		t.Error(diff)
	}
	w.want(w.call("ls", a{"path": "empty"}), tools.OK, "[empty is empty]")
	w.want(w.call("ls", a{"path": "d/pipe"}), tools.OK, "pipe  [p---------]")
	for tool, args := range map[string]a{"read": {"path": "d/pipe"}, "edit": {"path": "d/pipe", "old": "x", "new": "y"},
		"write": {"path": "d/pipe", "content": "x"}} {
		w.want(w.call(tool, args), tools.Failed, "d/pipe is not a regular file")
	}
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	for tool, args := range map[string]a{"ls": {}, "glob": {"pattern": "**"}, "grep": {"pattern": "x"},
		"write": {"path": "new", "content": "x"}} {
		w.want(w.callCtx(gone, tool, args), tools.Canceled)
	}
	for i := range maxEntries {
		w.file(fmt.Sprintf("many/%d", i), "")
	}
	if text := w.call("ls", a{"path": "many"}).Text; strings.Contains(text, "[") || strings.Count(text, "\n") != maxEntries {
		t.Errorf("of as many as are shown: %.200s", text)
	}
}

// A search ends with as many lines as a model reads, and each of them is short.
func TestASearchHasAnEnd(t *testing.T) {
	w := newWorld(t)
	w.file("few.txt", strings.Repeat("hit\n", maxMatches-1))
	w.file("many.txt", strings.Repeat("hit\n", maxMatches))
	w.file("long.txt", "hit"+strings.Repeat("x", maxGrepLine-3)+"\nhit"+strings.Repeat("x", maxGrepLine-2)+"\n\xffhit\n")
	if text := w.call("grep", a{"pattern": "hit", "path": "few.txt"}).Text; strings.Contains(text, "more matches") ||
		strings.Count(text, "hit") != maxMatches-1 {
		t.Errorf("of fewer than are shown: %s", text[len(text)-80:])
	}
	if text := w.call("grep", a{"pattern": "hit", "path": "many.txt"}).Text; !strings.HasSuffix(text,
		"[more matches follow; make the pattern or the path narrower]\n") {
		t.Errorf("of as many: %s", text[len(text)-80:])
	}
	lines := strings.Split(w.call("grep", a{"pattern": "hit", "path": "long.txt"}).Text, "\n")
	if strings.HasSuffix(lines[0], "…") || !strings.HasSuffix(lines[1], "x…") || lines[2] != "long.txt:3: \uFFFDhit" {
		t.Errorf("long lines are shown as %q", lines)
	}
	var ctxt strings.Builder
	for n := range 60 {
		fmt.Fprintf(&ctxt, "l%d\n", n)
	}
	w.file("around.txt", ctxt.String())
	for around, want := range map[int]int{0: 1, -3: 1, 1: 3, 20: 41, 99: 41} {
		if got := strings.Count(w.call("grep", a{"pattern": "l30$", "path": "around.txt", "context": around}).Text, "\n"); got != want {
			t.Errorf("with %d lines around %d are shown, want %d", around, got, want)
		}
	}
	w.want(w.call("grep", a{"pattern": "x", "path": "none"}), tools.Failed, "no such file or folder: none")
	w.file("sub/deep/a.go", "hit\n")
	for include, found := range map[string]bool{"*.go": true, "sub/**/*.go": true, "deep/*.go": false, "*.txt": false} {
		if got := strings.Contains(w.call("grep", a{"pattern": "hit", "path": ".", "include": include}).Text, "a.go"); got != found {
			t.Errorf("%s includes the file: %v", include, got)
		}
	}
	w.want(w.call("glob", a{"pattern": "*", "path": "few.txt"}), tools.Failed, "no such folder: few.txt")
}

// A patch is taken apart as it is written; what is not of its form is said with its line.
func TestPatchesAreTakenApart(t *testing.T) {
	got, err := parsePatch("*** Begin Patch\r\n*** Update File:  a \r\n*** Move to: b\r\n@@ one @@\n@@ two\n-x\n+y\n@@ -1,2 +3,4 @@\n " +
		"z\n\n-w\n*** End of File\n" +
		"*** Delete File: c\n\n*** Add File: d\n+1\n+\n*** End Patch  \n\n")
	want := []change{
		{kind: "update", path: "a", moveTo: "b", line: 2,
			hunks: []hunk{{anchors: []string{"one", "two"}, old: []string{"x"}, new: []string{"y"}, line: 4},
				{old: []string{"z", "", "w"}, new: []string{"z", ""}, end: true, line: 8}}},
		{kind: "delete", path: "c", line: 13}, {kind: "add", path: "d", added: []string{"1", "\n", "", "\n"}, line: 15},
	}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(change{}, hunk{})); diff != "" || err != nil {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	for text, wrong := range map[string]string{
		"*** Begin Patch\n*** Add File: x\n+1": `must end with the line "*** End Patch"`,
		"x\n*** End Patch":                     `must begin with the line "*** Begin Patch"`, "": "must begin",
		"*** Begin Patch\n+x\n*** End Patch":                         `line 2 of the patch: "*** Add File: "`,
		"*** Begin Patch\n*** Update File: a\n-x\nq\n*** End Patch":  "line 4 of the patch: a line begins with",
		"*** Begin Patch\n*** Update File: a\n@@\n x\n*** End Patch": "line 3 of the patch: the change has no line",
		"*** Begin Patch\n\n*** End Patch":                           "line 2 of the patch",
	} {
		if _, err := parsePatch(text); err == nil || !strings.Contains(err.Error(), wrong) {
			t.Errorf("%q: %v, want %q", text, err, wrong)
		}
	}
	if changes, err := parsePatch("*** Begin Patch\n*** Update File: a\n*** Move to: b\n*** End Patch"); err != nil || len(changes) != 1 {
		t.Errorf("a file that only moves: %+v, %v", changes, err)
	}
	for anchor, numbers := range map[string]bool{"-1,2 +3,4": true, "-x": false, "+1": false, "- 5": true} {
		if got := lineNumbers(anchor); got != numbers {
			t.Errorf("%q are line numbers: %v", anchor, got)
		}
	}
}

// Lines are looked for from a place on, first as they are, then with other blanks.
func TestWhereLinesAreFound(t *testing.T) {
	text := []string{"a", " b", "c ", "b", "c", "\tb"}
	for _, tt := range []struct {
		lines string
		from  int
		end   bool
		want  int
	}{
		{"b", 0, false, 3}, {"b", 4, false, 5}, {"c", 0, false, 4}, {"c", 3, false, 4}, {"c ", 0, false, 2}, {"b c", 0, false, 3},
		{"b c", 4, false, -1}, {"x", 0, false, -1},
		{"b", 0, true, 5}, {"a", 0, true, -1}, {"c b", 0, true, 4}, {"b", 6, false, -1}, {"a b c b c b", 0, true, 0},
		{"a b c b c b x", 0, true, -1},
	} {
		lines := strings.Split(tt.lines, " ")
		if tt.lines == "c " {
			lines = []string{"c "}
		}
		if got := find(text, lines, tt.from, tt.end); got != tt.want {
			t.Errorf("%q from %d (at the end: %v) stands at %d, want %d", tt.lines, tt.from, tt.end, got, tt.want)
		}
	}
	h := hunk{old: []string{"a", "b", "c"}, new: []string{"n", "a", "c", "m"}}
	if diff := cmp.Diff([]string{"n", " a", "\tc", "m"}, h.replacement([]string{" a", "b", "\tc", "d"})); diff != "" {
		t.Errorf("lines that stay (-want +got):\n%s", diff)
	}
	if after(0) != "" || after(7) != " after line 7" {
		t.Errorf("places are said as %q, %q", after(0), after(7))
	}
}

// What was done before a step failed is said; nothing else is.
func TestWhatWasDoneBeforeAFailure(t *testing.T) {
	w := newWorld(t)
	w.file("a.txt", "one\n")
	w.file("blocked/x", "")
	w.file("b.txt", "two\n")
	for _, tt := range []struct {
		patch a
		want  string
	}{
		{patchOf("*** Update File: a.txt", "-one", "+1", "*** Add File: a.txt/b", "+x"), "a.txt is not a folder"},
		{patchOf("*** Add File: c.txt", "+x", "*** Update File: b.txt", "*** Move to: blocked", "-two", "+2"),
			"line 4 of the patch: blocked is there already"},
	} {
		if res := w.call("apply_patch", tt.patch); res.Status != tools.Failed || !strings.Contains(res.Text, tt.want) {
			t.Errorf("%q %s, want %q", res.Status, res.Text, tt.want)
		}
	}
	if orNothing("") != "[nothing was changed]" || orNothing("x\n") != "[done before that]\nx\n" {
		t.Error("what was done is not said")
	}
	if got := w.content("a.txt") + w.content("b.txt"); got != "one\ntwo\n" {
		t.Errorf("the files became %q", got)
	}
}

// Paths are named as the model named them: ~ is the home, what is in the working folder is
// short, and what cannot be a path is refused.
func TestHowPathsAreNamed(t *testing.T) {
	w := newWorld(t)
	r := w.tools["read"].(reading[readArgs]).base.reach(tools.Call{Access: w.access})
	for path, want := range map[string]string{"~": w.home, "~/a": w.home + "/a", "a/../b": w.ws + "/b", "/x/": "/x",
		"~a": w.ws + "/~a", "": w.ws} {
		if got, err := r.abs(path); got != want || err != nil {
			t.Errorf("%q is %q, %v, want %q", path, got, err, want)
		}
	}
	for abs, want := range map[string]string{w.ws: ".", w.ws + "/a/b": "a/b", w.outside: w.outside,
		filepath.Dir(w.ws): filepath.Dir(w.ws)} {
		if got := r.shown(abs); got != want {
			t.Errorf("%q is shown as %q, want %q", abs, got, want)
		}
	}
	if _, err := r.abs("a\x00"); err == nil {
		t.Error("a path with a zero byte is taken")
	}
	r.set.WorkingDir = ""
	if _, err := r.abs("a"); err == nil {
		t.Error("a path without a folder to begin in is taken")
	}
	if got, err := r.abs("/a"); got != "/a" || err != nil {
		t.Errorf("an absolute path is %q, %v", got, err)
	}
}

// A search goes so many folders down and no further.
func TestASearchGoesSoDeep(t *testing.T) {
	w := newWorld(t)
	for depth, found := range map[int]bool{maxDepth: true, maxDepth + 1: false} {
		dir := strings.Repeat("d/", depth)
		w.file(dir+fmt.Sprint("f", depth), "hit\n")
		if got := w.call("glob", a{"pattern": fmt.Sprint("**/f", depth)}).Text; strings.Contains(got, "d/d/") != found {
			t.Errorf("a file beneath %d folders is found: %.40s", depth, got)
		}
	}
}

// A file that is moved keeps its mode, whatever new files get.
func TestAMovedFileKeepsItsMode(t *testing.T) {
	w := newWorld(t)
	for _, mode := range []os.FileMode{0o777, 0o600} {
		name := fmt.Sprintf("f%o", mode)
		must(t, os.Chmod(w.file(name, "one\n"), mode))
		w.want(w.call("apply_patch", patchOf("*** Update File: "+name, "*** Move to: moved/"+name, "-one", "+two")), tools.OK)
		if info, err := os.Stat(filepath.Join(w.ws, "moved", name)); err != nil || info.Mode().Perm() != mode {
			t.Errorf("a file of %o has %v, %v", mode, info, err)
		}
	}
}
