package doctor

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"daycare/engine/disk"
	"daycare/engine/finding"
	"daycare/engine/permission"
	"daycare/engine/record"
)

// mishaps plants what crashes, full disks and careless copies leave: all of it can be
// repaired without losing anything. It says what is to be found.
func (w *ward) mishaps() []string {
	want := w.repairable()
	want = append(want, w.tornAndBroken()...)
	want = append(want, w.openToOthers()...)
	want = append(want, w.orphans()...)
	return want
}

// tornAndBroken plants faults inside files that the runtime writes.
func (w *ward) tornAndBroken() (want []string) {
	w.file("heartbeat/look.md", "Look around.")
	dir := w.agent(40)
	for _, name := range []string{"heartbeat/runs.jsonl", "permissions/log.jsonl", "usage/2026-10-01.jsonl", dir + "sessions.jsonl"} {
		w.raw(name, `{"id":"s"}`+"\nnothing\n"+`{"id":"t`, 0o600)
		want = append(want, "lines-bad "+name+":2", "lines-torn "+name+":3")
	}

	w.file("cron/other/TASK.md", "---", "taskId: "+id(5), "every: 1h", "---", "Do it.")
	w.file("cron/other/runs.jsonl", "[]", "{}")
	start := &record.Start{Session: "s", V: record.Version}
	w.history(dir+"history.jsonl", "", start)
	w.file(dir+"draft.json", `{"turn":`)
	dir = w.agent(41)
	w.history(dir+"history.jsonl", `{"seq":`, start)
	dir = w.agent(42)
	w.raw(dir+"inbox.jsonl", `{"se`, 0o600)
	w.history(dir+"history.jsonl", "", start)
	dir = w.agent(43)
	w.history(dir+"history.jsonl", "half an edit\n", start)
	w.file(dir+"inbox.jsonl", "nonsense")
	want = append(want, "history-bad-line agents/"+id(43)+"/history.jsonl:2", "inbox-broken-line agents/"+id(43)+"/inbox.jsonl:1")
	w.file("daycare.lock", "who wrote this?")

	return append(want, "lines-bad cron/other/runs.jsonl:1", "draft-broken agents/"+id(40)+"/draft.json:1",
		"history-torn agents/"+id(41)+"/history.jsonl:2", "inbox-torn agents/"+id(42)+"/inbox.jsonl:1", "lock-unreadable daycare.lock:1")
}

// openToOthers plants modes that let other users read.
func (w *ward) openToOthers() (want []string) {
	w.file("logs/daycare.jsonl", "{}")
	w.file("connectors/telegram/offset", "7")
	w.file("agents/"+id(40)+"/SYSTEM.md", "You are …")
	w.file("agents/"+id(40)+"/blobs/"+strings.Repeat("0", 64), "long")
	w.file("trash/20261101T120000.000Z-x/descriptor.json", "{}")
	w.file("drop/note.md", "hello")

	for _, name := range []string{"logs", "logs/daycare.jsonl", "connectors/telegram/offset", "agents/" + id(40) + "/SYSTEM.md",
		"agents/" + id(40) + "/blobs/" + strings.Repeat("0", 64), "trash/20261101T120000.000Z-x/descriptor.json", "drop/note.md"} {
		mode := os.FileMode(0o644)
		if name == "logs" {
			mode = 0o755
		}
		if err := os.Chmod(w.path(name), mode); err != nil {
			w.t.Fatal(err)
		}
		want = append(want, "file-mode "+name)
	}

	return want
}

// orphans plants what belongs to nothing, and what nothing tells of.
func (w *ward) orphans() (want []string) {
	for _, name := range []string{"permissions/.tmp-tok.json-1", "files/.tmp-x-1", "cron/other/.tmp-TASK.md-2", "drop/.tmp-letter"} {
		w.file(name, "{")
		want = append(want, "temp-leftover "+name)
	}
	w.file("agents/.new-"+id(50)+"/history.jsonl", "{}")
	f := func(n int) string { return fmt.Sprintf("file%03dxxxxxxxxxxxxxxxxx", n) }
	w.file("files/"+f(1)+"__b.txt", "content")
	w.file("files/"+f(2)+"__c.txt", "content")
	w.file("files/"+f(2)+".json", "{ half")
	asked := w.asks(id(96))
	call := &record.Assistant{Turn: "t", Text: "yes", Finish: record.FinishEndTurn, Provider: "claude", Model: "m",
		Tokens: record.Tokens{Input: 100, Output: 5}, Cost: 0.5}
	w.history(w.agent(51)+"history.jsonl", "", &record.Start{Session: "s", V: record.Version},
		&record.TurnBegin{Turn: "t", Items: []string{"i9"}}, call,
		&record.TurnEnd{Turn: "t", Items: []string{"i9"}, Outs: []record.Out{}, Reason: record.ReasonDone})
	day := time.Date(2026, 11, 1, 12, 0, 2, 0, time.UTC).Local().Format(time.DateOnly)

	return append(want, "agent-unfinished agents/.new-"+id(50), "file-orphan files/"+f(1)+"__b.txt", "file-reference files/"+f(2)+".json:1",
		"permission-orphan "+asked+":3", "usage-missing usage/"+day+".jsonl")
}

// asks plants a request of an agent that is not there.
func (w *ward) asks(agent string) (name string) {
	w.t.Helper()
	elsewhere := w.t.TempDir()
	queue, _, err := permission.OpenQueue(disk.NewVolume(elsewhere), elsewhere, time.Now, 0)
	if err != nil {
		w.t.Fatal(err)
	}
	defer queue.Close()
	p, _, err := queue.Ask(agent, permission.Owner{Connector: "terminal", UserID: "u"}, permission.Request{Tag: "@web", Reason: "to look"})
	if err != nil {
		w.t.Fatal(err)
	}

	name = "permissions/" + p.Token + ".json"
	data, err := os.ReadFile(filepath.Join(elsewhere, name))
	if err != nil {
		w.t.Fatal(err)
	}
	w.raw(name, string(data), 0o600)
	return name
}

// TestDoctorRepairs: forty different mishaps are found with their places, repaired, and
// found no more; nothing else is touched, and what is taken out of a file is kept.
func TestDoctorRepairs(t *testing.T) {
	w := newWard(t)
	want := w.mishaps()
	slices.Sort(want)
	if len(slices.Compact(slices.Clone(want))) < 40 {
		t.Errorf("only %d faults are planted", len(want))
	}

	d := w.examine()
	if diff := cmp.Diff(want, byHand(w.found(d))); diff != "" {
		t.Fatalf("%d planted faults (-want +found):\n%s", len(want), diff)
	}

	for _, a := range d.ailments {
		if a.fix == nil && a.Severity != finding.Info {
			t.Errorf("%s cannot be repaired", a.Place())
		}
	}
	changed := map[string]bool{}
	for _, n := range []int{3, 50} {
		for _, name := range []string{"descriptor.json", "history.jsonl"} {
			changed["agents/.new-"+id(n)+"/"+name] = true
		}
	}

	changed["files/"+fmt.Sprintf("file%03dxxxxxxxxxxxxxxxxx", 1)+".json"] = true // made again
	w.repairs(d, changed)
	after := w.examine()
	for _, a := range after.ailments {
		if a.Severity != finding.Info {
			t.Errorf("after the repair there is %s %s: %s", a.ID, a.Place(), a.Reason)
		}
	}

	left := slices.DeleteFunc(byHand(w.found(after)), func(s string) bool {
		return strings.HasPrefix(s, "torn-kept ") || strings.HasPrefix(s, "lines-kept ")
	})
	if len(left) > 0 {
		t.Errorf("after the repair there is left: %v; want only what was taken out, kept beside its file", left)
	}
	if ref := w.contents()["files/"+fmt.Sprintf("file%03dxxxxxxxxxxxxxxxxx", 2)+".json"]; !strings.Contains(ref, `"name": "c.txt"`) {
		t.Errorf("the reference that was made anew: %s", ref)
	}

	t.Logf("%d faults found and repaired", len(want))
}

// git keeps no modes: a clone of a committed workspace is open to others in every file. That
// is one mistake with one remedy, and repaired in one step.
func TestDoctorToldOnceOfAClone(t *testing.T) {
	w := newWard(t)
	dir := w.agent(1)
	w.history(dir+"history.jsonl", "", &record.Start{Session: "s", V: record.Version})
	w.file("permissions/log.jsonl", "{}")
	err := filepath.WalkDir(w.root, func(path string, e fs.DirEntry, err error) error {
		mode := fs.FileMode(0o644)
		if e.IsDir() {
			mode = 0o755
		}
		return os.Chmod(path, mode)
	})
	if err != nil {
		t.Fatal(err)
	}

	modes := func(d *doctor) (all []string) {
		for _, a := range d.ailments {
			if a.ID == "file-mode" {
				all = append(all, a.Reason)
			}
		}
		return all
	}
	d := w.examine()
	if got := modes(d); len(got) != 1 || !strings.Contains(got[0], "files in it") {
		t.Errorf("told %d times of modes: %q", len(got), got)
	}
	if _, err := d.repair(); err != nil {
		t.Fatal(err)
	}
	if got := modes(w.examine()); len(got) != 0 {
		t.Errorf("after the repair: %q", got)
	}
	if info, err := os.Stat(w.path(dir + "history.jsonl")); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("history.jsonl: %v, %v", info.Mode(), err)
	}
}
