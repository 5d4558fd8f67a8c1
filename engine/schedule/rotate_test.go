package schedule

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
	"time"

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
