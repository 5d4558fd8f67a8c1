package inbox

import (
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"daycare/engine/cuid"
	"daycare/engine/disk"
	"daycare/engine/message"
)

func openIn(t *testing.T, dir string, quota *Quota) *File {
	t.Helper()
	f, _, err := Open(disk.NewVolume(dir), dir, quota, time.Now)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return f
}

// An editor that writes in place takes away a line that was appended and is not yet
// behind its barrier, and no copy of it is in memory: that must not be acknowledged.
func TestItemTakenAwayBeforeItsBarrierIsNotAcknowledged(t *testing.T) {
	q := NewQuota(0)
	q.forceKeep(maxKept) // no room for copies
	f := openIn(t, t.TempDir(), q)
	older, err := f.Accept(t.Context(), Item{Kind: message.Text, Text: "older"})
	if err != nil {
		t.Fatal(err)
	}

	saved, err := os.ReadFile(f.dir.path())
	if err != nil {
		t.Fatal(err)
	}
	it := Item{Kind: message.Text, Text: "new", Dedupe: "k:1", ID: "namedbysomebodyelse00000"}
	f.mu.Lock()
	_, e, err := f.enter(&it)
	f.mu.Unlock()
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(f.dir.path(), saved, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := f.settle(e); err == nil {
		t.Error("an item that the file no longer has was acknowledged")
	}

	r, err := f.Accept(t.Context(), it)
	if err != nil || r.Duplicate {
		t.Errorf("offered again: %+v, %v; want it accepted", r, err)
	}
	if open := f.Open(); len(open) != 2 || open[0].ID != older.Item || open[1].ID != it.ID {
		t.Errorf("open are %+v", open)
	}
}

// The line was written to a file that an editor exchanged at that moment, and the file
// could not be read again: the try after that finds the line instead of writing a second.
func TestAcceptAfterAFailedReloadFindsItsLine(t *testing.T) {
	f := openIn(t, t.TempDir(), NewQuota(0))
	it := Item{Kind: message.Text, Text: strings.Repeat("x", 100), Dedupe: "k:1"}
	if _, err := f.Accept(t.Context(), Item{Kind: message.Text, Text: "older"}); err != nil {
		t.Fatal(err)
	}
	line := it
	line.ID, line.Seq, line.At = cuid.Unique(), 2, time.Now()
	if _, err := f.log.Append(appendItem(nil, &line)); err != nil { // of the try that failed
		t.Fatal(err)
	}

	touch(t, f.dir.path())
	r, err := f.Accept(t.Context(), it)
	if err != nil || !r.Duplicate || r.Item != line.ID {
		t.Errorf("%+v, %v; want the duplicate of %s", r, err, line.ID)
	}
	if n := len(f.Open()); n != 2 {
		t.Errorf("%d items are open, want 2", n)
	}
}

// touch makes the file look edited.
func touch(t *testing.T, path string) {
	t.Helper()
	if err := os.Chtimes(path, time.Time{}, time.Now().Add(-time.Hour)); err != nil {
		t.Fatal(err)
	}
}

// A time that JSON cannot write would make the item's line unreadable at the next start.
func TestItemOfAnImpossibleYearSurvivesAStart(t *testing.T) {
	dir := t.TempDir()
	f := openIn(t, dir, NewQuota(0))
	r, err := f.Accept(t.Context(), Item{Kind: message.Text, Text: "x", At: time.Date(12000, 1, 1, 0, 0, 0, 0, time.UTC)})
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	if open := openIn(t, dir, NewQuota(0)).Open(); len(open) != 1 || open[0].ID != r.Item {
		t.Errorf("after a start open are %+v, want item %s", open, r.Item)
	}
}

// An editor replaces the file by a version that lacks what came while it was open: that is in no
// memory, and still in the file that is let go.
func TestAnItemWithoutACopyIsTakenOutOfTheOldFile(t *testing.T) {
	q := NewQuota(0)
	q.forceKeep(maxKept) // no room for copies
	f := openIn(t, t.TempDir(), q)
	accept := func(text string) string {
		t.Helper()
		r, err := f.Accept(t.Context(), Item{Kind: message.Text, Text: text})
		if err != nil {
			t.Fatal(err)
		}
		return r.Item
	}
	want := []string{accept("older")}
	saved, err := os.ReadFile(f.dir.path())
	if err != nil {
		t.Fatal(err)
	}

	want = append(want, accept("while it was open"))
	if err := errors.Join(os.WriteFile(f.dir.path()+"~", saved, 0o600), os.Rename(f.dir.path()+"~", f.dir.path())); err != nil {
		t.Fatal(err)
	}
	want = append(want, accept("newer"))
	for i, h := range f.Open() {
		it, err := f.Read(h.ID)
		if i >= len(want) || h.ID != want[i] || err != nil || it.ID != h.ID {
			t.Errorf("%d: open is %s, %+v, %v; want %v", i, h.ID, it, err, want)
		}
	}

	if n := f.Len(); n != len(want) {
		t.Errorf("%d items are open, want %d", n, len(want))
	}
	if text, err := os.ReadFile(f.dir.path()); err != nil || !strings.Contains(string(text), "while it was open") {
		t.Errorf("it is not in the new file: %v", err)
	}
}
