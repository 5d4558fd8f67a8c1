package engine

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"testing"

	"daycare/engine/inbox"
)

// An inbox with a line that cannot be read costs a message no more than another: what is
// wrong with it is known from when it was read. What costs it is counted in bytes of memory.
func TestABrokenLineMakesNoMessageDearer(t *testing.T) {
	const many = 2000
	per := map[bool]uint64{}
	for _, broken := range []bool{false, true} {
		root := t.TempDir()
		h := newHouse(t, root, echo(func(string, inbox.Item) {}))
		r := h.deliver(from("one", "hello"))
		if err := h.end(); err != nil {
			t.Fatal(err)
		}
		var lines bytes.Buffer
		for i := range many {
			fmt.Fprintf(&lines, "{\"seq\":%d,\"type\":\"message\",\"id\":\"old%020d\",\"text\":\"%0100d\"}\n{\"type\":\"done\","+
				"\"ids\":[\"old%020d\"]}\n", i+10, i, i, i)
		}
		if broken {
			lines.WriteString("{\"seq\":7,\"type\":\"mess\n")
		}
		path := filepath.Join(root, "agents", r.Agent, inbox.FileName)
		f, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := f.Write(lines.Bytes()); err != nil {
			t.Fatal(err)
		}
		f.Close()

		h = newHouse(t, root, echo(func(string, inbox.Item) {}))
		e, _, err := h.acquire(r.Agent) // it stays in memory
		if err != nil {
			t.Fatal(err)
		}
		if wrong := len(h.problems.Of(r.Agent)); wrong == 1 != broken {
			t.Errorf("%d things are known to be wrong with a file that is broken: %v", wrong, broken)
		}
		const messages = 50
		var before, after runtime.MemStats
		var each []uint64
		for i := range messages {
			runtime.ReadMemStats(&before)
			r := h.deliver(from("one", fmt.Sprint("message ", i)))
			if _, err := h.Await(t.Context(), r.Agent, r.Item); err != nil {
				t.Fatal(err)
			}
			runtime.ReadMemStats(&after)
			each = append(each, after.TotalAlloc-before.TotalAlloc)
		}
		// Others in this process allocate as well, now and then a lot: the message in the middle.
		slices.Sort(each)
		per[broken] = each[messages/2]
		e.release()
		if err := h.end(); err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("bytes allocated per message: %d, with a broken line %d", per[false], per[true])
	if per[true] > 3*per[false] {
		t.Errorf("a message costs %d bytes of memory in a broken inbox of %d lines, else %d", per[true], 2*many, per[false])
	}
}
