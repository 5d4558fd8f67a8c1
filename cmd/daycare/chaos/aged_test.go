package chaos

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"daycare/engine/record"
)

// What makes a history long lies before its newest reset: whoever reads back to that one
// reads little. It is one that the next reset rotates, and its numbers rise by one.
func TestLengthen(t *testing.T) {
	root, at := t.TempDir(), time.Date(2026, 11, 20, 16, 22, 0, 0, time.UTC)
	dir := filepath.Join(root, "agents", "a1")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	var history []byte
	for i, rec := range []record.Record{&record.Start{Session: "s1", V: record.Version}, &record.User{Item: "i1", Text: "first hello"},
		&record.Reset{Session: "s2", Item: "i2"}, &record.User{Item: "i3", Text: "third hello"}} {
		history = append(history, record.Encode(&record.Entry{Seq: int64(i + 1), At: at, Rec: rec})...)
	}

	path := filepath.Join(dir, "history.jsonl")
	write(t, path, string(history))
	write(t, filepath.Join(dir, "sessions.jsonl"), "{}\n")
	if err := lengthen(root); err != nil {
		t.Fatal(err)
	}

	long, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if over := len(long) - record.RotateBytes; over <= 0 || over > 1<<18 {
		t.Errorf("the history is %d bytes over the size at which it is rotated; want it just over", over)
	}

	var seen []record.Type
	behind := 0 // bytes from the reset on
	next := int64(1)
	for raw := range bytes.Lines(long) {
		e, err := record.Decode(raw)
		if err != nil || e.ByHand || e.Seq != next {
			t.Fatalf("line %d has number %d (by hand: %v, %v)", next, e.Seq, e.ByHand, err)
		}
		next++
		if typ := e.Rec.Type(); len(seen) == 0 || seen[len(seen)-1] != typ {
			seen = append(seen, typ)
		}
		if behind += len(raw); e.Rec.Type() == record.TypeReset {
			behind = len(raw)
		}
	}

	want := []record.Type{record.TypeStart, record.TypeUser, record.TypeNote, record.TypeReset, record.TypeUser}
	if d := cmp.Diff(want, seen); d != "" {
		t.Errorf("kinds of lines, in order (-want +got):\n%s", d)
	}
	if behind > 4096 {
		t.Errorf("%d bytes lie behind the reset; want little, or each start reads them all", behind)
	}
	if _, err := os.Stat(filepath.Join(dir, "sessions.jsonl")); !os.IsNotExist(err) {
		t.Errorf("sessions.jsonl, whose numbers moved, is still there (%v)", err)
	}
}

// Lines that were read before are not read again, say the same, and are marked.
func TestKnownLines(t *testing.T) {
	root := t.TempDir()
	dir := filepath.Join(root, "agents", "a1")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	const one, torn = `{"type":"user_message","item":"i1","text":"m1 hello"}`, `{"type":"turn_`
	write(t, filepath.Join(dir, "history.jsonl"), one+"\n"+torn+"\n"+torn)
	known, err := linesOf(root)
	if err != nil {
		t.Fatal(err)
	}
	if _, ok := known[one]; !ok || len(known) != 1 {
		t.Fatalf("%d lines are known; want the whole one alone", len(known))
	}

	plain, err := agentFiles(root, nil)
	if err != nil {
		t.Fatal(err)
	}
	again, err := agentFiles(root, known)
	if err != nil {
		t.Fatal(err)
	}

	plain[0].history[0].before = true
	if d := cmp.Diff(plain[0].history, again[0].history, cmp.AllowUnexported(line{})); d != "" {
		t.Errorf("known lines read otherwise (-plain +known):\n%s", d)
	}
	if len(again[0].broken) != 1 {
		t.Errorf("broken lines: %q, want the one inside", again[0].broken)
	}

	var marked line
	if err := json.Unmarshal([]byte(`{"type":"note"}`), &marked); err != nil {
		t.Fatal(err)
	}
	if again, err = agentFiles(root, map[string]line{one: marked}); err != nil || again[0].history[0].Type != "note" {
		t.Errorf("a known line was read again (%v)", err)
	}
}

// Messages of an inbox beside a newline that a power cut took are there; in a history, a line with zeros is broken.
func TestANewlineThatAPowerCutTook(t *testing.T) {
	root := t.TempDir()
	dir := filepath.Join(root, "agents", "a")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	const text = `{"type":"message","id":"i1"}` + "\x00\x00" + `{"type":"message","id":"i2"}` + "\x00\n" +
		`{"type":"message","id":"i3"}` + "\n"
	write(t, filepath.Join(dir, "inbox.jsonl"), text)
	write(t, filepath.Join(dir, "history.jsonl"), text)
	all, err := agentFiles(root, nil)
	if err != nil {
		t.Fatal(err)
	}
	if a := all[0]; len(a.inbox) != 3 || len(a.history) != 1 || len(a.broken) != 1 || !strings.HasPrefix(a.broken[0], "history.jsonl") {
		t.Errorf("inbox %v, history %v, broken %q", a.inbox, a.history, a.broken)
	}
}
