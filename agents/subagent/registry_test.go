package subagent

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"daycare/engine/finding"
	"daycare/tools"
)

const translator = `---
name: Translator
description: Translate a file.
tools: [read, write]
maxIterations: 4
temperature: 0.2
summarize: structured
inputSchema:
  type: object
  properties: { path: { type: string }, language: { type: string } }
  required: [path, language]
---
You translate into {{.language}}.
`

func TestParse(t *testing.T) {
	d, found := Parse("t.md", []byte(translator))
	if len(found) > 0 {
		t.Fatalf("findings: %v", found)
	}
	if d.Name != "Translator" || d.MaxIterations != 4 || *d.Temperature != 0.2 || d.Summarize != Structured || len(d.Tools) != 2 {
		t.Errorf("definition is %+v", d)
	}
}

func TestFindingsHaveTheirPlace(t *testing.T) {
	for name, tt := range map[string]struct{ text, want string }{
		"no keys":     {"You translate.", "x.md:1:1 the file must begin"},
		"no end":      {"---\nname: A\n", "x.md:1:1 the first line is ---, but a second --- after the keys is missing"},
		"yaml":        {"---\nname: A\ndescription: b: c\n---\nx", "x.md:3 not YAML"},
		"no name":     {"---\ndescription: d\n---\nx", "x.md:2:1 name is missing"},
		"name":        {"---\ndescription: d\nname: a b\n---\nx", "x.md:3:7 name: found \"a b\", allowed: up to 64 letters"},
		"description": {"---\nname: A\n---\nx", "x.md:2:1 description is missing"},
		"rounds": {"---\nname: A\ndescription: d\nmaxIterations: 1000\n---\nx",
			"x.md:4:16 maxIterations: found 1000, allowed: a whole number from 1 to 100"},
		"kind": {"---\nname: A\ndescription: d\ntools: read\nmaxIterations: many\n---\nx",
			"x.md:4:8 tools: found the text \"read\", allowed: a list"},
		"summarize": {"---\nname: A\ndescription: d\nsummarize: short\n---\nx",
			"x.md:4:12 summarize: found the text \"short\", allowed: verbatim, structured"},
		"schema":        {"---\nname: A\ndescription: d\ninputSchema: { type: array }\n---\nx", "x.md:4:14 inputSchema"},
		"template":      {"---\nname: A\ndescription: d\n---\n{{.x", "x.md the text is not a template"},
		"empty":         {"---\nname: A\ndescription: \"  \"\n---\nx", "x.md:3:14 description is empty: the calling model chooses by it"},
		"no text":       {"---\nname: A\ndescription: d\n---\n", "x.md there is no text"},
		"unknown":       {"---\nname: A\ndescription: d\ncolour: red\n---\nx", "x.md:4:1 colour is unknown and ignored"},
		"windows lines": {"---\r\nname: A\r\ndescription: d\r\ncolour: red\r\n---\r\nx", "x.md:4:1 colour is unknown and ignored"},
	} {
		_, found := Parse("x.md", []byte(tt.text))
		var got []string
		for _, f := range found {
			got = append(got, f.Place()+" "+f.Reason)
		}
		if len(got) == 0 || !strings.HasPrefix(got[0], tt.want) {
			t.Errorf("%s: findings %q, want one that begins with %q", name, got, tt.want)
		}
	}
}

// The program's own are held to all that those of users are, but not at each start.
func TestBuiltIns(t *testing.T) {
	names, err := fs.Glob(builtin, "builtin/*.md")
	if err != nil || len(names) < 4 {
		t.Fatalf("built in are %q, %v", names, err)
	}
	for _, name := range names {
		data, err := builtin.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if _, found := Parse(name, data); len(found) > 0 {
			t.Errorf("%s: %v", name, found)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(translator))
	f.Add([]byte("---\n---\n"))
	f.Add([]byte("---\nname: A\ndescription: d\n---\n{{range .a}}{{.}}{{end}}"))
	f.Fuzz(func(t *testing.T, data []byte) {
		d, found := Parse("x.md", data)
		if finding.Join(found) != nil {
			return
		}
		if _, err := tools.NewChecker(tools.Spec{Name: d.Name, Schema: d.InputSchema}); err != nil || d.body == nil || d.Name == "" {
			t.Errorf("%q has no findings and is not usable: %+v, its schema: %v", data, d, err)
		}
	})
}

// folder is a Registry on a folder of the test, with what it reported.
type folder struct {
	*Registry
	t   *testing.T
	dir string
	n   int
	got []string
}

func newFolder(t *testing.T) *folder {
	f := &folder{t: t, dir: t.TempDir()}
	problems := finding.NewProblems(func(_ string, one finding.Finding) { f.got = append(f.got, one.ID) },
		func(string, string) { f.got = append(f.got, "good again") })
	f.Registry = NewRegistry(f.dir, func(name string) bool { return name == "read" }, func(path string, found []finding.Finding) {
		problems.Set("", path, found)
	})
	return f
}

func (f *folder) write(name, text string) {
	f.t.Helper()
	path := filepath.Join(f.dir, name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		f.t.Fatal(err)
	}
	// Two saves within one tick of the file system's clock must differ all the same.
	f.n++
	at := time.Now().Add(time.Duration(f.n)*time.Second - time.Hour) // nothing waits for the rest of a file that is so old
	if err := os.Chtimes(path, at, at); err != nil {
		f.t.Fatal(err)
	}
}

func (f *folder) names() (names []string) {
	list, _ := f.List()
	for _, d := range list {
		names = append(names, d.Name)
	}
	return names
}

func TestBuiltIn(t *testing.T) {
	f := newFolder(t)
	want := map[string]string{"CodeReview": "[read glob grep] 6", "CodeSearch": "[read glob grep ls] 8",
		"Planner": "[read glob grep ls] 6", "sessions_spawn": "[read grep glob ls memory_search memory_get] 15"}
	got := map[string]string{}
	list, _ := f.List()
	for _, d := range list {
		got[d.Name] = fmt.Sprintf("%v %d", d.Tools, d.MaxIterations)
		if len(d.Description) > 300 {
			t.Errorf("%s: the description has %d characters; it is sent with each call", d.Name, len(d.Description))
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("built in (-want +got):\n%s", diff)
	}
}

func TestAnEditCountsAtTheNextUse(t *testing.T) {
	f := newFolder(t)
	_, before := f.List()
	if _, same := f.List(); same != before {
		t.Errorf("version went from %d to %d without an edit", before, same)
	}
	f.write("t.md", translator)
	if d, ok := f.Get("Translator"); !ok || d.MaxIterations != 4 {
		t.Fatalf("a new file: %+v, found %v", d, ok)
	}
	f.write("t.md", strings.Replace(translator, "maxIterations: 4", "maxIterations: 5", 1))
	if d, _ := f.Get("Translator"); d.MaxIterations != 5 {
		t.Errorf("an edit: %d rounds, want 5", d.MaxIterations)
	}
	f.write("t.md", "---\nbroken")
	if d, ok := f.Get("Translator"); !ok || d.MaxIterations != 5 {
		t.Errorf("a broken edit: %+v, %v; the version before must stay in force", d, ok)
	}
	f.List()
	if diff := cmp.Diff([]string{"subagent-syntax"}, f.got); diff != "" {
		t.Errorf("reported (-want +got):\n%s", diff)
	}
	if err := os.Remove(filepath.Join(f.dir, "t.md")); err != nil {
		t.Fatal(err)
	}
	if _, ok := f.Get("Translator"); ok {
		t.Error("a removed file is still in force")
	}
}

func TestAFileReplacesABuiltIn(t *testing.T) {
	f := newFolder(t)
	f.write("mine.md", "---\nname: CodeSearch\ndescription: mine\ntools: [grep]\n---\nSearch.")
	if d, _ := f.Get("CodeSearch"); d.Description != "mine" {
		t.Errorf("CodeSearch is %+v", d)
	}
	f.write("other.md", "---\nname: CodeSearch\ndescription: another\n---\nSearch.")
	if d, _ := f.Get("CodeSearch"); d.Description != "mine" || !cmp.Equal(f.got, []string{"subagent-duplicate"}) {
		t.Errorf("two files of one name: %q, reported %v", d.Description, f.got)
	}
}

func TestNamesThatAreNotForSubAgents(t *testing.T) {
	for _, bad := range []string{"name: read\ndescription: d", "name: A\ndescription: d\ntools: [spawn]",
		"name: A\ndescription: d\ntools: [cron_run]",
		"name: A\ndescription: d\ntools: [CodeSearch]", "name: A\ndescription: d\ntools: [A]",
		"name: A\ndescription: d\ntools: [message]"} {
		f := newFolder(t)
		f.write("a.md", "---\n"+bad+"\n---\nx")
		if names := f.names(); len(names) != 4 || !cmp.Equal(f.got, []string{"subagent-invalid"}) {
			t.Errorf("%q is in force (%v), reported %v", bad, names, f.got)
		}
	}
}

// Definitions are the Markdown files that nobody hides; one that did not change is not read
// again, and what is wrong is reported from the start.
func TestWhichFilesAreDefinitions(t *testing.T) {
	f := newFolder(t)
	if err := os.Mkdir(filepath.Join(f.dir, "folder.md"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(os.Symlink("nowhere", filepath.Join(f.dir, "gone.md")),
		os.Symlink("folder.md", filepath.Join(f.dir, "linked.md"))); err != nil {
		t.Fatal(err)
	}
	for name, called := range map[string]string{"a.md": "A", ".b.md": "B", "c.txt": "C", "d.md~": "D"} {
		f.write(name, "---\nname: "+called+"\ndescription: d\n---\nx")
	}
	if got := strings.Join(f.names(), " "); got != "A CodeReview CodeSearch Planner sessions_spawn" || len(f.got) > 0 {
		t.Errorf("definitions are %s, reported %v", got, f.got)
	}
	_, before := f.List()
	if _, after := f.List(); after != before {
		t.Errorf("without an edit the version goes from %d to %d", before, after)
	}
	if _, ok := f.Get("None"); ok {
		t.Error("there is a definition of no name")
	}
	f.write("a.md", "---\nname: A\n---\nx")
	told := 0
	again := NewRegistry(f.dir, func(string) bool { return false }, func(_ string, found []finding.Finding) { told += len(found) })
	if again.List(); told != 1 {
		t.Errorf("at the first use %d findings are reported, want 1", told)
	}
}

// A file that was saved a moment ago may be half saved and is read again for a second; an
// older one is broken.
func TestHowLongABrokenDefinitionIsWaitedFor(t *testing.T) {
	const good = "---\nname: A\ndescription: d\n---\nx"
	for name, tt := range map[string]struct {
		age, saved time.Duration // how long ago it was saved, after how long again; 0: it is not
		took       time.Duration
		found      int
	}{
		"saved just now":     {0, 0, time.Second, 1},
		"saved long ago":     {time.Hour, 0, 0, 1},
		"saved in two steps": {0, 250 * time.Millisecond, 500 * time.Millisecond, 0},
	} {
		synctest.Test(t, func(t *testing.T) {
			dir := t.TempDir()
			path := filepath.Join(dir, "a.md")
			save := func(text string, at time.Time) {
				if err := errors.Join(os.WriteFile(path, []byte(text), 0o600), os.Chtimes(path, at, at)); err != nil {
					t.Error(err)
				}
			}
			found := 0
			r := NewRegistry(dir, func(string) bool { return false }, func(_ string, f []finding.Finding) { found += len(f) })
			r.List()
			save("---\nname: A\n", time.Now().Add(-tt.age))
			if tt.saved > 0 {
				time.AfterFunc(tt.saved, func() { save(good, time.Now()) })
			}
			begin := time.Now()
			_, version := r.List()
			if took := time.Since(begin); took != tt.took || found != tt.found {
				t.Errorf("%s: it took %v with %d findings, want %v and %d", name, took, found, tt.took, tt.found)
			}
			if _, again := r.List(); again != version {
				t.Errorf("%s: it is read again", name)
			}
		})
	}
}

// A file that is too large to be a definition is reported and not used.
func TestADefinitionThatCannotBeRead(t *testing.T) {
	f := newFolder(t)
	f.write("a.md", "---\nname: A\ndescription: d\n---\n"+strings.Repeat("x", maxDefinition))
	if _, ok := f.Get("A"); ok || !cmp.Equal(f.got, []string{"subagent-unreadable"}) {
		t.Errorf("it is used: %v, reported %v", ok, f.got)
	}
}

// Of many files with one name the first one's is used, and each other is told of.
func TestTheFirstFileOfANameIsUsed(t *testing.T) {
	f := newFolder(t)
	for n := range 9 {
		f.write(fmt.Sprintf("%d.md", n), fmt.Sprintf("---\nname: A\ndescription: of %d\n---\nx", n))
	}
	if d, ok := f.Get("A"); !ok || d.Description != "of 0" || len(f.got) != 8 {
		t.Errorf("used is %q, reported %v", d.Description, f.got)
	}
}

// Only what broke a definition says that the version before stays active.
func TestTheRemedyOfABrokenDefinition(t *testing.T) {
	for _, before := range []bool{false, true} {
		dir := t.TempDir()
		remedies := map[finding.Severity]string{}
		r := NewRegistry(dir, func(string) bool { return false }, func(_ string, found []finding.Finding) {
			for _, f := range found {
				remedies[f.Severity] = f.Remedy
			}
		})
		path, old := filepath.Join(dir, "a.md"), time.Now().Add(-time.Hour)
		for _, text := range []string{"---\nname: A\ndescription: d\n---\nx", "---\nname: A\ncolour: red\n---\nx"} {
			if !before && strings.Contains(text, "description") {
				continue
			}
			if err := errors.Join(os.WriteFile(path, []byte(text), 0o600), os.Chtimes(path, old, old)); err != nil {
				t.Fatal(err)
			}
			r.List()
			old = old.Add(time.Minute)
		}
		if stays := strings.Contains(remedies[finding.Error], "the previous version stays active"); stays != before {
			t.Errorf("with a version before: %v, the remedy is %q", before, remedies[finding.Error])
		}
		if warning, told := remedies[finding.Warning]; !told || strings.Contains(warning, "stays active") {
			t.Errorf("the remedy of a warning is %q (%v)", warning, told)
		}
	}
}

// A folder that cannot be read for a while takes nothing away, and a file that goes away is
// withdrawn.
func TestAFolderThatCannotBeRead(t *testing.T) {
	f := newFolder(t)
	f.write("a.md", "---\nname: A\ndescription: d\n---\nx")
	f.write("b.md", "broken")
	if _, ok := f.Get("A"); !ok || len(f.got) != 1 {
		t.Fatalf("reported %v", f.got)
	}
	if err := errors.Join(os.Rename(f.dir, f.dir+"-away"), os.WriteFile(f.dir, nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	_, before := f.List()
	if _, ok := f.Get("A"); !ok {
		t.Error("with a file in the place of the folder the definitions are gone")
	}
	if _, after := f.List(); after != before {
		t.Errorf("what cannot be read has changed the version from %d to %d", before, after)
	}
	if err := errors.Join(os.Remove(f.dir), os.Rename(f.dir+"-away", f.dir), os.Remove(filepath.Join(f.dir, "b.md"))); err != nil {
		t.Fatal(err)
	}
	if _, ok := f.Get("A"); !ok || len(f.got) != 2 || f.got[1] != "good again" {
		t.Errorf("reported %v", f.got)
	}
	if err := os.RemoveAll(f.dir); err != nil {
		t.Fatal(err)
	}
	if _, ok := f.Get("A"); ok {
		t.Error("without the folder a definition is in force")
	}
}
