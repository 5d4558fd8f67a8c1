package record

import (
	"fmt"
	"strings"
	"testing"
)

func TestContextHasWhatTheModelSees(t *testing.T) {
	h := begun(t)
	add(t, h, &TurnBegin{Turn: "t1", Attempt: 1}, user("i1", "q"))
	add(t, h, &Assistant{Turn: "t1", Text: "half", Finish: FinishInterrupted},
		&Assistant{Turn: "t1", Text: "no network", Finish: FinishError},
		&Assistant{Turn: "t1", Finish: FinishCanceled}, &Assistant{Turn: "t1", Text: "I was", Finish: FinishCanceled},
		&ToolStart{ToolCallID: "c", Name: "x"}, &ToolResult{ToolCallID: "c", Name: "x", Status: StatusOK, Output: Output{Text: "res"}},
		&Permission{Token: "p", Event: "asked", Tag: "@web"}, &Permission{Token: "p", Event: "deny", Tag: "@web"},
		&Note{Text: "for people"}, &Mark{Name: "m"})
	wantTexts(t, h, "q", "I was", "res", "deny @web")
	again, _ := reopen(t, h.dir, newClock())
	wantTexts(t, again, "q", "I was", "res", "deny @web")
}

func TestContextIsExtendedInPlace(t *testing.T) {
	h := begun(t)
	turn(t, h, "t1", "a", "b")
	before, err := h.Context()
	if err != nil {
		t.Fatal(err)
	}

	turn(t, h, "t2", "c", "d")
	after, err := h.Context()
	if err != nil {
		t.Fatal(err)
	}
	if after.Generation != before.Generation || len(before.Entries) != 2 || len(after.Entries) != 4 {
		t.Errorf("generation %d then %d, %d then %d entries", before.Generation, after.Generation, len(before.Entries), len(after.Entries))
	}

	for i, e := range before.Entries {
		if after.Entries[i] != e {
			t.Errorf("entry %d is another pointer than before", i)
		}
	}
}

func TestContextBoundaries(t *testing.T) {
	h := begun(t)
	turn(t, h, "t1", "a", "b")
	gen := generation(t, h)
	step := func(what string, changes bool, want ...string) {
		t.Helper()
		now := generation(t, h)
		if (now != gen) != changes {
			t.Errorf("%s: generation %d then %d", what, gen, now)
		}
		gen = now
		wantTexts(t, h, want...)
		again, _ := reopen(t, h.dir, newClock())
		defer again.Close()
		wantTexts(t, again, want...)
	}
	turn(t, h, "t2", "c", "d")
	step("a turn", false, "a", "b", "c", "d")

	kept := h.Obligations().LastSeq - 2 // the user message of t2 and what follows
	add(t, h, &Summary{Text: "S", From: 2, KeptFrom: kept})
	step("a summary", true, "summary S", "c", "d")
	turn(t, h, "t3", "e", "f")
	step("a turn after it", false, "summary S", "c", "d", "e", "f")
	add(t, h, &Rewind{To: kept + 1})
	step("a rewind to within what the summary kept", true, "summary S", "c", "d")
	turn(t, h, "t4", "g", "h")
	step("a turn after the rewind", false, "summary S", "c", "d", "g", "h")
	add(t, h, &Rewind{To: 4}) // the answer of t1
	step("a rewind behind the summary undoes it", true, "a", "b")
	turn(t, h, "t5", "i", "j")
	add(t, h, &Rewind{To: h.Obligations().LastSeq})
	step("a rewind of nothing", false, "a", "b", "i", "j")
	add(t, h, &Reset{Session: "s2", V: Version, Reason: "user"})
	step("a reset", true)
	turn(t, h, "t6", "k", "l")
	step("a turn in the new session", false, "k", "l")
	add(t, h, &Rewind{To: 3})
	step("a rewind does not lead over the reset", true)
	turn(t, h, "t7", "m", "n")
	step("at last", false, "m", "n")
}

func TestSummaryThatKeepsNothing(t *testing.T) {
	h := begun(t)
	turn(t, h, "t1", "a", "b")
	add(t, h, &Summary{Text: "all", From: 2, KeptFrom: h.Obligations().LastSeq + 1})
	turn(t, h, "t2", "c", "d")
	wantTexts(t, h, "summary all", "c", "d")
}

// TestReadsAreLinearInTheTail: opening reads one turn and the context one session,
// however long the file is.
func TestReadsAreLinearInTheTail(t *testing.T) {
	h := begun(t)
	for i := range 400 {
		turn(t, h, fmt.Sprint("old", i), strings.Repeat("question ", 500), strings.Repeat("answer ", 500))
	}
	add(t, h, &Reset{Session: "s2", V: Version, Reason: "user"})
	for i := range 40 {
		turn(t, h, fmt.Sprint("new", i), strings.Repeat("question ", 500), strings.Repeat("answer ", 500))
	}

	size := h.file.Size()
	again, _ := reopen(t, h.dir, newClock())
	if most := int64(130 << 10); again.file.read > most {
		t.Errorf("open read %d of %d bytes, want at most %d", again.file.read, size, most)
	}
	again.file.read = 0
	if n := len(texts(t, again)); n != 80 {
		t.Fatalf("%d entries", n)
	}

	session := size / 11
	if again.file.read > session+300<<10 {
		t.Errorf("the context read %d bytes of a session of %d", again.file.read, session)
	}
	again.file.read = 0
	turn(t, again, "last", "x", "y")
	texts(t, again)
	if again.file.read != 0 {
		t.Errorf("extending the context read %d bytes", again.file.read)
	}
}
