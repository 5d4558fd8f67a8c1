package skills

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"daycare/engine/finding"
	"daycare/tools"
	"daycare/tools/toolstest"
)

func put(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// The rules of the specification, with what the reference validator is tested by.
func TestParse(t *testing.T) {
	long := strings.Repeat("x", 1025)
	for _, tt := range []struct {
		name, folder, text string
		ok                 bool
		ids                string // of the findings
	}{
		{"right", "my-skill", "---\nname: my-skill\ndescription: Does it.\n---\nBody", true, ""},
		{"all fields", "s1", "---\nname: s1\ndescription: D\nlicense: MIT\ncompatibility: needs git\nallowed-tools: " +
			"Bash(git:*) Read\nmetadata:\n  author: me\n  version: 1.0\n---\n", true, ""},
		{"no front matter", "x", "# Hello", false, "skill-front-matter"},
		{"no end", "x", "---\nname: x\ndescription: d\n", false, "skill-front-matter"},
		{"no YAML", "x", "---\n\t: [\n---\n", false, "skill-front-matter"},
		{"a list", "x", "---\n- a\n---\n", false, "skill-front-matter"},
		{"no name", "x", "---\ndescription: d\n---\n", false, "skill-name"},
		{"no description", "x", "---\nname: x\n---\n", false, "skill-description"},
		{"empty description", "x", "---\nname: x\ndescription: \"  \"\n---\n", false, "skill-description"},
		{"upper case", "MySkill", "---\nname: MySkill\ndescription: d\n---\n", true, "skill-name"},
		{"too long", strings.Repeat("a", 65), "---\nname: " + strings.Repeat("a", 65) + "\ndescription: d\n---\n", true, "skill-name"},
		{"leading hyphen", "-x", "---\nname: \"-x\"\ndescription: d\n---\n", true, "skill-name"},
		{"trailing hyphen", "x-", "---\nname: x-\ndescription: d\n---\n", true, "skill-name"},
		{"double hyphen", "a--b", "---\nname: a--b\ndescription: d\n---\n", true, "skill-name"},
		{"underscore", "a_b", "---\nname: a_b\ndescription: d\n---\n", true, "skill-name"},
		{"letters of the world", "技能", "---\nname: 技能\ndescription: d\n---\n", true, ""},
		{"letters that are made of two", "café", "---\nname: cafe\u0301\ndescription: d\n---\n", true, ""},
		{"another folder", "other", "---\nname: x\ndescription: d\n---\n", true, "skill-name-folder"},
		{"description too long", "x", "---\nname: x\ndescription: " + long + "\n---\n", true, "skill-description"},
		{"compatibility too long", "x", "---\nname: x\ndescription: d\ncompatibility: " + long[:501] + "\n---\n", true,
			"skill-compatibility"},
		{"unknown field", "x", "---\nname: x\ndescription: d\nversion: 3\n---\n", true, "skill-unknown-field"},
		{"colons", "x", "---\nname: x\ndescription: Use when: it's late, or: never\n---\nB", true, ""},
		{"a list of tools", "x", "---\nname: x\ndescription: d\nallowed-tools: [a, b]\n---\n", true, "skill-type"},
		{"Windows", "x", "---\r\nname: x\r\ndescription: d\r\n---\r\nBody\r\n", true, ""},
		{"byte order mark", "x", "\uFEFF---\nname: x\ndescription: d\n---\n", true, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s, found, ok := Parse(filepath.Join("/skills", tt.folder, "SKILL.md"), []byte(tt.text))
			var ids []string
			for _, f := range found {
				ids = append(ids, f.ID)
				if f.Line == 0 {
					t.Errorf("no line in %v", f)
				}
			}

			if ok != tt.ok || strings.Join(ids, " ") != tt.ids {
				t.Errorf("ok %v with %v, want %v with %q; %+v", ok, found, tt.ok, tt.ids, s)
			}
			if tt.name == "colons" && s.Description != "Use when: it's late, or: never" {
				t.Errorf("description %q", s.Description)
			}
		})
	}
}

func TestLoadTakesTheFirst(t *testing.T) {
	t.Parallel()
	a, b := t.TempDir(), t.TempDir()
	put(t, a+"/one/SKILL.md", "---\nname: one\ndescription: mine\n---\n")
	put(t, b+"/one/SKILL.md", "---\nname: one\ndescription: theirs\n---\n")
	put(t, b+"/two/SKILL.md", "---\nname: two\ndescription: d\n---\n")
	put(t, b+"/bad/SKILL.md", "nothing")
	put(t, b+"/empty/README.md", "no skill")
	put(t, b+"/file", "")
	var found []finding.Finding
	set := NewSet(at(a, b, "/nonexistent"), nil, func(_ string, f []finding.Finding) { found = append(found, f...) })
	list := set.List()
	list = slices.DeleteFunc(list, func(s Skill) bool { return s.Dir == "" }) // those that are built in
	if len(list) != 2 || list[0].Description != "mine" || list[1].Name != "two" {
		t.Errorf("%+v", list)
	}
	if set.List(); len(found) != 2 {
		t.Errorf("findings, each once: %v", found)
	}
}

func at(dirs ...string) func() []Folder {
	return func() (folders []Folder) {
		for _, dir := range dirs {
			folders = append(folders, Folder{Root: filepath.Dir(dir), Path: filepath.Base(dir)})
		}
		return folders
	}
}

func call(t *testing.T, tool tools.Tool, args string) tools.Result {
	t.Helper()
	res, err := tool.Run(t.Context(), tools.Call{Arguments: json.RawMessage(args), Progress: func(string) {}})
	if err != nil {
		t.Fatal(err)
	}
	return res
}

func TestTool(t *testing.T) {
	dir := t.TempDir()
	put(t, dir+"/pdf/SKILL.md", "---\nname: pdf\ndescription: d\ncompatibility: needs qpdf\n---\n\nRead scripts/fill.py first.")
	put(t, dir+"/pdf/scripts/fill.py", "print(1)")
	put(t, dir+"/pdf/logo.png", "\x89PNG\x00")
	put(t, dir+"/secret", "not a skill's")
	if err := os.Symlink(dir+"/secret", dir+"/pdf/link"); err != nil {
		t.Fatal(err)
	}

	tool := New(NewSet(at(dir), nil, func(string, []finding.Finding) {}).List)[0]
	toolstest.Run(t, tool, toolstest.Options{Good: []string{`{"name":"pdf"}`, `{"name":"pdf","file":"scripts/fill.py"}`},
		Bad: []string{`{"name":"none"}`, `{"name":"pdf","file":"../secret"}`, `{"name":"pdf","file":"link"}`,
			`{"name":"pdf","file":"/etc/passwd"}`, `{"name":"pdf","file":"logo.png"}`, `{"name":"pdf","file":"scripts"}`}})
	res := call(t, tool, `{"name":"pdf"}`)
	for _, want := range []string{"# Skill pdf", "Folder: " + dir + "/pdf (sha256 ", "Needs: needs qpdf",
		"logo.png, scripts/fill.py", "Read scripts/fill.py first."} {
		if !strings.Contains(res.Text, want) {
			t.Errorf("%q is not in\n%s", want, res.Text)
		}
	}

	before := res.Text
	put(t, dir+"/pdf/SKILL.md", "---\nname: pdf\ndescription: d\n---\n\nChanged.")
	if after := call(t, tool, `{"name":"pdf"}`).Text; !strings.Contains(after, "Changed.") || before == after {
		t.Errorf("an edit does not count:\n%s", after)
	}
}

func FuzzParse(f *testing.F) {
	f.Add("---\nname: x\ndescription: a: b\n---\nbody")
	f.Add("---\n&a [*a]\n---")
	f.Add("---\nmetadata: {a: {b: c}}\nname: [1]\n---")
	f.Fuzz(func(t *testing.T, text string) {
		s, found, ok := Parse("/x/SKILL.md", []byte(text))
		if !ok && len(found) == 0 {
			t.Errorf("%q is refused without a word", text)
		}
		if ok && (s.Name == "" || s.Description == "") {
			t.Errorf("%q is used: %+v", text, s)
		}
	})
}

// A SKILL.md is added, changed, broken, mended, broken from the start and removed: what
// is active follows, but for what cannot be used, which is told once with its place.
func TestShelfFollowsItsFiles(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := dir + "/tea/SKILL.md"
	var told []string
	set := NewSet(at(dir), nil, func(_ string, found []finding.Finding) {
		for _, f := range found {
			told = append(told, f.Place()+": "+f.Reason)
		}
	})
	put(t, dir+"/tea/README.md", "no skill yet")
	good := "---\nname: tea\ndescription: %\n---\n\nBoil %."
	for _, step := range []struct {
		name string
		do   func()
		says string // the description in force; "": there is no such skill
		told string // part of what is reported; "": nothing is
	}{
		{"nothing", func() {}, "", ""},
		{"added", func() { put(t, path, strings.ReplaceAll(good, "%", "water")) }, "water", ""},
		{"edited", func() { put(t, path, strings.ReplaceAll(good, "%", "steam")) }, "steam", ""},
		{"broken", func() { put(t, path, "---\nname: tea\ndescription:\n---\n") }, "steam",
			path + ":3:1: the description is missing: a model chooses by it; the previous version stays active"},
		{"still broken", func() {}, "steam", ""},
		{"broken otherwise", func() { put(t, path, "tea") }, "steam",
			path + ":1:1: the file must begin with a line ---, its keys, and another line ---; the previous version stays active"},
		{"mended", func() { put(t, path, strings.ReplaceAll(good, "%", "milk")) }, "milk", ""},
		{"unreadable", func() { remove(t, path); mkdir(t, path) }, "milk",
			path + ": it is not a regular file; the previous version stays active"},
		{"removed", func() { remove(t, path) }, "", ""},
		{"broken from the start", func() { put(t, path, "tea") }, "", path +
			":1:1: the file must begin with a line ---, its keys, and another line ---"},
		{"good in the end", func() { put(t, path, strings.ReplaceAll(good, "%", "ice")) }, "ice", ""},
	} {
		told = nil
		step.do()
		says, body := "", ""
		for range 2 { // the second time nothing is told again
			says = ""
			if list := set.List(); named(list, "tea") >= 0 {
				s := list[named(list, "tea")]
				says, body = s.Description, s.Body
			}
		}

		if says != step.says || says != "" && body != "Boil "+says+"." {
			t.Errorf("%s: it says %q, %q; want %q", step.name, says, body, step.says)
		}
		if step.told == "" && len(told) > 0 || step.told != "" && (len(told) != 1 || told[0] != step.told) {
			t.Errorf("%s: told %q, want %q", step.name, told, step.told)
		}
	}
}

// A save in pieces is not taken for a broken file.
func TestShelfWaitsForASaveInPieces(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		set := NewSet(at(dir), nil, func(_ string, found []finding.Finding) { t.Errorf("told %v", found) })
		put(t, dir+"/tea/SKILL.md", "---\nname: tea\n")
		saved := make(chan struct{})
		go func() {
			defer close(saved)
			time.Sleep(30 * time.Millisecond)
			put(t, dir+"/tea/SKILL.md", "---\nname: tea\ndescription: d\n---\n")
		}()

		if named(set.List(), "tea") < 0 {
			t.Error("the skill is not there when it is saved")
		}
		<-saved
	})
}

func remove(t *testing.T, path string) {
	t.Helper()
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
}

func mkdir(t *testing.T, path string) {
	t.Helper()
	if err := os.Mkdir(path, 0o755); err != nil {
		t.Fatal(err)
	}
}
