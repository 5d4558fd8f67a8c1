package inbox

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"daycare/engine/crash"
)

// size is how many bytes of open items a mailbox has.
func size(f *File) (n int64) {
	for _, h := range f.Open() {
		n += int64(h.Bytes)
	}
	return n
}

// The quota has the bytes of the items that are open, whatever was done to them and to
// the file: what is counted twice would refuse messages, what is not counted would let in
// too many.
func TestTheQuotaIsTheSumOfWhatIsOpen(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	q := NewQuota(1 << 20)
	mailboxes := []*File{openIn(t, t.TempDir(), q), openIn(t, t.TempDir(), q)}
	edit := func(f *File, change func(lines []string) []string) error {
		data, err := os.ReadFile(f.dir.path())
		if err != nil {
			return err
		}
		lines := change(strings.SplitAfter(string(data), "\n"))
		temp := filepath.Join(string(f.dir), ".edit")
		f.reread = time.Time{} // it was left alone for long: a removal is meant
		return errors.Join(os.WriteFile(temp, []byte(strings.Join(lines, "")), 0o600), os.Rename(temp, f.dir.path()), f.Refresh())
	}
	byHand := 0 // items that came and went by edits
	for step := range 300 {
		f := mailboxes[random.IntN(2)]
		before := f.Len()
		what, op := "accept", func() error {
			_, err := f.Accept(t.Context(), text(strings.Repeat("x", random.IntN(2000))+fmt.Sprint(step)))
			return err
		}
		if open := f.Open(); len(open) > 0 {
			id := open[random.IntN(len(open))].ID
			switch random.IntN(7) {
			case 0:
				what, op = "done", func() error { return f.Done(id) }
			case 1:
				what, op = "drop", func() error { return f.Drop(id) }
			case 2:
				what, op = "front", func() error { return f.Front(id) }
			case 3:
				what, op = "a line is written by hand", func() error {
					return edit(f, func(l []string) []string {
						return append(l, fmt.Sprintf(`{"type":"message","id":"by-hand-%d","text":%q}`+"\n", step,
							strings.Repeat("y", random.IntN(500))))
					})
				}
			case 4:
				what, op = "a line is taken out by hand", func() error {
					return edit(f, func(l []string) []string {
						at := random.IntN(len(l))
						return append(l[:at:at], l[at+1:]...)
					})
				}
			case 6:
				what, op = "edit", func() error { return f.Edit(id, strings.Repeat("z", random.IntN(2000))) }
			case 5:
				what, op = "reopen", func() error {
					err := f.Close()
					for i := range mailboxes {
						if mailboxes[i] == f {
							mailboxes[i] = openIn(t, string(f.dir), q)
						}
					}
					return err
				}
			}
		}
		if err := op(); err != nil && !errors.Is(err, ErrUnknown) {
			t.Fatalf("step %d, %s: %v", step, what, err)
		}
		if strings.HasSuffix(what, "by hand") && f.Len() != before {
			byHand++
		}
		if used, want := q.Used(), size(mailboxes[0])+size(mailboxes[1]); used != want {
			t.Fatalf("after step %d, %s: the quota says %d bytes, and %d are open", step, what, used, want)
		}
		if f.ix.bytes != size(f) {
			t.Fatalf("after step %d, %s: the inbox says %d bytes, and %d are open", step, what, f.ix.bytes, size(f))
		}
	}
	if byHand < 10 {
		t.Errorf("%d edits changed which items are open, want more", byHand)
	}
	for _, f := range mailboxes {
		for _, h := range f.Open() {
			if err := f.Done(h.ID); err != nil {
				t.Fatal(err)
			}
		}
	}
	t.Logf("%d edits changed which items are open", byHand)
	if q.Used() != 0 || q.kept.Load() != 0 {
		t.Errorf("nothing is open, and the quota says %d bytes, %d of them in memory", q.Used(), q.kept.Load())
	}
}

// An id that is not open needs no line.
func TestWhatIsNotOpenIsDoneWithoutAWrite(t *testing.T) {
	f := openIn(t, t.TempDir(), nil)
	accepted(t, f, text("stays"))
	met := crash.Arm(t, "eio@#1+")
	if err := f.Done("nobody", "nothing"); err != nil || len(met()) > 0 || f.Len() != 1 {
		t.Errorf("%v, with %d items left and the steps %v", err, f.Len(), met())
	}
}

// A file that is dropped may be as long as a message; one in JSON longer, as long as the
// message in it is not.
func TestHowLongADroppedFileMayBe(t *testing.T) {
	for _, tt := range []struct {
		name, content string
		fits          bool
	}{
		{"a.txt", strings.Repeat("x", MaxItemBytes), true},
		{"b.txt", strings.Repeat("x", MaxItemBytes+1), false},
		{"c.json", `{"text":"short"` + strings.Repeat(" ", MaxItemBytes) + `}`, true},
		{"d.json", `{"text":"short"` + strings.Repeat(" ", maxDroppedFile) + `}`, false},
	} {
		s := slotWith(t, tt.name, tt.content)
		l, err := s.Take(tt.name)
		if tt.fits && (err != nil || !strings.HasPrefix(tt.content[:20], l.Item.Text[:1]) && l.Item.Text != "short") {
			t.Errorf("%s: %.20q, %v, want it taken", tt.name, l.Item.Text, err)
		}
		if !tt.fits && (!errors.Is(err, ErrRefused) || !errors.Is(err, ErrTooLarge)) {
			t.Errorf("%s: %v, want it refused as too large", tt.name, err)
		}
	}
}
