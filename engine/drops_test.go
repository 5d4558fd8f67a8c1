package engine

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"daycare/engine/address"
	"daycare/engine/disk"
	"daycare/engine/finding"
	"daycare/engine/inbox"
	"daycare/engine/message"
)

// dropped puts a dropped message into the slot of root, as one that has lain there.
func dropped(t *testing.T, root, name, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Join(root, "drop"), 0o700); err != nil {
		t.Fatal(err)
	}
	temp := filepath.Join(root, "letter")
	if err := os.WriteFile(temp, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}

	old := time.Now().Add(-time.Minute)
	if err := os.Chtimes(temp, old, old); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(temp, filepath.Join(root, "drop", name)); err != nil {
		t.Fatal(err)
	}
}

func TestLettersAreTakenLikeMessages(t *testing.T) {
	root := t.TempDir()
	got := make(chan string, 10)
	start := echo(func(_ string, it inbox.Item) { got <- it.Text })
	put := func(name, text string) { dropped(t, root, name, text) }
	put("before.md", "before the start")
	h := newHouse(t, root, start)
	if text := <-got; text != "before the start" {
		t.Errorf("got %q", text)
	}

	put("0-__note.md", "while it runs")
	if text := <-got; text != "while it runs" {
		t.Errorf("got %q", text)
	}
	put("nobody__note.md", "lost?")

	for {
		if _, err := os.Stat(filepath.Join(root, "drop", "bad", "nobody__note.md")); err == nil {
			break
		}
		time.Sleep(time.Millisecond)
	}

	if n := len(h.index.All()); n != 1 {
		t.Errorf("%d agents, want the terminal's alone", n)
	}
}

// Letters to one agent keep their order, whichever of its names they have, also where
// the first of them finds no room: what was claimed stays claimed, the rest stays where it is.
func TestLettersUnderSeveralNamesKeepTheirOrder(t *testing.T) {
	root := t.TempDir()
	h := newHouse(t, root, echo(func(string, inbox.Item) {}))
	hello := h.deliver(message.Incoming{From: Terminal(), Text: "hello"})
	id := hello.Agent
	if _, err := h.Await(t.Context(), id, hello.Item); err != nil {
		t.Fatal(err)
	}
	if err := h.end(); err != nil {
		t.Fatal(err)
	}

	dropped(t, root, "0-__first.json", `{"text": "first", "files": ["/a"]}`)
	time.Sleep(20 * time.Millisecond) // a tick of the file system's clock
	dropped(t, root, id+"__second.md", "second")
	time.Sleep(20 * time.Millisecond)
	dropped(t, root, "third.md", "third")
	folder, err := inbox.OpenDropFolder(disk.NewVolume(root), filepath.Join(root, "drop"))
	must(t, err)
	for _, name := range []string{"0-__first.json", id + "__second.md"} { // by a process that died then
		_, err := folder.Take(name)
		must(t, err)
	}
	got := make(chan string, 10)
	tried := make(chan bool, 10)
	var room atomic.Bool
	newHouseWith(t, root, echo(func(_ string, it inbox.Item) { got <- fmt.Sprint(it.Text, len(it.Files)) }), Options{
		Enclose: func(item string, n int, e inbox.Enclosure) (message.File, error) {
			tried <- true
			if !room.Load() {
				return message.File{}, disk.ErrFull
			}
			return message.File{ID: item, Name: e.Path}, nil
		}})
	<-tried

	select {
	case text := <-got:
		t.Fatalf("%q overtook a letter to the same agent", text)
	case <-time.After(200 * time.Millisecond):
	}
	if !disk.Exists(filepath.Join(root, "drop", "third.md")) {
		t.Error("what cannot be delivered yet was taken away")
	}
	room.Store(true)
	dropped(t, root, "0-__fourth.md", "fourth") // has the others tried again

	for _, want := range []string{"first1", "second0", "third0", "fourth0"} {
		if text := <-got; text != want {
			t.Errorf("got %q, want %q", text, want)
		}
	}
}

// A dropped message whose file cannot be kept is refused with the reason.
func TestLetterWithoutItsFile(t *testing.T) {
	root := t.TempDir()
	dropped(t, root, "x.json", `{"text": "see this", "files": [{"path": "/gone", "name": "a.txt"}]}`)
	h := newHouseWith(t, root, echo(func(_ string, it inbox.Item) { t.Errorf("%q was delivered", it.Text) }), Options{
		Enclose: func(string, int, inbox.Enclosure) (message.File, error) {
			return message.File{}, fmt.Errorf("path: no such file or directory")
		}})
	path := filepath.Join(root, "drop", "bad", "x.json.reason.txt")
	for {
		if why, err := os.ReadFile(path); err == nil && strings.HasSuffix(string(why), "\n") {
			if string(why) != "file /gone: path: no such file or directory\n" {
				t.Errorf("refused because: %s", why)
			}
			break
		}
		time.Sleep(time.Millisecond)
	}

	if n := len(h.index.All()); n != 0 {
		t.Errorf("%d agents were made", n)
	}
}

// A file that a dropped message names and that cannot be read now (too many open files, missing
// rights) is tried again. The letter is not refused, is reported once, and keeps back
// nothing that comes after it.
func TestLetterWhoseFileCannotBeReadNowIsTriedAgain(t *testing.T) {
	for _, why := range []error{syscall.EMFILE, syscall.EACCES, syscall.EIO, syscall.ENOMEM} {
		t.Run(why.Error(), func(t *testing.T) {
			root := t.TempDir()
			dropped(t, root, "a.json", `{"text": "first", "files": ["/a"]}`)
			time.Sleep(20 * time.Millisecond) // a tick of the file system's clock
			dropped(t, root, "b.md", "second")
			got := make(chan string, 10)
			var readable atomic.Bool
			h := newHouseWith(t, root, echo(func(_ string, it inbox.Item) { got <- fmt.Sprint(it.Text, len(it.Files)) }), Options{
				Enclose: func(item string, n int, e inbox.Enclosure) (message.File, error) {
					if !readable.Load() {
						return message.File{}, fmt.Errorf("path: %w", &fs.PathError{Op: "open", Path: e.Path, Err: why})
					}
					return message.File{ID: item, Name: e.Path}, nil
				}})
			if text := <-got; text != "second0" {
				t.Errorf("got %q first", text)
			}

			for len(h.problems.Of("")) == 0 {
				time.Sleep(time.Millisecond) // the look ends after the second was delivered
			}
			if all := h.problems.Of(""); len(all) != 1 || !strings.Contains(all[0].Reason, why.Error()) {
				t.Errorf("reported are %+v", all)
			}

			readable.Store(true)
			dropped(t, root, "c.md", "third") // has the first tried again
			// A look that had begun by then may deliver the third before.
			then := []string{<-got, <-got}
			if slices.Sort(then); !slices.Equal(then, []string{"first1", "third0"}) {
				t.Errorf("then %q", then)
			}
			if bad, _ := os.ReadDir(filepath.Join(root, "drop", "bad")); len(bad) > 0 {
				t.Errorf("%d files are in drop/bad", len(bad))
			}
		})
	}
}

// A dropped message is gone from the folder when its agent has it, and does not come again at
// the next start. One for an agent that has ended is kept with the reason.
func TestADroppedMessageIsKeptUntilItIsDelivered(t *testing.T) {
	root := t.TempDir()
	got := make(chan string, 10)
	start := echo(func(_ string, it inbox.Item) { got <- it.Text })
	h := newHouse(t, root, start)
	a, err := h.Create(t.Context(), address.Descriptor{Type: address.Permanent, Name: "Ops"})
	must(t, err)
	left := func() (files []string) {
		must(t, filepath.WalkDir(filepath.Join(root, "drop"), func(path string, d os.DirEntry, err error) error {
			if err == nil && !d.IsDir() {
				files = append(files, d.Name())
			}
			return nil // it may be gone by now
		}))
		return files
	}

	dropped(t, root, a.ID+"__note.md", "hello")
	if text := <-got; text != "hello" {
		t.Errorf("got %q", text)
	}
	waitFor(t, "nothing is left of it", func() bool { return len(left()) == 0 })
	must(t, h.Kill(t.Context(), a.ID))
	dropped(t, root, a.ID+"__late.md", "too late")
	waitFor(t, "it is refused", func() bool { return disk.Exists(filepath.Join(root, "drop", "bad", a.ID+"__late.md")) })
	must(t, h.end())

	newHouse(t, root, start)
	dropped(t, root, "after.md", "after the start")
	if text := <-got; text != "after the start" {
		t.Errorf("after a start got %q", text)
	}
}

// A dropped file that cannot be claimed stays where it is and is reported, and is claimed later.
func TestAFileThatCannotBeClaimed(t *testing.T) {
	s := newStill(t)
	root := s.System.root
	taken := filepath.Join(root, "drop", ".taken")
	must(t, os.MkdirAll(filepath.Dir(taken), 0o700))
	must(t, os.RemoveAll(taken))
	writeFile(t, taken, "in the way")
	dropped(t, root, "x.md", "hello")
	if again := s.System.takeDropped(t.Context()); again != dropRetry {
		t.Errorf("it is tried again after %v", again)
	}
	found := s.System.problems.Of("")
	if !disk.Exists(filepath.Join(root, "drop", "x.md")) || !slices.ContainsFunc(found, func(f finding.Finding) bool {
		return strings.HasPrefix(f.Reason, "x.md cannot be delivered now")
	}) || slices.ContainsFunc(found, func(f finding.Finding) bool { return strings.HasPrefix(f.Reason, " ") }) {
		t.Errorf("reported are %+v", found)
	}
	must(t, os.Remove(taken))
	must(t, os.Mkdir(taken, 0o700))
	if again := s.System.takeDropped(t.Context()); again != 0 || len(s.System.problems.Of("")) > 0 || len(s.System.index.All()) != 1 {
		t.Errorf("tried again after %v; reported are %+v", again, s.System.problems.Of(""))
	}
}

// A message that is refused holds up none of the same agent, in the same look.
func TestARefusedLetterHoldsUpNoOther(t *testing.T) {
	s := newStill(t, func(o *Options) {
		o.Enclose = func(string, int, inbox.Enclosure) (message.File, error) { return message.File{}, fs.ErrNotExist }
	})
	r, err := s.Deliver(t.Context(), from("one", "hello"))
	must(t, err)
	dropped(t, s.System.root, r.Agent+"__a.json", `{"text": "see this", "files": ["/gone"]}`)
	time.Sleep(20 * time.Millisecond) // a tick of the file system's clock
	dropped(t, s.System.root, r.Agent+"__b.md", "good")
	must(t, s.TakeDropped(t.Context()))
	if n := len(s.waiting(r.Agent)); n != 2 {
		t.Errorf("%d items wait, want that the second message is there", n)
	}
}

// Without other machines an agent that is not known here will not be: its message is refused at once.
func TestALetterForNobodyIsRefusedAtOnce(t *testing.T) {
	s := newStill(t)
	part := filepath.Join(s.System.root, "part")
	writeFile(t, part, "hello")
	must(t, os.Rename(part, filepath.Join(s.System.root, "drop", "nobody__x.md")))
	for end := time.Now().Add(newHere / 2); !disk.Exists(filepath.Join(s.System.root, "drop", "bad", "nobody__x.md")); {
		if time.Now().After(end) {
			t.Fatal("it is not refused")
		}
		must(t, s.TakeDropped(t.Context()))
		time.Sleep(10 * time.Millisecond)
	}
}
