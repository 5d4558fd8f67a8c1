//go:build !race

package memory

import (
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"
)

// What starts no goroutine: the race detector has nothing to find there and makes it take
// ten times as long. .ci/run runs these tests without it.

// Ten thousand notes: how long the first search takes, later ones, and one after an
// edit by hand.
func TestTenThousandNotes(t *testing.T) {
	if testing.Short() {
		t.Skip("short")
	}
	h := newHand(t, map[string]string{"first.md": "x"})
	r := rand.New(rand.NewPCG(1, 2))
	vocabulary := make([]string, 20_000)
	for i := range vocabulary {
		vocabulary[i] = fmt.Sprintf("%s%s", []string{"ba", "ko", "mi", "tra", "sel"}[r.IntN(5)],
			strings.ToLower(fmt.Sprintf("%x", r.IntN(1<<20))))
	}

	size := 0
	for i := range 10_000 {
		var b strings.Builder
		fmt.Fprintf(&b, "# Note %d\n\n", i)
		for range 80 {
			b.WriteString(vocabulary[int(float64(len(vocabulary))*r.Float64()*r.Float64())] + " ")
		}
		size += b.Len()
		h.put(fmt.Sprintf("n%02d/note%d.md", i%100, i), b.String())
	}

	h.put("n07/needle.md", "# Needle\n\nthe walrus lives in hut seventeen\n")
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	took := func(query, want string) time.Duration {
		start := processorTime(t)
		if got := h.found(query); len(got) == 0 || got[0] != want {
			t.Fatalf("%q: %v", query, got)
		}
		return processorTime(t) - start
	}
	first := took("where does the walrus live", "n07/needle.md:1")
	runtime.GC()
	runtime.ReadMemStats(&after)
	h.age() // files this young are read again
	took("walrus hut", "n07/needle.md:1")
	again := took("walrus hut", "n07/needle.md:1")
	h.put("n07/needle.md", "# Needle\n\nthe otter lives in hut eighteen\n")
	edited := took("otter hut", "n07/needle.md:1")
	t.Logf("%d KB of notes, processor time: first search %v, later %v, after an edit %v; index %d MB", size>>10,
		first.Round(time.Millisecond), again.Round(time.Millisecond), edited.Round(time.Millisecond),
		(after.HeapAlloc-before.HeapAlloc)>>20)
	if again > 2*time.Second {
		t.Errorf("a search takes %v", again)
	}
}

// age makes all notes an hour old.
func (h *hand) age() {
	h.t.Helper()
	old := time.Now().Add(-time.Hour)
	err := filepath.WalkDir(h.dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		return os.Chtimes(path, old, old)
	})
	if err != nil {
		h.t.Fatal(err)
	}
}

// processorTime is what the process has used so far: how fast a search is must not
// depend on what else the machine does.
func processorTime(t *testing.T) time.Duration {
	t.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		t.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
