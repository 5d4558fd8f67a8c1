//go:build !race

package inbox_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"daycare/engine/disk"
	"daycare/engine/inbox"
	"daycare/engine/message"
)

// No sender can bring an inbox to a hundred thousand open items, but a file may have them: from another version, or
// by hand. What is kept in memory of each is bounded, its text is not among it, and what is done for one item costs the
// same as with ten. It is done with 35,000, whose copies would take more than may be kept; DAYCARE_LONG=1 has a hundred thousand.
func TestManyOpenItems(t *testing.T) {
	n := 35_000
	if os.Getenv("DAYCARE_LONG") != "" {
		n = 100_000
	}
	few, many := costsWith(t, 10), costsWith(t, n)
	for name, with := range many {
		t.Logf("%-22s %6d bytes allocated with 10 open items, %9d with %d, %v", name, few[name].bytes, with.bytes, n, with.took)
		if most, ok := proportional[name]; ok {
			if with.bytes > most*int64(n)+copies[name] {
				t.Errorf("%s: %d bytes for %d open items, want at most %d for each", name, with.bytes, n, most)
			}
			continue
		}
		if with.bytes > few[name].bytes+32<<10 { // what grew with the items would be more; the runtime allocates, too
			t.Errorf("%s allocates %d bytes with %d open items, and %d with 10", name, with.bytes, n, few[name].bytes)
		}
	}
}

// proportional is what looks at all open items, and the most bytes that it allocates for each.
var proportional = map[string]int64{"open": 6000, "kept in memory": 380, "list": 300, "after an edit by hand": 8000}

// copies is what is kept of texts, of however many items.
var copies = map[string]int64{"kept in memory": 16 << 20}

// A price is what an operation allocates, and how long it takes.
type price struct {
	bytes int64
	took  time.Duration
}

// costsWith opens an inbox with so many open items and returns the price of each operation.
func costsWith(t *testing.T, n int) map[string]price {
	t.Helper()
	dir := t.TempDir()
	var lines strings.Builder
	text := strings.Repeat("word ", 100)
	for i := range n {
		fmt.Fprintf(&lines, `{"id":"a%023d","type":"message","text":"`, i)
		lines.WriteString(text)
		lines.WriteString(`"}` + "\n")
	}
	path := filepath.Join(dir, inbox.FileName)
	if err := os.WriteFile(path, []byte(lines.String()), 0o600); err != nil {
		t.Fatal(err)
	}

	var f *inbox.File
	id := func(i int) string { return fmt.Sprintf("a%023d", i) }
	costs, before := map[string]price{}, held()
	cost := func(name string, do func() error) {
		t.Helper()
		was, at := allocated(), time.Now()
		if err := do(); err != nil {
			t.Fatal(name, err)
		}
		took := time.Since(at)
		costs[name] = price{allocated() - was, took}
	}
	cost("open", func() (err error) {
		f, _, err = inbox.Open(disk.NewVolume(dir), dir, inbox.NewQuota(0), time.Now)
		return err
	})
	defer f.Close()
	costs["kept in memory"] = price{bytes: held() - before}
	cost("list", func() error {
		if got := len(f.Open()); got != n {
			return fmt.Errorf("%d open items", got)
		}
		return nil
	})
	cost("read", func() error { _, err := f.Read(id(5)); return err })
	cost("take", func() error { _, err := f.Take(id(0)); return err })
	cost("done", func() error { return f.Done(id(0)) })
	cost("front", func() error { return f.Front(id(7)) })
	cost("drop", func() error { return f.Drop(id(3)) })
	if n > inbox.MaxItems {
		cost("accept, refused", func() error {
			_, err := f.Accept(t.Context(), inbox.Item{Kind: message.Text, Text: "one more"})
			if !errors.Is(err, inbox.ErrFull) {
				return fmt.Errorf("one more item: %w", err)
			}
			return nil
		})
	}

	edited, err := os.ReadFile(path)
	if err == nil {
		err = os.WriteFile(path, append(edited, `{"id":"byhand0000000000000000000","type":"message","text":"by hand"}`+"\n"...), 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	cost("after an edit by hand", f.Refresh)
	if got := f.Len(); got != n-1 {
		t.Errorf("%d items are open after the edit, want %d", got, n-1)
	}

	return costs
}

func allocated() int64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.TotalAlloc)
}

// held is the memory that is in use.
func held() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}
