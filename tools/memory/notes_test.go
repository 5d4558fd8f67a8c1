package memory

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"daycare/engine/crash/crashtest"
	"daycare/tools"
)

// A search shows six passages, or as many as are asked for, up to twenty.
func TestHowManyHitsAreShown(t *testing.T) {
	h := newHand(t, nil)
	for n := range 30 {
		h.put(fmt.Sprintf("n%02d.md", n), "boiler")
	}
	for limit, want := range map[float64]int{0: 6, 0.5: 6, -3: 6, 1: 1, 7: 7, 20: 20, 25: 20} {
		text, err := search(newStore(h.dir), searchArgs{"boiler", limit})
		if got := strings.Count(text, "boiler"); got != want || err != nil {
			t.Errorf("with the limit %v %d are shown, want %d, %v", limit, got, want, err)
		}
	}
	if _, err := search(newStore(h.dir), searchArgs{Query: "?!"}); err == nil {
		t.Error("a question without words is no error")
	}
	if text, err := search(newStore(h.dir), searchArgs{Query: "zebra"}); text != "[nothing is noted with these words]" || err != nil {
		t.Errorf("nothing found says %q, %v", text, err)
	}
}

// A hit is shown whole up to 600 bytes.
func TestALongHitIsCut(t *testing.T) {
	if got := cut(strings.Repeat("x", maxShown), maxShown); len(got) != maxShown {
		t.Errorf("%d bytes are cut to %d", maxShown, len(got))
	}
	if got := cut(strings.Repeat("x", maxShown-1)+"é", maxShown); got != strings.Repeat("x", maxShown-1)+" …" {
		t.Errorf("cut is %q", got)
	}
}

// A note is read from a line on, 500 lines at a time, and it is said what was left out.
func TestWhichLinesOfANoteAreRead(t *testing.T) {
	var note strings.Builder
	for n := range 600 {
		fmt.Fprintf(&note, "l%d\n", n+1)
	}
	h := newHand(t, map[string]string{"a.md": note.String(), "empty.md": ""})
	for _, tt := range []struct {
		from, lines           float64
		first, last, leftover string
	}{
		{0, 0, "1\tl1", "500\tl500", "[lines 1-500 of 600]"},
		{-5, 1000, "1\tl1", "500\tl500", "[lines 1-500 of 600]"},
		{3, 2, "3\tl3", "4\tl4", "[lines 3-4 of 600]"},
		{598, 2, "598\tl598", "599\tl599", "[lines 598-599 of 600]"},
		{599, 2, "599\tl599", "600\tl600", ""},
		{600, 1, "600\tl600", "600\tl600", ""},
		{101, 0, "101\tl101", "600\tl600", ""},
	} {
		text, err := get(newStore(h.dir), getArgs{"a", tt.from, tt.lines})
		lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
		leftover := ""
		if strings.HasPrefix(lines[len(lines)-1], "[") {
			lines, leftover = lines[:len(lines)-1], lines[len(lines)-1]
		}
		if err != nil || lines[0] != tt.first || lines[len(lines)-1] != tt.last || leftover != tt.leftover {
			t.Errorf("%v lines from %v: %q to %q, %q, %v", tt.lines, tt.from, lines[0], lines[len(lines)-1], leftover, err)
		}
	}
	if _, err := get(newStore(h.dir), getArgs{File: "a", From: 601}); err == nil || err.Error() != "a.md has 600 lines" {
		t.Errorf("behind its end: %v", err)
	}
	if text, err := get(newStore(h.dir), getArgs{File: "empty"}); text != "[empty.md is empty]" || err != nil {
		t.Errorf("of an empty note: %q, %v", text, err)
	}
	for _, dir := range []string{h.dir, h.dir + "/none"} {
		if text, err := get(newStore(dir), getArgs{File: "none"}); err == nil ||
			!strings.HasPrefix(err.Error(), "there is no note none.md") {
			t.Errorf("of no note: %q, %v", text, err)
		}
	}
}

// A note is added to what stands in its file, which only replace takes away, and the model
// is told where it stands.
func TestWhereANoteIsWritten(t *testing.T) {
	const today = "daily/2026-11-20.md"
	for name, tt := range map[string]struct {
		before string // of the file
		args   writeArgs
		file   string
		after  string
		says   string
	}{
		"today":                 {"", writeArgs{Text: " one\ntwo "}, today, "- 12:30 one\n  two\n", "Noted in " + today + ":1."},
		"today, beside another": {"- x\n", writeArgs{Text: "one"}, today, "- x\n- 12:30 one\n", "Noted in " + today + ":2."},
		"a day is not replaced": {"- x\n", writeArgs{Text: "one", Replace: true}, today, "- x\n- 12:30 one\n",
			"Noted in " + today + ":2."},
		"a file": {"", writeArgs{Text: "a\nb", File: "e/anna"}, "e/anna.md", "a\nb\n", "Noted in e/anna.md:1."},
		"a file with something": {"a\n\n\n", writeArgs{Text: "b\nc", File: "e/anna.md"}, "e/anna.md", "a\nb\nc\n",
			"Noted in e/anna.md:2."},
		"a file of empty lines": {"\n \n", writeArgs{Text: "b", File: "e/anna"}, "e/anna.md", "b\n", "Noted in e/anna.md:1."},
		"a file, replaced": {"a\nb\nc\n", writeArgs{Text: "d", File: "e", Replace: true}, "e.md", "d\n",
			"Replaced e.md: 1 lines instead of 3."},
		"nothing to be replaced":  {"", writeArgs{Text: "d", File: "e", Replace: true}, "e.md", "d\n", "Noted in e.md:1."},
		"a file that is not UTF8": {"a\xff\n", writeArgs{Text: "d\xff", File: "e"}, "e.md", "a\uFFFD\nd\uFFFD\n", "Noted in e.md:2."},
	} {
		h := newHand(t, nil)
		if tt.before != "" {
			h.put(tt.file, tt.before)
		}
		says, err := write(newStore(h.dir), tt.args, noon)
		data, _ := os.ReadFile(filepath.Join(h.dir, tt.file))
		if err != nil || says != tt.says || string(data) != tt.after {
			t.Errorf("%s: %q says %q, %v; want %q and %q", name, data, says, err, tt.after, tt.says)
		}
	}
}

// A file does not grow beyond what is searched.
func TestANoteThatWouldBeTooLongIsRefused(t *testing.T) {
	h := newHand(t, nil)
	s := newStore(h.dir)
	if _, err := write(s, writeArgs{Text: strings.Repeat("x", maxFile-1), File: "a"}, noon); err != nil {
		t.Error(err)
	}
	if _, err := write(s, writeArgs{Text: "x", File: "a"}, noon); err == nil || !strings.Contains(err.Error(), "begin another file") {
		t.Errorf("too long: %v", err)
	}
	if info, err := os.Stat(h.dir + "/a.md"); err != nil || info.Size() != maxFile {
		t.Errorf("the file is %v, %v", info, err)
	}
}

// What someone else saves while a note is written is not lost: it is written into their
// version, and given up only where that changes all the time.
func TestANoteIsWrittenIntoTheNewestVersion(t *testing.T) {
	for name, there := range map[string]bool{"a file": true, "a file that comes meanwhile": false} {
		for saves, fails := range map[int]bool{1: false, 4: false, 100: true} {
			h := newHand(t, nil)
			if there {
				h.put("a.md", "old\n")
			}
			n := 0
			_, after, err := newStore(h.dir).change("a.md", func(old string) string {
				if n++; n <= saves {
					h.put("a.md", fmt.Sprintf("version %d\n", n))
				}
				return old + "mine\n"
			})
			data, rerr := os.ReadFile(h.dir + "/a.md")
			want := fmt.Sprintf("version %d\nmine\n", saves)
			if fails {
				want = fmt.Sprintf("version %d\n", n)
			}
			if (err != nil) != fails || rerr != nil || string(data) != want || !fails && after != want {
				t.Errorf("%s, saved %d times: %q, %v; want %q", name, saves, data, err, want)
			}
		}
	}
}

// Notes are the Markdown files that users do not hide, not too far down.
func TestWhichFilesAreNotes(t *testing.T) {
	notes := map[string]string{}
	for _, name := range []string{"a.md", "sub/b.md", "dir.md/c.md", "1/2/3/4/5/d.md", // these are
		"a.txt", ".h.md", ".d/e.md", "f.md~", "x~/g.md", "1/2/3/4/5/6/i.md"} {
		notes[name] = "boiler"
	}
	h := newHand(t, notes)
	text, err := listed(newStore(h.dir), listArgs{})
	var got []string
	for line := range strings.Lines(text) {
		name, _, _ := strings.Cut(line, " (6 bytes, ")
		got = append(got, name)
	}
	if want := "1/2/3/4/5/d.md a.md dir.md/c.md sub/b.md"; err != nil || len(got) != 4 ||
		strings.Join(slices.Sorted(slices.Values(got)), " ") != want {
		t.Errorf("listed are %q, %v, want %s", got, err, want)
	}
}

// The newest notes are listed first, those of one folder if it is named, and 300 at most.
func TestNotesAreListedNewestFirst(t *testing.T) {
	h := newHand(t, map[string]string{"a.md": "x", "daily/b.md": "xx", "daily/c.md": "xxx", "dailyx.md": "y"})
	at := time.Date(2026, 11, 1, 12, 0, 0, 0, time.UTC)
	for name, hours := range map[string]int{"a.md": 3, "daily/b.md": 1, "daily/c.md": 2, "dailyx.md": 0} {
		when := at.Add(time.Duration(hours) * time.Hour)
		if err := os.Chtimes(filepath.Join(h.dir, name), when, when); err != nil {
			t.Fatal(err)
		}
	}
	const b, c = "daily/b.md (2 bytes, 2026-11-01)\n", "daily/c.md (3 bytes, 2026-11-01)\n"
	for folder, want := range map[string]string{
		"": "a.md (1 bytes, 2026-11-01)\n" + c + b + "dailyx.md (1 bytes, 2026-11-01)\n", "daily": c + b, "memory/daily/": c + b,
		"none": "[there are no notes here]",
	} {
		if text, err := listed(newStore(h.dir), listArgs{folder}); text != want || err != nil {
			t.Errorf("of %q is listed %q, %v; want %q", folder, text, err, want)
		}
	}
	for n := range maxListed {
		h.put(fmt.Sprintf("many/%d.md", n), "x")
	}
	for folder, want := range map[string]string{"many": "", "": "[the newest 300 of 304]\n"} {
		text, err := listed(newStore(h.dir), listArgs{folder})
		if _, rest, _ := strings.Cut(text, "["); err != nil || strings.Count(text, ".md") != maxListed ||
			rest != strings.TrimPrefix(want, "[") {
			t.Errorf("of %q %d are listed, %q, %v", folder, strings.Count(text, ".md"), rest, err)
		}
	}
}

// Names are taken as models write them, unless they lead somewhere else or are too long.
func TestWhichNamesANoteMayHave(t *testing.T) {
	x := func(n int) string { return strings.Repeat("x", n) }
	for name, want := range map[string]string{
		"a": "a.md", " memory/a.md ": "a.md", "a//b": "a/b.md", "a/b/c/d/e": "a/b/c/d/e.md", "a/b/c/d/e/f": "", "": "", ".": "",
		".a": "", "a/.b/c": "", "a\\b": "", "a:b": "", "a\tb": "", "/a": "", "../a": "", "\xff": "",
		x(97): x(97) + ".md", x(98): "", x(98) + "/a": x(98) + "/a.md", x(101) + "/a": "",
		x(95) + "/" + x(95) + "/" + x(5): x(95) + "/" + x(95) + "/" + x(5) + ".md",
		x(95) + "/" + x(95) + "/" + x(6): "",
	} {
		if got, err := fileName(name); got != want || (err != nil) != (want == "") {
			t.Errorf("%q is %q, %v, want %q", name, got, err, want)
		}
	}
}

// An edit counts even if the file looks as it did, as one does that is saved within a step of
// its clock; a file that did not change for a while is not read again.
func TestWhichNotesAreReadAgain(t *testing.T) {
	for age, want := range map[time.Duration]string{0: "pot", time.Hour: "mat"} {
		h := newHand(t, nil)
		at := time.Now().Add(-age)
		s := newStore(h.dir)
		for _, text := range []string{"mat", "pot"} {
			h.put("a.md", text)
			if err := os.Chtimes(h.dir+"/a.md", at, at); err != nil {
				t.Fatal(err)
			}
			if _, err := s.search("mat", 5); err != nil {
				t.Fatal(err)
			}
		}
		for _, word := range []string{"mat", "pot"} {
			if hits, err := s.search(word, 5); err != nil || (len(hits) == 1) != (word == want) {
				t.Errorf("a note saved %v ago: %s is found %d times, %v, want %s alone", age, word, len(hits), err, want)
			}
		}
	}
}

// A note that has become too long to be read is not found with what stood in it before.
func TestANoteThatBecameTooLongIsNotFound(t *testing.T) {
	h := newHand(t, map[string]string{"a.md": "the key is under the mat\n"})
	if got := h.found("mat"); len(got) != 1 {
		t.Fatal(got)
	}
	h.put("a.md", "the key is in the pot\n"+strings.Repeat("x", maxFile))
	if got := append(h.found("mat"), h.found("pot")...); got != nil {
		t.Errorf("found %v", got)
	}
	h.put("a.md", "the key is in the pot\n")
	if got := h.found("pot"); len(got) != 1 {
		t.Errorf("short again, it is not found")
	}
}

// Where the folder of notes is none, each tool says so.
func TestMemoryThatIsNoFolder(t *testing.T) {
	h := newHand(t, nil)
	if err := os.WriteFile(h.dir, []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, args := range map[string]map[string]any{"memory_search": {"query": "x"}, "memory_get": {"file": "a"},
		"memory_write": {"text": "x"}, "memory_list": {}} {
		if res := h.do(name, args); res.Status != tools.Failed {
			t.Errorf("%s: %q %s", name, res.Status, res.Text)
		}
	}
	h = newHand(t, map[string]string{"a.md": "x"})
	for _, file := range []string{"a.md/b", "memory/a.md/b/c"} {
		if res := h.do("memory_write", map[string]any{"text": "x", "file": file}); res.Status != tools.Failed {
			t.Errorf("a note below a note: %q %s", res.Status, res.Text)
		}
	}
	tool, _, _ := h.set.Get("memory_list")
	if res, err := tool.Run(t.Context(), tools.Call{}); err != nil || !strings.HasPrefix(res.Text, "a.md (") {
		t.Errorf("without arguments: %+v, %v", res, err)
	}
}

// What is noted is durable, with its folders: each step that fails is reported.
func TestANoteThatIsNotDurableIsNotNoted(t *testing.T) {
	crashtest.EachStepFails(t, "eio", func(t *testing.T) func() error {
		h := newHand(t, map[string]string{"a.md": "x"})
		return func() error {
			if res := h.do("memory_write", map[string]any{"text": "x", "file": "e/f/anna"}); res.Status == tools.Failed {
				return errors.New(res.Text)
			}
			return nil
		}
	})
}
