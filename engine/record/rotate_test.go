package record

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func rotate(t testing.TB, h *History) bool {
	t.Helper()
	rotated, err := h.Rotate()
	if err != nil {
		t.Fatalf("rotate: %v", err)
	}
	return rotated
}

// large is a history over its limit, with an answer that is still owed.
func large(t testing.TB) *History {
	h := begun(t)
	h.limits.rotate = 10_000
	add(t, h, &TurnBegin{Turn: "t0", Items: []string{"it0"}, Attempt: 1}, user("it0", "first"),
		promising("t0", "owed", "o1"), &TurnEnd{Turn: "t0", Reason: ReasonDone})
	for i := range 20 {
		turn(t, h, fmt.Sprint("old", i), strings.Repeat("question ", 20), strings.Repeat("answer ", 20))
	}

	return h
}

func TestRotationAtAReset(t *testing.T) {
	h := large(t)
	before := content(t, h)
	add(t, h, &Reset{Session: "s2", V: Version, Reason: "user", Item: "ir"})
	whole := content(t, h)
	if !rotate(t, h) {
		t.Fatal("not rotated")
	}

	closed, err := os.ReadFile(filepath.Join(h.dir, "history/000001.jsonl"))
	if err != nil || !bytes.Equal(closed, whole) {
		t.Errorf("the old file is not what it was (%v)", err)
	}
	if size := len(content(t, h)); size > 1000 {
		t.Errorf("the new file has %d of %d bytes", size, len(before))
	}

	o := owes(t, h)
	if len(o.Outs) != 1 || o.Outs[0].Entry == nil || o.Session != "s2" {
		t.Errorf("obligations after a rotation: %+v", o)
	}
	turn(t, h, "t9", "x", "y")
	owes(t, h)
	wantTexts(t, h, "x", "y")
	closedItems, err := h.Closed(map[string]int64{"iold3": 0, "ir": 0, "it9": 0, "never": 0})
	if diff := cmp.Diff(map[string]bool{"iold3": true, "ir": true, "it9": true}, closedItems); diff != "" || err != nil {
		t.Errorf("closed items (%v):\n%s", err, diff)
	}
	if got, err := filepath.Glob(filepath.Join(h.dir, ".tmp-*")); len(got) != 0 || err != nil {
		t.Errorf("left over: %v", got)
	}
}

func TestRotationAtASummaryKeepsTheTailVerbatim(t *testing.T) {
	h := large(t)
	kept := h.Obligations().LastSeq - 7 // two turns
	add(t, h, &Summary{Text: "S", From: 2, KeptFrom: kept})
	want := texts(t, h)
	tail := bytes.Join(splitLines(content(t, h))[kept-1:], nil)
	session, err := h.Session()
	if err != nil {
		t.Fatal(err)
	}
	if !rotate(t, h) {
		t.Fatal("not rotated")
	}
	if got := content(t, h); !bytes.HasSuffix(got, bytes.TrimSpace(tail)) && !bytes.HasSuffix(got, tail) {
		t.Errorf("kept tail:\n%s\nwant it to end in\n%s", got, tail)
	}

	wantTexts(t, h, want...)
	if g := generation(t, h); g != 0 {
		t.Errorf("a rotation changed the context's generation to %d", g)
	}
	again, _ := reopen(t, h.dir, newClock())
	wantTexts(t, again, want...)
	counted, err := again.Session()
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(session, counted); diff != "" {
		t.Errorf("the session does not go on over the rotation (-before +after):\n%s", diff)
	}
	if rotate(t, h) {
		t.Error("rotated twice")
	}

	turn(t, h, "t9", "x", "y")
	if got := owes(t, h).LastSeq; got != kept+7+1+4 {
		t.Errorf("last seq %d", got)
	}
}

func TestNoRotationWhileSomethingIsOpen(t *testing.T) {
	h := large(t)
	if rotate(t, h) {
		t.Error("rotated in the middle of a session")
	}
	add(t, h, &TurnBegin{Turn: "t9", Attempt: 1}, &Summary{Text: "S", From: 2, KeptFrom: h.Obligations().LastSeq})
	if rotate(t, h) {
		t.Error("rotated inside a turn")
	}
}

func TestInterruptedRotationIsUndone(t *testing.T) {
	h := large(t)
	add(t, h, &Reset{Session: "s2", V: Version, Reason: "user"})
	if err := os.Mkdir(filepath.Join(h.dir, closedDir), 0o700); err != nil {
		t.Fatal(err)
	}
	link := filepath.Join(h.dir, closedDir, "000001.jsonl")
	if err := os.Link(h.path(), link); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(h.path()[:len(h.path())-len(historyName)]+".tmp-history.jsonl-123", []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}

	// What a power cut left of the other files that are replaced in this folder goes as well.
	for _, name := range []string{"state.json", ".state.json", "descriptor.json", ".descriptor.json", "draft.json", "SYSTEM.md"} {
		if err := os.WriteFile(filepath.Join(h.dir, ".tmp-"+name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}

	again, _ := reopen(t, h.dir, newClock())
	if _, err := os.Stat(link); err == nil {
		t.Error("the second name is still there")
	}
	if left, err := filepath.Glob(filepath.Join(h.dir, ".tmp-*")); err != nil || len(left) > 0 {
		t.Errorf("%q are left, %v", left, err)
	}

	again.limits.rotate = 10_000
	add(t, again, &Note{Text: "goes on"})
	if !rotate(t, again) {
		t.Error("cannot be rotated any more")
	}
}

func TestSessionsFile(t *testing.T) {
	h := begun(t)
	turn(t, h, "t1", "  What is\nthe weather like in the town where my grandmother was born? ", "b")
	add(t, h, &Reset{Session: "s2", V: Version, Reason: "user"})
	rotate(t, h)
	turn(t, h, "t2", "c", "d")
	add(t, h, &Reset{Session: "s3", V: Version, Reason: "user"})
	rotate(t, h)
	data, err := os.ReadFile(filepath.Join(h.dir, "sessions.jsonl"))
	if err != nil {
		t.Fatal(err)
	}

	var first, second EndedSession
	lines := splitLines(data)
	if len(lines) != 2 {
		t.Fatalf("sessions.jsonl:\n%s", data)
	}
	if err := json.Unmarshal(lines[0], &first); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(lines[1], &second); err != nil {
		t.Fatal(err)
	}
	if first.ID != "s1" || first.Messages != 2 || first.First != 1 || first.Last != 5 || first.Cost != 0.25 || first.PromptTokens != 10 {
		t.Errorf("first: %+v", first)
	}
	if want := "What is the weather like in the town where my grandmother w…"; first.Title != want || len([]rune(want)) != maxTitle {
		t.Errorf("title %q", first.Title)
	}
	if second.ID != "s2" || second.First != 6 || second.Title != "c" || second.File != historyName {
		t.Errorf("second: %+v", second)
	}
}

func TestSessionUsesTheCountsInState(t *testing.T) {
	h := begun(t)
	for i := range 200 {
		turn(t, h, fmt.Sprint("t", i), strings.Repeat("q", 500), strings.Repeat("r", 500))
	}
	save := func(h *History) Session {
		s, err := h.Session()
		if err != nil {
			t.Fatal(err)
		}
		err = UpdateState(h.vol, h.dir, func(st *State) { st.Session, st.Seq = s, h.Obligations().LastSeq })
		if err != nil {
			t.Fatal(err)
		}

		return s
	}
	before := save(h)
	again, _ := reopen(t, h.dir, newClock())
	turn(t, again, "last", "q", "r")
	again.file.read = 0
	after := save(again)
	if after.Messages != before.Messages+2 || after.First != 1 || after.Title != before.Title {
		t.Errorf("before %+v\nafter %+v", before, after)
	}
	if again.file.read > 130<<10 {
		t.Errorf("counting read %d of %d bytes", again.file.read, again.file.Size())
	}
	if seen, err := SessionOf(h.dir); err != nil || seen != after {
		t.Errorf("from the files: %+v, %v, want %+v", seen, err, after)
	}
}

func TestSessionOfFilesAlone(t *testing.T) {
	h := begun(t)
	if s, err := SessionOf(t.TempDir()); err != nil || s != (Session{}) {
		t.Errorf("of nothing: %+v, %v", s, err)
	}
	turn(t, h, "t1", "first words", "r")
	want, err := h.Session()
	if err != nil {
		t.Fatal(err)
	}
	if got, err := SessionOf(h.dir); err != nil || got != want || got.Messages != 2 || got.Title != "first words" {
		t.Errorf("got %+v, %v, want %+v", got, err, want)
	}
}
