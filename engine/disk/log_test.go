package disk

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"daycare/engine/crash"
)

func openLog(t testing.TB, path string) *Log {
	t.Helper()
	l, torn, err := NewVolume(filepath.Dir(path)).OpenLog(path, LogOptions{Name: "inbox", Valid: closed})
	if err != nil {
		t.Fatal(err)
	}
	if torn != nil {
		t.Fatalf("torn: %+v", torn)
	}
	t.Cleanup(func() { l.Close() })

	return l
}

// closed is the validity of these tests: a line ends in a brace.
func closed(line []byte) bool { return bytes.HasSuffix(line, []byte("}")) }

func content(t testing.TB, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// A log cut at any byte loses the line that was cut and no other.
func TestTornAtEveryOffset(t *testing.T) {
	whole := "{first}\n{the second, longer}\n\n{fourth}\n"
	dir := t.TempDir()
	for cut := range len(whole) + 1 {
		path := filepath.Join(dir, fmt.Sprintf("log-%d", cut))
		if err := os.WriteFile(path, []byte(whole[:cut]), 0o600); err != nil {
			t.Fatal(err)
		}
		v := NewVolume(dir)
		l, torn, err := v.OpenLog(path, LogOptions{Name: "inbox", Valid: closed})
		if err != nil {
			t.Fatalf("cut at %d: %v", cut, err)
		}

		start := strings.LastIndexByte(whole[:cut], '\n') + 1
		want, tail := whole[:start], whole[start:cut]
		if closed([]byte(tail)) {
			want, tail = whole[:cut]+"\n", ""
		}
		if (torn != nil) != (tail != "") {
			t.Errorf("cut at %d: torn is %+v, the tail %q", cut, torn, tail)
		}
		if torn != nil && (torn.Offset != int64(start) || torn.Bytes != len(tail) || content(t, torn.Kept) != tail) {
			t.Errorf("cut at %d: torn is %+v, the tail %q", cut, torn, tail)
		}
		if got := content(t, path); got != want || l.Size() != int64(len(want)) {
			t.Errorf("cut at %d: the log holds %q (size %d), want %q", cut, got, l.Size(), want)
		}
		if off, err := l.Append([]byte("{next}\n")); err != nil || off != int64(len(want)) {
			t.Errorf("cut at %d: append at %d, %v", cut, off, err)
		}
		if err := l.Barrier(); err != nil {
			t.Errorf("cut at %d: %v", cut, err)
		}

		l.Close()
	}
}

func TestTornTailIsNotOverwritten(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log")
	var kept []string
	for _, tail := range []string{"one", "two", "two and more"} {
		os.WriteFile(path, []byte("{a}\n"+tail), 0o600)
		l, torn, err := NewVolume(filepath.Dir(path)).OpenLog(path, LogOptions{Name: "inbox"})
		if err != nil || torn == nil {
			t.Fatal(torn, err)
		}
		l.Close()
		kept = append(kept, filepath.Base(torn.Kept)+"="+content(t, torn.Kept))
	}

	// The third is what an interrupted attempt to keep it may have begun.
	want := "log.torn-4=one log.torn-4-2=two log.torn-4-2=two and more"
	if got := strings.Join(kept, " "); got != want {
		t.Errorf("kept %s\nwant %s", got, want)
	}
}

func TestOpenRefuses(t *testing.T) {
	dir := t.TempDir()
	v := NewVolume(dir)
	os.WriteFile(filepath.Join(dir, "target"), nil, 0o600)
	os.Symlink("target", filepath.Join(dir, "link"))
	os.Mkdir(filepath.Join(dir, "folder"), 0o700)

	for _, name := range []string{"link", "folder", "no/such"} {
		if l, _, err := v.OpenLog(filepath.Join(dir, name), LogOptions{Name: "inbox"}); err == nil {
			l.Close()
			t.Errorf("%s was opened as a log", name)
		}
	}

	if err := v.Err(); err != nil {
		t.Errorf("that failed the volume: %v", err)
	}
	l := openLog(t, filepath.Join(dir, "log"))
	for _, lines := range []string{"", "half"} {
		if _, err := l.Append([]byte(lines)); err == nil {
			t.Errorf("%q was appended", lines)
		}
	}
}

// What users do to a file while it is open is seen by the next append, and
// Reload takes the file as they left it.
func TestIdentity(t *testing.T) {
	for name, edit := range map[string]func(path string) error{
		"rename over": func(p string) error {
			if err := os.WriteFile(p+"~", []byte("{a}\n{theirs}\n"), 0o600); err != nil {
				return err
			}
			return os.Rename(p+"~", p)
		},
		"truncate and write": func(p string) error { return os.WriteFile(p, []byte("{theirs}\n"), 0o600) },
		"append": func(p string) error {
			f, err := os.OpenFile(p, os.O_APPEND|os.O_WRONLY, 0)
			if err != nil {
				return err
			}
			_, err = f.WriteString("{theirs}")
			return errors.Join(err, f.Close())
		},
		"hard link": func(p string) error { return os.Link(p, p+".backup") },
		"move away": func(p string) error {
			if err := os.Rename(p, p+".old"); err != nil {
				return err
			}
			return os.WriteFile(p, []byte("{theirs}\n"), 0o600)
		},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "log")
			l := openLog(t, path)
			if _, err := l.Append([]byte("{a}\n")); err != nil {
				t.Fatal(err)
			}
			if l.Changed() {
				t.Fatal("changed by nobody")
			}
			if err := edit(path); err != nil {
				t.Fatal(err)
			}
			if !l.Changed() {
				t.Error("the edit was not noticed")
			}
			before := content(t, path)
			if _, err := l.Append([]byte("{b}\n")); !errors.Is(err, ErrChanged) {
				t.Errorf("append: %v, want ErrChanged", err)
			}
			if got := content(t, path); got != before {
				t.Errorf("append wrote all the same: %q", got)
			}
			data, err := reloaded(l)
			if err != nil {
				t.Fatal(err)
			}
			if want := strings.TrimSuffix(before, "\n") + "\n"; string(data) != want {
				t.Errorf("reload returned %q, want %q", data, want)
			}
			if l.Durable() {
				t.Error("what somebody else wrote counts as durable")
			}
			if _, err := l.Append([]byte("{c}\n")); err != nil {
				t.Fatal(err)
			}
			if err := l.Barrier(); err != nil || !l.Durable() {
				t.Fatal(err)
			}
			if !strings.HasSuffix(content(t, path), "}\n{c}\n") {
				t.Errorf("after reload: %q", content(t, path))
			}
		})
	}
}

func TestDeleted(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log")
	l := openLog(t, path)
	l.Append([]byte("{a}\n"))
	os.Remove(path)
	if _, err := l.Append([]byte("{b}\n")); !errors.Is(err, ErrChanged) {
		t.Errorf("append to a deleted log: %v, want ErrChanged", err)
	}
	if _, err := reloaded(l); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("reload of a deleted log: %v, want fs.ErrNotExist", err)
	}
	if Exists(path) {
		t.Error("it was made again")
	}
	if data := make([]byte, 4); true {
		if _, err := l.ReadAt(data, 0); err != nil || string(data) != "{a}\n" {
			t.Errorf("what it held can no longer be read: %q, %v", data, err)
		}
	}
}

// Someone changes the file all the time, and also between check and write:
// each line that Append took is in the file or Append said ErrChanged.
func TestHostileWriter(t *testing.T) {
	for _, looks := range []bool{false, true} {
		t.Run(fmt.Sprint("the owner looks: ", looks), func(t *testing.T) { standAgainst(t, looks) })
	}
}

func standAgainst(t *testing.T, looks bool) {
	path := filepath.Join(t.TempDir(), "log")
	l, _, err := NewVolume(filepath.Dir(path)).OpenLog(path, LogOptions{Name: "inbox", Valid: closed, Looks: looks})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	l.Append([]byte("{start}\n"))
	stop := make(chan struct{})
	var editor sync.WaitGroup
	end := sync.OnceFunc(func() { close(stop); editor.Wait() })
	defer end()
	editor.Go(func() {
		for n := 0; ; n++ {
			select {
			case <-stop:
				return
			default:
			}
			data, _ := os.ReadFile(path)
			if n%2 == 0 {
				os.WriteFile(path+".new", data, 0o600)
				os.Rename(path+".new", path)
			} else {
				os.WriteFile(path, data, 0o600)
			}
		}
	})
	var ours []string
	rejected := 0
	for i := 0; rejected < 5 && i < 20_000; i++ {
		line := fmt.Sprintf("{line %d}\n", i)
		for {
			_, err := l.Append([]byte(line))
			if err == nil {
				break
			}
			if !errors.Is(err, ErrChanged) {
				t.Fatal(err)
			}
			rejected++
			data, release, err := l.Reload()
			if err != nil {
				t.Fatal(err)
			}
			if again := lost(data, ours); len(again) > 0 {
				if _, err := l.Append([]byte(strings.Join(again, ""))); err != nil && !errors.Is(err, ErrChanged) {
					t.Fatal(err)
				}
			}
			release()
		}
		ours = append(ours, line)
	}
	end()
	for l.Changed() {
		data, release, err := l.Reload()
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range lost(data, ours) {
			if _, err := l.Append([]byte(s)); err != nil {
				t.Fatal(err)
			}
		}
		release()
	}
	for _, s := range lost([]byte(content(t, path)), ours) {
		t.Errorf("%q is lost", s)
	}
	t.Logf("%d appends met a change", rejected)
}

// lost are those of a test's lines, each of which begins with the only brace in it, that are not in data.
func lost(data []byte, ours []string) (list []string) {
	there := map[string]bool{}
	for line := range bytes.Lines(data) {
		there[string(line[max(0, bytes.LastIndexByte(line, '{')):])] = true
	}
	for _, s := range ours {
		if !there[s] {
			list = append(list, s)
		}
	}

	return list
}

func TestClosedLog(t *testing.T) {
	l := openLog(t, filepath.Join(t.TempDir(), "log"))
	l.Append([]byte("{a}\n"))
	l.Close()
	if err := l.Close(); err != nil {
		t.Errorf("close twice: %v", err)
	}

	_, err := l.Append([]byte("{b}\n"))
	_, rerr := reloaded(l)
	for name, err := range map[string]error{"append": err, "barrier": l.Barrier(), "reload": rerr, "replace": l.Replace(nil, "")} {
		if !errors.Is(err, fs.ErrClosed) {
			t.Errorf("%s: %v, want fs.ErrClosed", name, err)
		}
	}
}

// reloaded reads a log anew without an append in the same breath.
func reloaded(l *Log) ([]byte, error) {
	content, release, err := l.Reload()
	release()
	return content, err
}

// What another program does to the path between the look before a write and the write: a file that
// was put over it is found at once, and one that was put in the place of a file that was moved away is found
// at once or, where the owner looks after its barrier, then.
func TestASaveBetweenALookAndItsWrite(t *testing.T) {
	for name, save := range map[string]func(path string) error{
		"renamed over": func(p string) error { return os.Rename(p+".new", p) },
		"moved away":   func(p string) error { return errors.Join(os.Rename(p, p+"~"), os.Rename(p+".new", p)) },
		"removed":      os.Remove,
	} {
		for _, looks := range []bool{false, true} {
			t.Run(fmt.Sprint(name, ", the owner looks: ", looks), func(t *testing.T) {
				path := filepath.Join(t.TempDir(), "log")
				l, _, err := NewVolume(filepath.Dir(path)).OpenLog(path, LogOptions{Name: "inbox", Valid: closed, Looks: looks})
				if err != nil {
					t.Fatal(err)
				}
				defer l.Close()
				if err := os.WriteFile(path+".new", []byte("{theirs}\n"), 0o600); err != nil {
					t.Fatal(err)
				}
				crash.Meanwhile(t, "inbox.write", func(int) {
					if err := save(path); err != nil {
						t.Error(err)
					}
				})

				_, err = l.Append([]byte("{ours}\n"))
				found := errors.Is(err, ErrChanged)
				if later := looks && name == "moved away"; found == later || found != (err != nil) {
					t.Errorf("the append says %v", err)
				}
				if err := l.Barrier(); err != nil {
					t.Fatal(err)
				}
				if !l.Changed() {
					t.Error("it is not found after the barrier")
				}
				if _, err := l.Append([]byte("{more}\n")); !errors.Is(err, ErrChanged) {
					t.Errorf("the next append says %v", err)
				}
			})
		}
	}
}
