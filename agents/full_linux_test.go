package agents

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"daycare/engine/disk"
	"daycare/engine/record"
	"daycare/tools"
)

// A call that worked while the disk became full is recorded as one that worked, as soon
// as there is room, with all that it said.
func TestACallThatWorkedIsRecordedAlthoughTheDiskIsFull(t *testing.T) {
	t.Parallel()
	for name, said := range map[string]string{"in a line": strings.Repeat("it worked ", 900),
		"in a file": strings.Repeat("it worked ", 8000)} {
		t.Run(name, func(t *testing.T) {
			h := newHold("hold", tools.Once)
			b := newBench(t, callHold, h)
			b.moveTo(smallDisk(t))
			b.run()
			item := b.say("go")
			<-h.running
			fill := filepath.Join(b.opts.Dir, "fill")
			brim(t, fill)
			h.release <- said
			within(t, "the disk is found full", b.vol.Full)
			if err := os.Remove(fill); err != nil {
				t.Fatal(err)
			}
			if o := b.outcome(item); o.Reason != record.ReasonDone {
				t.Errorf("the turn ended %q: %s", o.Reason, o.Error)
			}

			b.halt()
			if s := b.history(); !strings.Contains(s, `"status":"ok"`) || strings.Contains(s, "interrupted") ||
				strings.Contains(s, "could not be kept") {
				t.Errorf("the call is not recorded as one that worked:\n%.3000s", s)
			}
		})
	}
}

// moveTo puts the agent on another disk.
func (b *bench) moveTo(root string) {
	b.t.Helper()
	b.box.Close()
	b.dir = filepath.Join(root, filepath.Base(b.dir))
	if err := os.Mkdir(b.dir, 0o700); err != nil {
		b.t.Fatal(err)
	}
	b.vol = disk.NewVolume(root)
	b.opts.Dir, b.opts.Volume = b.dir, b.vol
	b.openBox()
}

// smallDisk mounts a file system that is soon full.
func smallDisk(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	if err := syscall.Mount("daycare-test", dir, "tmpfs", 0, "size=24m"); err != nil {
		t.Skipf("SKIPPED, not shown here: a small file system cannot be mounted: %v", err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(dir, syscall.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})

	return dir
}

// brim writes until there is no byte left.
func brim(t *testing.T, path string) {
	t.Helper()
	f, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()

	for size := 64 << 10; size > 0; {
		if _, err := f.Write(make([]byte, size)); errors.Is(err, syscall.ENOSPC) {
			size /= 2
		} else if err != nil {
			t.Fatal(err)
		}
	}
}
