package disk

import (
	"bufio"
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestLock(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	if Held(path) || Exists(path) {
		t.Error("asking made a lock")
	}
	os.WriteFile(path, []byte(`{"pid":123456789,"socket":"a much longer content from an earlier holder"}`+"\n"), 0o600)
	if Held(path) {
		t.Error("a lock file without a process counts as held")
	}

	me := Holder{PID: 7, StartedAt: StampOf(time.Date(2026, 11, 20, 18, 22, 0, 0, time.UTC)), Socket: "s"}
	l, got, err := TryLock(path, me)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(me, got); d != "" {
		t.Error(d)
	}
	if read, err := ReadHolder(path); err != nil || !cmp.Equal(me, read) {
		t.Errorf("read %+v, %v", read, err)
	}
	if data, err := os.ReadFile(path); err != nil || bytes.Count(data, []byte("\n")) != 1 || bytes.Contains(data, []byte("earlier")) {
		t.Errorf("the file has more than its holder: %s, %v", data, err)
	}
	if _, other, err := TryLock(path, Holder{PID: 8}); !errors.Is(err, ErrLocked) || !cmp.Equal(me, other) {
		t.Errorf("second lock: %+v, %v", other, err)
	}
	if !Held(path) {
		t.Error("a held lock counts as free")
	}
	if err := l.Release(); err != nil {
		t.Fatal(err)
	}
	if Held(path) {
		t.Error("a released lock counts as held")
	}
}

// Whoever asks all the time whether the lock is held does not keep the next
// holder from it.
func TestLockWhileAsked(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	stop := make(chan struct{})
	var asking sync.WaitGroup
	for range 2 {
		asking.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
					Held(path)
				}
			}
		})
	}

	for range 20 {
		l, _, err := TryLock(path, Holder{PID: 1})
		if err != nil {
			t.Error(err)
			break
		}
		l.Release()
	}

	close(stop)
	asking.Wait()
}

// A lock ends with its process, however that ends.
func TestLockEndsWithProcess(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "lock")
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), "DISK_TEST_CHILD=lock@"+dir)
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}

	bufio.NewReader(out).ReadString('\n')
	_, holder, err := TryLock(path, Holder{PID: 1})
	if !errors.Is(err, ErrLocked) || holder.PID != cmd.Process.Pid {
		t.Errorf("a lock of process %d: %+v, %v", cmd.Process.Pid, holder, err)
	}
	cmd.Process.Kill()
	cmd.Wait()
	if _, _, err := TryLock(path, Holder{PID: 1}); err != nil {
		t.Errorf("after its death: %v", err)
	}
}

func TestALockIsLostWithItsFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	lock, _, err := TryLock(path, Holder{PID: os.Getpid()})
	if err != nil {
		t.Fatal(err)
	}
	defer lock.Release()
	if lock.Lost() {
		t.Error("lost at once")
	}
	if err := os.Remove(path); err != nil || !lock.Lost() {
		t.Errorf("removed, and not lost (%v)", err)
	}
	if err := os.WriteFile(path, nil, 0o600); err != nil || !lock.Lost() {
		t.Errorf("replaced, and not lost (%v)", err)
	}
}
