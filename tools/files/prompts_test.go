package files

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	"daycare/engine/permission"
	"daycare/tools"
)

// needs is the approval that a call asks for.
func (w *world) needs(tool string, args a) (*permission.Request, error) {
	w.t.Helper()
	data, err := json.Marshal(args)
	must(w.t, err)
	asks, ok := w.tools[tool].(tools.Asks)
	if !ok {
		w.t.Fatalf("%s never asks", tool)
	}

	return asks.Needs(tools.Call{ID: "c", Agent: agent, Access: w.access, Arguments: data})
}

// Whatever tool changes what all agents are told, and by whatever name: a user is asked, with
// the diff, and nothing is changed meanwhile.
func TestChangesOfPromptsAskWithTheirDiff(t *testing.T) {
	w := newWorld(t)
	w.file("AGENTS.md", "be kind\n")
	w.file(".agents/skills/tea/SKILL.md", "---\nname: tea\ndescription: d\n---\nBoil.\n")
	w.file("other.md", "be kind\n")
	w.link("AGENTS.md", "alias")
	w.link(".agents", "l")
	patch := func(lines ...string) a {
		return a{"patch": "*** Begin Patch\n" + strings.Join(lines, "\n") + "\n*** End Patch\n"}
	}
	for name, tt := range map[string]struct {
		tool string
		args a
		path string // that is asked for
		diff string // part of what is shown
	}{
		"write":                  {"write", a{"path": "AGENTS.md", "content": "obey me\n"}, "AGENTS.md", "-be kind\n+obey me\n"},
		"write by a link":        {"write", a{"path": "alias", "content": "obey me\n"}, "AGENTS.md", "+obey me\n"},
		"write in other letters": {"write", a{"path": "agents.MD", "content": "obey me\n"}, "agents.MD", "+obey me\n"},
		"edit":                   {"edit", a{"path": "AGENTS.md", "old": "kind", "new": "cruel"}, "AGENTS.md", "-be kind\n+be cruel\n"},
		"patch": {"apply_patch", patch("*** Update File: AGENTS.md", "@@", "-be kind", "+be cruel"),
			"AGENTS.md", "+be cruel\n"},
		"patch that deletes": {"apply_patch", patch("*** Delete File: AGENTS.md"), "AGENTS.md", "-be kind\n"},
		"patch that moves there": {"apply_patch",
			patch("*** Update File: other.md", "*** Move to: .agents/skills/x/SKILL.md", "@@", "-be kind", "+be cruel"),
			".agents/skills/x/SKILL.md", "+be cruel\n"},
		"a skill": {"write", a{"path": ".agents/skills/tea/SKILL.md", "content": "x\n"},
			".agents/skills/tea/SKILL.md", "-Boil.\n+x\n"},
		"a script of a skill": {"write", a{"path": ".agents/skills/tea/run.sh", "content": "rm\n"},
			".agents/skills/tea/run.sh", "+rm\n"},
		"a skill by a link": {"write", a{"path": "l/skills/new/SKILL.md", "content": "x\n"}, ".agents/skills/new/SKILL.md", "+x\n"},
	} {
		need, err := w.needs(tt.tool, tt.args)
		if err != nil || need == nil || !need.AskAlways || need.Tag != "@write:"+w.ws+"/"+tt.path ||
			!strings.Contains(need.Detail.Diff, tt.diff) {
			t.Errorf("%s: %+v, %v", name, need, err)
		}
	}
	if w.content("AGENTS.md") != "be kind\n" || w.content("other.md") != "be kind\n" {
		t.Error("something was changed by asking")
	}
	if _, err := os.Stat(w.ws + "/.agents/skills/new"); err == nil {
		t.Error("a folder was made by asking")
	}
	// What a user allowed is done, and what is not a prompt is not asked for.
	if need, err := w.needs("write", a{"path": "AGENTS.md", "content": "obey me\n"}); need == nil || err != nil {
		t.Error(need, err)
	}
	w.want(w.call("write", a{"path": "AGENTS.md", "content": "obey me\n"}), tools.OK)
	for path, content := range map[string]string{"other.md": "x", "AGENTS.md": "obey me\n", "agents/x": "x", "../outside/AGENTS.md": "x",
		"AGENTS.md/x": "x"} {
		if need, err := w.needs("write", a{"path": path, "content": content}); need != nil || err != nil {
			t.Errorf("%s asks: %+v, %v", path, need, err)
		}
	}
	if need, err := w.needs("write", a{"path": "sub/AGENTS.md", "content": "x"}); err != nil || need == nil || need.AskAlways {
		t.Errorf("a file for other programs: %+v, %v", need, err)
	}
	for name, args := range map[string]a{"edit": {"path": "AGENTS.md", "old": "not in it", "new": "x"},
		"apply_patch": patch("*** Update File: AGENTS.md", "@@", "-not in it", "+x")} {
		if need, err := w.needs(name, args); need != nil || err != nil {
			t.Errorf("%s of what is not in it asks: %+v, %v", name, need, err)
		}
	}
	// A change that cannot be shown cannot be approved.
	if need, err := w.needs("write", a{"path": "AGENTS.md", "content": strings.Repeat("x\n", maxDiff)}); need != nil ||
		err == nil || !strings.Contains(err.Error(), "too long to be shown") {
		t.Errorf("%+v, %v", need, err)
	}
	w.access.WriteDirs = []string{w.ws + "/AGENTS.md", w.ws + "/.agents"}
	for _, path := range []string{"AGENTS.md", ".agents/skills/tea/SKILL.md"} {
		if need, err := w.needs("write", a{"path": path, "content": "y"}); need != nil || err != nil {
			t.Errorf("a right that names %s asks: %+v, %v", path, need, err)
		}
	}
}

// One text for several programs is a prompt by both names.
func TestThePromptBehindALinkAsks(t *testing.T) {
	w := newWorld(t)
	w.file("CLAUDE.md", "be kind\n")
	w.link("CLAUDE.md", "AGENTS.md")
	for _, path := range []string{"CLAUDE.md", "AGENTS.md"} {
		if need, err := w.needs("write", a{"path": path, "content": "obey me\n"}); err != nil || need == nil ||
			need.Tag != "@write:"+w.ws+"/CLAUDE.md" {
			t.Errorf("%s: %+v, %v", path, need, err)
		}
	}
}

// An approval is of the diff that was shown: when the file is another meanwhile, it is another
// request.
func TestAnApprovedDiffIsThatOfTheFile(t *testing.T) {
	w := newWorld(t)
	hash := func() string {
		need, err := w.needs("edit", a{"path": "AGENTS.md", "old": "kind", "new": "cruel"})
		if err != nil || need == nil {
			t.Fatal(need, err)
		}
		return need.SHA256(agent)
	}
	w.file("AGENTS.md", "be kind\n")
	one, again := hash(), hash()
	w.file("AGENTS.md", "be kind\nand patient\n")
	if other := hash(); one != again || one == other {
		t.Errorf("%s %s %s", one, again, other)
	}
}
