package inbox

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"daycare/engine/beneath"
	"daycare/engine/crash"
	"daycare/engine/disk"
	"daycare/engine/message"
)

// What could not be written uses nothing of the quota, and a disk that is full takes nothing
// before it has room for the current work.
func TestRoomOfWhatWasNotAccepted(t *testing.T) {
	q := NewQuota(0)
	dir := t.TempDir()
	f := openIn(t, dir, q)
	if err := os.MkdirAll(filepath.Join(dir, ".ballast", "x"), 0o700); err != nil { // no room can be kept back
		t.Fatal(err)
	}

	crash.Arm(t, "enospc@inbox.write#1")
	for try := range 2 {
		if _, err := f.Accept(t.Context(), text("x")); !errors.Is(err, disk.ErrFull) || q.Used() != 0 || f.Len() != 0 {
			t.Errorf("try %d: %v, used are %d bytes, open %d", try, err, q.Used(), f.Len())
		}
	}

	if err := os.RemoveAll(filepath.Join(dir, ".ballast")); err != nil {
		t.Fatal(err)
	}
	accepted(t, f, text("x"))
}

// An inbox is settled when the last of its items is dropped, not before.
func TestDropOfOneOfTwo(t *testing.T) {
	dir := t.TempDir()
	f := openIn(t, dir, nil)
	one, two := accepted(t, f, text("x")), accepted(t, f, text("y"))
	for _, step := range []struct {
		id   string
		want bool
	}{{one, false}, {two, true}} {
		if err := f.Drop(step.id); err != nil {
			t.Fatal(err)
		}
		if settled, err := Settled(dir); err != nil || settled != step.want {
			t.Errorf("settled: %v, %v, want %v", settled, err, step.want)
		}
	}
}

// A rotation keeps an open item whose line there was no memory for, and what it forgets of
// keys takes no memory either.
func TestRotationWithoutMemory(t *testing.T) {
	q, dir := NewQuota(0), t.TempDir()
	q.kept.Store(maxKept)
	f := openIn(t, dir, q)
	accepted(t, f, text("x"))
	f.ix.keys[7] = key{at: time.Now().Add(-DedupeWindow - time.Hour).Unix()}
	if f.ix.order[0].line != nil {
		t.Fatal("its line is in memory")
	}
	if err := f.rewrite(f.log.Size()); err != nil {
		t.Fatal(err)
	}
	if items, err := ReadAll(dir); err != nil || len(items) != 1 || items[0].Text != "x" {
		t.Errorf("open are %+v, %v", items, err)
	}
	if _, ok := f.ix.keys[7]; ok {
		t.Error("a key that is too old is kept in memory")
	}
}

// After a rotation each open item is found where its line is now, also one that was moved to the
// front, and the first look needs no second one.
func TestWhereItemsAreAfterARotation(t *testing.T) {
	f := openIn(t, t.TempDir(), nil)
	done := accepted(t, f, text("done"))
	for _, words := range []string{"one", "two", "three"} {
		accepted(t, f, text(words))
	}
	accepted(t, f, Item{Kind: message.Text, Text: "four", Dedupe: "k"})
	if err := errors.Join(f.Front(f.ix.order[3].ID), f.Done(done), f.rewrite(f.log.Size())); err != nil {
		t.Fatal(err)
	}
	if words := inPlace(t, f); !slices.Equal(words, []string{"three", "one", "two", "four"}) {
		t.Errorf("open are %q", words)
	}
	if strings.Contains(content(t, f), fmt.Sprintf("%016x", hash64("k"))) {
		t.Errorf("a key is listed although its item has it:\n%s", content(t, f))
	}
}

// inPlace returns the texts of the open items, read where they are said to be in the file.
func inPlace(t *testing.T, f *File) (words []string) {
	t.Helper()
	data := content(t, f)
	for _, e := range f.ix.order {
		l, err := decode([]byte(data[e.off : e.off+int64(e.Bytes)]))
		if err != nil || l.ID != e.ID {
			t.Fatalf("at %d is %s, %v; want %s", e.off, l.ID, err, e.ID)
		}
		words = append(words, l.Text)
	}
	if int64(len(data)) != f.log.Size() {
		t.Errorf("the file has %d bytes, want %d", len(data), f.log.Size())
	}
	return words
}

// Who waits for an item hears when it is done, dropped, or taken out of the file by hand.
func TestWhoWaitsForAnItem(t *testing.T) {
	for name, ends := range map[string]func(t *testing.T, f *File, id string) error{
		"done":    func(_ *testing.T, f *File, id string) error { return f.Done(id) },
		"dropped": func(_ *testing.T, f *File, id string) error { return f.Drop(id) },
		"removed": func(t *testing.T, f *File, _ string) error {
			saved(t, f.dir.path(), strings.SplitAfter(content(t, f), "\n")[1])
			return f.Refresh()
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := openIn(t, t.TempDir(), nil)
			id := accepted(t, f, text("x"))
			accepted(t, f, text("y"))
			waited := make(chan error, 1)
			go func() { waited <- f.Wait(t.Context(), id) }()
			for waits := false; !waits; time.Sleep(time.Millisecond) {
				f.mu.Lock()
				waits = f.ix.byID[id].gone != nil
				f.mu.Unlock()
			}
			if err := errors.Join(ends(t, f, id), <-waited); err != nil {
				t.Error(err)
			}
		})
	}
}

// What is done is one line, and the last one nothing more: nothing was open before it.
func TestWhatIsDoneIsOneLine(t *testing.T) {
	f := openIn(t, t.TempDir(), nil)
	one, two := accepted(t, f, text("one")), accepted(t, f, text("two"))
	for n, id := range []string{one, two} {
		if err := f.Done(id); err != nil {
			t.Fatal(err)
		}
		if data, err := os.ReadFile(f.dir.path()); err != nil || bytes.Count(data, []byte("\n")) != 3+n {
			t.Errorf("after %d the file has\n%s, %v", n+1, data, err)
		}
	}
}

// A key that cannot be read among those carried over is none, and hides no other.
func TestKeysThatCannotBeRead(t *testing.T) {
	good := strconv.FormatUint(hash64("k"), 16) + " 1700000000 item"
	r := &reader{index: newIndex()}
	r.carried([]string{"not hexadecimal 1", "", "12", good, "12 x"}, 0, []byte(good))
	if k, ok := r.keys[hash64("k")]; len(r.keys) != 1 || !ok || k.at != 1700000000 || k.off != 0 {
		t.Errorf("carried are %+v", r.keys)
	}
}

// An item whose line is another's by now, in a file that cannot be read again, is not taken from
// memory: a user may have changed it.
func TestAnItemOfAFileThatCannotBeReadAgain(t *testing.T) {
	f := openIn(t, t.TempDir(), nil)
	id := accepted(t, f, text("x"))
	e := f.ix.byID[id]
	e.off++ // as after an edit that nobody noticed
	if err := errors.Join(os.Remove(f.dir.path()), os.Mkdir(f.dir.path(), 0o700)); err != nil {
		t.Fatal(err)
	}
	if it, err := f.body(e); err == nil || e.line == nil {
		t.Errorf("%+v is read, a copy is there: %v", it, e.line != nil)
	}
}

// What an edit takes out of the file was accepted all the same: its sender offers it in vain
// after a rotation too.
func TestKeysOutliveAnEdit(t *testing.T) {
	dir := t.TempDir()
	f := openIn(t, dir, nil)
	it := text("x")
	it.Dedupe = "k"
	if err := f.Done(accepted(t, f, it)); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, FileName), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := f.reload(nil); err != nil {
		t.Fatal(err)
	}
	accepted(t, f, text("another, which has the first line now"))
	if r, err := f.Accept(t.Context(), it); err != nil || !r.Duplicate || r.Item != "" {
		t.Errorf("offered again: %+v, %v, want a duplicate of an item that is not in the file", r, err)
	}
	if err := f.rewrite(f.log.Size()); err != nil {
		t.Fatal(err)
	}
	if r, err := f.Accept(t.Context(), it); err != nil || !r.Duplicate {
		t.Errorf("offered again: %+v, %v, want a duplicate", r, err)
	}
}

// An item that was accepted, and that an older version of the file took away before there was
// memory for a copy of it, is reported as lost.
func TestALostItemIsReported(t *testing.T) {
	q, dir := NewQuota(0), t.TempDir()
	q.kept.Store(maxKept)
	f := openIn(t, dir, q)
	id := accepted(t, f, text("x"))
	if err := os.Truncate(filepath.Join(dir, FileName), 0); err != nil {
		t.Fatal(err)
	}
	if err := f.Refresh(); err != nil {
		t.Fatal(err)
	}
	found := f.Findings()
	if len(found) != 1 || found[0].ID != "inbox-item-lost" || !strings.Contains(found[0].Reason, id) || f.Len() != 0 || q.Used() != 0 {
		t.Errorf("found %+v, %d items of %d bytes", found, f.Len(), q.Used())
	}
}

// An item that an edit took away, and that the disk has no room to write again, is not written
// again once it is done.
func TestALostItemThatIsDoneStaysDone(t *testing.T) {
	dir := t.TempDir()
	f := openIn(t, dir, nil)
	id := accepted(t, f, text("x"))
	if err := os.MkdirAll(filepath.Join(dir, ".ballast", "x"), 0o700); err != nil { // no room can be kept back
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, FileName), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	crash.Arm(t, "enospc@inbox.write#1")
	if _, err := f.reload(nil); err != nil || len(f.lost) != 1 || f.Len() != 1 {
		t.Fatalf("%v, %d are lost, %d open", err, len(f.lost), f.Len())
	}
	if err := errors.Join(os.RemoveAll(filepath.Join(dir, ".ballast")), f.Done(id)); err != nil || len(f.lost) != 0 {
		t.Errorf("done: %v, %d are lost", err, len(f.lost))
	}
	accepted(t, f, text("y"))
	if items, err := ReadAll(dir); err != nil || len(items) != 1 || items[0].Text != "y" {
		t.Errorf("open are %+v, %v", items, err)
	}
}

// Only a report of the system can be silent.
func TestSilentItems(t *testing.T) {
	f := openIn(t, t.TempDir(), nil)
	accepted(t, f, Item{Kind: message.Text, Text: "x", Silent: true})
	accepted(t, f, Item{Kind: message.System, Text: "x"})
	accepted(t, f, Item{Kind: message.System, Text: "x", Silent: true})
	var got []bool
	for _, h := range f.Open() {
		got = append(got, h.Silent)
	}
	if !slices.Equal(got, []bool{false, false, true}) {
		t.Errorf("silent are %v", got)
	}
}

// Letters come in the order in which they were dropped, whatever their names; what else is in
// the folder of those that were taken is not a letter.
func TestOrderOfLetters(t *testing.T) {
	dir := t.TempDir()
	s, err := OpenDropFolder(disk.NewVolume(dir), filepath.Join(dir, "drop"))
	if err != nil {
		t.Fatal(err)
	}
	var last time.Time
	for _, name := range []string{"b.txt", "c.txt", "a.txt"} {
		for path := filepath.Join(dir, "drop", name); ; {
			if err := os.WriteFile(path, []byte("x"), 0o600); err != nil {
				t.Fatal(err)
			}
			info, err := os.Lstat(path)
			if err != nil {
				t.Fatal(err)
			}
			if at := beneath.ChangedAt(info); at.After(last) { // by a tick of the file system's clock
				last = at
				break
			}
		}
	}

	names, _, err := s.Ready(time.Now().Add(time.Minute))
	if err != nil || !slices.Equal(names, []string{"b.txt", "c.txt", "a.txt"}) {
		t.Errorf("%q, %v", names, err)
	}
	if err := errors.Join(os.MkdirAll(filepath.Join(s.takenDir(), "folder"), 0o700),
		os.WriteFile(filepath.Join(s.takenDir(), ".hidden"), []byte("x"), 0o600)); err != nil {
		t.Fatal(err)
	}
	if taken, err := s.Taken(); err != nil || len(taken) != 0 {
		t.Errorf("taken are %+v, %v", taken, err)
	}
}

// A power cut on a file system without a journal may leave a letter under its old name, its
// new one, or both: it is taken once, whatever is left, and never without a name.
func TestALetterWithTwoNamesIsTakenOnce(t *testing.T) {
	id, second := strings.Repeat("a", 24), strings.Repeat("b", 24)
	for name, left := range map[string][]string{
		"dropped":                 {"l.txt"},
		"taken":                   {".taken/" + id + "__l.txt"},
		"dropped and taken":       {"l.txt", ".taken/" + id + "__l.txt"},
		"taken twice":             {".taken/" + id + "__l.txt", ".taken/" + second + "__l.txt"},
		"dropped and taken twice": {"l.txt", ".taken/" + id + "__l.txt", ".taken/" + second + "__l.txt"},
	} {
		dir := t.TempDir()
		drop := filepath.Join(dir, "drop")
		s, err := OpenDropFolder(disk.NewVolume(dir), drop)
		if err != nil {
			t.Fatal(err)
		}

		first := filepath.Join(drop, left[0])
		if err := os.WriteFile(first, []byte("hello"), 0o600); err != nil {
			t.Fatal(err)
		}

		for _, other := range left[1:] {
			if err := os.Link(first, filepath.Join(drop, other)); err != nil {
				t.Fatal(err)
			}
		}
		all, err := s.Taken()
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}

		ready, _, err := s.Ready(time.Now().Add(time.Minute))
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}

		for _, dropped := range ready {
			l, err := s.Take(dropped)
			if err != nil {
				t.Errorf("%s: %v", name, err)
			}
			all = append(all, l)
		}

		if len(all) != 1 || all[0].Item.Text != "hello" {
			t.Errorf("%s: taken as %+v", name, all)
		}
		for _, l := range all {
			if err := s.Finish(l); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
		for _, folder := range []string{drop, s.takenDir()} {
			entries, err := os.ReadDir(folder)
			if err != nil || slices.ContainsFunc(entries, func(e os.DirEntry) bool { return !e.IsDir() }) {
				t.Errorf("%s: in %s are %v left, %v", name, folder, entries, err)
			}
		}
	}
}

// A file system without second names, or one that refuses them, gets a rename.
func TestALetterIsRenamedWhereItCannotBeLinked(t *testing.T) {
	dir := t.TempDir()
	drop := filepath.Join(dir, "drop")
	s, err := OpenDropFolder(disk.NewVolume(dir), drop)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(drop, "l.txt"), []byte("hello"), 0o600); err != nil {
		t.Fatal(err)
	}

	crash.Arm(t, "eacces@letter.link#1")
	l, err := s.Take("l.txt")
	if err != nil || l.Item.Text != "hello" {
		t.Fatalf("taken is %+v, %v", l, err)
	}
	if _, err := os.Lstat(filepath.Join(drop, "l.txt")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the old name: %v", err)
	}
}

// Whoever puts another file in the place of a letter that is being taken has sent two.
func TestALetterInThePlaceOfOneThatIsTaken(t *testing.T) {
	dir := t.TempDir()
	drop := filepath.Join(dir, "drop")
	s, err := OpenDropFolder(disk.NewVolume(dir), drop)
	if err != nil {
		t.Fatal(err)
	}

	write := func(path, text string) {
		if err := errors.Join(os.WriteFile(path+".new", []byte(text), 0o600), os.Rename(path+".new", path)); err != nil {
			t.Fatal(err)
		}
	}
	dropped := filepath.Join(drop, "l.txt")
	write(dropped, "first")
	if err := s.aside(dropped, filepath.Join(s.takenDir(), strings.Repeat("a", 24)+"__l.txt")); err != nil {
		t.Fatal(err)
	}

	write(dropped, "second")
	all, err := s.Taken()
	if err != nil || len(all) != 1 || all[0].Item.Text != "first" {
		t.Fatalf("taken are %+v, %v", all, err)
	}
	l, err := s.Take("l.txt")
	if err != nil || l.Item.Text != "second" {
		t.Fatalf("taken is %+v, %v", l, err)
	}
}

// A message that takes the name of another just as that name is removed is another message: it is taken, too.
func TestALetterThatComesWhileAnotherIsTaken(t *testing.T) {
	s := slotWith(t, "l.txt", "first")
	drop := s.dir
	crash.Meanwhile(t, "letter.rename", func(int) { saved(t, filepath.Join(drop, "l.txt"), "second") })
	l, err := s.Take("l.txt")
	if err != nil || l.Item.Text != "first" {
		t.Fatalf("taken is %+v, %v", l, err)
	}
	if err := s.Finish(l); err != nil {
		t.Fatal(err)
	}
	all, err := s.Taken()
	if err != nil || len(all) != 1 || all[0].Item.Text != "second" {
		t.Errorf("taken are %+v, %v, want the second message", all, err)
	}
}

// What an editor that writes in place takes away is written again as it was last: an item as it was edited, and one
// that came by hand.
func TestASaveInPlaceOverItemsThatWereChanged(t *testing.T) {
	f := openIn(t, t.TempDir(), nil)
	id := accepted(t, f, text("one"))
	if err := f.Edit(id, "one, edited"); err != nil {
		t.Fatal(err)
	}
	if words := inPlace(t, f); !slices.Equal(words, []string{"one, edited"}) {
		t.Errorf("after the edit open are %q", words)
	}
	byHand := content(t, f) + `{"type":"message","id":"by-hand-1","text":"two, by hand"}` + "\n"
	for _, text := range []string{byHand, ""} {
		f.reread = time.Now() // an editor that is at work
		if err := errors.Join(os.WriteFile(f.dir.path(), []byte(text), 0o600), f.Refresh()); err != nil {
			t.Fatal(err)
		}
	}
	if words := slices.Sorted(slices.Values(inPlace(t, f))); !slices.Equal(words, []string{"one, edited", "two, by hand"}) {
		t.Errorf("after the save open are %q", words)
	}
}

// Where the record that closes an item may begin is believed of daycare's own lines alone: a number by hand could
// have the record overlooked, and the item done again.
func TestTheBoundOfALineByHand(t *testing.T) {
	f := openIn(t, t.TempDir(), nil)
	f.Reached(7)
	accepted(t, f, text("one"))
	saved(t, f.dir.path(), content(t, f)+`{"type":"message","id":"by-hand-1","after":9,"text":"two"}`+"\n")
	if err := f.Refresh(); err != nil {
		t.Fatal(err)
	}
	if heads := f.Open(); len(heads) != 2 || heads[0].After != 7 || heads[1].After != 0 {
		t.Errorf("open are %+v", heads)
	}
}

// Without memory for copies, a line that has the place of another in the file is not taken for it.
func TestALineInThePlaceOfAnother(t *testing.T) {
	q := NewQuota(0)
	q.forceKeep(maxKept)
	f := openIn(t, t.TempDir(), q)
	id := accepted(t, f, text("one"))
	accepted(t, f, text("two"))
	lines := strings.SplitAfter(content(t, f), "\n")
	f.reread = time.Now()
	if err := errors.Join(os.WriteFile(f.dir.path(), []byte(lines[1]), 0o600), f.Refresh()); err != nil {
		t.Fatal(err)
	}
	found := f.Findings()
	if words := inPlace(t, f); !slices.Equal(words, []string{"two"}) || len(found) != 1 || found[0].ID != "inbox-item-lost" ||
		!strings.Contains(found[0].Reason, id) {
		t.Errorf("open are %q, found %+v", words, found)
	}
}
