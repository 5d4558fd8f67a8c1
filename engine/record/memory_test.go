package record

import (
	"runtime"
	"strings"
	"testing"
)

// What a process keeps of a history does not grow with the file: a start keeps the turn that
// is open, the model's context what came after the current summary, and a turn only itself.
func TestMemoryDoesNotGrowWithTheHistory(t *testing.T) {
	short, long := keptOf(t, 1<<20), keptOf(t, 64<<20)
	for _, k := range []struct {
		what        string
		short, long kept
	}{
		{"a start", short[0], long[0]}, {"the model's context", short[1], long[1]}, {"a turn", short[2], long[2]},
	} {
		t.Logf("%s: %d KiB kept of 1 MiB, %d KiB of 64 MiB; allocated %d and %d KiB", k.what,
			k.short.inUse>>10, k.long.inUse>>10, k.short.allocated>>10, k.long.allocated>>10)
		if k.long.inUse > k.short.inUse+4<<20 || k.long.allocated > k.short.allocated+16<<20 {
			t.Errorf("%s keeps %d KiB and allocates %d KiB", k.what, k.long.inUse>>10, k.long.allocated>>10)
		}
	}
}

// kept is what a step left on the heap, and what it allocated in all.
type kept struct{ inUse, allocated int64 }

// keptOf opens a history of about size bytes, which ends in a summary and two turns, asks for
// the model's context, and adds a turn.
func keptOf(t *testing.T, size int64) (all [3]kept) {
	h := begun(t)
	text := strings.Repeat("long ago ", 8<<10)
	for i := 0; h.file.Size() < size; i++ {
		turn(t, h, "old", "why?", text)
	}
	add(t, h, &Summary{Text: "much was said", From: 1, KeptFrom: h.fold.o.LastSeq + 1})
	turn(t, h, "t1", "one?", "1")
	turn(t, h, "t2", "two?", "2")
	dir := h.dir
	if err := h.Close(); err != nil {
		t.Fatal(err)
	}

	h = nil
	before := heap()
	h, _ = reopen(t, dir, newClock())
	for i, step := range []func(){func() {}, func() {
		c, err := h.Context()
		if err != nil || c.Summary == nil || len(c.Entries) != 4 {
			t.Fatalf("context %+v, %v", c, err)
		}
	}, func() { turn(t, h, "t3", "three?", "3") }} {
		step()
		now := heap()
		all[i] = kept{int64(now.HeapAlloc) - int64(before.HeapAlloc), int64(now.TotalAlloc - before.TotalAlloc)}
	}

	runtime.KeepAlive(h)
	return all
}

func heap() (m runtime.MemStats) {
	runtime.GC()
	runtime.GC() // once more for what the first one finalized
	runtime.ReadMemStats(&m)
	return m
}
