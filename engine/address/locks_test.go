package address

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"syscall"
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

// A descriptor that cannot be read for a while, as on a disk that does not answer, keeps
// nobody from the other agents.
func TestNobodyWaitsForTheDescriptorsOfOthers(t *testing.T) {
	x := newIndex(t)
	var made [2]Meta
	for i := range made {
		var err error
		if made[i], err = x.Create(Descriptor{Type: Permanent, Name: fmt.Sprint("agent ", i)}, []byte("{}\n")); err != nil {
			t.Fatal(err)
		}
	}
	path := filepath.Join(x.dir, made[0].ID, descriptorFile)
	content, err := os.ReadFile(path)
	if err := errors.Join(err, os.Remove(path), syscall.Mkfifo(path, 0o600)); err != nil {
		t.Fatal(err)
	}
	scanned, others := make(chan error, 1), make(chan error, 1)
	go func() {
		_, _, err := x.Rescan()
		scanned <- err
	}()
	time.Sleep(20 * time.Millisecond) // it reads
	go func() {
		_, err := x.Reread(made[1].ID, true)
		if _, cerr := x.Create(Descriptor{Type: Permanent, Name: "third"}, []byte("{}\n")); err == nil {
			err = cerr
		}
		x.Forget(made[1].ID)
		if n := len(x.All()); err == nil && n != 2 {
			err = fmt.Errorf("%d agents, want two", n)
		}
		others <- err
	}()
	select {
	case err := <-others:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(10 * time.Second):
		t.Error("others wait for the descriptor of one agent")
	}
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err == nil {
		_, err = f.Write(content)
		err = errors.Join(err, f.Close(), os.Remove(path), os.WriteFile(path, content, 0o600))
	}
	if err := errors.Join(err, <-scanned); err != nil {
		t.Error(err)
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
	path := filepath.Join(x.dir, m.ID, descriptorFile)
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
