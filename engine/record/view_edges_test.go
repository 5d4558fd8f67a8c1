package record

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
)

// A summary without a place to keep from stands for all that is before it.
func TestSummaryWithoutAPlace(t *testing.T) {
	h := begun(t)
	turn(t, h, "t1", "a", "b")
	add(t, h, &Summary{Text: "S"})
	wantTexts(t, h, "summary S")
	turn(t, h, "t2", "c", "d")
	wantTexts(t, h, "summary S", "c", "d")
}

// A user's summary, which has no number, keeps from where it says.
func TestSummaryByHand(t *testing.T) {
	h := begun(t)
	turn(t, h, "t1", "a", "b") // 2 to 5
	turn(t, h, "t2", "c", "d")
	save(t, h, append(content(t, h), `{"type":"summary","text":"S","keptFrom":7}`+"\n"...))
	refresh(t, h)
	wantTexts(t, h, "summary S", "c", "d")
}

// To go back to where the summary was made takes back what it kept, not the summary.
func TestRewindToTheSummary(t *testing.T) {
	h := begun(t)
	turn(t, h, "t1", "a", "b") // 2 to 5
	turn(t, h, "t2", "c", "d")
	add(t, h, &Summary{Text: "S", From: 2, KeptFrom: 6}, &Rewind{To: 5})
	wantTexts(t, h, "summary S")
	add(t, h, &Rewind{To: 4})
	wantTexts(t, h, "a", "b")
}

// Lines by hand are where they stand: among what a summary kept, and among what was rewound.
func TestLinesByHandInContext(t *testing.T) {
	h := begun(t)
	turn(t, h, "t1", "a", "b") // 2 to 5
	turn(t, h, "t2", "c", "d") // 6 to 9
	text := splitLines(content(t, h))
	hand := `{"type":"user_message","text":"by hand"}` + "\n"
	with := func(at int, line string, recs ...Record) *History {
		dir := t.TempDir()
		all := append(bytes.Join(text[:at], nil), line...)
		state(t, dir, "{}")
		h, _ := reopen(t, dir, newClock())
		save(t, h, append(all, bytes.Join(text[at:], nil)...))
		h, _ = reopen(t, dir, newClock())
		add(t, h, recs...)

		return h
	}
	wantTexts(t, with(7, hand, &Summary{Text: "S", From: 2, KeptFrom: 7}), "summary S", "c", "by hand", "d")
	wantTexts(t, with(7, hand, &Rewind{To: 5}), "a", "b")
	wantTexts(t, with(5, hand, &Rewind{To: 5}), "a", "b")
	wantTexts(t, with(5, `{ "seq": 5, "type":"user_message","text":"with a number"}`+"\n", &Rewind{To: 5}), "a", "b", "with a number")
}

// Entries stay the same pointers where the text is the same, each line its own, and the
// generation changes with what the model reads.
func TestPointersOverAnEdit(t *testing.T) {
	h := editable(t)
	hand := []byte(`{"type":"user_message","text":"by hand"}` + "\n")
	save(t, h, append(append(content(t, h), hand...), hand...))
	refresh(t, h)
	before, err := h.Context()
	if err != nil {
		t.Fatal(err)
	}

	lines := splitLines(content(t, h))
	save(t, h, bytes.Join(append(lines[:1:1], lines[5:]...), nil)) // without the first turn
	refresh(t, h)
	after, err := h.Context()
	if err != nil {
		t.Fatal(err)
	}
	if len(after.Entries) != 6 || after.Generation == before.Generation {
		t.Fatalf("%d entries, generation %d", len(after.Entries), after.Generation)
	}

	for i, e := range after.Entries[:4] {
		if before.Entries[i+2] != e {
			t.Errorf("entry %d is another pointer than before", i)
		}
	}
	if after.Entries[4] == after.Entries[5] {
		t.Error("two lines are one entry")
	}
}

// What changes nothing that the model reads leaves the generation as it was; another time of
// a message, and another session, change it.
func TestGenerations(t *testing.T) {
	h := editable(t)
	add(t, h, &Summary{Text: "S", From: 2, KeptFrom: 6})
	gen := generation(t, h)
	step := func(what string, changes bool) {
		t.Helper()
		refresh(t, h)
		now := generation(t, h)
		if (now != gen) != changes {
			t.Errorf("%s: generation %d then %d", what, gen, now)
		}
		gen = now
	}
	save(t, h, append(content(t, h), "\n"...))
	step("a blank line", false)
	lines := splitLines(content(t, h))
	at := bytes.Index(lines[6], []byte("T17:")) // of a message that was kept
	copy(lines[6][at:], "T18:")
	save(t, h, bytes.Join(lines, nil))
	step("another time", true)
	add(t, h, &Reset{Session: "s2", V: Version, Reason: "user"})
	step("a reset", true)
	add(t, h, &Reset{Session: "s3", V: Version, Reason: "user"})
	step("a reset of nothing", true)
}

// The context behind a summary is read from its end, however long the session is.
func TestContextReadsWhatTheSummaryKept(t *testing.T) {
	h := begun(t)
	for i := range 60 {
		turn(t, h, fmt.Sprint("t", i), strings.Repeat("q", 5000), strings.Repeat("r", 5000))
	}
	last := h.Obligations().LastSeq
	add(t, h, &Summary{Text: "S", From: 2, KeptFrom: last + 1})
	turn(t, h, "new", "x", "y")
	h.view.made = false
	h.file.read = 0
	wantTexts(t, h, "summary S", "x", "y")
	if h.file.read > 140<<10 {
		t.Errorf("the context read %d of %d bytes", h.file.read, h.file.Size())
	}
}
