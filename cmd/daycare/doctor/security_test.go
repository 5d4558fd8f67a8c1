package doctor

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"daycare/engine/beneath"
	"daycare/engine/sensitive"
	"daycare/tools/shell/guard"
)

// A program that runs outside of the sandbox must lie where no agent can write.
func TestDoctorFindsProgramsThatAgentsCanReplace(t *testing.T) {
	w := newWard(t)
	workspace := filepath.Dir(w.root)
	bin := filepath.Join(workspace, "tools", "bin")
	if err := os.MkdirAll(bin, 0o755); err != nil {
		t.Fatal(err)
	}
	if found := strings.Join(w.found(w.examine()), " "); strings.Contains(found, "program-in-grant") {
		t.Errorf("a healthy workspace: %s", found)
	}

	t.Setenv("PATH", bin+string(filepath.ListSeparator)+os.Getenv("PATH"))
	want := "program-in-grant " + beneath.Real(bin)
	if found := w.found(w.examine()); !slices.Contains(found, want) {
		t.Errorf("%q is not among %q", want, found)
	}
}

// A workspace that is a home is cautioned of, by doctor and by init.
func TestHomeAsWorkspaceIsCautionedOf(t *testing.T) {
	w := newWard(t)
	workspace := filepath.Dir(w.root)
	if caution := homeCaution(workspace); caution != "" {
		t.Errorf("it is none yet: %s", caution)
	}
	t.Setenv("HOME", workspace)
	if found := w.found(w.examine()); !slices.Contains(found, "workspace-is-home "+workspace) {
		t.Errorf("%q", found)
	}

	for _, above := range []string{filepath.Dir(workspace), "/"} {
		if homeCaution(above) == "" {
			t.Errorf("%s holds a ws.Home, and nothing is said", above)
		}
	}
}

// What leads git elsewhere is found in a workspace.
func TestDoctorFindsWhatGitRuns(t *testing.T) {
	w := newWard(t)
	workspace := filepath.Dir(w.root)
	for path, text := range map[string]string{
		"mine/.git/HEAD": "ref: refs/heads/main", "mine/.git/config": "[core]\n\tfsmonitor = x\n",
		"mine/.git/hooks/pre-commit": "x", "mine/.git/objects/.keep": "", "mine/.git/refs/.keep": "",
		"sub/.git": "gitdir: ../mine/.git/modules/sub\n", "a/.git/commondir": "../x", "b/.git": "gitdir: ../x\n",
		"c/HEAD": "ref: refs/heads/main", "c/objects/.keep": "", "c/refs/.keep": "", "c/config": "[core]\n\tfsmonitor = x\n",
		"d/HEAD": "ref: refs/heads/main", "d/objects/.keep": "", "d/refs/.keep": "", "d/config": "[core]\n\tbare = true\n",
	} {
		path = filepath.Join(workspace, path)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}

	var found []string
	for _, v := range guard.Vectors(workspace, sensitive.Here()) {
		found = append(found, strings.TrimPrefix(v.Path, workspace+"/"))
	}
	slices.Sort(found)
	if got := strings.Join(found, " "); got != "a/.git/commondir b/.git c" {
		t.Errorf("found %s", got)
	}
}

// Rights to hosts that are not on the Internet, as earlier versions gave them, open nothing.
func TestDoctorFindsRightsThatOpenNothing(t *testing.T) {
	w := newWard(t)
	state := w.agent(1) + "state.json"
	w.file(state, `{ "permissions": {`, `  "hosts": [ "a.org",`, `    "192.168.1.5" ],`, `  "lan": [ "nas.home:8080",`,
		`    "169.254.169.254:80" ] } }`)
	found := w.found(w.examine())
	for _, want := range []string{"grant-opens-nothing " + state + ":3", "grant-opens-nothing " + state + ":5"} {
		if !slices.Contains(found, want) {
			t.Errorf("%q is not among %q", want, found)
		}
	}

	if text := strings.Join(found, " "); strings.Count(text, "grant-opens-nothing") != 2 {
		t.Errorf("%q", found)
	}
}
