package address

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"daycare/engine/disk"
)

func newIndex(t *testing.T) *Index {
	t.Helper()
	root := t.TempDir()
	x, _, err := Load(disk.NewVolume(root), root, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { x.Close() })

	return x
}

// A scan that waits for the disk, here for the file of handles, keeps nobody from the
// agents that are known.
func TestNobodyWaitsForAScan(t *testing.T) {
	x := newIndex(t)
	var made [2]Meta
	for i := range made {
		var err error
		if made[i], err = x.Create(Descriptor{Type: Permanent, Name: fmt.Sprint("agent ", i)}, []byte("{}\n")); err != nil {
			t.Fatal(err)
		}
	}

	const id = "copiedin0000000000000000"
	copied, err := Encode(Descriptor{Type: Permanent, ID: id, Name: "copied in"})
	if err := errors.Join(err, os.Mkdir(filepath.Join(x.scan.dir, id), 0o700),
		os.WriteFile(filepath.Join(x.scan.dir, id, descriptorFile), copied, 0o600)); err != nil {
		t.Fatal(err)
	}

	x.scan.handles.mu.Lock()
	scanned, others := make(chan error, 1), make(chan error, 1)
	go func() {
		_, _, err := x.Rescan()
		scanned <- err
	}()

	time.Sleep(20 * time.Millisecond) // it is in the middle of it
	go func() {
		_, err := x.Reread(made[0].ID, true)
		x.Forget(made[1].ID)
		if n := len(x.All()); err == nil && n != 1 {
			err = fmt.Errorf("%d agents, want one", n)
		}
		others <- err
	}()

	select {
	case err := <-others:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(time.Minute):
		t.Error("others wait for the scan")
	}

	x.scan.handles.mu.Unlock()
	if err := <-scanned; err != nil {
		t.Error(err)
	}
	if _, ok := x.Get(id); !ok {
		t.Error("the scan did not find the agent that was copied in")
	}
}

// Whoever reads at the same time, what counts in the end is what stands in the file; an
// agent that was forgotten meanwhile does not come back.
func TestReadersAtOnceAgreeWithTheFiles(t *testing.T) {
	x := newIndex(t)
	m, err := x.Create(Descriptor{Type: Permanent, Name: "Ops"}, []byte("{}\n"))
	if err != nil {
		t.Fatal(err)
	}
	gone, err := x.Create(Descriptor{Type: Permanent, Name: "Gone"}, []byte("{}\n"))
	if err != nil {
		t.Fatal(err)
	}

	path := filepath.Join(x.scan.dir, m.ID, descriptorFile)
	var wg sync.WaitGroup
	for n := range 200 {
		text := fmt.Sprintf(`{"type":"permanent","id":%q,"name":"Ops","description":"version %d"}`, m.ID, n)
		if err := os.WriteFile(path+".new", []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(path+".new", path); err != nil {
			t.Fatal(err)
		}

		for range 3 {
			wg.Go(func() { x.Reread(m.ID, true) })
		}
		wg.Go(func() { x.Rescan() })
		if n == 100 {
			if _, err := x.Remove(gone.ID); err != nil {
				t.Fatal(err)
			}
		}
	}

	wg.Wait()
	if _, err := x.Reread(m.ID, true); err != nil {
		t.Fatal(err)
	}
	if now, _ := x.Get(m.ID); now.Descriptor.Description != "version 199" || now.Handle != m.Handle {
		t.Errorf("in force is %q as %s", now.Descriptor.Description, now.Handle)
	}
	if _, ok := x.Get(gone.ID); ok {
		t.Error("an agent in the trash is in the index")
	}
}
