package disk

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"daycare/engine/crash"
)

// A file is never closed under a barrier: whatever lets go of it waits until the barrier is
// over, and the barrier covers what it should.
func TestABarrierUnderWayIsWaitedFor(t *testing.T) {
	for name, op := range map[string]func(l *Log) error{
		"close":   (*Log).Close,
		"reload":  func(l *Log) error { _, err := reloaded(l); return err },
		"replace": func(l *Log) error { return l.Replace([]byte("{new}\n"), "") },
	} {
		t.Run(name, func(t *testing.T) {
			l := openLog(t, filepath.Join(t.TempDir(), "log"))
			if _, err := l.Append([]byte("{a}\n")); err != nil {
				t.Fatal(err)
			}
			time.Sleep(2 * freshness) // the file is at rest: nothing else is waited for
			for range maxBarriers {   // others keep the barrier waiting
				l.vol.enter()
			}

			barrier, done := make(chan error, 1), make(chan error, 1)
			go func() { barrier <- l.Barrier() }()
			under := func() bool {
				l.mu.Lock()
				defer l.mu.Unlock()
				return l.syncing
			}
			for !under() {
				time.Sleep(time.Millisecond)
			}

			go func() { done <- op(l) }()
			select {
			case err := <-done:
				t.Fatalf("it did not wait: %v", err)
			case <-time.After(20 * time.Millisecond):
			}

			for range maxBarriers {
				l.vol.leave()
			}
			if err := errors.Join(<-barrier, <-done); err != nil {
				t.Error(err)
			}
			if err := l.vol.Err(); err != nil {
				t.Errorf("the volume says %v", err)
			}
		})
	}
}

// The second name of an old log is taken back where its content could not be replaced, unless
// nothing can be done any more.
func TestAReplacementThatFailsLeavesNoSecondName(t *testing.T) {
	for name, tt := range map[string]struct {
		why   error
		edit  bool // someone saves it meanwhile
		stays bool
	}{
		"no descriptors": {syscall.EMFILE, false, false}, "a save": {nil, true, false}, "a broken disk": {syscall.EIO, false, true},
	} {
		dir := t.TempDir()
		l := openLog(t, filepath.Join(dir, "log"))
		if _, err := l.Append([]byte("{old}\n")); err != nil {
			t.Fatal(err)
		}
		n := 1
		before := map[int]func(){}
		if tt.edit {
			n, before[1] = 9, func() { write(t, l.path, "{by hand}\n") }
		}

		l.vol.exchange = failing(n, tt.why, before)
		keep := filepath.Join(dir, "old", "log")
		if err := l.Replace([]byte("{new}\n"), keep); err == nil {
			t.Errorf("%s: no error", name)
		}
		if Exists(keep) != tt.stays {
			t.Errorf("%s: the second name is there: %v", name, Exists(keep))
		}

		want := "{old}\n"
		if tt.edit {
			want = "{by hand}\n"
		}
		if got := content(t, l.path); got != want {
			t.Errorf("%s: the log has %q", name, got)
		}
	}
}

// A save that comes out where names can no longer be swapped back is kept beside the file.
func TestASaveThatCannotBeSwappedBackIsKept(t *testing.T) {
	dir := t.TempDir()
	v := NewVolume(dir)
	path := filepath.Join(dir, "state.json")
	write(t, path, "by hand")
	v.exchange = failing(2, nil, nil)
	if found, err := v.Exchange("state", path, []byte("new"), []byte("old")); !errors.Is(err, errors.ErrUnsupported) || found != nil {
		t.Errorf("%q, %v", found, err)
	}
	if got := copies(t, dir); got != "by hand" {
		t.Errorf("kept is %q", got)
	}

	l := openLog(t, filepath.Join(t.TempDir(), "log"))
	if _, err := l.Append([]byte("{old}\n")); err != nil {
		t.Fatal(err)
	}
	l.vol.exchange = failing(2, nil, map[int]func(){1: func() { write(t, l.path, "{by hand}\n") }})
	if err := l.Replace([]byte("{new}\n"), ""); !errors.Is(err, ErrChanged) {
		t.Errorf("%v", err)
	}
	if got := copies(t, filepath.Dir(l.path)); got != "{by hand}\n" {
		t.Errorf("kept is %q", got)
	}
}

// A log that a full disk cuts short has room again once something was removed, and what it
// held back was used for what is in progress alone.
func TestTheSpaceKeptBackIsForWhatIsUnderWay(t *testing.T) {
	for _, ballast := range []bool{false, true} {
		dir := t.TempDir()
		v := NewVolume(dir)
		if err := v.Reserve(); err != nil {
			t.Fatal(err)
		}
		l, _, err := v.OpenLog(filepath.Join(dir, "log"), LogOptions{Name: "inbox", Ballast: ballast})
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		crash.Arm(t, "enospc@inbox.write#1:50")
		_, err = l.Append([]byte("{line}\n"))
		want := ""
		if ballast {
			want = "{line}\n"
		}
		if errors.Is(err, ErrFull) == ballast || (err == nil) != ballast || content(t, l.path) != want {
			t.Errorf("with ballast %v: %v, the log has %q", ballast, err, content(t, l.path))
		}
		if _, err := os.Stat(v.ballast()); (err != nil) != ballast {
			t.Errorf("with ballast %v the space kept back: %v", ballast, err)
		}
		if l.Size() != int64(len(want)) {
			t.Errorf("its size is %d, want %d", l.Size(), len(want))
		}
	}
}
