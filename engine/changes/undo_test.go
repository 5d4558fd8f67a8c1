package changes

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"daycare/engine/crash"
	"daycare/engine/crash/crashtest"
	"daycare/engine/disk"
	"daycare/engine/record"
	"daycare/engine/workspace"
)

// A desk is a folder that an agent writes in, turn by turn.
type desk struct {
	t      *testing.T
	dir    string
	store  Store
	undone map[string]bool // by turn
}

func newDesk(t *testing.T) desk {
	t.Helper()
	home := t.TempDir()
	return desk{t: t, dir: t.TempDir(), store: Undo(disk.NewVolume(home), filepath.Join(home, "agents", "one")), undone: map[string]bool{}}
}

// write is what a tool does in a turn; "" removes the file.
func (d desk) write(turn int, path, text string) {
	d.t.Helper()
	before, err := lookIn(d.dir, path)
	if err != nil {
		d.t.Fatal(err)
	}
	old, err := os.ReadFile(filepath.Join(d.dir, path))
	if err != nil && !before.Missing() {
		d.t.Fatal(err)
	}
	w := Written{At: disk.StampOf(time.Now()), Turn: fmt.Sprint("t", turn), Call: fmt.Sprint("c", turn, path), Folder: d.dir, Path: path,
		Before: before}
	if text != "" {
		w.After = StateOf([]byte(text), 0o644)
	}
	if err := d.store.Note(w, old, []byte(text)); err != nil {
		d.t.Fatal(err)
	}
	d.by(path, text)
}

// by is what someone else does.
func (d desk) by(path, text string) {
	d.t.Helper()
	name := filepath.Join(d.dir, path)
	err := os.Remove(name)
	if text != "" {
		err = errors.Join(os.MkdirAll(filepath.Dir(name), 0o755), os.WriteFile(name, []byte(text), 0o644))
	}
	if err != nil {
		d.t.Fatal(err)
	}
}

func (d desk) takes() []Take {
	d.t.Helper()
	list, err := d.store.Written()
	if err != nil {
		d.t.Fatal(err)
	}
	takes, err := d.store.Back(list, func(w Written) bool { return d.undone[w.Turn] })
	if err != nil {
		d.t.Fatal(err)
	}
	return takes
}

func (d desk) expect(want ...string) []Take {
	d.t.Helper()
	var got []string
	takes := d.takes()
	for _, t := range takes {
		got = append(got, fmt.Sprint(t.Path, " ", strings.Join(t.Turns, "+"), " ", t.Standing))
	}
	if !slices.Equal(got, want) {
		d.t.Fatalf("offered are %q, want %q", got, want)
	}
	return takes
}

// Ten turns of an agent, with edits of others between; the last seven are taken back.
func TestTenTurnsTakenBack(t *testing.T) {
	d := newDesk(t)
	text := "one\ntwo\nthree\nfour\nfive\nsix\n"
	d.by("since", text)
	d.by("deleted", "old\n")
	d.by("between", "old\n")
	d.write(1, "kept", "1\n")
	d.write(2, "ready", "2\n")
	d.write(3, "kept", "3\n")
	d.write(4, "ready", "4\n")
	d.write(4, "dir/new", "4\n")
	d.write(5, "ready", "5\n")
	d.write(5, "between", "5\n")
	d.by("between", "mine\n")
	d.write(6, "between", "6\n")
	d.write(7, "since", strings.Replace(text, "two", "TWO", 1))
	d.by("since", strings.Replace(strings.Replace(text, "two", "TWO", 1), "five", "FIVE", 1))
	d.write(8, "deleted", "")
	d.write(9, "clash", "9\n")
	d.by("clash", "mine\n")
	d.write(10, "back", "10\n")
	d.by("back", "")
	for turn := 4; turn <= 10; turn++ {
		d.undone[fmt.Sprint("t", turn)] = true
	}
	takes := d.expect("back t10 before", "between t5+t6 between", "clash t9 since", "deleted t8 ready", "dir/new t4 ready",
		"ready t4+t5 ready", "since t7 since")

	ready := slices.DeleteFunc(slices.Clone(takes), func(t Take) bool { return t.Standing != Ready })
	results, err := d.store.TakeBack(ready, false)
	if err != nil || len(Refusals(results)) > 0 || len(results) != 3 {
		t.Fatal(results, err)
	}
	files := has(t, d.dir)
	want := map[string]string{"kept": "3\n", "ready": "2\n", "deleted": "old\n", "between": "6\n", "clash": "mine\n",
		"since": "one\nTWO\nthree\nfour\nFIVE\nsix\n"}
	if fmt.Sprint(files) != fmt.Sprint(want) {
		t.Errorf("the folder has %q", files)
	}

	rest := d.takes()
	results, err = d.store.TakeBack(rest, true)
	if err != nil {
		t.Fatal(err)
	}
	var said []string
	for _, r := range results {
		said = append(said, strings.TrimSpace(fmt.Sprint(r.Outcome, " ", r.Path, " ", r.Why)))
	}
	if want := []string{"refused back it is as it was before", "done between", "refused clash it has changed since and cannot be merged",
		"refused deleted it is as it was before", "refused dir/new it is as it was before", "refused ready it is as it was before",
		"done since"}; !slices.Equal(said, want) {
		t.Errorf("got %q, want %q", said, want)
	}
	files = has(t, d.dir)
	if files["between"] != "old\n" || files["since"] != "one\ntwo\nthree\nfour\nFIVE\nsix\n" || files["clash"] != "mine\n" {
		t.Errorf("the folder has %q", files)
	}
}

// The mode that someone else gave a file is kept when its content is taken back: tools change no modes. A file that they
// removed and made anew gets the mode that it had.
func TestModesStay(t *testing.T) {
	d := newDesk(t)
	mode := func(path string, mode fs.FileMode) {
		t.Helper()
		if err := os.Chmod(filepath.Join(d.dir, path), mode); err != nil {
			t.Fatal(err)
		}
	}
	for _, path := range []string{"between", "since", "anew"} {
		d.by(path, "old\n")
		mode(path, 0o644)
		d.write(1, path, "1\n")
	}
	mode("between", 0o600)
	d.write(2, "between", "2\n")
	mode("between", 0o600) // as a tool leaves it
	mode("since", 0o600)
	d.write(2, "anew", "")
	d.write(3, "anew", "3\n")
	mode("anew", 0o600)
	d.undone = map[string]bool{"t1": true, "t2": true, "t3": true}
	results, err := d.store.TakeBack(d.expect("anew t1+t2+t3 ready", "between t1+t2 ready", "since t1 ready"), false)
	if err != nil || len(Refusals(results)) > 0 {
		t.Fatal(results, err)
	}
	for path, want := range map[string]fs.FileMode{"between": 0o600, "since": 0o600, "anew": 0o644} {
		info, err := os.Stat(filepath.Join(d.dir, path))
		if err != nil || info.Mode() != want || has(t, d.dir)[path] != "old\n" {
			t.Errorf("%s: mode %v, content %q, want %v and what it held", path, info.Mode(), has(t, d.dir)[path], want)
		}
	}
}

// What the agent wrote again after a rewind stays.
func TestWrittenAgain(t *testing.T) {
	d := newDesk(t)
	d.write(1, "a", "1\n")
	d.write(2, "a", "2\n")
	d.write(3, "a", "3\n")
	d.undone["t2"] = true
	d.expect("a t2 again")
	d.undone["t3"] = true
	d.expect("a t2+t3 ready")
	d.by("a", "2\n") // as if the third had been taken back alone
	d.expect("a t2+t3 ready")
	d.by("a", "1\n")
	d.expect("a t2+t3 before")
}

// A write that was noted, and that a crash kept from happening, is not a change by others.
func TestAWriteThatACrashCut(t *testing.T) {
	d := newDesk(t)
	d.by("a", "old\n")
	d.write(1, "a", "1\n")
	d.by("a", "old\n")
	d.undone["t1"] = true
	d.expect("a t1 before")
	d.write(1, "a", "1\n")
	d.expect("a t1 ready")
}

// A file whose old content is lost or damaged is left alone, and the others are taken back.
func TestLostContents(t *testing.T) {
	for name, tt := range map[string]struct {
		spoil     func(blob string) error
		as, wrong string
	}{
		"lost":    {os.Remove, "gone", "its earlier content was not kept"},
		"damaged": {func(blob string) error { return os.WriteFile(blob, []byte("other\n"), 0o600) }, "ready", "cannot be read"},
	} {
		d := newDesk(t)
		d.by("a", "old a\n")
		d.by("b", "old b\n")
		d.write(1, "a", "1\n")
		d.write(1, "b", "1\n")
		d.undone["t1"] = true
		if err := tt.spoil(filepath.Join(d.store.Dir, "blobs", StateOf([]byte("old a\n"), 0).SHA256)); err != nil {
			t.Fatal(err)
		}
		results, err := d.store.TakeBack(d.expect("a t1 "+tt.as, "b t1 ready"), false)
		if err != nil || len(results) != 2 || results[0].Outcome != Refused || !strings.Contains(results[0].Why, tt.wrong) ||
			results[1].Outcome != Done {
			t.Errorf("%s: %+v, %v", name, results, err)
		}
		if got := has(t, d.dir); got["a"] != "1\n" || got["b"] != "old b\n" {
			t.Errorf("%s: the folder has %q", name, got)
		}
	}
}

// growing is a file to which more is written while it is read.
type growing struct{ left int }

func (g *growing) Read(p []byte) (int, error) {
	if g.left == 0 {
		return 0, io.EOF
	}
	n := min(len(p), g.left)
	g.left -= n
	return n, nil
}

// A file that grows over the limit while it is read is one that is too large: half of it is not
// what it held.
func TestAFileThatGrowsIsNotKept(t *testing.T) {
	for _, tt := range []struct {
		size, left int
		kept       bool
	}{{100, 100, true}, {maxFile, maxFile, true}, {maxFile, maxFile + 1, false},
		{maxFile + 1, maxFile + 1, false}, {100, maxFile + 9, false}} {
		s, data, err := ReadFile(&growing{tt.left}, 0o644, int64(tt.size))
		if err != nil || (s.SHA256 != "") != tt.kept || (s.Other == "") != tt.kept || tt.kept && len(data) != tt.left {
			t.Errorf("%d bytes that were %d: %v, %d bytes, %v", tt.left, tt.size, s, len(data), err)
		}
	}
	if _, _, err := ReadFile(iotest.ErrReader(errors.New("no")), 0o644, 1); err == nil {
		t.Error("an error of reading is swallowed")
	}
}

func TestAHalfWrittenLineIsLeftOut(t *testing.T) {
	d := newDesk(t)
	d.write(1, "a", "1\n")
	path := filepath.Join(d.store.Dir, writtenName)
	good, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, append(good, `{"at":"2026`...), 0o600); err != nil {
		t.Fatal(err)
	}
	if list, err := d.store.Written(); err != nil || len(list) != 1 {
		t.Fatal(list, err)
	}
	d.write(2, "a", "2\n")
	if list, err := d.store.Written(); err != nil || len(list) != 2 {
		t.Fatal(list, err)
	}
	if err := os.WriteFile(path, append([]byte("{broken}\n"), good...), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := d.store.Written(); err == nil || !strings.Contains(err.Error(), "written.jsonl:1") {
		t.Error(err)
	}
}

// takeAll takes all back that an agent wrote.
func takeAll(agentDir string) int {
	s := Undo(disk.NewVolume(filepath.Dir(filepath.Dir(agentDir))), agentDir)
	if _, err := s.TakeBack(nil, false); err != nil { // what was cut
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	list, err := s.Written()
	var takes []Take
	if err == nil {
		takes, err = s.Back(list, func(Written) bool { return true })
	}
	if err == nil {
		takes = slices.DeleteFunc(takes, func(t Take) bool { return t.Standing == Before })
		_, err = s.TakeBack(takes, false)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// What is too old is not needed any more: without it a file is not offered, and the others are.
func TestUndoWithoutOldContents(t *testing.T) {
	d := newDesk(t)
	d.by("a", "old\n")
	d.by("b", "old too\n")
	d.write(1, "a", "1\n")
	d.write(2, "b", "2\n")
	d.undone["t1"], d.undone["t2"] = true, true
	d.expect("a t1 ready", "b t2 ready")
	list, err := d.store.Written()
	if err != nil {
		t.Fatal(err)
	}
	list[0].At = disk.StampOf(time.Now().Add(-time.Hour))
	needed := Needed(list, time.Now().Add(-time.Minute))
	blobs, err := os.ReadDir(filepath.Join(d.store.Dir, "blobs"))
	if err != nil || len(blobs) != 4 {
		t.Fatal(blobs, err)
	}
	for _, one := range blobs {
		if !needed[one.Name()] {
			if err := os.Remove(filepath.Join(d.store.Dir, "blobs", one.Name())); err != nil {
				t.Fatal(err)
			}
		}
	}
	takes := d.expect("a t1 gone", "b t2 ready")
	results, err := d.store.TakeBack(takes, false)
	if err != nil || len(results) != 2 || results[0].Outcome != Refused || !strings.Contains(results[0].Why, "retention.undo") ||
		results[1].Outcome != Done {
		t.Errorf("%+v %v", results, err)
	}
}

// Each step of noting and of taking back that fails is reported, and nothing is noted or taken back
// by half.
func TestFailedUndo(t *testing.T) {
	for _, fault := range []string{"eio", "eacces"} {
		failedUndo(t, fault)
	}
}

func failedUndo(t *testing.T, fault string) {
	crashtest.EachStepFails(t, fault, func(t *testing.T) func() error {
		d := newDesk(t)
		w := Written{Turn: "t1", Folder: d.dir, Path: "a", Before: StateOf([]byte("old"), 0o644), After: StateOf([]byte("new"), 0o644)}
		return func() error { return d.store.Note(w, []byte("old"), []byte("new")) }
	})
	crashtest.EachStepFails(t, fault, func(t *testing.T) func() error {
		d := newDesk(t)
		d.by("a", "old\n")
		d.by("b", "1\n2\n3\n4\n5\n")
		d.write(1, "a", "new\n")
		d.write(1, "b", "ONE\n2\n3\n4\n5\n")
		d.by("b", "ONE\n2\n3\n4\nFIVE\n")
		d.write(1, "dir/new", "1\n")
		d.undone["t1"] = true
		takes := d.takes()
		return func() error {
			results, err := d.store.TakeBack(takes, true)
			if refused := Refusals(results); err == nil && len(refused) > 0 {
				err = errors.New(refused[0].Why)
			}
			for path, states := range map[string][]string{"a": {"old\n", "new\n"}, "b": {"1\n2\n3\n4\nFIVE\n", "ONE\n2\n3\n4\nFIVE\n"},
				"dir/new": {"1\n", ""}} {
				if got := has(t, d.dir)[path]; !slices.Contains(states, got) || err == nil && got != states[0] && path != "dir/new" {
					t.Errorf("after %v %s has %q", err, path, got)
				}
			}
			return err
		}
	})
}

// What rewound turns wrote is found by the history, and taken back by name, or all that nobody else
// changed.
func TestUndoingFollowsTheHistory(t *testing.T) {
	ws := t.TempDir()
	home := filepath.Join(ws, ".daycare")
	vol := disk.NewVolume(home)
	agent := filepath.Join(home, "agents", "one")
	if err := os.MkdirAll(agent, 0o700); err != nil {
		t.Fatal(err)
	}
	u := UndoingOf(vol, workspace.OfData(home), "one")
	if takes, err := u.Takes(0); err != nil || len(takes) > 0 {
		t.Errorf("of an agent that wrote nothing: %v, %v", takes, err)
	}
	d := desk{t: t, dir: ws, store: u.Store}
	hist, _, err := record.Open(vol, agent, time.Now, slog.New(slog.DiscardHandler))
	if err == nil {
		err = hist.Begin("session")
	}
	if err != nil {
		t.Fatal(err)
	}
	work(t, d, hist, 1, "kept")
	kept := hist.Obligations().LastSeq
	work(t, d, hist, 2, "a", "dir/b")
	work(t, d, hist, 3, "a", "c")
	d.by("c", "mine\n")
	told := func(takes []Take, err error) string {
		var list []string
		for _, one := range takes {
			list = append(list, fmt.Sprint(u.Shown(one.File()), " ", one.Standing))
		}
		if err != nil {
			list = append(list, err.Error())
		}
		return strings.Join(list, ", ")
	}
	if got := told(u.Takes(0)); got != "" {
		t.Errorf("before the rewind: %s", got)
	}
	if got := told(u.Takes(kept)); got != "a ready, c since, dir/b ready" {
		t.Errorf("after a rewind that is to come: %s", got)
	}
	if _, err := hist.Append(&record.Rewind{To: kept}); err != nil {
		t.Fatal(err)
	}
	if got := told(u.Takes(0)); got != "a ready, c since, dir/b ready" {
		t.Errorf("after the rewind: %s", got)
	}

	var none *NoFile
	if _, err := u.TakeBack([]string{"a", "kept"}, false); !errors.As(err, &none) || none.Path != "kept" || !strings.Contains(err.Error(),
		"kept") {
		t.Errorf("a file that no rewound turn wrote: %v", err)
	}
	if got := has(t, ws); got["a"] == "" || got["kept"] == "" {
		t.Errorf("the folder has %q", got)
	}
	if results, err := u.TakeBack([]string{filepath.Join(ws, "a")}, false); err != nil || len(results) != 1 ||
		results[0].Outcome != Done {
		t.Errorf("by its whole path: %+v, %v", results, err)
	}
	if results, err := u.TakeBack([]string{"./dir/../c"}, false); err != nil || len(results) != 1 || results[0].Outcome != Refused {
		t.Errorf("what somebody else changed: %+v, %v", results, err)
	}
	if results, err := u.TakeBack(nil, false); err != nil || len(results) != 1 || results[0].Path != "dir/b" {
		t.Errorf("the rest: %+v, %v", results, err)
	}
	if results, err := u.TakeBack(nil, false); err != nil || len(results) > 0 {
		t.Errorf("nothing is left: %+v, %v", results, err)
	}
	if got := has(t, ws); got["a"] != "" || got["dir/b"] != "" || got["c"] != "mine\n" || got["kept"] == "" {
		t.Errorf("the folder has %q", got)
	}
	if got := u.Shown("/elsewhere/x"); got != "/elsewhere/x" {
		t.Errorf("a file elsewhere is shown as %s", got)
	}
	spoil(t, u, hist)
}

// work is a turn in which the tools of an agent write files, as its history has it.
func work(t *testing.T, d desk, hist *record.History, turn int, files ...string) {
	t.Helper()
	said := &record.Assistant{Turn: fmt.Sprint("t", turn), Finish: record.FinishToolUse}
	for _, path := range files {
		said.ToolCalls = append(said.ToolCalls, record.ToolCall{ID: fmt.Sprint("c", turn, path), Name: "write", Arguments: []byte("{}")})
	}
	if _, err := hist.Append(&record.TurnBegin{Turn: said.Turn, Attempt: 1}, said); err != nil {
		t.Fatal(err)
	}
	for _, path := range files {
		d.write(turn, path, fmt.Sprint(turn, "\n"))
	}
}

// spoil has each of what an undoing reads be unreadable, in turn.
func spoil(t *testing.T, u Undoing, hist *record.History) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(u.Store.Dir, journalName), []byte("[{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if cut, err := u.Complete(); err == nil || !cut {
		t.Errorf("a list of steps that cannot be read: %v, %v", cut, err)
	}
	if _, err := u.TakeBack(nil, false); err == nil {
		t.Error("a list of steps that cannot be read is no error")
	}
	if err := os.WriteFile(filepath.Join(u.Store.Dir, journalName), []byte("[]"), 0o600); err != nil {
		t.Fatal(err)
	}
	if cut, err := u.Complete(); err != nil || !cut {
		t.Errorf("an empty list of steps: %v, %v", cut, err)
	}
	if cut, err := u.Complete(); err != nil || cut {
		t.Errorf("no list of steps: %v, %v", cut, err)
	}
	path := filepath.Join(u.agentDir, "history.jsonl")
	if err := errors.Join(hist.Close(), os.Remove(path), os.Mkdir(path, 0o700)); err != nil {
		t.Fatal(err)
	}
	if _, err := u.Takes(0); err == nil {
		t.Error("a history that cannot be read is no error")
	}
	if _, err := u.TakeBack([]string{"c"}, false); err == nil {
		t.Error("a history that cannot be read has nothing rewound")
	}
	path = filepath.Join(u.Store.Dir, writtenName)
	if err := errors.Join(os.Remove(path), os.Mkdir(path, 0o700)); err != nil {
		t.Fatal(err)
	}
	if _, err := u.Takes(0); err == nil {
		t.Error("a list of files that cannot be read is no error")
	}
}

// A text that someone else changed since is left alone unless both changes are wanted, and also then if they touch the
// same lines.
func TestWhatSomeoneElseChangedSince(t *testing.T) {
	for name, tt := range map[string]struct {
		now   string
		merge bool
		why   string
		want  string
	}{
		"not wanted":       {"ONE\n2\n3\n4\nFIVE\n", false, "it changed since", "ONE\n2\n3\n4\nFIVE\n"},
		"wanted":           {"ONE\n2\n3\n4\nFIVE\n", true, "", "1\n2\n3\n4\nFIVE\n"},
		"the same line":    {"uno\n2\n3\n4\n5\n", true, "it has changed since and cannot be merged: ", "uno\n2\n3\n4\n5\n"},
		"it was removed":   {"", true, "it has changed since and cannot be merged", ""},
		"no text any more": {"\xff\n", true, "it has changed since and cannot be merged", "\xff\n"},
	} {
		t.Run(name, func(t *testing.T) {
			d := newDesk(t)
			d.by("b", "1\n2\n3\n4\n5\n")
			d.write(1, "b", "ONE\n2\n3\n4\n5\n")
			d.by("b", tt.now)
			d.undone["t1"] = true
			results, err := d.store.TakeBack(d.expect("b t1 since"), tt.merge)
			if err != nil || len(results) != 1 || (results[0].Outcome == Refused) != (tt.why != "") ||
				!strings.HasPrefix(results[0].Why, tt.why) {
				t.Errorf("%+v, %v, want %q", results, err, tt.why)
			}
			if got := has(t, d.dir)["b"]; got != tt.want {
				t.Errorf("the file has %q, want %q", got, tt.want)
			}
		})
	}

	text := State{SHA256: "x", Mode: 0o600}
	whole := Take{Step: Step{From: text, To: text}, Now: text, Standing: Since}
	if !whole.Mergeable() {
		t.Error("a text is not mergeable")
	}
	for name, spoil := range map[string]func(t *Take){
		"ready":       func(t *Take) { t.Standing = Ready },
		"a link":      func(t *Take) { t.Now.Other = "a link" },
		"gone":        func(t *Take) { t.Now = State{} },
		"gone before": func(t *Take) { t.To = State{} },
		"gone then":   func(t *Take) { t.From = State{} },
	} {
		one := whole
		if spoil(&one); one.Mergeable() {
			t.Errorf("%s: it is mergeable", name)
		}
	}
}

// What a tool is about to write is noted durably, or it is said that it is not.
func TestANoteThatFails(t *testing.T) {
	old, text := []byte("old"), []byte("new")
	w := Written{Turn: "t1", Path: "a", Before: StateOf(old, 0o644), After: StateOf(text, 0o644)}
	for _, fault := range []string{"eio@written.sync#1", "enospc@written.write#1"} {
		d := newDesk(t)
		crash.Arm(t, fault)
		if err := d.store.Note(w, old, text); err == nil {
			t.Errorf("%s: no error", fault)
		}
	}
	d := newDesk(t)
	if err := os.MkdirAll(filepath.Join(d.store.List(), "in the way"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := d.store.Note(w, old, text); err == nil {
		t.Error("a list that is a folder: no error")
	}
}
