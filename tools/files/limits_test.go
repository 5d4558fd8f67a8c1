package files

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"daycare/engine/message"
	"daycare/tools"
)

// A patch may have blank lines around it, and what it wrote can be changed again at once.
func TestPatchedFilesAreKnown(t *testing.T) {
	w := newWorld(t)
	patch := patchOf("*** Add File: a.txt", "+one")
	patch["patch"] = "\n \n" + patch["patch"].(string) + "\n\n"
	w.want(w.call("apply_patch", patch), tools.OK, "created a.txt")
	w.want(w.call("edit", a{"path": "a.txt", "old": "one", "new": "two"}), tools.OK)
	w.want(w.call("apply_patch", patchOf("*** Update File: a.txt", "*** Move to: b.txt", "-two", "+three")), tools.OK,
		"which is b.txt now")
	w.want(w.call("write", a{"path": "b.txt", "content": "four\n"}), tools.OK, "overwrote b.txt")
	w.want(w.call("apply_patch", patchOf("*** Delete File: b.txt")), tools.OK, "deleted b.txt")
	must(t, os.Truncate(w.file("large", ""), maxChange+1))
	w.want(w.call("apply_patch", patchOf("*** Delete File: large")), tools.OK, "deleted large") // it is not read
}

// A search shows each line once, in the order of the file, with its own number.
func TestGrepAround(t *testing.T) {
	w := newWorld(t)
	w.file("a.txt", "1\nhit\n3\nhit\n5\n6\n7\n8\nhit")
	w.file(".gitignore", "\n  \n# a.txt\n!\nskipped\n")
	w.file("skipped", "hit\n")
	want := "a.txt:1- 1\na.txt:2: hit\na.txt:3- 3\na.txt:4: hit\na.txt:5- 5\n--\na.txt:8- 8\na.txt:9: hit\n"
	if diff := cmp.Diff(want, w.call("grep", a{"pattern": "hit", "context": 1}).Text); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff("a.txt:2: hit\na.txt:4: hit\na.txt:9: hit\n", w.call("grep", a{"pattern": "hit"}).Text); diff != "" {
		t.Error(diff)
	}

	long := strings.Repeat("y", 200_000)
	w.file("long.txt", "hit "+long+"\nhit\n"+long+"hit\nhit "+long)
	res := w.call("grep", a{"pattern": "^hit", "include": "long.txt"})
	w.want(res, tools.OK, "long.txt:1: hit", "long.txt:2: hit\n", "long.txt:4: hit")
	if strings.Contains(res.Text, "long.txt:3") || strings.Contains(res.Text, "long.txt:5") {
		t.Error("the end of a long line was taken for a line")
	}

	w.file("b.txt", "1\n2\n3\n4\nhit\n6\n7\n8\n9\nhit\n")
	want = "b.txt:3- 3\nb.txt:4- 4\nb.txt:5: hit\nb.txt:6- 6\nb.txt:7- 7\nb.txt:8- 8\nb.txt:9- 9\nb.txt:10: hit\n"
	if diff := cmp.Diff(want, w.call("grep", a{"pattern": "hit", "context": 2, "include": "b.txt"}).Text); diff != "" {
		t.Error(diff)
	}
	w.file("bin", "hit\x00")
	w.want(w.call("grep", a{"pattern": "hit", "path": "bin"}), tools.OK, "[no match]")
}

// Only so much is found, compared and read.
func TestBoundsOfLooks(t *testing.T) {
	w := newWorld(t)
	for i := range maxFound + 3 {
		w.file(fmt.Sprintf("many/%d.txt", i), "")
	}
	w.want(w.call("glob", a{"pattern": w.ws + "/many/1.txt", "path": "many"}), tools.OK, "many/1.txt")
	w.want(w.call("glob", a{"pattern": "many/*.txt"}), tools.OK, "[the newest 200 of 203; make the pattern narrower]")
	w.file("lines", strings.Repeat("-\n", maxCompared+10)+"func almost() {\n")
	w.want(w.call("edit", a{"path": "lines", "old": "func almots() {", "new": "x"}), tools.Failed, "No line is like")
	pdf := w.file("big.pdf", somePDF(1, "x"))
	if err := os.Truncate(pdf, maxPDF+1); err != nil {
		t.Fatal(err)
	}

	w.want(w.call("read", a{"path": "big.pdf"}), tools.Failed, "can be read")
	for head, want := range map[string]string{"RIFF1234WEBPxx": "image/webp", "RIFF1234WAVExx": "", "RIFF1234WEB": "",
		"GIF89a": "image/gif"} {
		if got := imageType([]byte(head)); got != want {
			t.Errorf("%q is %q, want %q", head, got, want)
		}
	}

	w.want(w.call("ls", a{"path": w.ws}), tools.OK, "big.pdf")
}

// A file that is too large, or may not be written, is left alone by every tool that changes or sends files, which says why.
func TestFilesThatAreNotForATool(t *testing.T) {
	const much, frozen = 100 << 20, "frozen.txt"
	for _, tt := range []struct {
		tool string
		args a
		want string
	}{
		{"edit", a{"path": "large", "old": "x", "new": "y"}, "large has 104.9 MB; this tool takes at most 10.5 MB"},
		{"apply_patch", patchOf("*** Update File: large", "-x", "+y"), "large has 104.9 MB; this tool takes at most 10.5 MB"},
		{"apply_patch", patchOf("*** Update File: "+frozen, "-x", "+y"), "frozen.txt is read-only"},
		{"apply_patch", patchOf("*** Delete File: " + frozen), "frozen.txt is read-only"},
		{"edit", a{"path": frozen, "old": "x", "new": "y"}, "frozen.txt is read-only"},
		{"send_file", a{"path": "large"}, "large has 104.9 MB; this tool takes at most 21.0 MB"},
		{"read", a{"path": "large.png"}, "large.png is an image of 104.9 MB; at most"},
	} {
		w := newWorld(t)
		w.sending()
		for path, text := range map[string]string{"large": "", "large.png": "\x89PNG\r\n\x1a\n"} {
			must(t, os.Truncate(w.file(path, text), much))
		}
		must(t, os.Chmod(w.file(frozen, "x\n"), 0o444))
		if _, err := w.run(t.Context(), tt.tool, tt.args); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s %v: %v, want %q", tt.tool, tt.args, err, tt.want)
		}
		if got := w.content(frozen); got != "x\n" {
			t.Errorf("%s %v: the file has %q", tt.tool, tt.args, got)
		}
	}
}

// What is denied is not seen, also where the file system spells its name otherwise and it was not there before.
func TestWhatIsDeniedIsNotSeen(t *testing.T) {
	w := newWorld(t)
	for _, tool := range New(Options{Data: filepath.Join(w.ws, ".daycare"), Home: w.home, Folders: w.folders,
		Denied: []string{filepath.Join(w.ws, "private.txt")}}) {
		w.tools[tool.Spec().Name] = tool
	}
	w.file("PRIVATE.txt", "canary\n")
	w.file("other/.daycare/PRIVATE.txt", "canary\n") // of another workspace
	w.file("public.txt", "canary\n")
	for tool, args := range map[string]a{"ls": {}, "glob": {"pattern": "**"}, "grep": {"pattern": "canary"}} {
		if text := w.call(tool, args).Text; strings.Contains(text, "PRIVATE") || !strings.Contains(text, "public.txt") {
			t.Errorf("%s shows %q", tool, text)
		}
	}
}

// A link that leads to itself is an error of every tool, and no tool leaves a file open.
func TestLinksThatLeadNowhere(t *testing.T) {
	defer debug.SetGCPercent(debug.SetGCPercent(-1)) // it would close what was forgotten
	w := newWorld(t)
	w.link("loop", "loop")
	w.link(filepath.Join("loop", "x"), "into")
	w.file("a.txt", "one\n")
	w.call("read", a{"path": "a.txt"})
	before := descriptors(t)

	for _, path := range []string{"loop", "into", "loop/x"} {
		for tool, args := range map[string]a{"read": {}, "write": {"content": "x"}, "edit": {"old": "x", "new": "y"}, "ls": {},
			"grep": {"pattern": "x"}, "glob": {"pattern": "*"}} {
			args["path"] = path
			if res := w.call(tool, args); res.Status != tools.Failed && res.Status != tools.Denied {
				t.Errorf("%s %s: %q %s", tool, path, res.Status, res.Text)
			}
		}
		w.call("apply_patch", patchOf("*** Update File: a.txt", "-one", "+1", "*** Delete File: "+path))
		w.call("apply_patch", patchOf("*** Add File: "+path, "+one"))
	}

	w.want(w.call("apply_patch", patchOf("*** Update File: a.txt", "*** Move to: b.txt", "-one", "+1")), tools.OK)
	w.want(w.call("read", a{"path": "none"}), tools.Failed)
	w.want(w.call("ls", a{}), tools.OK)
	w.file("one/two/three/f.txt", "x")
	w.want(w.call("read", a{"path": "one/two/three/f.txt"}), tools.OK)
	w.want(w.call("ls", a{"path": "one/two"}), tools.OK)
	w.file(w.outside+"/f.txt", "x")
	w.unasked("read", a{"path": w.outside + "/f.txt"})
	if after := descriptors(t); after != before {
		t.Errorf("%d files are left open", after-before)
	}
}

func descriptors(t *testing.T) int {
	t.Helper()
	entries, err := os.ReadDir("/dev/fd")
	if err != nil {
		t.Skip(err)
	}
	return len(entries)
}

// A search looks at so many names, and says that it stopped.
func TestASearchLooksAtSoManyNames(t *testing.T) {
	w := newWorld(t)
	w.file("a.txt", "hit\n")
	r := w.tools["grep"].(reading[grepArgs]).base.reach(tools.Call{Agent: agent, Access: w.access})
	p, err := r.locate(".", false)
	must(t, err)
	defer p.close()
	many := &walker{ctx: t.Context(), reach: r, visits: maxVisits, visit: func(v visit) error { return errors.New(v.rel) }}
	if err := many.folder(p.dir, p.real, "", nil, 0); !errors.Is(err, errEnough) {
		t.Errorf("behind the bound: %v", err)
	}
	if full, err := r.walk(t.Context(), p, true, func(visit) error { return errEnough }); !full || err != nil {
		t.Errorf("enough was seen: %v, %v", full, err)
	}
	g := &grepper{}
	if text := g.text(false); !strings.Contains(text, "[no match]") || !strings.Contains(text, stoppedEarly) {
		t.Errorf("it says %q", text)
	}
}

// A file that grows while it is read is not cut, and one of just the size that is allowed is read whole.
func TestAFileThatGrowsWhileItIsRead(t *testing.T) {
	w := newWorld(t)
	path := w.file("f", "0123456789")
	r := w.tools["read"].(reading[readArgs]).base.reach(tools.Call{Agent: agent, Access: w.access})
	p, err := r.locate("f", false)
	must(t, err)
	defer p.close()
	f, err := os.Open(path)
	must(t, err)
	defer f.Close()
	for limit, want := range map[int64]string{10: "0123456789", 9: ""} {
		if data, err := allOf(f, "f", limit); string(data) != want || (err == nil) != (want != "") {
			t.Errorf("of at most %d: %q, %v", limit, data, err)
		}
	}
	if data, err := readAll(p, "f", 10); string(data) != "0123456789" || err != nil {
		t.Errorf("%q, %v", data, err)
	}
	must(t, os.WriteFile(path, []byte("0123456789+"), 0o600))
	if data, err := readAll(p, "f", 10); err == nil || !strings.Contains(err.Error(), "growing") {
		t.Errorf("it grew: %q, %v", data, err)
	}
	must(t, os.Remove(path))
	if data, err := readAll(p, "f", 10); err == nil || data != nil {
		t.Errorf("it is gone: %q, %v", data, err)
	}
}

// What is looked at is kept where that is wanted, and what cannot be kept is not shown as if it were.
func TestWhatIsLookedAtIsKept(t *testing.T) {
	w := newWorld(t)
	var why error
	o := Options{Data: filepath.Join(w.ws, ".daycare"), Home: w.home, Folders: w.folders,
		Keep: func(name, kind string, data []byte) (message.File, error) {
			return message.File{ID: "kept", Name: name}, why
		}}
	for _, tool := range append(New(o), NewSend(o, func(context.Context, tools.Call, string, message.File) error { return nil })) {
		w.tools[tool.Spec().Name] = tool
	}
	w.file("a.png", "\x89PNG\r\n\x1a\n")
	w.file("a.pdf", somePDF(1, "x"))
	for _, name := range []string{"a.png", "a.pdf"} {
		if res := w.call("read", a{"path": name}); len(res.Blocks) != 1 || res.Blocks[0].File.ID != "kept" {
			t.Errorf("%s: %+v", name, res)
		}
	}
	why = errors.New("the disk is full")
	for _, name := range []string{"a.png", "a.pdf"} {
		w.want(w.call("read", a{"path": name}), tools.Failed, "keep "+name+": the disk is full")
		w.want(w.call("send_file", a{"path": name}), tools.Failed, "keep "+name+": the disk is full")
	}
}

// Without a home in the options it is the user's: its secrets are as far away.
func TestTheHomeIsTheUsers(t *testing.T) {
	w := newWorld(t)
	t.Setenv("HOME", w.home)
	for _, tool := range New(Options{Data: filepath.Join(w.ws, ".daycare"), Folders: w.folders}) {
		w.tools[tool.Spec().Name] = tool
	}
	w.file(w.home+"/.ssh/id", "key")
	w.file(w.home+"/notes.txt", "note")
	w.access.ReadDirs = append(w.access.ReadDirs, w.home)
	w.want(w.call("read", a{"path": "~/notes.txt"}), tools.OK, "note")
	w.want(w.call("read", a{"path": "~/.ssh/id"}), tools.Denied)
}

// The data of daycare are out of reach by whatever name they have.
func TestDataOfAnotherName(t *testing.T) {
	w := newWorld(t)
	for _, tool := range New(Options{Data: filepath.Join(w.ws, "data"), Home: w.home, Folders: w.folders}) {
		w.tools[tool.Spec().Name] = tool
	}
	w.file("data/auth.json", "key")
	w.want(w.call("read", a{"path": "data/auth.json"}), tools.Denied, "never open")
	w.want(w.call("write", a{"path": "data/new", "content": "x"}), tools.Denied, "never open")
	w.want(w.call("write", a{"path": "new", "content": "x"}), tools.OK)
}
