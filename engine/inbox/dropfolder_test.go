package inbox_test

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"daycare/engine/disk"
	"daycare/engine/inbox"
	"daycare/engine/inbox/inboxtest"
	"daycare/engine/message"
)

type slot struct {
	*testing.T
	*inbox.DropFolder
	vol *disk.Volume
	dir string
}

func newSlot(t *testing.T) *slot {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "drop")
	vol := disk.NewVolume(filepath.Dir(dir))
	s, err := inbox.OpenDropFolder(vol, dir)
	if err != nil {
		t.Fatal(err)
	}

	return &slot{t, s, vol, dir}
}

// drop writes a letter in place.
func (s *slot) drop(name, content string) {
	s.Helper()
	if err := os.WriteFile(filepath.Join(s.dir, name), []byte(content), 0o600); err != nil {
		s.Fatal(err)
	}
}

func (s *slot) ready(now time.Time) []string {
	s.Helper()
	names, _, err := s.Ready(now)
	if err != nil {
		s.Fatal(err)
	}
	return names
}

func (s *slot) exists(name string) bool { return disk.Exists(filepath.Join(s.dir, name)) }

const anID = "tz4a98xxat96iws9zmbrgj3a"

func TestLettersAreRead(t *testing.T) {
	for _, tt := range []struct {
		name, content string
		ref           string
		want          inbox.Item
		files         []inbox.Enclosure
	}{
		{"0-1__hello.md", "Hello\n", "0/1", inbox.Item{Kind: message.Text, Text: "Hello\n"}, nil},
		{"0-__hello.TXT", "Hello", "0/", inbox.Item{Kind: message.Text, Text: "Hello"}, nil},
		{anID + "__a__b.md", "Hello", anID, inbox.Item{Kind: message.Text, Text: "Hello"}, nil},
		{"log-reader__x.md", "Hello", "log-reader", inbox.Item{Kind: message.Text, Text: "Hello"}, nil},
		{"hello.md", "Hello", "", inbox.Item{Kind: message.Text, Text: "Hello"}, nil},
		{"x.json", `{"text":"Hi","id":"` + anID + `","replyTo":"7","dedupe":"mine"}`, "",
			inbox.Item{Kind: message.Text, ID: anID, Dedupe: "mine", Text: "Hi", Context: message.Context{ReplyTo: "7"}}, nil},
		{"0__x.json", `{"text":"Hi","type":"system_message","silent":true,"origin":"cron","files":["/no/such/a.png",{"path":"/b",` +
			`"name":"c"},{"id":"kept"}]}`, "0",
			inbox.Item{Kind: message.System, Text: "Hi", Silent: true, Origin: "cron"},
			[]inbox.Enclosure{{Path: "/no/such/a.png"}, {Path: "/b", Name: "c"}, {ID: "kept"}}},
		{"0__y.json", `{"text":"Hi","as":"system"}`, "0", inbox.Item{Kind: message.System, Text: "Hi", Origin: "system"}, nil},
		{"0__z.json", `{"type":"reset"}`, "0", inbox.Item{Kind: message.Reset}, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := newSlot(t)
			s.drop(tt.name, tt.content)
			got, err := s.Take(tt.name)
			if err != nil {
				t.Fatal(err)
			}
			if got.Ref != tt.ref {
				t.Errorf("ref %q, want %q", got.Ref, tt.ref)
			}
			if tt.want.ID == "" {
				tt.want.ID = got.Item.ID
			}
			if tt.want.Dedupe == "" {
				tt.want.Dedupe = "drop:" + got.Item.ID
			}
			if got.Item.At.IsZero() || len(got.Item.ID) < 24 {
				t.Errorf("item %+v", got.Item)
			}
			tt.want.At = got.Item.At
			if d := cmp.Diff(tt.want, got.Item) + cmp.Diff(tt.files, got.Files); d != "" {
				t.Errorf("item (-want +got):\n%s", d)
			}
			if s.exists(tt.name) || !s.exists(".taken/"+got.Item.ID+"__"+tt.name) {
				t.Error("the letter was not put aside under its item's id")
			}
			again, err := s.Taken()
			if d := cmp.Diff([]inbox.Dropped{got}, again); d != "" || err != nil {
				t.Errorf("after a crash (-want +got):\n%s%v", d, err)
			}
			for range 2 {
				if err := s.Finish(got); err != nil {
					t.Error(err)
				}
			}
			if left, _ := s.Taken(); len(left) > 0 {
				t.Errorf("left after finish: %v", left)
			}
		})
	}
}

func TestLettersAreRefused(t *testing.T) {
	for name, content := range map[string]string{
		"empty.md":        " \n",
		"latin1.txt":      "\xe9t\xe9",
		"picture.png":     "x",
		"no-ending":       "x",
		"half.json":       `{"text":"x"`,
		"list.json":       `["x"]`,
		"number.json":     `{"text":7}`,
		"notext.json":     `{}`,
		"badid.json":      `{"text":"x","id":"../../etc"}`,
		"permission.json": `{"type":"permission","text":"x"}`,
		"as.json":         `{"text":"x","as":"root"}`,
		"relative.json":   `{"text":"x","files":["a"]}`,
		"both.json":       `{"text":"x","files":[{"path":"/a","id":"b"}]}`,
		"large.md":        strings.Repeat("x", inbox.MaxItemBytes+1),
		"large.json":      `{"text":"` + strings.Repeat("x", inbox.MaxItemBytes+1) + `"}`,
	} {
		s := newSlot(t)
		s.drop(name, content)
		if l, err := s.Take(name); err == nil {
			t.Errorf("%s was taken as %+v", name, l.Item.Kind)
		}
		reason, err := os.ReadFile(filepath.Join(s.dir, "bad", name+".reason.txt"))
		if err != nil || len(reason) < 10 || s.exists(name) || !s.exists("bad/"+name) {
			t.Errorf("%s was not refused with a reason: %q, %v", name, reason, err)
		}
		if left, err := s.Taken(); len(left) > 0 || err != nil {
			t.Errorf("%s: left among the taken: %v, %v", name, left, err)
		}
	}
}

func TestOnlyRegularFilesAreLetters(t *testing.T) {
	s := newSlot(t)
	secret := filepath.Join(t.TempDir(), "secret")
	os.WriteFile(secret, []byte("secret"), 0o600)
	os.Symlink(secret, filepath.Join(s.dir, "link.md"))
	syscall.Mkfifo(filepath.Join(s.dir, "pipe.md"), 0o600)
	os.Mkdir(filepath.Join(s.dir, "folder.md"), 0o700)
	names := s.ready(time.Now().Add(time.Minute))
	if d := cmp.Diff([]string{"link.md", "pipe.md"}, names); d != "" {
		t.Error(d)
	}

	for _, name := range names {
		if l, err := s.Take(name); err == nil {
			t.Errorf("%s was taken: %+v", name, l)
		}
		if s.exists(name) || !s.exists("bad/"+name) {
			t.Errorf("%s was not moved away", name)
		}
	}
}

func TestReady(t *testing.T) {
	s := newSlot(t)
	now := time.Now()
	for _, name := range []string{".hidden.md", "editor.md~", "inplace.md", "half.json"} {
		s.drop(name, "{")
	}
	s.drop("whole.json", `{"text":"x"}`)

	// Moved in: it was written some time before it got this name.
	s.drop(".moved", "x")
	past := now.Add(-time.Hour)
	os.Chtimes(filepath.Join(s.dir, ".moved"), past, past)
	os.Rename(filepath.Join(s.dir, ".moved"), filepath.Join(s.dir, "moved.md"))

	names, again, err := s.Ready(now)
	if d := cmp.Diff([]string{"moved.md", "whole.json"}, slices.Sorted(slices.Values(names))); d != "" || err != nil {
		t.Errorf("at once (-want +got):\n%s%v", d, err)
	}
	if again <= 0 || again > time.Second {
		t.Errorf("look again after %v", again)
	}

	names, again, _ = s.Ready(now.Add(1500 * time.Millisecond))
	if d := cmp.Diff([]string{"inplace.md", "moved.md", "whole.json"}, slices.Sorted(slices.Values(names))); d != "" {
		t.Errorf("after a second (-want +got):\n%s", d)
	}
	if again <= 0 || again > 5*time.Second {
		t.Errorf("look again after %v", again)
	}
	if names, again, _ = s.Ready(now.Add(time.Minute)); !slices.Contains(names, "half.json") || again != 0 {
		t.Errorf("after a minute: %v, again %v", names, again)
	}

	// A clock that was set back does not keep a letter forever.
	if names, _, _ = s.Ready(now.Add(-time.Hour)); !slices.Contains(names, "inplace.md") {
		t.Errorf("with the clock set back: %v", names)
	}
}

// Letters are taken in the order in which they came, whatever they are called, and
// those that were taken keep it.
func TestLettersKeepTheirOrder(t *testing.T) {
	s := newSlot(t)
	var want []string
	for i := range 20 {
		id, err := inbox.Post(s.vol, s.dir, "0/", inbox.Fields{Text: strconv.Itoa(i)})
		if err != nil {
			t.Fatal(err)
		}
		want = append(want, id)
	}

	s.drop("a first by name.md", "last")
	names := s.ready(time.Now().Add(time.Minute))
	var ready, taken []string
	for _, name := range names[:len(names)-1] {
		l, err := s.Take(name)
		if err != nil {
			t.Fatal(err)
		}
		ready = append(ready, l.Item.ID)
	}

	if d := cmp.Diff(want, ready); d != "" {
		t.Errorf("ready (-want +got):\n%s", d)
	}
	if last := names[len(names)-1]; last != "a first by name.md" {
		t.Errorf("last is %s", last)
	}

	again, err := s.Taken()
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range again {
		taken = append(taken, l.Item.ID)
	}

	if d := cmp.Diff(want, taken); d != "" {
		t.Errorf("taken (-want +got):\n%s", d)
	}
}

func TestRefuse(t *testing.T) {
	s := newSlot(t)
	reason := errors.New("no such agent")
	for _, want := range []string{"x.md", "x-2.md"} {
		s.drop("x.md", "hello")
		l, err := s.Take("x.md")
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Refuse(l.Name, reason); err != nil {
			t.Fatal(err)
		}
		got, _ := os.ReadFile(filepath.Join(s.dir, "bad", want+".reason.txt"))
		if string(got) != "no such agent\n" || !s.exists("bad/"+want) {
			t.Errorf("bad/%s: reason %q", want, got)
		}
	}

	s.drop("y.md", "hello")
	if err := s.Refuse("y.md", reason); err != nil || !s.exists("bad/y.md") {
		t.Errorf("refuse a letter that was not taken: %v", err)
	}
}

func TestPost(t *testing.T) {
	s := newSlot(t)
	os.RemoveAll(s.dir)
	text := strings.Repeat("\"\x01é\n", 1000)
	for _, ref := range []string{"", "0/", "0/12", "Ops", anID} {
		id, err := inbox.Post(s.vol, s.dir, ref, inbox.Fields{Text: text, As: "system"})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := inbox.OpenDropFolder(s.vol, s.dir); err != nil {
			t.Fatal(err)
		}

		names := s.ready(time.Now())
		if len(names) != 1 {
			t.Fatalf("ready at once: %v", names)
		}
		l, err := s.Take(names[0])
		if err != nil || l.Ref != ref || l.Item.ID != id || l.Item.Text != text || l.Item.Kind != message.System {
			t.Errorf("posted to %q: %+v, %v", ref, l, err)
		}

		s.Finish(l)
	}

	for _, ref := range []string{"a__b", ".x", "2024-01", "a/b", strings.Repeat("x", 300), "../x"} {
		if _, err := inbox.Post(s.vol, s.dir, ref, inbox.Fields{Text: "x"}); err == nil {
			t.Errorf("posted to %q", ref)
		}
	}
	if _, err := inbox.Post(s.vol, s.dir, "", inbox.Fields{}); err == nil {
		t.Error("posted nothing")
	}
	if left := s.ready(time.Now()); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
}

func FuzzLetter(f *testing.F) {
	f.Add("0-1__a.md", []byte("hello"))
	f.Add("a.json", []byte(`{"text":"x","files":["/a",{"path":"/b"}],"id":"`+anID+`"}`))
	f.Add("__.json", []byte(`{"type":"permission"}`))
	dir := filepath.Join(f.TempDir(), "drop")
	vol := disk.NewVolume(filepath.Dir(dir))
	s, err := inbox.OpenDropFolder(vol, dir)
	if err != nil {
		f.Fatal(err)
	}

	f.Fuzz(func(t *testing.T, name string, content []byte) {
		if strings.ContainsAny(name, "/\x00") || strings.HasPrefix(name, ".") || name == "" || name == "bad" {
			t.Skip()
		}
		if os.WriteFile(filepath.Join(dir, name), content, 0o600) != nil {
			t.Skip()
		}

		l, err := s.Take(name)
		if err == nil {
			if l.Item.Kind == message.Permission || l.Item.ID == "" || l.Item.Dedupe == "" {
				t.Errorf("item %+v", l.Item)
			}
			if err := s.Finish(l); err != nil {
				t.Error(err)
			}
		}
		if disk.Exists(filepath.Join(dir, name)) {
			t.Errorf("the letter is still there: %v", err)
		}

		bad, _ := os.ReadDir(filepath.Join(dir, "bad"))
		for _, e := range bad {
			os.Remove(filepath.Join(dir, "bad", e.Name()))
		}
	})
}

// Too many open files, missing rights or a disk that does not answer say nothing about
// what is in a file: it stays, and is taken when it can be read.
func TestLetterThatCannotBeReadNowIsNotRefused(t *testing.T) {
	s := newSlot(t)
	s.drop("a.md", "hello")
	full := inboxtest.Starve(t)
	_, err := s.Take("a.md")
	full()
	if !errors.Is(err, syscall.EMFILE) || errors.Is(err, inbox.ErrRefused) {
		t.Errorf("taken without a free descriptor: %v", err)
	}
	if !s.exists("a.md") || s.exists("bad/a.md") {
		t.Fatal("the dropped message was refused")
	}

	l, err := s.Take("a.md")
	if err != nil || l.Item.Text != "hello" {
		t.Fatalf("tried again: %+v, %v", l, err)
	}
	full = inboxtest.Starve(t)
	_, err = s.Taken()
	full()
	if !errors.Is(err, syscall.EMFILE) {
		t.Errorf("taken letters without a free descriptor: %v", err)
	}
	if all, err := s.Taken(); err != nil || len(all) != 1 {
		t.Errorf("tried again: %+v, %v", all, err)
	}

	s.drop("b.md", "\xff")
	if _, err := s.Take("b.md"); !errors.Is(err, inbox.ErrRefused) {
		t.Errorf("what is no letter: %v", err)
	}
	if !s.exists("bad/b.md") || !s.exists("bad/b.md.reason.txt") {
		t.Error("what is no letter is not in bad/, with a reason")
	}
}

// Letters that wait, for room in an inbox or to ripen, are not read at each look.
func TestWaitingLettersAreReadOnce(t *testing.T) {
	s := newSlot(t)
	const letters, size = 40, 200_000
	for i := range letters {
		s.drop(strconv.Itoa(i)+".md", strings.Repeat("x", size))
	}
	look := func() uint64 {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		if n := len(s.ready(time.Now().Add(time.Hour))); n != letters {
			t.Errorf("%d letters are ready", n)
		}
		runtime.ReadMemStats(&after)
		return after.TotalAlloc - before.TotalAlloc
	}
	first, second := look(), look()
	t.Logf("%d bytes were allocated by the first look, %d by the second", first, second)
	if first < letters*size || second > letters*size/4 {
		t.Error("the second look read the letters again")
	}

	s.drop("0.md", "\xff\xff") // another content
	if names := s.ready(time.Now()); slices.Contains(names, "0.md") {
		t.Error("a letter that changed was not read again")
	}
}
