package inbox_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"daycare/engine/finding"
	"daycare/engine/inbox"
	"daycare/engine/message"
)

// An edited is an inbox whose file a user edits while it is open.
type edited struct {
	*testing.T
	*inbox.File
	dir, path string
}

func newEdited(t *testing.T, texts ...string) (*edited, []string) {
	dir := t.TempDir()
	f, _ := open(t, dir)
	t.Cleanup(func() { f.Close() })
	e := &edited{t, f, dir, filepath.Join(dir, inbox.FileName)}
	var ids []string
	for _, text := range texts {
		ids = append(ids, e.accept(text))
	}

	return e, ids
}

func (e *edited) accept(text string) string {
	e.Helper()
	r, err := e.Accept(e.Context(), inbox.Item{Kind: message.Text, Text: text, Dedupe: "k:" + text})
	if err != nil {
		e.Fatal(err)
	}
	return r.Item
}

func (e *edited) data() []byte {
	e.Helper()
	data, err := os.ReadFile(e.path)
	if err != nil {
		e.Fatal(err)
	}
	return data
}

// saves are the two ways in which editors write a file.
var saves = map[string]func(path string, data []byte) error{
	"in place": func(path string, data []byte) error { return os.WriteFile(path, data, 0o600) },
	"rename": func(path string, data []byte) error {
		if err := os.WriteFile(path+"~", data, 0o600); err != nil {
			return err
		}
		return os.Rename(path+"~", path)
	},
}

func (e *edited) texts() (all []string) {
	e.Helper()
	for _, h := range e.Open() {
		it, err := e.Read(h.ID)
		if err != nil {
			e.Error(err)
		}
		all = append(all, it.Text)
	}

	return all
}

func (e *edited) holds(want ...string) {
	e.Helper()
	if d := cmp.Diff(want, e.texts()); d != "" {
		e.Errorf("open items (-want +got):\n%s", d)
	}
	f, _ := open(e.T, e.dir)
	defer f.Close()
	if d := cmp.Diff(want, (&edited{e.T, f, e.dir, e.path}).texts()); d != "" {
		e.Errorf("open items after a crash (-want +got):\n%s", d)
	}
}

func ids(found []finding.Finding) (all []string) {
	for _, f := range found {
		all = append(all, f.ID)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

func TestHandEdits(t *testing.T) {
	for how, save := range saves {
		t.Run(how, func(t *testing.T) {
			t.Run("an old version over new items", func(t *testing.T) {
				e, _ := newEdited(t, "one", "two")
				old := e.data()
				e.accept("three")
				e.accept("four")
				e.must(save(e.path, old))
				e.accept("five")
				e.holds("one", "two", "three", "four", "five")
				if d := cmp.Diff([]string{"inbox-item-restored"}, ids(e.Findings())); d != "" {
					t.Error(d)
				}
			})
			t.Run("an old version over items of which one was moved to the front", func(t *testing.T) {
				e, _ := newEdited(t, "one")
				old := e.data()
				e.accept("two")
				e.accept("three")
				e.must(e.Front(e.accept("four")))
				e.must(save(e.path, old))
				e.must(e.Refresh())
				e.holds("one", "two", "three", "four") // as they came: the order to front it is gone, too
			})
			t.Run("an old version over done lines", func(t *testing.T) {
				e, id := newEdited(t, "one", "two")
				old := e.data()
				e.must(e.Done(id[0]))
				e.must(save(e.path, old))
				e.must(e.Refresh())
				e.holds("two")
				if err := e.Edit(id[0], "again"); !errors.Is(err, inbox.ErrUnknown) {
					t.Errorf("an item that is done is edited: %v", err)
				}
			})
			t.Run("an empty file", func(t *testing.T) {
				e, id := newEdited(t, "one", "two", "three")
				e.must(e.Done(id[1]))
				e.must(save(e.path, nil))
				e.must(e.Refresh())
				e.holds("one", "three")
				r, err := e.Accept(t.Context(), inbox.Item{Kind: message.Text, Text: "two", Dedupe: "k:two"})
				if err != nil || !r.Duplicate {
					t.Errorf("a key is forgotten after an edit: %+v, %v", r, err)
				}
			})
			t.Run("an item removed in the middle", func(t *testing.T) {
				e, id := newEdited(t, "one", "two", "three")
				waited := make(chan error, 1)
				go func() { waited <- e.Wait(t.Context(), id[1]) }()
				lines := bytes.SplitAfter(e.data(), []byte{'\n'})
				e.must(save(e.path, append(lines[0], lines[2]...)))
				e.must(e.Refresh())
				e.holds("one", "three")
				e.must(<-waited)
				if d := cmp.Diff([]string{"inbox-item-removed"}, ids(e.Findings())); d != "" {
					t.Error(d)
				}
			})
			t.Run("an item written by hand", func(t *testing.T) {
				e, id := newEdited(t, "one")
				e.Done(id...)
				<-e.Arrived()
				e.must(save(e.path, append(e.data(), `{"type":"message","id":"by-hand-1","text":"hello"}`...)))
				e.must(e.Refresh())
				e.holds("hello")
				select {
				case <-e.Arrived():
				default:
					t.Error("no hint")
				}
				if d := cmp.Diff([]string{"inbox-by-hand"}, ids(e.Findings())); d != "" {
					t.Error(d)
				}
			})
			t.Run("a text that was changed", func(t *testing.T) {
				e, id := newEdited(t, "one", "two")
				e.must(save(e.path, bytes.Replace(e.data(), []byte(`"text":"one"`), []byte(`"text":"1st"`), 1)))
				items, err := e.Take(id[0])
				if err != nil || items[0].Text != "1st" {
					t.Errorf("took %+v, %v", items, err)
				}
				e.must(save(e.path, bytes.Replace(e.data(), []byte(`"text":"1st"`), []byte(`"text":"a longer first"`), 1)))
				e.holds("a longer first", "two")
				if h := e.Open(); !h[0].Taken || h[1].Taken {
					t.Errorf("an edit lost or moved the mark: %+v", h)
				}
			})
			t.Run("another order", func(t *testing.T) {
				e, _ := newEdited(t, "one", "two", "three")
				lines := bytes.SplitAfter(e.data(), []byte{'\n'})
				e.must(save(e.path, bytes.Join([][]byte{lines[2], lines[0], lines[1]}, nil)))
				e.must(e.Refresh())
				e.holds("three", "one", "two")
			})
		})
	}
}

func (e *edited) must(err error) {
	e.Helper()
	if err != nil {
		e.Fatal(err)
	}
}

func TestDeletedFile(t *testing.T) {
	e, _ := newEdited(t, "one", "two")
	e.must(os.Remove(e.path))
	e.accept("three")
	e.holds("one", "two", "three")
	e.must(os.RemoveAll(e.dir))
	if _, err := e.Accept(t.Context(), inbox.Item{Kind: message.Text, Text: "x"}); err == nil {
		t.Error("an agent whose folder is gone accepted an item")
	}
	if _, err := os.Stat(e.dir); !errors.Is(err, os.ErrNotExist) {
		t.Error("the folder was made again")
	}
}

// An editor saves its old version all the time while items are accepted and done.
// Each item is either done or still open at the end.
func TestHostileEditor(t *testing.T) {
	items := 60
	if os.Getenv("DAYCARE_LONG") != "" {
		items = 500
	}

	for how, save := range saves {
		t.Run(how, func(t *testing.T) {
			e, _ := newEdited(t)
			stop := make(chan struct{})
			var editor sync.WaitGroup
			end := sync.OnceFunc(func() { close(stop); editor.Wait() })
			defer end()
			editor.Go(func() {
				pace := time.NewTicker(2 * time.Millisecond)
				defer pace.Stop()
				for n := 0; ; n++ {
					select {
					case <-stop:
						return
					case <-pace.C:
					}
					data, err := os.ReadFile(e.path)
					if err == nil && n%3 > 0 {
						save(e.path, data)
					}
				}
			})

			var want []string
			for i := range items {
				text := fmt.Sprint("item ", i)
				id := e.accept(text)
				if i%2 == 0 {
					e.must(e.Done(id))
				} else {
					want = append(want, text)
				}
			}

			end()
			e.must(e.Refresh())
			got := e.texts()
			slices.Sort(got)
			slices.Sort(want)
			if d := cmp.Diff(want, got); d != "" {
				t.Errorf("open items (-want +got):\n%s", d)
			}

			for _, f := range e.Findings() {
				if f.Severity == finding.Error {
					t.Error(f)
				}
			}
		})
	}
}

func TestSenders(t *testing.T) {
	e, _ := newEdited(t)
	for _, it := range []inbox.Item{
		{Kind: message.Text, Context: message.Context{Sender: "Ann"}},
		{Kind: message.Text, Context: message.Context{Sender: "Ann"}, Route: &message.Address{Connector: "web", UserID: "1"}},
		{Kind: message.Text, Context: message.Context{Sender: "Ann"}, Route: &message.Address{Connector: "web", UserID: "2"}},
		{Kind: message.Text, Context: message.Context{Sender: "Ann"}, Untrusted: true},
		{Kind: message.System, Origin: "Ann"},
		{Kind: message.Text, Context: message.Context{Sender: strings.Repeat("Ann", 1000)}},
	} {
		if _, err := e.Accept(t.Context(), it); err != nil {
			t.Fatal(err)
		}
	}

	seen := map[string]bool{}
	for _, h := range e.Open() {
		if seen[h.Sender] || len(h.Sender) > 300 {
			t.Errorf("sender %q is another's or too long", h.Sender)
		}
		seen[h.Sender] = true
	}
}
