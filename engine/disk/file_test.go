package disk

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"daycare/engine/crash"
)

func TestWriteFile(t *testing.T) {
	dir := t.TempDir()
	v := NewVolume(dir)
	path := filepath.Join(dir, "state.json")
	for _, want := range []string{"one", "two"} {
		if err := v.WriteFile("state", path, []byte(want)); err != nil {
			t.Fatal(err)
		}
		if got := content(t, path); got != want {
			t.Errorf("holds %q, want %q", got, want)
		}
	}

	if err := v.WriteDraft("draft", path, []byte("three")); err != nil || content(t, path) != "three" {
		t.Errorf("draft: %q, %v", content(t, path), err)
	}
	if info, _ := os.Stat(path); info.Mode().Perm() != 0o600 {
		t.Errorf("mode is %v", info.Mode())
	}

	// A folder that is gone ends one agent, not the disk.
	if err := v.WriteFile("state", filepath.Join(dir, "gone", "state.json"), nil); !errors.Is(err, os.ErrNotExist) || v.Err() != nil {
		t.Errorf("write into a folder that is gone: %v; volume: %v", err, v.Err())
	}
	if left, _ := os.ReadDir(dir); len(left) != 1 {
		t.Errorf("left behind: %v", left)
	}
}

func TestExchange(t *testing.T) {
	dir := t.TempDir()
	v := NewVolume(dir)
	path := filepath.Join(dir, "state.json")
	if _, err := v.Exchange("state", path, []byte("first"), nil); err != nil {
		t.Fatal(err)
	}
	if found, err := v.Exchange("state", path, []byte("x"), nil); !errors.Is(err, ErrChanged) || string(found) != "first" {
		t.Errorf("making a file that exists: %q, %v", found, err)
	}
	if _, err := v.Exchange("state", path, []byte("second"), []byte("first")); err != nil {
		t.Fatal(err)
	}

	os.WriteFile(path, []byte("by hand"), 0o600)
	found, err := v.Exchange("state", path, []byte("third"), []byte("second"))
	if !errors.Is(err, ErrChanged) || string(found) != "by hand" || content(t, path) != "by hand" {
		t.Errorf("over a person's save: %q, %v; the file holds %q", found, err, content(t, path))
	}
	os.Remove(path)
	if _, err := v.Exchange("state", path, []byte("third"), []byte("by hand")); !errors.Is(err, ErrChanged) || Exists(path) {
		t.Errorf("over a file that was deleted: %v", err)
	}
	if left, _ := os.ReadDir(dir); len(left) != 0 {
		t.Errorf("left behind: %v", left)
	}
	if v.Err() != nil {
		t.Error(v.Err())
	}
}

// A file is removed if it is the one that was looked at; what was saved in between stays, and what a crash left of a
// removal goes or is kept.
func TestWithdraw(t *testing.T) {
	dir := t.TempDir()
	v := NewVolume(dir)
	path := filepath.Join(dir, "state.json")
	if err := v.Withdraw("state", path, []byte("old")); err != nil {
		t.Errorf("one that is gone: %v", err)
	}
	write := func(name, text string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("state.json", "by hand")
	if err := v.Withdraw("state", path, []byte("old")); !errors.Is(err, ErrChanged) || content(t, path) != "by hand" {
		t.Errorf("one that was changed: %v", err)
	}
	write("state.json", "old")
	crash.Arm(t, "eacces@permission.unlink#1")
	if err := v.Withdraw("permission", path, []byte("old")); !errors.Is(err, os.ErrPermission) || errors.Is(err, ErrChanged) ||
		content(t, path) != "old" {
		t.Errorf("one that may not be removed: %v", err)
	}
	crash.Arm(t, "")
	if err := v.Withdraw("permission", path, []byte("old")); err != nil || Exists(path) {
		t.Errorf("the one that was meant: %v", err)
	}
	if left, _ := os.ReadDir(dir); len(left) != 0 {
		t.Errorf("left behind: %v", left)
	}

	kept := ""
	v.OnKept(func(_, copy string) { kept = copy })
	write(".swap-state.json-1."+tag([]byte("old"))+"."+tag([]byte("old")), "old")
	write(".swap-state.json-2."+tag([]byte("old"))+"."+tag([]byte("old")), "by hand")
	if err := v.Recover(dir); err != nil || kept == "" || content(t, kept) != "by hand" || Exists(path) {
		t.Errorf("after a crash %q is kept, %v", kept, err)
	}
}

// What another program still has open for writing is not removed; where a new file has the name meanwhile, both are kept.
func TestWithdrawOfWhatIsBeingWritten(t *testing.T) {
	for name, again := range map[string]bool{"as it was": false, "another in its place": true, "only much later": false} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			v := NewVolume(dir)
			kept := ""
			v.OnKept(func(_, copy string) { kept = copy })
			path := filepath.Join(dir, "state.json")
			write(t, path, "old")
			theirs, err := os.OpenFile(path, os.O_WRONLY, 0)
			if err != nil {
				t.Fatal(err)
			}
			var they sync.WaitGroup
			later := make(chan struct{})
			they.Go(func() {
				for Exists(path) {
					time.Sleep(time.Millisecond)
				}
				if name == "only much later" {
					<-later
				}
				if again {
					write(t, path, "another")
				}
				_, _ = theirs.WriteString("new")
				theirs.Close()
			})
			if err := v.Withdraw("state", path, []byte("old")); !errors.Is(err, ErrChanged) {
				t.Errorf("Withdraw = %v", err)
			}
			close(later)
			they.Wait()
			got := map[string]string{"there": content(t, path)}
			if kept != "" {
				got["kept"] = content(t, kept)
			}
			want := map[string]string{"there": "new"}
			if again {
				want = map[string]string{"there": "another", "kept": "new"}
			}
			if !maps.Equal(got, want) {
				t.Errorf("%q, want %q", got, want)
			}
		})
	}
}

// Of those who take the turn at a file one has it at a time.
func TestTurn(t *testing.T) {
	v := NewVolume(t.TempDir())
	var has atomic.Int32
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for range 100 {
				release := v.Turn("/a")
				if n := has.Add(1); n != 1 {
					t.Errorf("%d have the turn", n)
				}
				runtime.Gosched()
				has.Add(-1)
				release()
			}
		})
	}
	all.Wait()

	defer v.Turn("/a")()
	other := make(chan struct{})
	go func() { defer close(other); v.Turn("/b")() }()
	select {
	case <-other:
	case <-time.After(10 * time.Second):
		t.Error("another file waits, too")
	}
}

// A program that had opened the file before the swap and writes after it loses
// nothing: its version is put back, or kept beside if it does not come to an end.
func TestExchangeUnderAnOpenFile(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("whether a file is open can only be asked on Linux")
	}
	for _, slow := range []bool{false, true} {
		dir := t.TempDir()
		v := NewVolume(dir)
		path := filepath.Join(dir, "state.json")
		os.WriteFile(path, []byte("old"), 0o600)
		kept := ""
		v.OnKept(func(_, copy string) { kept = copy })
		editor, err := os.OpenFile(path, os.O_RDWR, 0)
		if err != nil {
			t.Fatal(err)
		}

		var written sync.WaitGroup
		swapped := make(chan struct{})
		written.Go(func() {
			<-swapped
			editor.WriteAt([]byte("by hand"), 0)
			editor.Close()
		})

		if slow { // it writes when nobody waits for it any more
			_, err = v.Exchange("state", path, []byte("new"), []byte("old"))
			close(swapped)
		} else {
			written.Go(func() {
				for content(t, path) != "new" {
					runtime.Gosched()
				}
				close(swapped)
			})
			var found []byte
			if found, err = v.Exchange("state", path, []byte("new"), []byte("old")); !errors.Is(err, ErrChanged) ||
				string(found) != "by hand" {
				t.Errorf("found %q, %v", found, err)
			}
			err = nil
		}

		written.Wait()
		if err != nil {
			t.Fatal(err)
		}
		if slow && (content(t, path) != "new" || kept == "" || content(t, kept) != "by hand") {
			t.Errorf("the file holds %q, the copy is %q", content(t, path), kept)
		}
		if !slow && (content(t, path) != "by hand" || kept != "") {
			t.Errorf("the file holds %q, the copy is %q", content(t, path), kept)
		}
	}
}

// saver is an editor that saves in bursts, by exchanging names. The last save of
// a burst is what the user wants; it must come to be seen by whoever writes the
// file besides.
type saver struct {
	path string
	mu   sync.Mutex
	seen map[string]bool
	laps int // of the other writer
}

func (s *saver) see(found []byte) {
	s.mu.Lock()
	s.seen[string(found)] = true
	s.mu.Unlock()
}

func (s *saver) lap() { s.mu.Lock(); s.laps++; s.mu.Unlock() }

// lost runs the editor and counts the bursts whose last save was never seen.
func (s *saver) lost(t *testing.T, bursts int) (lost int) {
	temp := filepath.Join(filepath.Dir(s.path), "editor")
	for n := range bursts {
		var last string
		for i := range n%3 + 1 {
			last = fmt.Sprintf("save %d.%d\n", n, i)
			if err := os.WriteFile(temp, []byte(last), 0o600); err != nil {
				t.Fatal(err)
			}
			if ok, err := exchange(temp, s.path); err != nil || !ok {
				t.Skip("names cannot be swapped here")
			}
		}

		if !s.within(last, 20) {
			lost++
		}
	}

	return lost
}

// within waits until the save was seen, or the other writer had so many chances.
func (s *saver) within(save string, laps int) bool {
	for start := -1; ; runtime.Gosched() {
		s.mu.Lock()
		seen, now := s.seen[save], s.laps
		s.mu.Unlock()
		if start < 0 {
			start = now
		}
		if seen || now-start > laps {
			return seen
		}
	}
}

func bursts() int {
	if os.Getenv("DAYCARE_LONG") != "" {
		return 30_000
	}
	return 60
}

func TestExchangeUnderHostileEditor(t *testing.T) {
	dir := t.TempDir()
	v := NewVolume(dir)
	path := filepath.Join(dir, "state.json")
	os.WriteFile(path, []byte("start"), 0o600)
	s := &saver{path: path, seen: map[string]bool{}}
	stop := make(chan struct{})
	var ours sync.WaitGroup
	ours.Go(func() {
		base := []byte("start")
		for n := 0; ; n++ {
			select {
			case <-stop:
				return
			default:
			}
			next := fmt.Appendf(nil, "ours %d", n)
			found, err := v.Exchange("state", path, next, base)
			if err != nil && !errors.Is(err, ErrChanged) {
				t.Error(err)
				return
			}
			if base = next; err != nil {
				base = found
				s.see(found)
			}

			s.lap()
		}
	})

	lost := s.lost(t, bursts())
	close(stop)
	ours.Wait()
	if lost > 0 {
		t.Errorf("%d of %d saves were lost", lost, bursts())
	}
}

func TestReplace(t *testing.T) {
	dir := t.TempDir()
	path, kept := filepath.Join(dir, "log"), filepath.Join(dir, "kept")
	l := openLog(t, path)
	l.Append([]byte("{old}\n"))
	if err := l.Replace([]byte("{new}\n"), kept); err != nil {
		t.Fatal(err)
	}
	if !l.Durable() {
		t.Error("what a rotation wrote does not count as durable")
	}
	if _, err := l.Append([]byte("{more}\n")); err != nil {
		t.Fatal(err)
	}
	if got := content(t, path) + content(t, kept); got != "{new}\n{more}\n{old}\n" {
		t.Errorf("log and kept hold %q", got)
	}

	os.WriteFile(path, []byte("{by hand}\n"), 0o600)
	if err := l.Replace([]byte("{newer}\n"), ""); !errors.Is(err, ErrChanged) || content(t, path) != "{by hand}\n" {
		t.Errorf("replace over an edit: %v, the log holds %q", err, content(t, path))
	}
	if _, err := reloaded(l); err != nil {
		t.Fatal(err)
	}
	if err := l.Replace([]byte("{newer}\n"), kept); err == nil || l.vol.Err() != nil {
		t.Errorf("over a kept file of another content: %v, volume: %v", err, l.vol.Err())
	}
	if left, _ := os.ReadDir(dir); len(left) != 2 {
		t.Errorf("left behind: %v", left)
	}
}

// A rotation puts back what a user saved while it was in progress.
func TestReplaceUnderHostileEditor(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log")
	l := openLog(t, path)
	s := &saver{path: path, seen: map[string]bool{}}
	stop := make(chan struct{})
	var ours sync.WaitGroup
	ours.Go(func() {
		for n := 0; ; n++ {
			select {
			case <-stop:
				return
			default:
			}
			err := l.Replace(fmt.Appendf(nil, "ours %d\n", n), "")
			if errors.Is(err, ErrChanged) {
				var data []byte
				data, err = reloaded(l)
				s.see(data)
			}
			if err != nil {
				t.Error(err)
				return
			}

			s.lap()
		}
	})

	lost := s.lost(t, bursts())
	close(stop)
	ours.Wait()
	if lost > 0 {
		t.Errorf("%d of %d saves were lost", lost, bursts())
	}
}
