package budget

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"daycare/agents/providers"
)

// The file of a day stays open. What somebody else does to it counts at the next line.
func TestTheFileOfADayIsTheOneAtItsPath(t *testing.T) {
	spend := func(w *world, tokens int64) {
		t.Helper()
		w.Spend("a", "v", "m", providers.Usage{Input: tokens})
		if err := w.Err(); err != nil {
			t.Fatal(err)
		}
	}
	for name, tt := range map[string]struct {
		do   func(path string) error
		want int64
	}{
		"nothing":        {func(string) error { return nil }, 111},
		"removed":        {os.Remove, 100},
		"folder removed": {func(path string) error { return os.RemoveAll(filepath.Dir(path)) }, 100},
		"emptied":        {func(path string) error { return os.Truncate(path, 0) }, 100},
		"moved away":     {func(path string) error { return os.Rename(path, path+".old") }, 100},
		"replaced": {func(path string) error {
			data, err := os.ReadFile(path)
			return errors.Join(err, os.WriteFile(path+".new", []byte(strings.Replace(string(data), `"input":1,`, `"input":5,`, 1)), 0o600),
				os.Rename(path+".new", path))
		}, 115},
		"half a line added": {func(path string) error {
			f, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND, 0)
			if err != nil {
				return err
			}
			_, err = f.WriteString(`{"agent":"b`)
			return errors.Join(err, f.Close())
		}, 111},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			path := filepath.Join(w.dir, w.now.Format(time.DateOnly)+".jsonl")
			spend(w, 1)
			spend(w, 10)
			if err := tt.do(path); err != nil {
				t.Fatal(err)
			}
			spend(w, 100)
			w.open()
			if got := w.Spent("a").Tokens; got != tt.want {
				t.Errorf("read again, %d tokens were spent, want %d", got, tt.want)
			}
			w.now = w.now.AddDate(0, 0, 1)
			spend(w, 1000)
			if _, err := os.Stat(filepath.Join(w.dir, w.now.Format(time.DateOnly)+".jsonl")); err != nil {
				t.Errorf("the next day: %v", err)
			}
		})
	}
}

// A file that nobody else touches is opened once, also one that had lines before.
func TestTheFileOfADayIsOpenedOnce(t *testing.T) {
	path := filepath.Join(t.TempDir(), "usage", "2026-11-20.jsonl")
	for range 2 {
		var d dayFile
		var first *os.File
		for range 3 {
			if err := d.append(path, line{Agent: "a"}); err != nil {
				t.Fatal(err)
			}
			if first == nil {
				first = d.f
			}
			if d.f != first {
				t.Fatal("it was opened anew")
			}
		}
		if err := d.close(); err != nil {
			t.Fatal(err)
		}
	}
	if data, err := os.ReadFile(path); err != nil || strings.Count(string(data), "\n") != 6 || strings.Contains(string(data), "\n\n") {
		t.Errorf("the file has %q, %v", data, err)
	}
}
