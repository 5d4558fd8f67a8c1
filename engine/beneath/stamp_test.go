package beneath

import (
	"os"
	"path/filepath"
	"testing"
	"time"
)

// Each way to change a file changes its stamp, also those that keep its size and its time.
func TestAStampChangesWithTheFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a")
	look := func() Stamp {
		t.Helper()
		info, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		return StampOf(info)
	}
	write := func(path, text string) {
		t.Helper()
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}

	write(path, "one")
	seen := look()
	ways := map[string]func(){
		"written": func() { write(path, "two") },
		"written, its time set back": func() {
			write(path, "one")
			os.Chtimes(path, time.Time{}, time.Unix(0, seen.Written))
		},
		"replaced by a file of its size and time": func() {
			write(path+"~", "six")
			os.Chtimes(path+"~", time.Time{}, time.Unix(0, seen.Written))
			os.Rename(path+"~", path)
		},
		"mode": func() { os.Chmod(path, 0o640) },
	}

	for name, change := range ways {
		before := look()
		time.Sleep(Tick)
		if again := look(); again != before || !again.Lasts(time.Now()) {
			t.Fatalf("%s: %+v, then %+v of the same file, %v old", name, before, again, Tick)
		}
		change()
		if after := look(); after == before || after.Lasts(time.Now()) {
			t.Errorf("%s: %+v is the stamp still, or said to last", name, after)
		}
	}
}

// Where a file system counts whole seconds, or every other one, a stamp is believed once they are
// over.
func TestCoarseStamps(t *testing.T) {
	for _, tt := range []struct {
		changed, looked time.Duration
		want            bool
	}{{5001 * time.Millisecond, 5101 * time.Millisecond, false}, {5001 * time.Millisecond, 5102 * time.Millisecond, true},
		{5 * time.Second, 5200 * time.Millisecond, false}, {5 * time.Second, 7100 * time.Millisecond, false},
		{5 * time.Second, 7101 * time.Millisecond, true}} {
		if got := (Stamp{Changed: int64(tt.changed)}).Lasts(time.Unix(0, int64(tt.looked))); got != tt.want {
			t.Errorf("changed at %v, looked at %v: %v", tt.changed, tt.looked, got)
		}
	}
}
