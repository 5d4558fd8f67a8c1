package schedule

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"daycare/engine/crash"
	"daycare/engine/disk"
)

// A long ledger is rotated: no line is lost, what is read from it is the same, and a
// rotation that a crash cut in two is finished by the next.
func TestLedgerIsRotated(t *testing.T) {
	w := newWorld(t, time.UTC, time.Date(2026, 11, 20, 9, 0, 0, 0, time.UTC))
	w.task("often", "every: 10s")
	ledger := filepath.Join(w.root, "cron/often/runs.jsonl")
	w.until(w.now.Add(2 * time.Minute))
	fill := func(n string) {
		var text []byte
		for i := range 9000 {
			l := line{At: w.now.Add(-time.Duration(9000-i) * time.Second), Outcome: Skipped, Via: ViaHand,
				Reason: "a line that is here to fill the ledger with something " + n}
			l.Slot = &l.At
			data, err := json.Marshal(l)
			if err != nil {
				t.Fatal(err)
			}
			text = append(append(text, data...), '\n')
		}
		old, err := os.ReadFile(ledger)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(ledger, append(text, old...), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	all := func() (n int) {
		paths, err := filepath.Glob(filepath.Join(w.root, "cron/often/runs/*.jsonl"))
		if err != nil {
			t.Fatal(err)
		}
		seen := map[string]bool{}
		for _, path := range append(paths, ledger) {
			data, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			for _, text := range disk.Lines(data) {
				seen[string(text)] = true
			}
		}
		return len(seen)
	}
	before := len(w.accepted)
	fill("one")
	lines := all()
	// A crash after the old file got its second name.
	if err := os.MkdirAll(filepath.Join(w.root, "cron/often/runs"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Link(ledger, filepath.Join(w.root, "cron/often/runs/000001.jsonl")); err != nil {
		t.Fatal(err)
	}
	w.cancel()
	w.start()
	w.until(w.now.Add(time.Minute))
	fill("two")
	lines += 9000
	w.until(w.now.Add(time.Minute))
	if info, err := os.Stat(ledger); err != nil || info.Size() > rotateBytes/2 {
		t.Errorf("the ledger has %d bytes after its rotation (%v)", info.Size(), err)
	}
	closed, _ := filepath.Glob(filepath.Join(w.root, "cron/often/runs/*"))
	if len(closed) != 2 {
		t.Errorf("closed ledgers %q, want two: the crash's rotation was finished under its name", closed)
	}
	if got := len(w.accepted) - before; got != 12 {
		t.Errorf("%d slots ran in two minutes around the rotations, want 12", got)
	}
	if got := all(); got != lines+2*12 {
		t.Errorf("%d lines in all files, want %d", got, lines+2*12)
	}
	for key, n := range w.accepted {
		if n != 1 {
			t.Errorf("%s was fired %d times", key, n)
		}
	}
}

// Nothing is written to a ledger while another part of the program has its turn at it.
func TestALedgerIsWrittenInTurn(t *testing.T) {
	dir := t.TempDir()
	vol, path := disk.NewVolume(dir), filepath.Join(dir, "runs.jsonl")
	release := vol.Turn(path)
	done := make(chan error, 1)
	go func() { done <- write(vol, path, line{Outcome: Ran}) }()
	select {
	case err := <-done:
		t.Errorf("written out of turn: %v", err)
	case <-time.After(50 * time.Millisecond):
	}
	release()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// A ledger that someone edits while a line is written keeps that edit and the line.
func TestALedgerThatIsEditedMeanwhile(t *testing.T) {
	dir := t.TempDir()
	vol, path := disk.NewVolume(dir), filepath.Join(dir, "runs.jsonl")
	if err := write(vol, path, line{At: noon, Outcome: Ran, Item: "one"}); err != nil {
		t.Fatal(err)
	}
	edit := func() {
		err := errors.Join(os.WriteFile(path+".new", []byte(`{"at":"2026-11-20T12:00:00Z","item":"edited"}`+"\n"), 0o600),
			os.Rename(path+".new", path))
		if err != nil {
			t.Error(err)
		}
	}
	crash.Meanwhile(t, "runs.write", func(k int) {
		if k == 1 {
			edit()
		}
	})
	if err := write(vol, path, line{At: noon, Outcome: Ran, Item: "two"}); err != nil {
		t.Fatal(err)
	}
	lines, err := readTail(path)
	if err != nil || len(lines) != 2 || lines[0].Item != "edited" || lines[1].Item != "two" {
		t.Errorf("the ledger is %+v, %v", lines, err)
	}

	crash.Meanwhile(t, "runs.write", func(k int) {
		if err := errors.Join(os.Remove(path), os.Mkdir(path, 0o700)); err != nil && k == 1 {
			t.Error(err)
		}
	})
	if err := write(vol, path, line{At: noon, Outcome: Ran, Item: "three"}); err == nil {
		t.Error("written to a folder")
	}
}

// A line can be longer than what is read of a ledger otherwise, as two long heartbeat items are: it is read, also before a line
// that a crash cut, and it outlives a rotation.
func TestALongLine(t *testing.T) {
	dir := t.TempDir()
	vol, path := disk.NewVolume(dir), filepath.Join(dir, "runs.jsonl")
	if err := os.WriteFile(path, []byte(strings.Repeat("{}\n", rotateBytes/3)), 0o600); err != nil {
		t.Fatal(err)
	}
	long := line{Slot: &noon, At: noon, Firing: &noon, Extra: strings.Repeat("x", 2*tailBytes)}
	for _, cut := range []string{"", `{"slot":"2026`} {
		if err := write(vol, path, long); err != nil {
			t.Fatal(err)
		}
		f, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
		if err == nil {
			_, err = f.WriteString(cut)
			err = errors.Join(err, f.Close())
		}
		got, readErr := readTail(path)
		if err = errors.Join(err, readErr); err != nil || len(got) == 0 || got[len(got)-1].Extra != long.Extra {
			t.Errorf("%d lines are read, %v", len(got), err)
		}
	}
	if files, err := closed(path); err != nil || len(files) == 0 {
		t.Errorf("rotated to %q, %v", files, err)
	}
}

// A ledger whose closed files cannot be listed is not rotated, and loses no line.
func TestWhereALedgerIsRotatedTo(t *testing.T) {
	w := newWorld(t, time.UTC, noon)
	w.task("t", "every: 10m")
	path := filepath.Join(w.root, "cron/t/runs.jsonl")
	want := func(what, name string, bad bool) {
		t.Helper()
		got, err := nextClosed(path)
		if (err != nil) != bad || !bad && got != filepath.Join(w.root, "cron/t/runs", name) {
			t.Errorf("%s: %q, %v", what, got, err)
		}
	}
	want("without any", "000001.jsonl", false)
	w.write("cron/t/runs/000001.jsonl", "")
	w.write("cron/t/runs/000009.jsonl", "")
	want("without a ledger", "", true)
	w.write("cron/t/runs.jsonl", strings.Repeat("{}\n", rotateBytes/3))
	want("after others", "000010.jsonl", false)
	w.loop("cron/t/runs")
	want("where they cannot be listed", "", true)
	if err := write(w.vol, path, line{At: noon, Outcome: Ran}); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(path); err != nil || info.Size() < rotateBytes {
		t.Errorf("its ledger is %+v, %v", info, err)
	}
	w.remove("cron/t/runs")
	if err := write(w.vol, path, line{At: noon, Outcome: Ran}); err != nil {
		t.Fatal(err)
	}
	if closed, err := closed(path); err != nil || len(closed) != 1 || filepath.Base(closed[0]) != "000001.jsonl" {
		t.Errorf("closed are %q, %v", closed, err)
	}
}

// A disk that fails while a ledger is rotated is reported by whoever writes the line.
func TestADiskThatFailsInARotation(t *testing.T) {
	w := newWorld(t, time.UTC, noon)
	w.task("t", "every: 10m")
	w.write("cron/t/runs.jsonl", strings.Repeat("{}\n", rotateBytes/3))
	crash.Arm(t, "eio@runs.rotate.dirsync#1")
	if err := write(w.vol, filepath.Join(w.root, "cron/t/runs.jsonl"), line{At: noon, Outcome: Ran}); !errors.Is(err, disk.ErrFailed) {
		t.Errorf("the write ended with %v", err)
	}
}

// Where the ledger is ahead of the clock and what is older cannot be read, nothing runs until it
// can be.
func TestOlderLinesThatCannotBeRead(t *testing.T) {
	text, err := json.Marshal(line{Slot: ptr(noon.Add(10 * time.Minute)), At: noon, Outcome: Ran, Spec: specHash("* * * * * UTC")})
	if err != nil {
		t.Fatal(err)
	}
	for name, spoil := range map[string]func(w *world) (restore func()){
		"a file": func(w *world) func() { return w.block("cron/t/runs/000001.jsonl") },
		"all": func(w *world) func() {
			w.loop("cron/t/runs")
			return func() { w.remove("cron/t/runs") }
		},
	} {
		w := newWorld(t, time.UTC, noon)
		w.task("t", "taskId: tz4a98xxat96iws9zmbrgj3a\nschedule: \"* * * * *\"")
		w.write("cron/t/runs.jsonl", string(text)+"\n")
		w.write("cron/t/runs/000001.jsonl", "")
		restore := spoil(w)
		if next := w.settle(); !next.Equal(noon.Add(longest)) {
			t.Errorf("%s: it is read again at %v", name, next)
		}
		if w.until(noon.Add(2 * time.Minute)); w.offered > 0 {
			t.Errorf("%s: %d runs of a ledger that was not read", name, w.offered)
		}
		restore()
		if w.until(noon.Add(3 * time.Minute)); w.offered == 0 {
			t.Errorf("%s: nothing runs when it can be read", name)
		}
	}
}

// What is read of older lines is bounded, and ends where the schedule begins.
func TestOlderLinesAreBounded(t *testing.T) {
	w := newWorld(t, time.UTC, noon)
	path := filepath.Join(w.root, "cron/t/runs.jsonl")
	items := func(want ...string) {
		t.Helper()
		lines, err := readOlder(path)
		var got []string
		for _, l := range lines {
			got = append(got, l.Item)
		}
		if err != nil || !slices.Equal(got, want) {
			t.Errorf("read are %q, %v; want %q", got, err, want)
		}
	}
	for file, name := range map[string]string{"runs/000001": "1", "runs/000002": "2", "runs/000003": "3", "runs": "4"} {
		w.write("cron/t/"+file+".jsonl", `{"at":"2026-11-20T12:00:00Z","item":"`+name+`"}`+"\n")
	}
	items("1", "2", "3", "4")
	w.write("cron/t/runs/000002.jsonl", `{"at":"2026-11-20T12:00:00Z","item":"2","set":"x"}`+"\n")
	items("2", "3", "4")
	w.write("cron/t/runs/000002.jsonl", "")
	if err := os.Truncate(filepath.Join(w.root, "cron/t/runs/000003.jsonl"), olderBytes); err != nil {
		t.Fatal(err)
	}
	items("4")
}

// Older lines say which slots to come have a line, of the current schedule and of no other.
func TestWhatOlderLinesSay(t *testing.T) {
	slot := func(minutes int) *time.Time { return ptr(noon.Add(time.Duration(minutes) * time.Minute)) }
	st := fold([]line{{At: noon.Add(-2 * time.Hour), Slot: slot(-120), Outcome: Ran}}, noon)
	st.recall([]line{
		{At: noon, Slot: slot(1), Outcome: Ran}, {At: noon, Set: "x"}, {At: noon, Hash: "x"}, {At: noon, Slot: slot(-1), Outcome: Ran},
		{At: noon, Slot: slot(0), Outcome: Ran}, {At: noon, Slot: slot(2), Outcome: Ran},
	}, noon)
	if !slices.Equal(st.done, []int64{slot(2).Unix()}) || !st.top.Equal(*slot(2)) || !st.cursor.Equal(*slot(-120)) {
		t.Errorf("done are %v up to %v, from %v", st.done, st.top, st.cursor)
	}
}
