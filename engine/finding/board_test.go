package finding

import (
	"fmt"
	"slices"
	"testing"
)

func TestBoardTellsEachThingOnce(t *testing.T) {
	var told []string
	b := NewBoard(func(agent string, f Finding) { told = append(told, agent+" "+f.Place()+" "+f.Reason) },
		func(agent, file string) { told = append(told, agent+" good "+file) })
	heard := func(when string, want ...string) {
		t.Helper()
		if !slices.Equal(told, want) {
			t.Errorf("%s told %q, want %q", when, told, want)
		}
		told = nil
	}
	bad := func(line int, reason string) Finding {
		return Finding{ID: "x", Severity: Error, File: "f", Line: line, Column: 2, Reason: reason}
	}
	note := Finding{ID: "n", Severity: Info, File: "f", Reason: "by hand"}

	b.Read("a", "f", []Finding{bad(1, "no"), note})
	heard("a broken file", "a f:1:2 no", "a f by hand")
	b.Read("a", "f", []Finding{bad(5, "no"), bad(6, "nor this"), note})
	heard("the same mistake further down and another", "a f:6:2 nor this")
	if got := fmt.Sprint(b.Wrong("a")); got != "[f:5:2: no f:6:2: nor this]" || !b.Has("f") || b.Wrong("") != nil {
		t.Errorf("wrong: %s", got)
	}
	b.Add("a", bad(7, "a third"))
	b.Add("a", bad(7, "a third"))
	heard("one more", "a f:7:2 a third")
	b.Read("", "g", []Finding{{ID: "y", Severity: Warning, File: "g", Reason: "odd"}})
	heard("another file", " g odd")
	if got := fmt.Sprint(b.All()); got != "[f:5:2: no f:6:2: nor this f:7:2: a third g: odd]" {
		t.Errorf("all: %s", got)
	}
	b.Read("a", "f", []Finding{note})
	heard("a mended file", "a good f")
	b.Read("a", "f", nil)
	heard("nothing to say")
	b.Read("a", "f", []Finding{bad(1, "no")})
	heard("broken again", "a f:1:2 no")
	b.Hold("a", "h", []Finding{{ID: "z", Severity: Error, File: "h", Reason: "told elsewhere"}})
	if b.Forget("a"); b.Has("f") || b.Has("h") || !b.Has("g") {
		t.Error("the files of an agent that is gone are not forgotten, or others are")
	}
	heard("what is held or forgotten")
	if b.Tell("a", note, note); len(told) != 2 {
		t.Errorf("told %q, want what happened each time", told)
	}
}
