package main

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// withoutNamespaces runs the daycare of a workspace where no program can make namespaces, so that the
// kernel's Landlock alone holds commands.
func withoutNamespaces(t *testing.T, workspace string, args ...string) string {
	t.Helper()
	script := `for n in user mnt pid net ipc; do echo 0 > /proc/sys/user/max_${n}_namespaces || exit 111; done; cd "$0"; exec daycare "$@"`
	out, err := exec.Command("unshare", append([]string{"--user", "--map-root-user", "sh", "-c", script, workspace},
		args...)...).CombinedOutput()
	if text := string(out); err != nil && (strings.Contains(text, "unshare:") || strings.Contains(text, "max_user_namespaces")) {
		t.Skipf("SKIPPED: namespaces cannot be taken away here: %v: %s", err, out)
	}

	return string(out)
}

// Where Landlock is alone, commands make no files at the top of the workspace. Why, and what
// to do, is said to the model by the result, and to the user by start and doctor.
func TestLandlockAloneSaysWhyAndWhatToDo(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("unshare"); err != nil {
		t.Skipf("SKIPPED: %v", err)
	}
	workspace := t.TempDir()
	write(t, filepath.Join(workspace, home, "settings.yaml"),
		"providers: [ { id: s, type: scripted, options: { script: script.yaml } } ]\n")
	write(t, filepath.Join(workspace, "script.yaml"), `rules:
  - { contains: "make it", round: 1, reply: [ { calls: [ { name: exec, arguments: { command: "echo x > top" } } ] } ] }
  - { contains: "and go on", round: 1, reply: [ { calls: [ { name: exec, arguments: { command: "touch top; echo done" } } ] } ] }
  - { tool_result: exec, reply: [ { text: "It said {{.Result}}" } ] }
`)
	doctor := withoutNamespaces(t, workspace, "doctor")
	if !strings.Contains(doctor, "sandbox-narrow") {
		t.Skipf("SKIPPED: this system has no Landlock, or makes namespaces all the same:\n%s", doctor)
	}

	t.Cleanup(func() { withoutNamespaces(t, workspace, "stop") })
	person := []string{"confined by Landlock alone", "cannot create files next to .daycare", "Install bubblewrap", "work in a subfolder"}
	model := []string{"Permission denied", "no new entries in a folder that holds .daycare or .git",
		"make a subfolder with the tool write", "bubblewrap would allow these"}
	started := withoutNamespaces(t, workspace, "start", "--background")
	log := filepath.Join(workspace, home, "logs", "daycare.log")
	waitFor(t, "the caution in the log", func() bool { return strings.Contains(string(mustRead(t, log)), person[0]) })

	for _, said := range []struct {
		where string
		text  string
		want  []string
	}{
		{"doctor", doctor, person},
		{"start", started, person},
		{"the log of the daemon", string(mustRead(t, log)), person},
		{"a command that failed", withoutNamespaces(t, workspace, "chat", "make it"), model},
		{"a command that went on", withoutNamespaces(t, workspace, "chat", "and go on"), append(model, "done")},
	} {
		for _, want := range said.want {
			if !strings.Contains(said.text, want) {
				t.Errorf("%s does not say %q:\n%s", said.where, want, said.text)
			}
		}
	}
}
