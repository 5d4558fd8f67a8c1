package record

import (
	"bytes"
	"flag"
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"daycare/engine/crash/crashtest"
	"daycare/engine/disk"
	"daycare/engine/finding"
	"daycare/engine/message"
)

var update = flag.Bool("update", false, "write the golden files anew")

func TestMain(m *testing.M) {
	os.Setenv("TMPDIR", crashtest.Memory())
	m.Run()
}

// clock ticks a millisecond at each look, so that no two records are alike.
type clock struct{ at time.Time }

func (c *clock) now() time.Time {
	c.at = c.at.Add(time.Millisecond)
	return c.at
}

func newClock() *clock { return &clock{time.Date(2026, 11, 20, 17, 22, 0, 0, time.UTC)} }

// reopen opens the history of dir as a restarted process would.
func reopen(t testing.TB, dir string, c *clock) (*History, []finding.Finding) {
	t.Helper()
	h, found, err := Open(disk.NewVolume(dir), dir, c.now, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatalf("open history: %v", err)
	}
	h.limits.quiet = time.Millisecond
	t.Cleanup(func() { h.Close() })

	return h, found
}

// begun is a history with one session.
func begun(t testing.TB) *History {
	t.Helper()
	h, _ := reopen(t, t.TempDir(), newClock())
	if err := h.Begin("s1"); err != nil {
		t.Fatal(err)
	}
	return h
}

func add(t testing.TB, h *History, recs ...Record) []*Entry {
	t.Helper()
	entries, err := h.Append(recs...)
	if err != nil {
		t.Fatalf("append: %v", err)
	}
	return entries
}

// turn appends a whole turn: a question and its answer.
func turn(t testing.TB, h *History, id, question, answer string) {
	t.Helper()
	add(t, h, &TurnBegin{Turn: id, Items: []string{"i" + id}, Attempt: 1}, user("i"+id, question))
	add(t, h, answering(id, answer), &TurnEnd{Turn: id, Reason: ReasonDone})
}

func user(item, text string) *User { return &User{Item: item, Text: text, Zone: "Europe/Berlin"} }

func answering(turn, text string) *Assistant {
	return &Assistant{Turn: turn, Text: text, Finish: FinishEndTurn, Provider: "p", Model: "m",
		Tokens: Tokens{Input: 10, Output: 2}, Cost: 0.25}
}

func promising(turn, text, out string) *Assistant {
	a := answering(turn, text)
	a.Out = &Out{ID: out, To: message.Address{Connector: "telegram", ChannelID: "5"}}
	return a
}

// texts is what the context says, one string an entry.
func texts(t testing.TB, h *History) []string {
	t.Helper()
	c, err := h.Context()
	if err != nil {
		t.Fatalf("context: %v", err)
	}
	var all []string
	if c.Summary != nil {
		all = append(all, "summary "+c.Summary.Rec.(*Summary).Text)
	}

	for _, e := range c.Entries {
		switch r := e.Rec.(type) {
		case *User:
			all = append(all, r.Text)
		case *Assistant:
			all = append(all, r.Text)
		case *ToolResult:
			all = append(all, r.Output.Text)
		case *Permission:
			all = append(all, r.Event+" "+r.Tag)
		}
	}

	return all
}

func wantTexts(t testing.TB, h *History, want ...string) {
	t.Helper()
	if diff := cmp.Diff(want, texts(t, h), cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("context (-want +got):\n%s", diff)
	}
}

func generation(t testing.TB, h *History) int {
	t.Helper()
	c, err := h.Context()
	if err != nil {
		t.Fatal(err)
	}
	return c.Generation
}

func content(t testing.TB, h *History) []byte {
	t.Helper()
	data, err := os.ReadFile(h.path())
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// save writes the file as an editor does: a new one over the old.
func save(t testing.TB, h *History, data []byte) {
	t.Helper()
	temp := filepath.Join(h.dir, "editor")
	if err := os.WriteFile(temp, data, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(temp, h.path()); err != nil {
		t.Fatal(err)
	}
}

// splitLines keeps the newlines.
func splitLines(data []byte) [][]byte {
	lines := bytes.SplitAfter(data, []byte("\n"))
	return lines[:len(lines)-1]
}

func ids(found []finding.Finding) []string {
	var all []string
	for _, f := range found {
		all = append(all, f.ID)
	}
	return all
}
