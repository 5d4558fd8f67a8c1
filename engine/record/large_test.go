//go:build !race

package record

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// What looks at the newest of a history reads its end, however much there is: with 1 GiB in older files each
// operation allocates what it does without.
func TestAGiBOfHistory(t *testing.T) {
	short, long := newestOf(t, 0), newestOf(t, 128)
	for name, with := range long {
		t.Logf("%-8s %7d bytes allocated without older files, %7d with 1 GiB of them", name, short[name], with)
		if with > short[name]+256<<10 {
			t.Errorf("%s allocates %d bytes with 1 GiB of history, and %d without", name, with, short[name])
		}
	}
}

// newestOf returns what operations allocate on a history with so many older files of 8 MiB.
func newestOf(t *testing.T, older int) map[string]uint64 {
	t.Helper()
	h := begun(t)
	turn(t, h, "t1", "one?", "1")
	add(t, h, &Reset{Session: "s2", V: Version})
	turn(t, h, "t2", "two?", "2")
	dir := h.dir
	if err := h.Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(dir, closedDir), 0o700); err != nil {
		t.Fatal(err)
	}
	for i := range older { // holes: to read one takes memory, and on disk it is nothing
		path := filepath.Join(dir, closedDir, fmt.Sprintf("%06d.jsonl", i+1))
		if err := os.WriteFile(path, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Truncate(path, RotateBytes); err != nil {
			t.Fatal(err)
		}
	}

	all := map[string]uint64{}
	cost := func(name string, do func() error) {
		t.Helper()
		before := heap().TotalAlloc
		if err := do(); err != nil {
			t.Fatal(name, err)
		}
		all[name] = heap().TotalAlloc - before
	}
	cost("settled", func() error { _, err := Settled(dir); return err })
	cost("newest", func() error { _, err := Newest(dir); return err })
	cost("tail", func() error { _, _, err := Tail(dir, 0, 3); return err })
	cost("closing", func() error {
		if o, ok, err := Closing(dir, "it2"); !ok || err != nil || o.Text != "2" {
			return fmt.Errorf("%+v %v %w", o, ok, err)
		}
		return nil
	})
	cost("open", func() (err error) { h, _ = reopen(t, dir, newClock()); return nil })
	cost("context", func() error { _, err := h.Context(); return err })
	cost("session", func() error { _, err := h.Session(); return err })
	cost("append", func() error { turn(t, h, "t3", "three?", "3"); return h.Barrier() })

	return all
}

// What reads all of a history keeps a window of a file and a line of it, not the file.
func TestReadingAllOfAHistoryKeepsLittle(t *testing.T) {
	h := begun(t)
	h.limits.rotate = 1 << 20
	text := strings.Repeat("long ago ", 1<<10)
	for i := 0; i < 24<<20; i += len(text) {
		turn(t, h, fmt.Sprint("t", i), "why?", text)
	}
	turn(t, h, "last", "why?", strings.Repeat("x", 2<<20))
	before, most, n := heap().HeapAlloc, uint64(0), 0
	err := Spent(h.dir, time.Time{}, func(Spend) {
		if n++; n%500 == 0 {
			most = max(most, heap().HeapAlloc)
		}
	})
	if err != nil || n == 0 {
		t.Fatal(n, err)
	}
	t.Logf("%d answers of %d KiB; %d KiB in use at most", n, h.file.Size()>>10, (int64(most)-int64(before))>>10)
	if int64(most) > int64(before)+8<<20 {
		t.Errorf("%d bytes in use while %d are read", int64(most)-int64(before), h.file.Size())
	}
}

// A very long line takes its own size a few times while it is read, and nothing where it is not. It is above the size at which
// a history is rotated; DAYCARE_LONG=1 has one of 50 MB.
func TestAVeryLongLine(t *testing.T) {
	megabytes := 12
	if os.Getenv("DAYCARE_LONG") != "" {
		megabytes = 50
	}
	h := begun(t)
	turn(t, h, "t1", "one?", "1")
	long := `{"type":"user_message","text":"` + strings.Repeat("long ", megabytes*200_000) + `"}` + "\n"
	save(t, h, append(content(t, h), long...))
	if _, _, err := h.Refresh(); err != nil {
		t.Fatal(err)
	}
	add(t, h, &Reset{Session: "s2", V: Version})
	turn(t, h, "t2", "two?", "2")
	dir := h.dir
	if err := h.Close(); err != nil {
		t.Fatal(err)
	}
	h = nil
	for _, op := range []struct {
		name string
		most uint64
		do   func() error
	}{
		{"settled", 1 << 20, func() error { _, err := Settled(dir); return err }},
		{"newest", 1 << 20, func() error { _, err := Newest(dir); return err }},
		{"closing", 1 << 20, func() error { _, _, err := Closing(dir, "it2"); return err }},
		{"open", 1 << 20, func() error { h, _ = reopen(t, dir, newClock()); return nil }},
		{"context", 1 << 20, func() error { _, err := h.Context(); return err }},
		{"tail", uint64(5 * megabytes << 20), func() error {
			lines, _, err := Tail(dir, 0, 20)
			if err == nil && len(lines) < 8 {
				err = fmt.Errorf("%d lines", len(lines))
			}
			return err
		}},
	} {
		before, at := heap(), time.Now()
		if err := op.do(); err != nil {
			t.Fatal(op.name, err)
		}
		took, now := time.Since(at), heap()
		t.Logf("%-8s allocates %6d KiB, %v", op.name, (now.TotalAlloc-before.TotalAlloc)>>10, took)
		if now.TotalAlloc-before.TotalAlloc > op.most || now.HeapAlloc > before.HeapAlloc+1<<20 {
			t.Errorf("%s allocates %d KiB and keeps %d, want at most %d and 1024", op.name, (now.TotalAlloc-before.TotalAlloc)>>10,
				(int64(now.HeapAlloc)-int64(before.HeapAlloc))>>10, op.most>>10)
		}
	}
}
