package inbox

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"daycare/engine/crash"
	"daycare/engine/crash/crashtest"
	"daycare/engine/disk"
	"daycare/engine/finding"
	"daycare/engine/message"
)

func text(s string) Item { return Item{Kind: message.Text, Text: s} }

func accepted(t *testing.T, f *File, it Item) string {
	t.Helper()
	r, err := f.Accept(t.Context(), it)
	if err != nil {
		t.Fatal(err)
	}
	return r.Item
}

// Nobody hears that something was accepted, closed or posted whose step failed.
func TestEveryFailedStepIsReported(t *testing.T) {
	for name, prepare := range map[string]func(t *testing.T) func() error{
		"Accept": func(t *testing.T) func() error {
			f := openIn(t, t.TempDir(), nil)
			return func() error {
				_, err := f.Accept(t.Context(), text("x"))
				if n := len(f.Open()); (err == nil) != (n == 1) {
					t.Errorf("accept: %v, and %d items are open", err, n)
				}
				return err
			}
		},
		"Accept after a removal": func(t *testing.T) func() error {
			f := openIn(t, t.TempDir(), nil)
			accepted(t, f, text("x"))
			if err := os.Remove(f.dir.path()); err != nil {
				t.Fatal(err)
			}
			return func() error { _, err := f.Accept(t.Context(), text("y")); return err }
		},
		"Done": func(t *testing.T) func() error {
			f := openIn(t, t.TempDir(), nil)
			id := accepted(t, f, text("x"))
			return func() error { return f.Done(id) }
		},
		"Drop": func(t *testing.T) func() error {
			f := openIn(t, t.TempDir(), nil)
			id := accepted(t, f, text("x"))
			return func() error {
				err := f.Drop(id)
				if (err == nil) != (f.Len() == 0) {
					t.Errorf("drop: %v, and %d items are open", err, f.Len())
				}
				return err
			}
		},
		"Front": func(t *testing.T) func() error {
			f := openIn(t, t.TempDir(), nil)
			accepted(t, f, text("x"))
			id := accepted(t, f, text("y"))
			return func() error {
				err := f.Front(id)
				if (err == nil) != (f.Open()[0].ID == id) {
					t.Errorf("front: %v, and the order is %v", err, f.Open())
				}
				return err
			}
		},
		"Edit": func(t *testing.T) func() error {
			f := openIn(t, t.TempDir(), nil)
			id := accepted(t, f, text("x"))
			return func() error { return f.Edit(id, "y") }
		},
		"Open": func(t *testing.T) func() error {
			dir := t.TempDir()
			f := openIn(t, dir, nil)
			accepted(t, f, text("x"))
			f.Close()
			return func() error { return opens(dir) }
		},
		"Open of a torn one": func(t *testing.T) func() error {
			dir := t.TempDir()
			if err := os.WriteFile(filepath.Join(dir, FileName), []byte(`{"seq":1,"at":`), 0o600); err != nil {
				t.Fatal(err)
			}
			return func() error { return opens(dir) }
		},
		"OpenSlot": func(t *testing.T) func() error {
			dir := t.TempDir()
			return func() error { _, err := OpenDropFolder(disk.NewVolume(dir), filepath.Join(dir, "drop")); return err }
		},
		"Post": func(t *testing.T) func() error {
			dir := t.TempDir()
			return func() error {
				id, err := Post(disk.NewVolume(dir), filepath.Join(dir, "drop"), "0/1", Fields{Text: "x"})
				if (err == nil) != (id != "") {
					t.Errorf("post: %q, %v", id, err)
				}
				return err
			}
		},
		"Take": func(t *testing.T) func() error {
			s := slotWith(t, "a.md", "x")
			return func() error { _, err := s.Take("a.md"); return err }
		},
		"Finish": func(t *testing.T) func() error {
			s := slotWith(t, "a.md", "x")
			l, err := s.Take("a.md")
			if err != nil {
				t.Fatal(err)
			}
			return func() error { return s.Finish(l) }
		},
		"Refuse": func(t *testing.T) func() error {
			s := slotWith(t, "a.md", "x")
			return func() error { return s.Refuse("a.md", errors.New("no")) }
		},
	} {
		for _, fault := range []string{"eio", "emfile"} {
			t.Run(name, func(t *testing.T) { crashtest.EachStepFails(t, fault, prepare, "inbox.accepted") })
		}
	}
}

func opens(dir string) error {
	f, _, err := Open(disk.NewVolume(dir), dir, nil, time.Now)
	if err == nil {
		f.Close()
	}
	return err
}

func slotWith(t *testing.T, name, content string) *DropFolder {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "drop")
	s, err := OpenDropFolder(disk.NewVolume(filepath.Dir(dir)), dir)
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// What is not a letter is refused for good only if that could be written down.
func TestRefusedLetters(t *testing.T) {
	crashtest.EachStepFails(t, "eio", func(t *testing.T) func() error {
		s := slotWith(t, "a.exe", "x")
		return func() error {
			_, err := s.Take("a.exe")
			if errors.Is(err, ErrRefused) {
				return nil
			}
			return err
		}
	})
	crashtest.EachStepFails(t, "eio", func(t *testing.T) func() error { // one that was taken and is none any more
		s := slotWith(t, ".taken/"+strings.Repeat("a", 24)+"__a.exe", "x")
		return func() error {
			list, err := s.Taken()
			if len(list) != 0 {
				t.Errorf("taken are %v", list)
			}
			if errors.Is(err, ErrRefused) {
				return nil
			}
			return err
		}
	})
	s := slotWith(t, ".taken/odd.md", "x")
	if err := errors.Join(os.WriteFile(filepath.Join(s.takenDir(), "odd__x.md"), []byte("x"), 0o600),
		os.WriteFile(filepath.Join(s.takenDir(), ".hidden"), nil, 0o600),
		os.Mkdir(filepath.Join(s.takenDir(), "folder"), 0o700)); err != nil {
		t.Fatal(err)
	}
	if list, err := s.Taken(); len(list) != 0 || !errors.Is(err, ErrRefused) ||
		!disk.Exists(filepath.Join(s.badDir(), "odd.md")) || !disk.Exists(filepath.Join(s.badDir(), "odd__x.md")) {
		t.Errorf("a letter without an id: %v, %v", list, err)
	}
	if list, err := s.Taken(); len(list) != 0 || err != nil {
		t.Errorf("the next time: %v, %v", list, err)
	}

	why := func(name string) string {
		data, err := os.ReadFile(filepath.Join(s.badDir(), name+".reason.txt"))
		if err != nil {
			t.Fatal(err)
		}
		return string(data)
	}
	for i, want := range []string{"c.md", "c-2.md", "c-3.md"} {
		if err := os.WriteFile(filepath.Join(s.dir, "c.md"), []byte(want), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := s.Refuse("c.md", fmt.Errorf("reason %d", i)); err != nil {
			t.Fatal(err)
		}
		if data, err := os.ReadFile(filepath.Join(s.badDir(), want)); err != nil || string(data) != want ||
			why(want) != fmt.Sprintf("reason %d\n", i) {
			t.Errorf("%s: %q, %v", want, data, err)
		}
	}
	long := strings.Repeat("ä", 120) + ".md" // 243 bytes
	if err := os.WriteFile(filepath.Join(s.dir, long), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := s.Refuse(long, errors.New("too long")); err != nil || !disk.Exists(filepath.Join(s.badDir(), strings.Repeat("ä", 98)+".md")) {
		t.Errorf("a long name: %v", err)
	}
	if err := s.Refuse("none", errors.New("gone")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a letter that is not there: %v", err)
	}
}

// A letter that cannot be read now waits; one that goes while it is looked at is not an error.
func TestLettersThatCannotBeReadNow(t *testing.T) {
	s := slotWith(t, "a.md", "x")
	if _, err := s.Take("none.md"); !errors.Is(err, os.ErrNotExist) || errors.Is(err, ErrRefused) {
		t.Errorf("a letter that is gone: %v", err)
	}
	if s.readyIn("none.md", time.Now(), sight{}) >= 0 {
		t.Error("a letter that is gone ripens")
	}
	id := strings.Repeat("a", 24)
	if err := os.WriteFile(filepath.Join(s.takenDir(), id+"__x.json"), []byte("{}"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(s.dir, "x.json"), []byte(`{"text":"x","id":"`+id+`"}`), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Take("x.json"); err == nil || !strings.Contains(err.Error(), "is being picked up") {
		t.Errorf("two letters of one id: %v", err)
	}
	if err := os.RemoveAll(s.dir); err != nil {
		t.Fatal(err)
	}
	if _, _, err := s.Ready(time.Now()); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a slot that is gone: %v", err)
	}
	if _, err := s.Taken(); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a slot that is gone: %v", err)
	}
}

// A letter ripens: JSON and what was moved in at once, other text after a second, what
// cannot be read after five, to be refused; hidden names, copies and folders never.
func TestWhenLettersAreReady(t *testing.T) {
	s := slotWith(t, "text.md", "x")
	for name, content := range map[string]string{"a.json": `{"text":"x"}`, "half.json": `{"te`, ".hidden.md": "x", "copy.md~": "x"} {
		if err := os.WriteFile(filepath.Join(s.dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(os.Mkdir(filepath.Join(s.dir, "folder.md"), 0o700),
		os.WriteFile(filepath.Join(s.badDir(), "moved.md"), []byte("x"), 0o600)); err != nil {
		t.Fatal(err)
	}
	time.Sleep(20 * time.Millisecond) // a tick of the file system's clock
	if err := os.Rename(filepath.Join(s.badDir(), "moved.md"), filepath.Join(s.dir, "moved.md")); err != nil {
		t.Fatal(err)
	}
	now := time.Now()
	for _, tt := range []struct {
		after time.Duration
		want  string
		again time.Duration // about
	}{
		{0, "a.json moved.md", quiet}, {quiet - 300*time.Millisecond, "a.json moved.md", 300 * time.Millisecond},
		{quiet + 100*time.Millisecond, "a.json moved.md text.md", patience - quiet},
		{patience - 300*time.Millisecond, "a.json moved.md text.md", 300 * time.Millisecond},
		{patience + 100*time.Millisecond, "a.json half.json moved.md text.md", 0}, {-time.Hour, "a.json half.json moved.md text.md", 0},
	} {
		letters, again, err := s.Ready(now.Add(tt.after))
		slices.Sort(letters)
		if got := strings.Join(letters, " "); err != nil || got != tt.want || (again > 0) != (tt.again > 0) ||
			(again-tt.again).Abs() > 250*time.Millisecond {
			t.Errorf("after %v: %s, again after %v, %v", tt.after, got, again, err)
		}
	}
}

// Each limit holds at its value, and not one below it.
func TestLimits(t *testing.T) {
	f := openIn(t, t.TempDir(), NewQuota(0))
	if _, err := f.Accept(t.Context(), text(strings.Repeat("x", MaxItemBytes+1))); !errors.Is(err, ErrTooLarge) {
		t.Errorf("a text one byte too long: %v", err)
	}
	id := accepted(t, f, text(strings.Repeat("x", MaxItemBytes)))
	line := int64(f.ix.byID[id].Bytes)
	if f.quota.Used() != line || f.ix.bytes != line {
		t.Errorf("used are %d and %d bytes, want %d", f.quota.Used(), f.ix.bytes, line)
	}
	if _, err := f.Accept(t.Context(), text(strings.Repeat("\x01", MaxItemBytes*3/2))); !errors.Is(err, ErrTooLarge) {
		t.Errorf("a line that is too long by its escapes: %v", err)
	}
	if err := f.ix.room(int(MaxBytes-line), f.quota); err != nil {
		t.Errorf("a line that just fits: %v", err)
	}
	f.quota.add(line - MaxBytes)
	for n, want := range map[int]error{int(MaxBytes-line) + 1: ErrFull, MaxBytes: ErrFull, MaxBytes + 1: ErrTooLarge} {
		if err := f.ix.room(n, f.quota); !errors.Is(err, want) {
			t.Errorf("%d bytes: %v, want %v", n, err, want)
		}
	}
	if err := f.Done(id); err != nil || f.quota.Used() != 0 || f.ix.bytes != 0 {
		t.Errorf("done: %v, used are %d bytes", err, f.quota.Used())
	}
	if err := f.ix.room(MaxBytes, f.quota); err != nil {
		t.Errorf("the longest line: %v", err)
	}
	f.quota.add(-MaxBytes)
	for range MaxItems - 1 {
		f.ix.order = append(f.ix.order, &entry{})
	}
	if err := f.ix.room(1, f.quota); err != nil {
		t.Errorf("the last item: %v", err)
	}
	f.ix.order = append(f.ix.order, &entry{})
	if err := f.ix.room(1, f.quota); !errors.Is(err, ErrFull) {
		t.Errorf("one item too many: %v", err)
	}
	f.ix.order = nil

	small := NewQuota(10)
	if !small.room(10) || small.room(1) || small.Used() != 10 || (*Quota)(nil).Used() != 0 ||
		!(*Quota)(nil).room(1<<40) || !(*Quota)(nil).keep(1<<40) {
		t.Errorf("a quota of 10 bytes holds %d", small.Used())
	}
	if q := NewQuota(-1); q.max != MaxBytesTotal {
		t.Errorf("the usual quota is %d", q.max)
	}
	if small.unkeep(-maxKept); small.keep(1) {
		t.Error("more copies are kept than allowed")
	}
	if small.unkeep(1); !small.keep(1) {
		t.Error("there is room for a copy")
	}
}

// All inboxes share one quota; what is open counts from the start, and not after the end.
func TestQuotaOfAllInboxes(t *testing.T) {
	q := NewQuota(0)
	dir := t.TempDir()
	f := openIn(t, dir, q)
	accepted(t, f, text("x"))
	id := accepted(t, f, text("y"))
	used := q.Used()
	if err := f.Drop(id); err != nil || q.Used() != used/2 || f.ix.bytes != used/2 {
		t.Errorf("dropped: %v, used are %d of %d bytes", err, q.Used(), used)
	}
	if kept := q.kept.Load(); kept != q.Used() {
		t.Errorf("copies of %d bytes are kept of %d", kept, q.Used())
	}
	if err := f.Close(); err != nil || q.Used() != 0 || q.kept.Load() != 0 {
		t.Errorf("closed: %v, used are %d bytes, kept are %d", err, q.Used(), q.kept.Load())
	}
	if again := openIn(t, dir, q); q.Used() != used/2 || q.kept.Load() != used/2 || again.Len() != 1 {
		t.Errorf("opened again, used are %d bytes, kept are %d", q.Used(), q.kept.Load())
	}
	if err := opensWith(t, dir, q); err == nil || q.Used() != used/2 {
		t.Errorf("an inbox whose barrier failed: %v, used are %d bytes", err, q.Used())
	}
	full := NewQuota(10)
	other := openIn(t, t.TempDir(), full)
	if _, err := other.Accept(t.Context(), text("x")); !errors.Is(err, ErrFull) || full.Used() != 0 {
		t.Errorf("over the quota: %v, used are %d bytes", err, full.Used())
	}
	if other.Len() != 0 {
		t.Error("what was refused is open")
	}
}

func opensWith(t *testing.T, dir string, q *Quota) error {
	crash.Arm(t, "eio@inbox.sync#1")
	defer func() { crash.Arm(t, "") }()
	f, _, err := Open(disk.NewVolume(dir), dir, q, time.Now)
	if err == nil {
		f.Close()
	}
	return err
}

// A mailbox that was closed does nothing, and says so; to close it again is not an error.
func TestClosedMailbox(t *testing.T) {
	f := openIn(t, t.TempDir(), nil)
	id := accepted(t, f, text("x"))
	waiting := make(chan error)
	go func() { waiting <- f.Wait(context.Background(), id) }()
	if err := errors.Join(f.Close(), f.Close()); err != nil {
		t.Fatal(err)
	}
	_, accept := f.Accept(t.Context(), text("y"))
	_, read := f.Read(id)
	_, take := f.Take(id)
	for what, err := range map[string]error{"accept": accept, "read": read, "take": take, "done": f.Done(id),
		"drop": f.Drop(id), "front": f.Front(id),
		"refresh": f.Refresh(), "wait": f.Wait(t.Context(), id), "an old wait": <-waiting} {
		if !errors.Is(err, ErrClosed) {
			t.Errorf("%s: %v", what, err)
		}
	}
	over, cancel := context.WithCancel(t.Context())
	cancel()
	open := openIn(t, t.TempDir(), nil)
	if _, err := open.Accept(over, text("x")); !errors.Is(err, context.Canceled) || open.Len() != 0 {
		t.Errorf("accept after the end of its context: %v", err)
	}
	id = accepted(t, open, text("x"))
	if err := open.Wait(over, id); !errors.Is(err, context.Canceled) {
		t.Errorf("wait after the end of its context: %v", err)
	}
	if err := open.Wait(t.Context(), "none"); err != nil {
		t.Errorf("wait for nothing: %v", err)
	}
}

// What a user writes into the file is durable before it is worked on.
func TestWhatAnEditBringsIsDurable(t *testing.T) {
	f := openIn(t, t.TempDir(), nil)
	accepted(t, f, text("one"))
	saved(t, f.dir.path(), content(t, f)+`{"type":"message","id":"by-hand","text":"two"}`+"\n")
	if items, err := f.Take("by-hand"); err != nil || len(items) != 1 || !f.log.Durable() {
		t.Errorf("%+v, %v; it is durable: %v", items, err, f.log.Durable())
	}
}

// What is owed to the file is written with the next message, which is as long as it would be without.
func TestWhatIsOwedIsWrittenWithTheNextMessage(t *testing.T) {
	f := openIn(t, t.TempDir(), nil)
	one := accepted(t, f, text("one"))
	crash.Arm(t, "enospc@inbox.write#1")
	if err := f.Done(one); err != nil || len(f.owed) != 1 {
		t.Fatalf("done on a full disk: %v, owed is %v", err, f.owed)
	}
	two := accepted(t, f, text("two"))
	heads, err := Survey(string(f.dir))
	if err != nil || len(heads) != 1 || heads[0].ID != two || heads[0].Bytes != f.Open()[0].Bytes || len(f.owed) != 0 {
		t.Errorf("in the file open are %+v, %v; in memory %+v", heads, err, f.Open())
	}
}

// While a disk is full nothing is accepted, and what is done is owed to the file.
func TestFullDiskOwesWhatIsDone(t *testing.T) {
	dir := t.TempDir()
	f := openIn(t, dir, nil)
	one, two := accepted(t, f, text("x")), accepted(t, f, text("y"))
	for what, does := range map[string]func(string) error{"drop": f.Drop, "front": f.Front,
		"edit": func(id string) error { return f.Edit(id, "z") }} {
		crash.Arm(t, "enospc@inbox.write#1")
		if err := does(two); !errors.Is(err, disk.ErrFull) {
			t.Errorf("%s on a full disk: %v", what, err)
		}
		if it, err := f.Read(two); err != nil || it.Text != "y" || f.Open()[1].ID != two {
			t.Errorf("after a %s that failed: %+v, %v", what, it, err)
		}
	}
	crash.Arm(t, "enospc@inbox.write#1")
	if err := f.Done(one); err != nil {
		t.Errorf("done on a full disk: %v", err)
	}
	if open := f.Open(); len(open) != 1 || len(f.owed) != 1 {
		t.Errorf("open are %+v, owed is %v", open, f.owed)
	}
	if err := f.Done(); err != nil || len(f.owed) != 0 {
		t.Errorf("what is owed is not written: %v, %v", f.owed, err)
	}
	if heads, err := Survey(dir); err != nil || len(heads) != 1 || heads[0].ID != two {
		t.Errorf("in the file open are %+v, %v", heads, err)
	}
	crash.Arm(t, "enospc@inbox.write#1")
	if err := errors.Join(f.Done(two), f.Close()); err != nil { // the end is a last try
		t.Fatal(err)
	}
	if settled, err := Settled(dir); !settled || err != nil {
		t.Errorf("settled %v, %v", settled, err)
	}
	full := disk.NewVolume(filepath.Join(dir, "none")) // a disk that cannot be asked has no room
	f = openIn(t, dir, nil)
	crash.Arm(t, "enospc@inbox.write#1")
	if _, err := f.Accept(t.Context(), text("x")); !errors.Is(err, disk.ErrFull) || f.Len() != 0 {
		t.Errorf("accept on a full disk: %v", err)
	}
	f.vol = full
	if full.Full() {
		t.Error("nobody said that it is full")
	}
}

// What cannot be read now may hold anything.
func TestInboxesThatCannotBeRead(t *testing.T) {
	dir := t.TempDir()
	if err := os.Symlink(FileName, filepath.Join(dir, FileName)); err != nil {
		t.Fatal(err)
	}
	_, survey := Survey(dir)
	_, all := ReadAll(dir)
	settled, look := Settled(dir)
	_, check := Check(dir)
	_, accepted := Accepted(dir, nil)
	for what, err := range map[string]error{"survey": survey, "read all": all, "settled": look, "check": check,
		"accepted": accepted, "open": opens(dir)} {
		if !errors.Is(err, syscall.ELOOP) {
			t.Errorf("%s: %v", what, err)
		}
	}
	if _, ok := LastMessage(dir); settled || ok || LineOf(dir, "x") != 0 {
		t.Error("something is read from what cannot be")
	}
	none := t.TempDir()
	heads, err1 := Survey(none)
	items, err2 := ReadAll(none)
	found, err3 := Check(none)
	got, err4 := Accepted(none, map[string]bool{"x": true})
	settled, err5 := Settled(none)
	if err := errors.Join(err1, err2, err3, err4, err5); err != nil || len(heads)+len(items)+len(found)+len(got) != 0 || !settled {
		t.Errorf("of no inbox: %v", err)
	}
	if _, ok := LastMessage(none); ok {
		t.Error("a message in no inbox")
	}
	if err := opens(filepath.Join(none, "none")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("open in no folder: %v", err)
	}
}

// What users and commands are told of a file: its lines, its items, its newest message.
func TestLooksAtAFile(t *testing.T) {
	at := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	item := func(seq int64, id string, kind message.Kind) string {
		return string(appendItem(nil, &Item{Seq: seq, At: at.Add(time.Duration(seq) * time.Minute), ID: id, Kind: kind,
			Text: "text " + id}))
	}
	mark := func(kind, id string) string { return string(appendMark(nil, 9, at, kind, id)) }
	lines := item(1, "a", message.Text) + mark(lineFront, "b") + item(2, "b", message.Text) +
		item(3, "a", message.Text) + mark(lineDropped, "b") +
		item(4, "c", message.System) + string(appendDone(nil, 8, at, []string{"a"}, 1)) +
		string(appendKeys(nil, 8, at, []string{"k"})) + "garbage\nmore of it\n" + `{"seq":12`
	dir := t.TempDir()
	path := filepath.Join(dir, FileName)
	if err := os.WriteFile(path, []byte(lines), 0o600); err != nil {
		t.Fatal(err)
	}
	found, err := Check(dir)
	var got []string
	for _, f := range found {
		got = append(got, fmt.Sprint(f.Line, " ", f.ID))
		if f.File != path || f.Severity != finding.Warning {
			t.Errorf("%+v", f)
		}
	}
	want := []string{"9 " + BrokenLine, "10 " + BrokenLine, "4 inbox-id-twice", "11 inbox-torn"}
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	if found := CheckContent(path, []byte(strings.TrimSuffix(item(1, "a", message.Text), "\n"))); len(found) != 0 {
		t.Errorf("a whole line without its end: %v", found)
	}
	for id, want := range map[string]int{"a": 1, "b": 3, "c": 6, "none": 0} {
		if n := LineOf(dir, id); n != want {
			t.Errorf("%s is on line %d, want %d", id, n, want)
		}
	}
	if when, ok := LastMessage(dir); !ok || !when.Equal(at.Add(3*time.Minute)) {
		t.Errorf("the newest message is of %v, %v", when, ok)
	}
	quiet := t.TempDir()
	if err := os.WriteFile(filepath.Join(quiet, FileName), []byte(item(1, "a", message.System)), 0o600); err != nil {
		t.Fatal(err)
	}
	if when, ok := LastMessage(quiet); ok {
		t.Errorf("of system messages alone, the newest message is of %v", when)
	}
	all, err := Accepted(dir, map[string]bool{"b": true, "c": true, "none": true})
	if err != nil || len(all) != 2 || all[0].Text != "text b" || all[1].ID != "c" {
		t.Errorf("accepted are %+v, %v", all, err)
	}
	heads, err := Survey(dir)
	if err != nil || len(heads) != 1 || heads[0].ID != "c" || heads[0].Kind != message.System || heads[0].Seq != 4 {
		t.Errorf("open are %+v, %v", heads, err)
	}
	if items, err := ReadAll(dir); err != nil || len(items) != 1 || items[0].Text != "text c" {
		t.Errorf("open are %+v, %v", items, err)
	}
	f := openIn(t, dir, nil)
	if broken, scans := f.Broken(); len(broken) != 2 || broken[0].Line != 9 || broken[1].Line != 10 || scans != 1 {
		t.Errorf("broken are %v after %d readings", broken, scans)
	}
	if err := os.WriteFile(path, []byte(item(1, "a", message.Text)), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := f.Refresh(); err != nil {
		t.Fatal(err)
	}
	if broken, scans := f.Broken(); len(broken) != 0 || scans < 2 {
		t.Errorf("after an edit broken are %v after %d readings", broken, scans)
	}
}

// The end of a file proves that nothing is open only if it is whole and ours.
func TestProves(t *testing.T) {
	at := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	done := func(open int) string { return string(appendDone(nil, 8, at, []string{"a"}, open)) }
	for name, tt := range map[string]struct {
		tail  string
		whole bool
		want  bool
	}{
		"all is done":           {"x\n" + done(0), false, true},
		"one is left":           {"x\n" + done(1), false, false},
		"no end":                {"x\n" + strings.TrimSuffix(done(0), "\n"), false, false},
		"blank lines":           {"\n \n", true, true},
		"blank lines at an end": {"\n \n", false, false},
		"nothing":               {"", true, false},
		"one line, all of it":   {done(0), true, true},
		"one line, perhaps cut": {done(0), false, false},
		"by hand":               {"x\n" + `{"seq":1,"type":"done","ids":[],"open":0}` + "\n", true, false},
		"another kind":          {"x\n" + string(appendMark(nil, 1, at, lineDropped, "a")), true, false},
		"broken":                {"x\n{broken\n", true, false},
	} {
		if got := proves([]byte(tt.tail), tt.whole); got != tt.want {
			t.Errorf("%s: %v, want %v", name, got, tt.want)
		}
	}
}

// A letter may be only what its kind may be.
func TestCheckLetter(t *testing.T) {
	id := strings.Repeat("a", 24)
	for name, tt := range map[string]struct{ file, content, why string }{
		"text":                   {"a.md", "x", ""},
		"upper case":             {"a.TXT", "x", ""},
		"no text":                {"a.md", " \n", "text is missing"},
		"not UTF-8":              {"a.md", "\xff", "UTF-8"},
		"a name not UTF-8":       {"\xff.md", "x", "name"},
		"the longest name":       {strings.Repeat("n", maxDroppedName-3) + ".md", "x", ""},
		"a longer name":          {strings.Repeat("n", maxDroppedName-2) + ".md", "x", "name"},
		"another kind of file":   {"a.exe", "x", ".exe"},
		"broken":                 {"a.json", "{", "JSON"},
		"as nobody":              {"a.json", `{"text":"x","as":"root"}`, `"as"`},
		"a permission":           {"a.json", `{"text":"x","type":"permission"}`, `"type"`},
		"a reset without a text": {"a.json", `{"type":"reset"}`, ""},
		"a word without a text":  {"a.json", `{"type":"system_message"}`, "text is missing"},
		"files without a text":   {"a.json", `{"files":["/a"]}`, ""},
		"a queue":                {"a.json", `{"text":"x","queue":"steer"}`, ""},
		"another queue":          {"a.json", `{"text":"x","queue":"later"}`, `"queue"`},
		"a queue of a reset":     {"a.json", `{"type":"reset","queue":"later"}`, ""},
		"an id":                  {"a.json", `{"text":"x","id":"` + id + `"}`, ""},
		"another id":             {"a.json", `{"text":"x","id":"me"}`, `"id"`},
		"the longest text":       {"a.json", `{"text":"` + strings.Repeat("x", MaxItemBytes) + `"}`, ""},
		"a longer text":          {"a.json", `{"text":"` + strings.Repeat("x", MaxItemBytes+1) + `"}`, "too large"},
		"a relative path":        {"a.json", `{"text":"x","files":["a"]}`, "absolute"},
		"a path and an id":       {"a.json", `{"text":"x","files":[{"path":"/a","id":"b"}]}`, "use one"},
		"a kept file":            {"a.json", `{"text":"x","files":[{"id":"b"}]}`, ""},
		"a file that is none":    {"a.json", `{"text":"x","files":[7]}`, "JSON"},
	} {
		err := CheckDropped(tt.file, []byte(tt.content))
		if (err == nil) != (tt.why == "") || err != nil && !strings.Contains(err.Error(), tt.why) {
			t.Errorf("%s: %v, want %q", name, err, tt.why)
		}
	}
	for as, want := range map[string]Fields{
		`{"text":"x","as":"user","origin":"o","silent":true,"queue":"steer"}`: {Text: "x", As: "user",
			Type: message.Text, Queue: message.Steer},
		`{"text":"x","as":"system","silent":true,"queue":"steer"}`: {Text: "x", As: "system",
			Type: message.System, Origin: "system", Silent: true},
		`{"text":"x","type":"system_message","origin":"cron","queue":"steer"}`: {Text: "x", Type: message.System, Origin: "cron"},
	} {
		got, err := parseDropped("a.json", []byte(as))
		if diff := cmp.Diff(want, got); diff != "" || err != nil {
			t.Errorf("%s: %v (-want +got):\n%s", as, err, diff)
		}
	}
	for name, want := range map[string]string{"0-1__x.md": "0/1", "me__x": "me", "x.md": "", "0-__x": "0/",
		"log-1__x": "log-1", "__x": "", "a__b__c": "a"} {
		if got := Addressee(name); got != want {
			t.Errorf("%s is for %q, want %q", name, got, want)
		}
	}
}

// A letter is posted only under a name from which its agent can be read.
func TestPostNames(t *testing.T) {
	dir := t.TempDir()
	v := disk.NewVolume(dir)
	for ref, want := range map[string]bool{"": true, "0/1": true, "0/1/": true, "log-reader": true, "0-1": false,
		"a/b": false, ".a": false, "a\nb": false, "a\x00": false,
		"a__b": false, strings.Repeat("n", maxDroppedName): false} {
		id, err := Post(v, filepath.Join(dir, "drop"), ref, Fields{Text: "x"})
		if (err == nil) != want || want != itemID.MatchString(id) {
			t.Errorf("%q: %q, %v", ref, id, err)
		}
	}
	if _, err := Post(v, filepath.Join(dir, "drop"), "", Fields{}); err == nil {
		t.Error("a letter without a text was posted")
	}
	own := strings.Repeat("b", 24)
	if id, err := Post(v, filepath.Join(dir, "drop"), "0", Fields{Text: "x", ID: own}); id != own || err != nil {
		t.Errorf("%q, %v", id, err)
	}
}

// Where the file cannot be read again nothing is acknowledged, and nobody tries for seconds.
func TestAFileThatCannotBeReadAnew(t *testing.T) {
	f := openIn(t, t.TempDir(), nil)
	id := accepted(t, f, text("x"))
	it := text("y")
	f.mu.Lock()
	_, e, err := f.enter(&it)
	f.mu.Unlock()
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(os.Remove(f.dir.path()), os.Mkdir(f.dir.path(), 0o700)); err != nil {
		t.Fatal(err)
	}
	if err := f.settle(e); err == nil {
		t.Error("an item is acknowledged that no file has")
	}
	if err := f.Done(id); err == nil || errors.Is(err, disk.ErrChanged) {
		t.Errorf("done: %v", err)
	}
	if _, err := f.Read(id); err == nil {
		t.Error("an item is read from no file")
	}
	if _, err := f.Take(id); err == nil {
		t.Error("an item is taken from no file")
	}
	for what, err := range map[string]error{"refresh": f.Refresh(), "drop": f.Drop(id), "front": f.Front(id), "edit": f.Edit(id, "z")} {
		if err == nil {
			t.Errorf("%s says nothing", what)
		}
	}
}

// Of too many keys the newest are carried over, in the order in which they came.
func TestKeysAreCarriedOverByAge(t *testing.T) {
	f := openIn(t, t.TempDir(), nil)
	now := time.Now().Unix()
	f.ix.keys = map[uint64]key{1: {at: now - 5, off: 900}, 2: {at: now - 9, off: 1000}, 3: {at: now - 5, off: 100},
		4: {at: now - 1, off: 1},
		5: {at: now - int64(DedupeWindow/time.Second) - 60, off: 5}, 6: {at: now, off: 6}}
	var order []string
	for _, element := range f.ix.keyList(f.ages, map[uint64]bool{6: true}, func(k key) string { return fmt.Sprint("id", k.off) }) {
		order = append(order, element[15:16])
		hash, at, ok := parseKey(element)
		if k := f.ix.keys[hash]; !ok || at != k.at || !strings.HasSuffix(element, fmt.Sprint(" id", k.off)) {
			t.Errorf("%s is read as %d, %d, %v", element, hash, at, ok)
		}
	}
	if got := strings.Join(order, ""); got != "2314" {
		t.Errorf("the order is %s", got)
	}
	for _, broken := range []string{"", "x 1 id", "1 x id", "1"} {
		if hash, at, ok := parseKey(broken); ok {
			t.Errorf("%q is %d, %d", broken, hash, at)
		}
	}
	for n := range uint64(MaxKeys + 3) {
		f.ix.keys[100+n] = key{at: now - 4}
	}
	if list := f.ix.keyList(f.ages, nil, func(key) string { return "" }); len(list) != MaxKeys ||
		!strings.HasPrefix(list[MaxKeys-1], "0000000000000006") {
		t.Errorf("%d keys are carried over", len(list))
	}
}

// What is not a regular file is not a letter.
func TestLettersThatAreNoFiles(t *testing.T) {
	dir := t.TempDir()
	socket, err := net.Listen("unix", filepath.Join(dir, "s"))
	if err != nil {
		t.Fatal(err)
	}
	defer socket.Close()
	if err := errors.Join(os.WriteFile(filepath.Join(dir, "f"), []byte("x"), 0o600),
		os.Symlink("f", filepath.Join(dir, "l")), syscall.Mkfifo(filepath.Join(dir, "p"), 0o600)); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"s", "l", "p", "."} {
		if _, err := readDropped(filepath.Join(dir, name)); err == nil || err.Error() != "it is not a regular file" {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := readDropped(filepath.Join(dir, "none")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("none: %v", err)
	}
	if data, err := readDropped(filepath.Join(dir, "f")); err != nil || string(data) != "x" {
		t.Errorf("%q, %v", data, err)
	}
}

// An id that was closed stays closed, also when an edit took its lines out.
func TestAClosedIDStaysClosedOverAnEdit(t *testing.T) {
	f := openIn(t, t.TempDir(), nil)
	it := text("x")
	it.ID = strings.Repeat("i", 24)
	if err := f.Done(accepted(t, f, it)); err != nil {
		t.Fatal(err)
	}
	other := accepted(t, f, text("other"))
	data, err := os.ReadFile(f.dir.path())
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.SplitAfter(string(data), "\n")
	log := f.log
	for range 2 {
		if err := os.WriteFile(f.dir.path(), []byte(lines[2]), 0o600); err != nil { // the other's alone
			t.Fatal(err)
		}
		touch(t, f.dir.path())
		if err := f.Refresh(); err != nil {
			t.Fatal(err)
		}
		if r, err := f.Accept(t.Context(), it); err != nil || !r.Duplicate || r.Item != it.ID {
			t.Errorf("%+v, %v", r, err)
		}
	}
	if open := f.Open(); len(open) != 1 || open[0].ID != other || f.log != log {
		t.Errorf("open are %+v, and the file is the same: %v", open, f.log == log)
	}
}

// A line that is there twice, as after a copy by hand, is one item: the first of the two
// is used, and one that was closed before is not open again.
func TestALineThatIsThereTwice(t *testing.T) {
	dir := t.TempDir()
	f := openIn(t, dir, nil)
	done, open := accepted(t, f, text("done")), accepted(t, f, text("open"))
	if err := errors.Join(f.Done(done), f.Close()); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, FileName)
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}

	lines := strings.SplitAfter(string(data), "\n")
	again := lines[0] + strings.Replace(lines[1], `"open"`, `"changed and longer"`, 1)
	if err := os.WriteFile(path, append(data, again...), 0o600); err != nil {
		t.Fatal(err)
	}
	f = openIn(t, dir, nil)
	if list := f.Open(); len(list) != 1 || list[0].ID != open {
		t.Errorf("open are %+v, want %s alone", list, open)
	}
	if it, err := f.Read(open); err != nil || it.Text != "open" || f.ix.bytes != int64(len(lines[1])-1) {
		t.Errorf("%+v, %v, %d bytes are open", it, err, f.ix.bytes)
	}
}

// An edited item is in what was accepted once, as it is now, and the others stay.
func TestAcceptedItemsThatWereEdited(t *testing.T) {
	dir := t.TempDir()
	f := openIn(t, dir, nil)
	ids := map[string]bool{}
	for _, words := range []string{"one", "two", "three"} {
		r, err := f.Accept(t.Context(), text(words))
		if err != nil {
			t.Fatal(err)
		}
		if ids[r.Item] = true; words != "three" {
			if err := f.Edit(r.Item, words+" edited"); err != nil {
				t.Fatal(err)
			}
		}
	}
	all, err := Accepted(dir, ids)
	var got []string
	for _, it := range all {
		got = append(got, it.Text)
	}
	if want := []string{"one edited", "two edited", "three"}; !slices.Equal(got, want) || err != nil {
		t.Errorf("%q, %v, want %q", got, err, want)
	}
}

// What cannot be read proves nothing.
func TestAnInboxThatIsAFolder(t *testing.T) {
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, FileName), 0o700); err != nil {
		t.Fatal(err)
	}
	if settled, err := Settled(dir); settled || !errors.Is(err, syscall.EISDIR) {
		t.Errorf("%v, %v", settled, err)
	}
}

// Items that a save took away are written again, and where that fails whoever looks is told.
func TestWhatIsOwedAndCannotBeWritten(t *testing.T) {
	for fault, want := range map[string]error{"eio@inbox.write#1": disk.ErrFailed, "eio@inbox.sync#1": disk.ErrFailed, "": nil} {
		f := openIn(t, t.TempDir(), nil)
		for _, words := range []string{"one", "two"} {
			if _, err := f.Accept(t.Context(), text(words)); err != nil {
				t.Fatal(err)
			}
		}
		data, err := os.ReadFile(f.dir.path())
		if err != nil {
			t.Fatal(err)
		}
		_, rest, _ := strings.Cut(string(data), "\n")
		temp := filepath.Join(string(f.dir), ".edit")
		if err := errors.Join(os.WriteFile(temp, []byte(rest), 0o600), os.Rename(temp, f.dir.path())); err != nil {
			t.Fatal(err)
		}
		f.reread = time.Now() // an editor that is at work
		crash.Arm(t, fault)
		if err := f.Refresh(); !errors.Is(err, want) {
			t.Errorf("%s: %v, want %v", fault, err, want)
		}
		crash.Arm(t, "")
		if want == nil && f.Len() != 2 {
			t.Errorf("%d items are left", f.Len())
		}
	}
}

// saved puts data in the place of a file, as editors do.
func saved(t *testing.T, path, data string) {
	t.Helper()
	if err := errors.Join(os.WriteFile(path+"~", []byte(data), 0o600), os.Rename(path+"~", path)); err != nil {
		t.Error(err)
	}
}

// A folder that goes away while what is owed to its file is written is reported.
func TestTheFolderGoesWhileItsFileIsMended(t *testing.T) {
	f := openIn(t, t.TempDir(), nil)
	accepted(t, f, text("one"))
	saved(t, f.dir.path(), "")
	f.reread = time.Now() // an editor that is at work
	crash.Meanwhile(t, "inbox.write", func(int) {
		if err := os.RemoveAll(string(f.dir)); err != nil {
			t.Error(err)
		}
	})
	if err := f.Refresh(); err == nil {
		t.Error("nothing is said")
	}
}

// A file that is saved again and again while an item is edited: the edit is in it once, also where the
// last save was an older version that lacks another item, and it is known where both are in the file.
func TestAnEditAmongSaves(t *testing.T) {
	for name, older := range map[string]bool{"the same": false, "an older version": true} {
		t.Run(name, func(t *testing.T) {
			q := NewQuota(0)
			q.forceKeep(maxKept) // no room for copies
			f := openIn(t, t.TempDir(), q)
			id := accepted(t, f, text("one"))
			before := content(t, f)
			accepted(t, f, text("two"))
			f.reread = time.Now()
			crash.Meanwhile(t, "inbox.write", func(k int) {
				switch {
				case k < settleTries:
					saved(t, f.dir.path(), content(t, f))
				case k == settleTries && older:
					saved(t, f.dir.path(), before)
				case k == settleTries:
					saved(t, f.dir.path(), content(t, f))
				}
			})
			if err := f.Edit(id, "one, edited"); err != nil {
				t.Fatal(err)
			}
			if words := inPlace(t, f); !slices.Equal(words, []string{"one, edited", "two"}) {
				t.Errorf("open are %q", words)
			}
			if f.ix.order[0].Bytes+f.ix.order[1].Bytes != int(f.ix.bytes) || f.ix.bytes != q.Used() {
				t.Errorf("%d bytes are open of %d in all", f.ix.bytes, q.Used())
			}
		})
	}
}

// A message that is accepted while the file is saved again and again is in it once, after what was there, and
// its key is known; how often the file is read for it alone is bounded, and it is accepted all the same.
func TestAnAcceptAmongSaves(t *testing.T) {
	for name, tt := range map[string]struct {
		saves int
		older bool // the saves lack the first item
	}{
		"a save": {1, false}, "an older version": {1, true}, "some": {settleTries, false}, "some, older": {settleTries, true},
		"many": {settleTries + urgentTries + 2, true},
	} {
		t.Run(name, func(t *testing.T) {
			f := openIn(t, t.TempDir(), nil)
			before := content(t, f)
			accepted(t, f, text("one"))
			f.reread = time.Now()
			crash.Meanwhile(t, "inbox.write", func(k int) {
				if k <= tt.saves {
					if !tt.older {
						before = content(t, f)
					}
					saved(t, f.dir.path(), before)
				}
			})
			it := Item{Kind: message.Text, Text: "two", Dedupe: "k"}
			id := accepted(t, f, it)
			if err := f.Refresh(); err != nil {
				t.Fatal(err)
			}
			if words := inPlace(t, f); !slices.Equal(words, []string{"one", "two"}) {
				t.Errorf("open are %q", words)
			}
			if r, err := f.Accept(t.Context(), it); err != nil || !r.Duplicate || r.Item != id {
				t.Errorf("offered again: %+v, %v", r, err)
			}
		})
	}
}

// An item that an edit would make too large for what is left is not edited, and takes no room.
func TestAnEditWithoutRoom(t *testing.T) {
	q := NewQuota(0)
	f := openIn(t, t.TempDir(), q)
	id := accepted(t, f, text("one"))
	used := q.Used()
	f.ix.bytes += MaxBytes - used
	if err := f.Edit(id, "longer than before"); !errors.Is(err, ErrFull) {
		t.Errorf("in a full inbox: %v", err)
	}
	f.ix.bytes -= MaxBytes - used
	q.add(MaxBytesTotal - used)
	if err := f.Edit(id, "longer than before"); !errors.Is(err, ErrFull) {
		t.Errorf("with all inboxes full: %v", err)
	}
	q.add(used - MaxBytesTotal)
	if it, err := f.Read(id); err != nil || it.Text != "one" || q.Used() != used || f.ix.bytes != used {
		t.Errorf("it is %q, %v, and takes %d bytes, want %d", it.Text, err, q.Used(), used)
	}
}

// What was dropped while the file was saved again and again is not in it.
func TestADropAmongSaves(t *testing.T) {
	f := openIn(t, t.TempDir(), nil)
	id := accepted(t, f, text("one"))
	accepted(t, f, text("two"))
	f.reread = time.Now()
	before := content(t, f)
	crash.Meanwhile(t, "inbox.write", func(k int) {
		if k <= 2*(settleTries+urgentTries) {
			saved(t, f.dir.path(), before)
		}
	})
	if err := f.Drop(id); err != nil {
		t.Fatal(err)
	}
	if items, err := ReadAll(string(f.dir)); err != nil || len(items) != 1 || items[0].Text != "two" {
		t.Errorf("open are %+v, %v", items, err)
	}
}

// The key of a message that was sent long ago is kept from its arrival on, also if the file was changed at that moment.
func TestAnOldMessageWhileTheFileIsChanged(t *testing.T) {
	f := openIn(t, t.TempDir(), nil)
	crash.Meanwhile(t, "inbox.write", func(k int) {
		if k > 1 {
			return
		}
		file, err := os.OpenFile(f.dir.path(), os.O_WRONLY|os.O_APPEND, 0)
		if err == nil {
			_, err = file.WriteString("\n")
			err = errors.Join(err, file.Close())
		}
		if err != nil {
			t.Error(err)
		}
	})
	it := Item{Kind: message.Text, Text: "old", Dedupe: "k", At: time.Now().Add(-DedupeWindow - time.Hour)}
	id := accepted(t, f, it)
	if r, err := f.Accept(t.Context(), it); err != nil || !r.Duplicate || r.Item != id || f.Len() != 1 {
		t.Errorf("offered again: %+v, %v, %d items are open", r, err, f.Len())
	}
}

// Without memory for copies an item is not lost to two saves, of which the second lacks it.
func TestTwoSavesWithoutMemory(t *testing.T) {
	q := NewQuota(0)
	q.forceKeep(maxKept)
	f := openIn(t, t.TempDir(), q)
	accepted(t, f, text("one"))
	before := content(t, f)
	accepted(t, f, text("two"))
	saved(t, f.dir.path(), before)
	f.reread = time.Now()
	crash.Meanwhile(t, "inbox.write", func(k int) {
		if k == 1 {
			saved(t, f.dir.path(), "")
		}
	})
	if err := f.Refresh(); err != nil {
		t.Fatal(err)
	}
	if words := inPlace(t, f); !slices.Equal(words, []string{"one", "two"}) {
		t.Errorf("open are %q", words)
	}
}

// What is owed to a file that is saved at each try is owed to the next write.
func TestWhatIsOwedToAFileThatIsSavedAllTheTime(t *testing.T) {
	f := openIn(t, t.TempDir(), nil)
	before := content(t, f)
	accepted(t, f, text("one"))
	saved(t, f.dir.path(), before)
	f.reread = time.Now()
	writes := 0
	crash.Meanwhile(t, "inbox.write", func(k int) {
		if writes = k; k <= settleTries {
			saved(t, f.dir.path(), before)
		}
	})
	if err := f.Refresh(); err != nil || writes != settleTries || f.Len() != 1 {
		t.Errorf("%v after %d writes, %d items are open, want one after %d", err, writes, f.Len(), settleTries)
	}
	accepted(t, f, text("two"))
	if words := inPlace(t, f); !slices.Equal(words, []string{"one", "two"}) {
		t.Errorf("open are %q", words)
	}
}

func content(t *testing.T, f *File) string {
	t.Helper()
	data, err := os.ReadFile(f.dir.path())
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}
