package inbox_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"daycare/engine/disk"
	"daycare/engine/inbox"
	"daycare/engine/inbox/inboxtest"
	"daycare/engine/message"
)

// A clock that tests set.
type clock struct{ now time.Time }

func (c *clock) read() time.Time { return c.now }

// pass puts items through an inbox until its file has been rotated.
func pass(t *testing.T, f *inbox.File, dir string) (lastItem, lastKey string) {
	t.Helper()
	path := filepath.Join(dir, inbox.FileName)
	text := strings.Repeat("x", 50_000)
	for n, size := 0, int64(0); ; n++ {
		key := fmt.Sprint("pass:", n)
		r, err := f.Accept(t.Context(), inbox.Item{Kind: message.Text, Text: text, Dedupe: key})
		if err == nil {
			err = f.Done(r.Item)
		}
		if err != nil {
			t.Fatal(err)
		}

		info, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		if info.Size() < size {
			return r.Item, key
		}
		if size = info.Size(); size > 3<<20 {
			t.Fatalf("%d bytes and no rotation", size)
		}
	}
}

func TestRotation(t *testing.T) {
	dir := t.TempDir()
	c := &clock{time.Date(2026, 11, 20, 18, 22, 0, 0, time.UTC)}
	f, _, err := inbox.Open(disk.NewVolume(dir), dir, inbox.NewQuota(0), c.read)
	if err != nil {
		t.Fatal(err)
	}

	e := &edited{t, f, dir, filepath.Join(dir, inbox.FileName)}
	e.accept("one")
	two := e.accept("two")
	e.must(f.Front(two))
	waited := make(chan error, 1)
	go func(f *inbox.File) { waited <- f.Wait(t.Context(), two) }(f) // f is another one below
	doneItem, doneKey := pass(t, f, dir)
	e.holds("two", "one")
	three := e.accept("three")
	e.holds("two", "one", "three")

	duplicate := func(what, key, want string) {
		t.Helper()
		r, err := f.Accept(t.Context(), inbox.Item{Kind: message.Text, Text: "x", Dedupe: key})
		if err != nil || !r.Duplicate || r.Item != want {
			t.Errorf("%s: %+v, %v; want the duplicate of %s", what, r, err, want)
		}
	}
	check := func() {
		t.Helper()
		duplicate("an open item", "k:two", two)
		duplicate("an item after the rotation", "k:three", three)
		duplicate("the last before the rotation", doneKey, doneItem)
	}
	check()
	e.must(f.Close())
	if f, _, err = inbox.Open(disk.NewVolume(dir), dir, inbox.NewQuota(0), c.read); err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	check()
	if err := <-waited; err != inbox.ErrClosed {
		t.Errorf("a wait over the rotation: %v", err)
	}

	// A week later the key of the first item is forgotten.
	c.now = c.now.Add(inbox.DedupeWindow + time.Minute)
	if r, err := f.Accept(t.Context(), inbox.Item{Kind: message.Text, Text: "x", Dedupe: "pass:0"}); err != nil || r.Duplicate {
		t.Errorf("after the window: %+v, %v", r, err)
	}
}

func TestRotationOfAnEmptyInboxIsSettled(t *testing.T) {
	dir := t.TempDir()
	f, _ := open(t, dir)
	defer f.Close()
	pass(t, f, dir)
	if ok, err := inbox.Settled(dir); !ok || err != nil {
		t.Errorf("settled: %v, %v", ok, err)
	}
}

// A file of mostly open items is left alone, however large it is.
func TestNoRotationWhileOpen(t *testing.T) {
	dir := t.TempDir()
	e := &edited{t, nil, dir, filepath.Join(dir, inbox.FileName)}
	e.File, _ = open(t, dir)
	defer e.Close()
	var all []string
	for i := range 30 {
		all = append(all, e.accept(fmt.Sprint(i, strings.Repeat("x", 60_000))))
	}

	before := len(e.data())
	e.must(e.Done(all[:10]...))
	if len(e.data()) < before {
		t.Error("rotated with two thirds open")
	}
	e.must(e.Done(all[10:20]...))
	if len(e.data()) > before/2 {
		t.Error("not rotated with one third open")
	}
	if e.Len() != 10 {
		t.Errorf("%d items", e.Len())
	}
}

func TestQuotaOverAllInboxes(t *testing.T) {
	q := inbox.NewQuota(1000)
	boxes := make([]*inbox.File, 2)
	for i := range boxes {
		dir := t.TempDir()
		f, _, err := inbox.Open(disk.NewVolume(dir), dir, q, time.Now)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		boxes[i] = f
	}

	it := inbox.Item{Kind: message.Text, Text: strings.Repeat("x", 500)}
	r, err := boxes[0].Accept(t.Context(), it)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := boxes[1].Accept(t.Context(), it); err == nil {
		t.Error("the second inbox took what the first had left no room for")
	}
	if err := boxes[0].Done(r.Item); err != nil {
		t.Fatal(err)
	}
	if q.Used() != 0 {
		t.Errorf("%d bytes are used with nothing open", q.Used())
	}
	if _, err := boxes[1].Accept(t.Context(), it); err != nil {
		t.Errorf("after room was made: %v", err)
	}

	boxes[1].Close()
	if q.Used() != 0 {
		t.Errorf("%d bytes are used with nothing loaded", q.Used())
	}
}

func TestSettledAndSurvey(t *testing.T) {
	e, _ := newEdited(t)
	settled := func(want bool) {
		t.Helper()
		if got, err := inbox.Settled(e.dir); got != want || err != nil {
			t.Errorf("settled: %v, %v; want %v", got, err, want)
		}
		heads, err := inbox.Survey(e.dir)
		if d := cmp.Diff(e.Len(), len(heads)); d != "" || err != nil {
			t.Errorf("survey: %s, %v", d, err)
		}
	}
	settled(true)
	one, two := e.accept("one"), e.accept("two")
	settled(false)
	e.must(e.Done(two))
	settled(false)
	items, err := inbox.ReadAll(e.dir)
	if err != nil || len(items) != 1 || items[0].Text != "one" {
		t.Errorf("read all: %+v, %v", items, err)
	}

	e.must(e.Done(one))
	settled(true)
	three := e.accept("three")
	settled(false)
	e.must(e.Drop(three))
	settled(true)

	// Very many ids in one done line: the proof still fits into what is read.
	var many []string
	for i := range 300 {
		many = append(many, e.accept(fmt.Sprint("many ", i)))
	}
	e.must(e.Done(many...))
	settled(true)
	e.must(e.Close())

	whole := e.data()
	last := whole[strings.LastIndexByte(strings.TrimSpace(string(whole)), '\n')+1:]
	for what, content := range map[string]string{"the last line alone": string(last), "empty lines": "\n\n"} {
		os.WriteFile(e.path, []byte(content), 0o600)
		if got, err := inbox.Settled(e.dir); !got || err != nil {
			t.Errorf("%s: settled: %v, %v", what, got, err)
		}
	}

	os.WriteFile(e.path, whole, 0o600)
	for what, tail := range map[string]string{"half a line": `{"seq":`, "a line by hand": `{"type":"done","ids":[],"open":0}` + "\n"} {
		os.WriteFile(e.path, append(e.data(), tail...), 0o600)
		if got, _ := inbox.Settled(e.dir); got {
			t.Errorf("settled with %s at the end", what)
		}
	}

	if ok, err := inbox.Settled(filepath.Join(e.dir, "no", "folder")); !ok || err != nil {
		t.Errorf("without a file: %v, %v", ok, err)
	}
	if items, err := inbox.ReadAll(filepath.Join(e.dir, "no")); len(items) > 0 || err != nil {
		t.Errorf("read all without a file: %v, %v", items, err)
	}
}

// Rotation is tidying: where no file can be opened for it, Done has done its work.
func TestDoneWithoutAFreeDescriptor(t *testing.T) {
	dir := t.TempDir()
	f, _ := open(t, dir)
	defer f.Close()
	text := strings.Repeat("x", 50_000)
	for range 30 {
		r, err := f.Accept(t.Context(), inbox.Item{Kind: message.Text, Text: text})
		if err != nil {
			t.Fatal(err)
		}
		full := inboxtest.Starve(t)
		err = f.Done(r.Item)
		full()
		if err != nil {
			t.Fatal(err)
		}
	}

	size := func() int64 {
		info, err := os.Stat(filepath.Join(dir, inbox.FileName))
		if err != nil {
			t.Fatal(err)
		}
		return info.Size()
	}
	if size() < 1<<20 {
		t.Errorf("%d bytes: there was nothing to rotate", size())
	}

	pass(t, f, dir)
	if size() > 1<<20 {
		t.Errorf("%d bytes: not rotated when it was possible again", size())
	}
}
