package finding

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

func TestBoardTellsEachThingOnce(t *testing.T) {
	var told []string
	b := NewProblems(func(agent string, f Finding) { told = append(told, agent+" "+f.Place()+" "+f.Reason) },
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

	b.Set("a", "f", []Finding{bad(1, "no"), note})
	heard("a broken file", "a f:1:2 no", "a f by hand")
	b.Set("a", "f", []Finding{bad(5, "no"), bad(6, "nor this"), note})
	heard("the same mistake further down and another", "a f:6:2 nor this")
	if got := fmt.Sprint(b.Of("a")); got != "[f:5:2: no f:6:2: nor this]" || !b.Has("f") || b.Of("") != nil {
		t.Errorf("wrong: %s", got)
	}

	b.Add("a", bad(7, "a third"))
	b.Add("a", bad(7, "a third"))
	heard("one more", "a f:7:2 a third")
	b.Set("", "g", []Finding{{ID: "y", Severity: Warning, File: "g", Reason: "odd"}})
	heard("another file", " g odd")
	if got := fmt.Sprint(b.All()); got != "[f:5:2: no f:6:2: nor this f:7:2: a third g: odd]" {
		t.Errorf("all: %s", got)
	}

	b.Set("a", "f", []Finding{note})
	heard("a mended file", "a good f")
	b.Set("a", "f", nil)
	heard("nothing to say")
	b.Set("a", "f", []Finding{bad(1, "no")})
	heard("broken again", "a f:1:2 no")
	b.SetQuietly("a", "h", []Finding{{ID: "z", Severity: Error, File: "h", Reason: "told elsewhere"}})
	if b.Forget("a"); b.Has("f") || b.Has("h") || !b.Has("g") {
		t.Error("the files of an agent that is gone are not forgotten, or others are")
	}

	heard("what is held or forgotten")
	if b.Report("a", note, note); len(told) != 2 {
		t.Errorf("told %q, want what happened each time", told)
	}
}

// What is known by agent is what is known by file, whatever came, went and changed hands.
func TestPagesOfAnAgent(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b := NewProblems(func(string, Finding) {}, func(string, string) {})
		of := map[string]string{} // the agent of each file with a finding
		name := func(of string) string { return rapid.SampledFrom([]string{of + "1", of + "2", of + "3"}).Draw(t, of) }
		for range rapid.IntRange(1, 30).Draw(t, "steps") {
			agent, file := name("agent"), name("file")
			bad := Finding{ID: "x", Severity: Error, File: file, Reason: "no"}
			switch rapid.IntRange(0, 3).Draw(t, "what") {
			case 0:
				b.Set(agent, file, []Finding{bad})
				of[file] = agent
			case 1:
				b.Add(agent, bad)
				if _, known := of[file]; !known {
					of[file] = agent
				}
			case 2:
				b.Set(agent, file, nil)
				delete(of, file)
			case 3:
				b.Forget(agent)
				maps.DeleteFunc(of, func(_, a string) bool { return a == agent })
			}

			for _, a := range []string{"agent1", "agent2", "agent3"} {
				var want []string
				for _, f := range slices.Sorted(maps.Keys(of)) {
					if of[f] == a {
						want = append(want, f)
					}
				}

				var got []string
				for _, f := range b.Of(a) {
					got = append(got, f.File)
				}
				if !slices.Equal(got, want) {
					t.Fatalf("%s: %v, want %v", a, got, want)
				}
			}
		}

		if len(b.All()) != len(of) {
			t.Fatalf("%d files, want %d", len(b.All()), len(of))
		}
	})
}
