package cron

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"daycare/tools"
)

// strict are rights that an agent lacks, or that cannot be looked at.
type strict struct {
	allowed
	missing []string
	err     error
}

func (s strict) Task(string, string) ([]string, error) { return s.missing, s.err }
func (s strict) Heartbeat(string) ([]string, error)    { return s.missing, s.err }

// changes are calls that change something.
var changes = map[string]string{
	"add_cron": `{"when":"every 2 hours","prompt":"Look."}`, "cron_update": `{"task":"own","enabled":false}`, "cron_run": `{"task":"own"}`,
	"cron_delete_task": `{"task":"own"}`, "cron_write_memory": `{"task":"own","text":"seen"}`,
	"heartbeat_add": `{"title":"Mail","prompt":"Any mail?"}`,
	"heartbeat_run": `{}`, "heartbeat_remove": `{"name":"disk"}`,
}

// Who has not the rights of what a task runs with changes nothing of it, and nobody does while the
// rights cannot be looked at.
func TestWhoLacksRightsChangesNothing(t *testing.T) {
	for name, r := range map[string]Rights{"lacks": strict{missing: []string{"@web"}},
		"not known": strict{err: errors.New("cannot be read")}} {
		for tool, args := range changes {
			root, set := setupFor(t, r)
			before := files(t, root)
			if res := call(t, set, "c1", tool, args); res.Status != tools.Failed {
				t.Errorf("%s: %s says %q %q", name, tool, res.Status, res.Text)
			}
			if after := files(t, root); after != before {
				t.Errorf("%s: %s has changed\n%s\nto\n%s", name, tool, before, after)
			}
		}
	}
}

// files are the files of a workspace with their texts.
func files(t *testing.T, root string) string {
	t.Helper()
	var b strings.Builder
	err := filepath.WalkDir(root, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := os.ReadFile(path)
		b.WriteString(path + "\n" + string(text) + "\n")
		return err
	})
	if err != nil {
		t.Fatal(err)
	}

	return b.String()
}

// What cannot be read or written is what a call says, never that it is done.
func TestACallThatCannotBeDone(t *testing.T) {
	block := func(root, path string) error {
		path = filepath.Join(root, path)
		if filepath.Ext(path) == "" { // a file in the place of a folder
			return errors.Join(os.RemoveAll(path), os.WriteFile(path, nil, 0o600))
		}
		return errors.Join(os.RemoveAll(path), os.MkdirAll(filepath.Join(path, "x"), 0o700))
	}
	for line, tt := range map[string]struct{ blocked string }{
		`cron_read_memory {"task":"own"}`: {"cron/own/MEMORY.md"}, `cron_write_memory {"task":"own","text":"x"}`: {"cron/own/MEMORY.md"},
		`cron_read_task {"task":"own"}`: {"cron/own/TASK.md"}, `cron_update {"task":"own","enabled":false}`: {"cron/own/TASK.md"},
		`cron_run {"task":"own"}`: {"cron/own/TASK.md"}, `heartbeat_list {}`: {"heartbeat"}, `heartbeat_run {}`: {"heartbeat"},
		`heartbeat_add {"title":"x","prompt":"y"}`: {"heartbeat"},
	} {
		name, args, _ := strings.Cut(line, " ")
		root, set := setup(t)
		if err := block(root, tt.blocked); err != nil {
			t.Fatal(err)
		}
		if res := call(t, set, "c1", name, args); res.Status != tools.Failed {
			t.Errorf("%s without %s: %q %q", name, tt.blocked, res.Status, res.Text)
		}
	}

	_, set := setup(t)
	for line, word := range map[string]string{`cron_update {"task":"own","when":"soon"}`: "soon",
		`cron_update {"task":"own","timezone":"Nowhere"}`: "Nowhere",
		`add_cron {"prompt":"x"}`:                         "", `add_cron {"prompt":"x","when":"soon"}`: "soon",
		`add_cron {"prompt":"x","when":"every 2 hours","timezone":"Nowhere"}`: "Nowhere"} {
		name, args, _ := strings.Cut(line, " ")
		if res := call(t, set, "c1", name, args); res.Status != tools.Failed || !strings.Contains(res.Text, word) {
			t.Errorf("%s: %q %q", line, res.Status, res.Text)
		}
	}
}

// What is listed of tasks has what is wrong with them, and nothing is said to be there where it is
// not.
func TestWhatIsListedOfTasks(t *testing.T) {
	root, set := setup(t)
	path := filepath.Join(root, "cron/own/TASK.md")
	if err := os.WriteFile(path, []byte("---\ntaskId: tttttttttttttttttttttttt\nschedule: often\n---\nLook.\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	list := call(t, set, "c1", "cron_list", `{}`).Text
	if !strings.Contains(list, "own") || !strings.Contains(list, "mine") || !strings.Contains(list, `"often"`) {
		t.Errorf("listed is\n%s", list)
	}

	res := call(t, set, "c2", "add_cron",
		`{"name":"gated","when":"every 2 hours","prompt":"Look.","gate":"test -s queue","deleteAfterRun":true}`)
	text, err := os.ReadFile(filepath.Join(root, "cron/gated/TASK.md"))
	if err != nil || !strings.Contains(string(text), "test -s queue") || !strings.Contains(string(text), "deleteAfterRun: true") {
		t.Errorf("%q: %v\n%s", res.Text, err, text)
	}
	res = call(t, set, "c3", "add_cron", `{"name":"plain","watch":["notes/**"],"prompt":"Look."}`)
	text, err = os.ReadFile(filepath.Join(root, "cron/plain/TASK.md"))
	if err != nil || strings.Contains(string(text), "gate") || strings.Contains(string(text), "deleteAfterRun") ||
		!strings.Contains(string(text), "notes/**") {
		t.Errorf("%q: %v\n%s", res.Text, err, text)
	}
	if err := os.RemoveAll(filepath.Join(root, "cron")); err != nil {
		t.Fatal(err)
	}
	if res := call(t, set, "c4", "cron_list", `{}`); res.Text == "" || res.Status == tools.Failed {
		t.Errorf("without tasks: %q %q", res.Status, res.Text)
	}
	if res := call(t, set, "c5", "cron_read_memory", `{"task":"own"}`); res.Status != tools.Failed {
		t.Errorf("of a task that is gone: %q %q", res.Status, res.Text)
	}
}
