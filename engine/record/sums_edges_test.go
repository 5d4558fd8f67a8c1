package record

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"daycare/engine/disk"
	"daycare/engine/workspace"
)

// How much is in the context is what the newest call had, of each kind, if that is not far back.
func TestInContextLooksBackABit(t *testing.T) {
	answer := &Assistant{Provider: "p", Tokens: Tokens{Input: 1, CacheRead: 20, CacheWrite: 300, Output: 4000}}
	for name, line := range map[string]string{"notes": string(Encode(&Entry{Seq: 9, At: checkedAt, Rec: &Note{Text: "x"}})),
		"broken lines": "garbage\n", "notes by hand": `{"type":"note","text":"x"}` + "\n"} {
		for n, want := range map[int]int64{0: 4321, maxLooked - 1: 4321, maxLooked + 1: 0} {
			dir := t.TempDir()
			text := lines(&Start{Session: "s"}, answer) + strings.Repeat(line, n)
			if err := os.WriteFile(filepath.Join(dir, historyName), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			if got, err := InContext(dir); err != nil || got != want {
				t.Errorf("behind %d %s: %d, %v, want %d", n, name, got, err, want)
			}
		}
	}
}

// What was used counts answers and summaries, over lines that cannot be read and by hand.
func TestTotalsOfAnswersAndSummaries(t *testing.T) {
	h := begun(t)
	add(t, h, answering("t", "x"), &Summary{Text: "S", Provider: "p", Model: "m", Cost: 4, Tokens: Tokens{Input: 5}})
	save(t, h, append(content(t, h), "garbage\n"+`{"type":"assistant_message","provider":"p","model":"m","cost":8}`+"\n"...))
	refresh(t, h)
	stats, last, err := h.Totals(0)
	if diff := cmp.Diff(Stats{"p": {"m": {Input: 15, Output: 2, Cost: 12.25, Calls: 3}}}, stats); diff != "" ||
		err != nil || last == nil {
		t.Errorf("%v, %v (-want +got):\n%s", last, err, diff)
	}
	if stats, _, err := h.Totals(2); err != nil || stats["p"]["m"].Cost != 12 {
		t.Errorf("after the answer: %+v, %v", stats, err)
	}
}

// What was spent lately is found without reading what is older.
func TestSpentReadsNothingOlder(t *testing.T) {
	h := begun(t)
	for i := range 300 {
		add(t, h, answering(fmt.Sprint("t", i), "x"))
	}
	since := h.Obligations().LastAt
	n := 0
	allocs := testing.AllocsPerRun(1, func() {
		n = 0
		if err := Spent(h.dir, since, func(Spend) { n++ }); err != nil {
			t.Error(err)
		}
	})
	if n != 1 || allocs > 200 {
		t.Errorf("%d calls with %.0f allocations", n, allocs)
	}
}

// Edited lines are told of where the summary was made of them, and where they are all there.
func TestStaleSummaries(t *testing.T) {
	edit := func(h *History, old, new string) []string {
		t.Helper()
		refresh(t, h)
		text := bytes.Replace(content(t, h), []byte(old), []byte(new), 1)
		if bytes.Equal(text, content(t, h)) {
			t.Fatalf("%q is not in the file", old)
		}
		save(t, h, text)
		_, found := refresh(t, h)
		var told []string
		for _, id := range ids(found) {
			if id == "history-under-summary" {
				told = append(told, id)
			}
		}
		return told
	}
	for name, s := range map[string]*Summary{"of a fork": {Text: "S", KeptFrom: 5, SHA256: "x"},
		"without a hash": {Text: "S", From: 2, KeptFrom: 5}} {
		h := editable(t)
		add(t, h, s)
		if told := edit(h, `"text":"a"`, `"text":"A"`); len(told) != 0 {
			t.Errorf("a summary %s: told %q", name, told)
		}
	}

	h := large(t)
	c, err := h.Context()
	if err != nil {
		t.Fatal(err)
	}
	kept := c.Entries[len(c.Entries)-2].Seq
	add(t, h, &Summary{Text: "S", From: 2, KeptFrom: kept, SHA256: SummedUp(c.Entries[:len(c.Entries)-2])})
	if !rotate(t, h) {
		t.Fatal("not rotated")
	}
	if told := edit(h, "answer answer", "ANSWER answer"); len(told) != 0 {
		t.Errorf("lines in an older file: told %q", told)
	}

	h = large(t)
	add(t, h, &Reset{Session: "s2", V: Version, Reason: "user"})
	if !rotate(t, h) {
		t.Fatal("not rotated")
	}
	from := h.Obligations().LastSeq + 2
	turn(t, h, "n1", "new question", "new answer")
	turn(t, h, "n2", "newer question", "newer answer")
	if c, err = h.Context(); err != nil {
		t.Fatal(err)
	}
	add(t, h, &Summary{Text: "S", From: from, KeptFrom: c.Entries[2].Seq, SHA256: SummedUp(c.Entries[:2])})
	if told := edit(h, "new answer", "another one"); len(told) != 1 {
		t.Errorf("lines of this file: told %q", told)
	}
	h.Close()
	if err := h.reportStale(); err == nil {
		t.Error("a history that cannot be read is as it was")
	}
}

// A budget below nothing is one finding and no budget; the rest of the file counts.
func TestNegativeBudget(t *testing.T) {
	for text, want := range map[string]int{`{"budget":{"usd":-1}}`: 1, `{"budget":{"usd":-1},"seq":3,"queue":"steer"}`: 1,
		`{"budget":{"tokens":-1}}`: 1, `{"budget":{"usd":0},"seq":1}`: 0, `{"budget":null}`: 0} {
		s, found := ParseState("state.json", []byte(text))
		if len(found) != want || want == 1 && (found[0].ID != "state-budget" || s.Budget != nil) {
			t.Errorf("%s: %+v, %v", text, s.Budget, found)
		}
	}
}

// A number that JSON does not have is an error, and the file stays as it was.
func TestStateThatCannotBeWritten(t *testing.T) {
	dir := t.TempDir()
	state(t, dir, "{}")
	spoil := func(s *State) { s.Session.Cost = math.NaN() }
	bad := State{}
	spoil(&bad)
	_, encode := EncodeState(workspace.At(dir), bad)
	_, change := ChangeState(workspace.At(dir), []byte("{}"), spoil)
	for what, err := range map[string]error{"encode": encode, "change": change,
		"update": UpdateState(disk.NewVolume(dir), dir, spoil)} {
		if err == nil {
			t.Errorf("%s: no error", what)
		}
	}

	if text, err := os.ReadFile(filepath.Join(dir, stateName)); err != nil || string(text) != "{}" {
		t.Errorf("%s, %v", text, err)
	}
	if text, err := EncodeState(workspace.At(dir), State{}); err != nil || !strings.Contains(string(text), `"stats": {}`) {
		t.Errorf("%s, %v", text, err)
	}
}

// An editor that moves state.json away before it writes the new one is waited for.
func TestUpdateWaitsForTheEditor(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, stateName)
	synctest.Test(t, func(t *testing.T) {
		go func() {
			time.Sleep(200 * time.Millisecond)
			if err := os.WriteFile(path, []byte(`{"queue":"steer"}`), 0o600); err != nil {
				t.Error(err)
			}
		}()
		if err := UpdateState(disk.NewVolume(dir), dir, func(s *State) { s.Seq = 7 }); err != nil {
			t.Error(err)
		}
	})

	if s, _, _, err := ReadState(dir); err != nil || s.Queue != "steer" || s.Seq != 7 {
		t.Errorf("%+v, %v", s, err)
	}
}

// Settled is what the end of the file proves, and nothing else.
func TestWhatAnEndProves(t *testing.T) {
	end := func(recs ...Record) string { return lines(append([]Record{&Start{Session: "s"}}, recs...)...) }
	for name, tt := range map[string]struct {
		text string
		want bool
	}{
		"a start":                     {lines(&Start{Session: "s"}), true},
		"a start that owes more":      {lines(&Start{Session: "s", OwedFrom: 1}), false},
		"a reset":                     {end(&Reset{Session: "t"}), true},
		"a reset that owes more":      {end(&Reset{Session: "t", OwedFrom: 1}), false},
		"a reset that owes":           {end(&Reset{Session: "t", Outs: []Out{{ID: "o"}}}), false},
		"an end that owes more":       {end(&TurnEnd{OwedFrom: 1}), false},
		"a file cut at its last byte": {strings.TrimSuffix(end(&TurnEnd{}), "\n"), false},
		"notes in the whole window":   {end(&Note{Text: strings.Repeat("x", settledWindow)}), false},
		"notes behind an end":         {strings.Repeat("x", 9000) + "\n" + end(&TurnEnd{}, &Note{Text: "x"}), true},
	} {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, historyName), []byte(tt.text), 0o600); err != nil {
			t.Fatal(err)
		}
		if got, err := Settled(dir); err != nil || got != tt.want {
			t.Errorf("%s: %v, %v", name, got, err)
		}
	}
}

// A history is read in pages, the newest first; lines without a number belong to the page of
// the line before them, and a page has a hundred lines if nobody says how many.
func TestPagesOfAHistory(t *testing.T) {
	var recs []Record
	for range 250 {
		recs = append(recs, &Note{Text: "x"})
	}
	all := splitLines([]byte(lines(recs...)))
	dir := t.TempDir()
	text := bytes.Join(append(append(all[:200:200], []byte(`{"type":"note","text":"by hand"}`+"\n")), all[200:]...), nil)
	if err := os.WriteFile(filepath.Join(dir, historyName), text, 0o600); err != nil {
		t.Fatal(err)
	}

	for _, limit := range []int{0, 1, 50, 51, 100, 249, 1000} {
		var got [][]byte
		before, pages := int64(0), 0
		for {
			page, next, err := Tail(dir, before, limit)
			if err != nil {
				t.Fatal(err)
			}
			if want := limit; limit > 0 && len(page) > want+1 || limit == 0 && len(page) > 101 {
				t.Errorf("%d lines where %d were asked for", len(page), want)
			}

			var lines [][]byte
			for _, l := range page {
				lines = append(lines, append(l, '\n'))
			}
			got = append(lines, got...)
			pages++
			if next == nil {
				break
			}

			before = *next
		}

		if !bytes.Equal(bytes.Join(got, nil), text) {
			t.Errorf("pages of %d are not the whole: %d lines", limit, len(got))
		}
		if want := map[int]int{0: 3, 1: 250, 50: 6, 51: 5, 100: 3, 249: 2, 1000: 1}[limit]; pages != want {
			t.Errorf("%d pages of %d lines, want %d", pages, limit, want)
		}
	}
}

// The newest time is of a line that is whole.
func TestLastAtOfADamagedLine(t *testing.T) {
	h := begun(t)
	at := h.Obligations().LastAt
	save(t, h, append(content(t, h), `{"seq":9,"at":"2030-01-02T03:04:05Z","type":"note",garbage`+"\n"...))
	if got, err := LastAt(h.dir); err != nil || !got.Equal(at) {
		t.Errorf("%v, %v, want %v", got, err, at)
	}
}

// A story is of one thing: a message that waits, a turn without a message, a mark in a turn.
func TestStoriesOfLooseThings(t *testing.T) {
	h := begun(t)
	turn(t, h, "t1", "a", "b")
	add(t, h, user("loose1", "no turn yet"))
	turn(t, h, "t2", "c", "d")
	add(t, h, &Reset{Session: "s2", V: Version, Reason: "user", Item: "reset1"}, user("loose2", "no turn yet"),
		&TurnEnd{Turn: "t3", Items: []string{"taken3"}, Reason: ReasonDone},
		&TurnBegin{Turn: "t4", Items: []string{"taken4"}, Attempt: 1}, user("i4", "x"), &Mark{Name: "m",
			Item: "mark4"}, user("i5", "y"))
	save(t, h, append(content(t, h), "garbage\n"...))

	for id, want := range map[string][]Type{
		"loose1": {TypeUser}, "loose2": {TypeUser, TypeTurnEnd}, "reset1": {TypeReset}, "taken3": {TypeUser, TypeTurnEnd},
		"taken4": {TypeTurnBegin, TypeUser, TypeMark, TypeUser}, "t4": {TypeTurnBegin, TypeUser, TypeMark, TypeUser},
		"mark4": {TypeMark}, "t3": {TypeUser, TypeTurnEnd}, "it2": {TypeTurnBegin, TypeUser, TypeAssistant, TypeTurnEnd},
	} {
		s, ok, err := TraceOf(h.dir, id)
		if err != nil || !ok {
			t.Errorf("%s: found %v, %v", id, ok, err)
			continue
		}
		if diff := cmp.Diff(want, types(s.Entries)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", id, diff)
		}
		if id == "mark4" && s.Before != nil {
			t.Errorf("a mark has no turn that saw %q", types(s.Before))
		}
	}

	if _, ok, err := TraceOf(filepath.Join(h.dir, "none"), "x"); ok || errors.Is(err, ErrGone) {
		t.Errorf("of no folder: %v, %v", ok, err)
	}
}
