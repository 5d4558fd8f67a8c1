package skills

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"daycare/engine/finding"
	"daycare/tools"
)

// skillText is a SKILL.md that is good in a folder of its name.
func skillText(name, description, body string) string {
	return "---\nname: " + name + "\ndescription: " + description + "\n---\n" + body
}

// What a skill says is as long as the specification allows, to the letter.
func TestASkillMayBeAsLongAsTheSpecificationSays(t *testing.T) {
	of := func(n int) string { return strings.Repeat("é", n) }
	for _, tt := range []struct {
		name, description, compatibility int
		wrong                            string
	}{
		{maxName, maxDescription, maxCompatibility, ""}, {maxName + 1, 1, 1, "skill-name"},
		{1, maxDescription + 1, 1, "skill-description"}, {1, 1, maxCompatibility + 1, "skill-compatibility"},
	} {
		text := "---\nname: " + of(tt.name) + "\ndescription: " + of(tt.description) + "\ncompatibility: " +
			of(tt.compatibility) + "\n---\n"
		_, found, ok := Parse("/skills/"+of(tt.name)+"/SKILL.md", []byte(text))
		if wrong := ids(found); !ok || wrong != tt.wrong {
			t.Errorf("%+v: ok %v, found %q, want %q", tt, ok, wrong, tt.wrong)
		}
	}
}

func ids(found []finding.Finding) string {
	var list []string
	for _, f := range found {
		list = append(list, f.ID)
	}
	return strings.Join(list, " ")
}

// All that a SKILL.md says is in the skill, its descriptions as one line.
func TestWhatASkillSays(t *testing.T) {
	s, found, ok := Parse("/skills/tea/SKILL.md", []byte("---\nname: tea\ndescription: >\n  Makes\n  tea.\nlicense: MIT\n"+
		"compatibility: needs water\nallowed-tools: Read\nmetadata:\n  author: me\n---\nBoil \xff."))
	s.SHA256, s.source = "", source{}
	want := Skill{Name: "tea", Description: "Makes tea.", License: "MIT", Compatibility: "needs water", AllowedTools: "Read",
		Metadata: map[string]string{"author": "me"}, Body: "Boil \uFFFD.", Dir: "/skills/tea", File: "/skills/tea/SKILL.md"}
	if diff := cmp.Diff(want, s, cmp.AllowUnexported(Skill{}, source{})); diff != "" || !ok || len(found) > 0 {
		t.Errorf("ok %v, found %v (-want +got):\n%s", ok, found, diff)
	}
}

// A list of findings by the name of their folder, as a Set reports them.
type reported map[string][]finding.Finding

func (r reported) take(path string, found []finding.Finding) {
	name := filepath.Base(filepath.Dir(path))
	r[name] = append(r[name], found...)
	if len(found) == 0 {
		r[name] = nil
	}
}

// own are the skills of a list that are not built in.
func own(list []Skill) (names []string) {
	for _, s := range list {
		if s.Dir != "" {
			names = append(names, s.Name)
		}
	}
	return names
}

// Skills are folders with a SKILL.md that nobody hides, by whatever case of its name; what
// keeps one from being read is reported, and what is not a skill is not.
func TestWhichFoldersAreSkills(t *testing.T) {
	dir := t.TempDir()
	put(t, dir+"/upper/SKILL.md", skillText("upper", "d", ""))
	put(t, dir+"/lower/skill.md", skillText("lower", "d", ""))
	put(t, dir+"/both/skill.md", skillText("both", "lower", ""))
	put(t, dir+"/both/SKILL.md", skillText("both", "upper", ""))
	put(t, dir+"/.hidden/SKILL.md", skillText("hidden", "d", ""))
	put(t, dir+"/readme/README.md", "no skill")
	put(t, dir+"/file", "no skill")
	if err := os.Symlink("/nonexistent", dir+"/dangling"); err != nil {
		t.Fatal(err)
	}
	told := reported{}
	all := func(string) bool { return true }
	for range 2 {
		list := NewSet(func() []Folder { return []Folder{{Root: dir, Path: ".", Links: all}} }, nil, told.take).List()
		if got := strings.Join(own(list), " "); got != "both lower upper" {
			t.Errorf("skills are %s", got)
		}
		if i := named(list, "both"); list[i].Description != "upper" || filepath.Base(list[i].File) != "SKILL.md" {
			t.Errorf("of two files is used %+v", list[i])
		}
		if i := named(list, "lower"); list[i].File != dir+"/lower/skill.md" {
			t.Errorf("its file is %s", list[i].File)
		}
		if len(told) != 1 || ids(told["dangling"]) != "skill-unreadable" {
			t.Errorf("told %v, want the link that leads nowhere", told)
		}
		clear(told)
	}
}

// Where the folder of skills is not a folder that is reported with its name.
func TestAFolderOfSkillsThatIsNone(t *testing.T) {
	ws := t.TempDir()
	put(t, ws+"/skills", "a file")
	var told []string
	NewSet(func() []Folder { return []Folder{{Root: ws, Path: "skills"}, {Root: ws, Path: "none"}} }, nil,
		func(path string, found []finding.Finding) { told = append(told, path+" "+ids(found)) }).List()
	if want := []string{ws + "/skills skill-unreadable"}; !slices.Equal(told, want) {
		t.Errorf("told %q, want %q", told, want)
	}
}

// What an agent may have put there is reported with what to do; a plain mistake is not
// taken for that.
func TestTheRemedyForALink(t *testing.T) {
	dir, elsewhere := t.TempDir(), t.TempDir()
	put(t, elsewhere+"/SKILL.md", skillText("x", "d", ""))
	mkdir(t, dir+"/names")
	mkdir(t, dir+"/folder")
	mkdir(t, dir+"/folder/SKILL.md")
	if err := errors.Join(os.Symlink(elsewhere, dir+"/link"), os.Link(elsewhere+"/SKILL.md", dir+"/names/SKILL.md")); err != nil {
		t.Fatal(err)
	}
	told := reported{}
	NewSet(at(dir), nil, told.take).List()
	for name, remedy := range map[string]bool{"link": true, "names": true, "folder": false} {
		if f := told[name]; len(f) != 1 || f[0].Severity != finding.Error || (f[0].Remedy != "") != remedy {
			t.Errorf("%s: told %+v, want a remedy: %v", name, f, remedy)
		}
	}
}

// Of two skills of a name the first folder's is used and the other one is said to be hidden,
// once, until it is not.
func TestAHiddenSkillComesForward(t *testing.T) {
	a, b := t.TempDir(), t.TempDir()
	put(t, a+"/tea/SKILL.md", skillText("tea", "mine", ""))
	put(t, b+"/tea/SKILL.md", skillText("tea", "theirs", ""))
	put(t, b+"/skill-writing/SKILL.md", skillText("skill-writing", "theirs", ""))
	type report struct{ path, ids string }
	var told []report
	set := NewSet(at(a, b), nil, func(path string, found []finding.Finding) { told = append(told, report{path, ids(found)}) })
	for _, step := range []struct {
		do   func()
		says string
		told []report
	}{
		{func() {}, "mine", []report{{b + "/tea/SKILL.md", "skill-hidden"}}},
		{func() {}, "mine", nil},
		{func() { remove(t, a+"/tea/SKILL.md") }, "theirs", []report{{b + "/tea/SKILL.md", ""}}},
		{func() { put(t, a+"/tea/SKILL.md", skillText("tea", "mine", "")) }, "mine", []report{{b + "/tea/SKILL.md", "skill-hidden"}}},
		{func() { remove(t, b+"/tea/SKILL.md") }, "mine", []report{{b + "/tea/SKILL.md", ""}}},
		{func() { remove(t, a+"/tea/SKILL.md") }, "", nil}, // nothing was told of it
	} {
		told = nil
		step.do()
		list, says := set.List(), ""
		if i := named(list, "tea"); i >= 0 {
			says = list[i].Description
		}
		if says != step.says || !slices.Equal(told, step.told) {
			t.Errorf("it says %q, told %v; want %q, %v", says, told, step.says, step.told)
		}
		if i := named(list, "skill-writing"); list[i].Description != "theirs" || len(own(list)) != len(list) {
			t.Errorf("the built-in one is used beside another of its name: %+v", list)
		}
	}
}

// A file that was broken for a while is broken at once; one that was saved a moment ago may
// be half saved and is read again, three times.
func TestHowLongABrokenSkillIsWaitedFor(t *testing.T) {
	for age, want := range map[time.Duration]time.Duration{0: 700 * time.Millisecond, settled: 0, time.Hour: 0} {
		synctest.Test(t, func(t *testing.T) {
			dir := t.TempDir()
			put(t, dir+"/tea/SKILL.md", "nothing yet")
			saved := time.Now().Add(-age)
			if err := os.Chtimes(dir+"/tea/SKILL.md", saved, saved); err != nil {
				t.Fatal(err)
			}
			told := reported{}
			begin := time.Now()
			NewSet(at(dir), nil, told.take).List()
			if took := time.Since(begin); took != want || ids(told["tea"]) != "skill-front-matter" {
				t.Errorf("saved %v ago: it took %v, told %v; want %v", age, took, told, want)
			}
		})
	}
}

// Only what broke a skill is said to leave the version before in force.
func TestAWarningIsNotWhatBrokeASkill(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	put(t, dir+"/tea/SKILL.md", skillText("tea", "d", ""))
	told := reported{}
	set := NewSet(at(dir), nil, told.take)
	set.List()
	put(t, dir+"/tea/SKILL.md", "---\nname: Tea\nversion: 3\n---\n")
	list := set.List()
	if i := named(list, "tea"); i < 0 || list[i].Description != "d" {
		t.Errorf("in force is %+v", list)
	}
	stays := 0
	for _, f := range told["tea"] {
		if strings.HasSuffix(f.Reason, "; the previous version stays active") != (f.Severity == finding.Error) {
			t.Errorf("%s: %s", f.Severity, f.Reason)
		}
		stays++
	}
	if stays < 2 {
		t.Errorf("told %v, want the error and what else is wrong", told)
	}
}

// The model reads which files a skill has beside its SKILL.md: those that are not hidden, a
// hundred at most.
func TestWhichFilesOfASkillAreListed(t *testing.T) {
	dir := t.TempDir()
	put(t, dir+"/tea/SKILL.md", skillText("tea", "d", "Boil."))
	put(t, dir+"/milk/SKILL.md", skillText("milk", "d", "Warm."))
	for _, name := range []string{"b.txt", "a/c.txt", "a/SKILL.md", ".git/config", ".env", "a/.hidden"} {
		put(t, dir+"/tea/"+name, "x")
	}
	if err := os.Symlink("b.txt", dir+"/tea/link"); err != nil {
		t.Fatal(err)
	}
	tool := New(NewSet(at(dir), nil, func(string, []finding.Finding) {}).List)[0]
	if text := call(t, tool, `{"name":"tea"}`).Text; !strings.Contains(text, "\nFiles: a/SKILL.md, a/c.txt, b.txt\n") {
		t.Errorf("the model reads\n%s", text)
	}
	if text := call(t, tool, `{"name":"milk"}`).Text; strings.Contains(text, "Files:") || strings.Contains(text, "Needs:") {
		t.Errorf("of a skill without files the model reads\n%s", text)
	}
	for n := range maxListed + 20 {
		put(t, fmt.Sprintf("%s/milk/%03d.txt", dir, n), "x")
	}
	if n := strings.Count(call(t, tool, `{"name":"milk"}`).Text, ".txt"); n != maxListed {
		t.Errorf("%d files are listed, want %d", n, maxListed)
	}
}

// What cannot be read of a skill is said in words that help.
func TestWhatTheToolSaysOfWhatIsNotThere(t *testing.T) {
	dir := t.TempDir()
	put(t, dir+"/tea/SKILL.md", skillText("tea", "d", "Boil."))
	put(t, dir+"/tea/latin1.txt", "caf\xe9")
	put(t, dir+"/tea/bin", "\x00")
	all := NewSet(at(dir), nil, func(string, []finding.Finding) {}).List
	for args, want := range map[string]string{
		`{"name":"none"}`:                         `there is no skill "none"; there are: skill-writing, tea`,
		`{"name":"skill-writing","file":"x"}`:     "skill skill-writing is built in; it has no files",
		`{"name":"tea","file":"../tea/SKILL.md"}`: `"../tea/SKILL.md" is not a file of the skill`,
		`{"name":"tea","file":"none.txt"}`:        "skill tea: none.txt cannot be read: ",
		`{"name":"tea","file":"bin"}`:             "bin is not text; its path is " + dir + "/tea/bin",
		`{"name":7}`:                              "skill: the arguments do not fit: ",
		``:                                        `there is no skill ""; there are: `,
	} {
		if res := call(t, New(all)[0], args); res.Status != tools.Failed || !strings.HasPrefix(res.Text, want) {
			t.Errorf("%s: %q %q, want %q", args, res.Status, res.Text, want)
		}
	}
	for args, want := range map[string]string{`{"name":"tea","file":"./latin1.txt"}`: "caf\uFFFD",
		`{"name":"skill-writing"}`: "# Skill skill-writing\nFolder: none, it is built in (sha256 "} {
		if res := call(t, New(all)[0], args); res.Status != "" || !strings.HasPrefix(res.Text, want) {
			t.Errorf("%s: %q %q, want %q", args, res.Status, res.Text, want)
		}
	}
	none := New(func() []Skill { return nil })[0]
	if res := call(t, none, `{"name":"tea"}`); res.Text != `there is no skill "tea"; there are: none` {
		t.Errorf("without skills: %q", res.Text)
	}
}
