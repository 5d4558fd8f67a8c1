package record

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"daycare/engine/permission"
	"daycare/engine/workspace"
)

// What a turn cost is all that was spent in it, of each kind, and nothing before it.
func TestClosingAddsTheWholeTurnUp(t *testing.T) {
	h := begun(t)
	turn(t, h, "t0", "before", "x")
	tokens := func(n int64, estimated bool) Tokens {
		return Tokens{Input: n, Output: 10 * n, CacheRead: 100 * n, CacheWrite: 1000 * n, Reasoning: 10000 * n,
			Estimated: estimated}
	}
	call := func(id string) []ToolCall { return []ToolCall{{ID: id, Name: "x", Arguments: []byte("{}")}} }
	add(t, h, &TurnBegin{Turn: "t1", Items: []string{"it1"}, Attempt: 1}, user("it1", "go"),
		&Assistant{Turn: "t1", Text: "first", Finish: FinishToolUse, ToolCalls: call("c1"), Provider: "p",
			Tokens: tokens(1, false), Cost: 1},
		&ToolResult{ToolCallID: "c1", Status: StatusOK, Source: "https://a.example/"},
		&Assistant{Turn: "t1", Text: "cut", Finish: FinishInterrupted, Provider: "p", Tokens: tokens(2, true), Cost: 2},
		&TurnBegin{Turn: "t1", Items: []string{"it1"}, Attempt: 2},
		&Summary{Text: "S", From: 1, KeptFrom: 2, Tokens: tokens(3, false), Cost: 4},
		&Assistant{Turn: "t1", Text: "second", Finish: FinishToolUse, ToolCalls: call("c2"), Provider: "p", Cost: 8},
		&Assistant{Turn: "other", Text: "not of it", Finish: FinishEndTurn, Provider: "p", Cost: 100},
		&Assistant{Turn: "t1", Text: "older answer", Finish: FinishEndTurn, Provider: "p", Cost: 16},
		&Assistant{Turn: "t1", Text: "the answer", Finish: FinishMaxTokens, Cost: 32},
		&TurnEnd{Turn: "t1", Reason: ReasonLimit, Error: "limit reached"})
	want := Outcome{Item: "it1", Turn: "t1", Reason: ReasonLimit, Text: "the answer", Error: "limit reached", Cost: 63,
		Tokens: tokens(6, true),
		Seq:    h.Obligations().LastSeq, Work: Work{Rounds: 3, ToolCalls: 2, Said: "second"}, Finish: FinishMaxTokens}
	got, ok, err := Closing(h.dir, "it1")
	sources := got.Sources
	got.Sources = nil
	checkAsked(t, &got, true)
	if diff := cmp.Diff(want, got); diff != "" || !ok || err != nil {
		t.Errorf("%v, %v (-want +got):\n%s", ok, err, diff)
	}
	if len(sources) != 1 || sources[0].Source != "https://a.example/" {
		t.Errorf("it had read %v", sources)
	}
	if of, err := SourcesOf(h.dir); err != nil || !slices.Equal(of, sources) {
		t.Errorf("the newest turn had read %v, %v", of, err)
	}
	add(t, h, &Note{Text: "x", Item: "i"})
	if of, err := SourcesOf(h.dir); err != nil || !slices.Equal(of, sources) {
		t.Errorf("after a note: %v, %v", of, err)
	}
	turn(t, h, "t2", "an owner's message begins anew", "y")
	if of, err := SourcesOf(h.dir); err != nil || len(of) != 0 {
		t.Errorf("the newest turn had read %v, %v", of, err)
	}
}

// What state.json does not have yet are the calls after its number.
func TestCostAfter(t *testing.T) {
	h := begun(t)              // 1
	turn(t, h, "t1", "a", "b") // 2 to 5, the answer is 4
	add(t, h, &Summary{Provider: "p", Cost: 4}, &Note{Text: "x"})
	add(t, h, &Assistant{Turn: "t", Finish: FinishError, Text: "no answer", Cost: 99}) // no provider: nothing was paid for
	save(t, h, append(content(t, h), `{"type":"assistant_message","provider":"p","cost":8}`+"\ngarbage\n"...))
	for seq, want := range map[int64]float64{0: 12.25, 3: 12.25, 4: 12, 5: 12, 6: 8, 8: 8} {
		if got, err := CostAfter(h.dir, seq); err != nil || got != want {
			t.Errorf("after %d: %v, %v, want %v", seq, got, err, want)
		}
	}
	if got, err := LastSeq(h.dir); err != nil || got != 8 {
		t.Errorf("the newest record is %d, %v", got, err)
	}
}

// The time of the newest record is found also behind lines that have none.
func TestLastAtOfLinesByHand(t *testing.T) {
	h := begun(t)
	last := add(t, h, &Note{Text: "x"})[0].At
	save(t, h, append(content(t, h), `{"type":"note","text":"no time"}`+"\ngarbage\n"...))
	if at, err := LastAt(h.dir); err != nil || !at.Equal(last) {
		t.Errorf("%v, %v, want %v", at, err, last)
	}
	save(t, h, append(content(t, h), `{"type":"note","at":"2030-01-02T03:04:05Z","text":"a time"}`+"\n"...))
	if at, err := LastAt(h.dir); err != nil || at.Year() != 2030 {
		t.Errorf("%v, %v", at, err)
	}
}

// Stats are summed by model, member by member.
func TestStats(t *testing.T) {
	one := Usage{Input: 1, Output: 2, CacheRead: 3, CacheWrite: 4, Cost: 5, Calls: 1}
	s := Stats{}
	for range 2 {
		s.add("p", "m", Tokens{Input: 1, Output: 2, CacheRead: 3, CacheWrite: 4}, 5)
	}
	s.add("", "m", Tokens{Input: 99}, 99)
	s.Add(Stats{"p": {"m": one, "n": one}, "q": {"m": one}})
	want := Stats{"p": {"m": {Input: 3, Output: 6, CacheRead: 9, CacheWrite: 12, Cost: 15, Calls: 3}, "n": one}, "q": {"m": one}}
	if diff := cmp.Diff(want, s); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// A session counts what users read, and what was paid for.
func TestSessionCounts(t *testing.T) {
	h := begun(t)
	tokens := Tokens{Input: 1, Output: 20, CacheRead: 300, CacheWrite: 4000}
	origin := user("i1", "from an agent")
	origin.Origin = "a"
	add(t, h, origin, user("i2", "the title"), &Assistant{Finish: FinishInterrupted, Provider: "p", Tokens: tokens, Cost: 1},
		&Assistant{Finish: FinishCanceled, Provider: "p", Cost: 2}, &Assistant{Finish: FinishCanceled, Text: "half", Cost: 99},
		&Assistant{Finish: FinishEndTurn, Text: "x", Provider: "p", Tokens: tokens, Cost: 4},
		&Summary{Provider: "p", Tokens: tokens, Cost: 8})
	want, err := h.Session()
	if err != nil || want.Messages != 4 || want.Title != "the title" || want.PromptTokens != 3*4301 ||
		want.CompletionTokens != 60 || want.Cost != 15 ||
		want.Summary != 8 || want.First != 1 || !want.UpdatedAt.After(want.StartedAt.Time) {
		t.Errorf("%+v, %v", want, err)
	}
	again, _ := reopen(t, h.dir, newClock())
	if got, err := again.Session(); err != nil || got != want {
		t.Errorf("counted anew: %+v, %v, want %+v", got, err, want)
	}
	if got, err := SessionOf(h.dir); err != nil || got != want {
		t.Errorf("of the files: %+v, %v, want %+v", got, err, want)
	}
	add(t, h, &Reset{Session: "s2", V: Version, Reason: "user"})
	if got, err := h.Session(); err != nil || got.ID != "s2" || got.Messages != 0 || got.First != 9 || got.Cost != 0 {
		t.Errorf("after a reset: %+v, %v", got, err)
	}
	fork, _ := reopen(t, t.TempDir(), newClock())
	add(t, fork, &Start{Session: "f", V: Version, ForkedFrom: &Fork{Agent: "parent", Seq: 7}})
	if got, err := fork.Session(); err != nil || got.Parent != "parent" {
		t.Errorf("of a fork: %+v, %v", got, err)
	}
}

// A session goes on in the next file of a history, and with the id that its newest turn ended with.
func TestASessionGoesOnInTheNextFile(t *testing.T) {
	dir := t.TempDir()
	if err := os.MkdirAll(filepath.Join(dir, closedDir), 0o700); err != nil {
		t.Fatal(err)
	}
	name := closedDir + "/000001.jsonl"
	all := strings.SplitAfter(lines(&Start{Session: "s", V: Version}, user("i1", "the title"),
		&Assistant{Turn: "t1", Finish: FinishEndTurn, Text: "x", Provider: "p", Cost: 4},
		&TurnEnd{Turn: "t1", Reason: ReasonDone, Session: "s"},
		&Start{Session: "s", V: Version, Continues: name}, user("i2", "more"),
		&Assistant{Turn: "t2", Finish: FinishEndTurn, Text: "y", Provider: "p", Cost: 2},
		&TurnEnd{Turn: "t2", Reason: ReasonDone, Session: "s"}), "\n")
	for path, part := range map[string][]string{name: all[:4], historyName: all[4:]} {
		if err := os.WriteFile(filepath.Join(dir, path), []byte(strings.Join(part, "")), 0o600); err != nil {
			t.Fatal(err)
		}
	}

	if got, err := SessionOf(dir); err != nil || got.ID != "s" || got.Messages != 4 || got.Title != "the title" || got.Cost != 6 {
		t.Errorf("%+v, %v", got, err)
	}

	f := fold{}
	for i, r := range []Record{&Start{Session: "s"}, &TurnEnd{Session: "of the turn"}, &TurnEnd{}} {
		f.apply(&Entry{Seq: int64(i + 1), Rec: r})
	}
	if f.o.Session != "of the turn" {
		t.Errorf("the session is %q", f.o.Session)
	}
}

// What was read from outside is remembered until a message of the owner begins a turn.
func TestSourcesOfATurn(t *testing.T) {
	h := begun(t)
	sources := func() (list []string) {
		for _, s := range owes(t, h).Sources {
			list = append(list, s.Source)
		}
		return list
	}
	want := func(when string, list ...string) {
		t.Helper()
		if diff := cmp.Diff(list, sources()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", when, diff)
		}
	}
	result := func(source string) *ToolResult { return &ToolResult{ToolCallID: "c", Status: StatusOK, Source: source} }
	guest, service, agent, silent := user("i", "x"), user("i", "x"), user("i", "x"), user("i", "x")
	guest.Source, service.Untrusted, agent.Origin, silent.Silent = "the guest Bob", true, "a", true

	add(t, h, &TurnBegin{Turn: "t1", Attempt: 1}, guest, service, result("a"), result("b"), result(""), result("a"))
	want("each once, the newest last", "the guest Bob", "a message of a service", "b", "a")
	add(t, h, user("i", "in the middle of the turn"))
	want("an owner's word in the middle", "the guest Bob", "a message of a service", "b", "a")
	add(t, h, &TurnEnd{Turn: "t1", Reason: ReasonDone}, silent)
	want("after the turn", "the guest Bob", "a message of a service", "b", "a")
	add(t, h, &TurnBegin{Turn: "t2", Attempt: 1}, agent)
	want("an agent's word", "the guest Bob", "a message of a service", "b", "a")
	add(t, h, &TurnBegin{Turn: "t2", Attempt: 2}, user("i2", "again"))
	want("a second try", "the guest Bob", "a message of a service", "b", "a")
	add(t, h, &TurnEnd{Turn: "t2", Reason: ReasonDone}, &TurnBegin{Turn: "t3", Attempt: 1}, guest, user("i3", "beside the owner's"))
	want("what came with the owner's", "the guest Bob")
	for i := range maxSources + 2 {
		add(t, h, result(fmt.Sprint("s", i)))
	}
	if list := sources(); len(list) != maxSources || list[0] != "s2" {
		t.Errorf("remembered are %q", list)
	}
	add(t, h, &Reset{Session: "s2", V: Version, Reason: "user"})
	want("after a reset")
}

// A line that was edited under a summary is told once; the model reads the summary.
func TestLinesEditedUnderASummary(t *testing.T) {
	h := begun(t) // 1
	turn(t, h, "t1", "first question", "first answer")
	turn(t, h, "t2", "second question", "second answer")
	c, err := h.Context()
	if err != nil {
		t.Fatal(err)
	}
	kept := c.Entries[2].Seq // of the second turn
	add(t, h, &Summary{Text: "S", From: c.Entries[0].Seq, KeptFrom: kept, SHA256: SummedUp(c.Entries[:2])})
	turn(t, h, "t3", "third question", "third answer")
	told := func() (n, line int) {
		t.Helper()
		_, found, err := h.Refresh()
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range found {
			if f.ID == "history-under-summary" {
				n, line = n+1, f.Line
			}
		}
		return n, line
	}
	whole := content(t, h)
	edit := func(old, new string) {
		t.Helper()
		text := bytes.Replace(whole, []byte(old), []byte(new), 1)
		if bytes.Equal(text, whole) {
			t.Fatalf("%q is not in the file", old)
		}
		save(t, h, text)
	}
	if n, _ := told(); n != 0 {
		t.Error("told of no edit")
	}
	edit("second question", "another question")
	if n, _ := told(); n != 0 {
		t.Error("told of an edit that the model reads")
	}
	edit("first answer", "another answer")
	if n, line := told(); n != 1 || line != 10 {
		t.Errorf("told %d times, of line %d", n, line)
	}
	edit("first answer", "another answer")
	if n, _ := told(); n != 0 {
		t.Error("told twice of the same lines")
	}
	edit("first question", "a third version")
	if n, _ := told(); n != 1 {
		t.Error("another edit is not told")
	}
	save(t, h, whole)
	if n, _ := told(); n != 0 {
		t.Error("told of lines as they were")
	}
}

// A change of a state that is not in its place leaves the rest as it is written.
func TestChangeState(t *testing.T) {
	raw := []byte(`{"mine": {"b":1,"a":2}, "seq": 1, "permissions": {"workingDir":"w","x":1}}`)
	got, err := ChangeState(workspace.At("/ws"), raw, func(s *State) { s.Seq = 2; s.Permissions.Web = s.Permissions.WorkingDir == "/ws/w" })
	if err != nil || !strings.Contains(string(got), `"seq": 2`) ||
		strings.Index(string(got), `"b": 1`) > strings.Index(string(got), `"a": 2`) ||
		!strings.Contains(string(got), `"workingDir": "w"`) || !strings.Contains(string(got), `"web": true`) {
		t.Errorf("%s, %v", got, err)
	}
	if got, err := ChangeState(workspace.At("/ws"), raw, func(*State) {}); err != nil || !bytes.Equal(got, raw) {
		t.Errorf("without a change: %s, %v", got, err)
	}
	for _, broken := range []string{"{", `{"seq":"x"}`, "[]", ""} {
		if got, err := ChangeState(workspace.At("/ws"), []byte(broken), func(s *State) { s.Seq = 2 }); err == nil {
			t.Errorf("%q became %s", broken, got)
		}
	}
	s := State{Permissions: permission.Set{WorkingDir: "/old/w", ReadDirs: []string{"/old/r", "/else"}},
		Announced: &permission.Set{WorkingDir: "/old/w"}}
	before := s.Announced
	if s.Move(workspace.At("/old"), workspace.At("/new")); s.Permissions.WorkingDir != "/new/w" ||
		!slices.Equal(s.Permissions.ReadDirs, []string{"/new/r", "/else"}) || s.Announced.WorkingDir != "/new/w" {
		t.Errorf("moved is %+v, %+v", s.Permissions, s.Announced)
	}
	if before.WorkingDir != "/old/w" {
		t.Error("the rights that were announced were changed in their place")
	}
}

// What JSON cannot hold is mended, each in its way, and a record that can be written is
// written as it is.
func TestMendedRecords(t *testing.T) {
	nan := func() float64 { var zero float64; return zero / zero }()
	a := &Assistant{Turn: "t", Cost: nan,
		ToolCalls: []ToolCall{{ID: "1"}, {ID: "2", Arguments: []byte("{broken")}, {ID: "3", Arguments: []byte(`{"a":1}`)}}}
	e, err := Decode(Encode(&Entry{Seq: 1, At: checkedAt, Rec: a}))
	if err != nil {
		t.Fatal(err)
	}
	got := e.Rec.(*Assistant)
	if got.Cost != 0 || string(got.ToolCalls[0].Arguments) != "{}" ||
		string(got.ToolCalls[1].Arguments) != `"{broken"` || string(got.ToolCalls[2].Arguments) != `{"a":1}` {
		t.Errorf("%+v", got)
	}
	if string(a.ToolCalls[1].Arguments) != "{broken" {
		t.Error("the record handed in was changed")
	}
	e, err = Decode(Encode(&Entry{Seq: 1, At: checkedAt, Rec: &Summary{Text: "S", Cost: nan}}))
	if err != nil || e.Rec.(*Summary).Cost != 0 || e.Rec.(*Summary).Text != "S" {
		t.Errorf("%+v, %v", e, err)
	}
	if all := Blanks(); len(all) != 14 || slices.Contains(all, nil) {
		t.Errorf("there are %d kinds of records", len(all))
	}
}

// A session that a user's history begins without a start has the name that it is given.
func TestBeginOfAHistoryByHand(t *testing.T) {
	dir := t.TempDir()
	text := `{"type":"user_message","item":"i","text":"by hand"}` + "\n"
	if err := os.WriteFile(filepath.Join(dir, historyName), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	h, _ := reopen(t, dir, newClock())
	if err := h.Begin("s7"); err != nil || h.Obligations().Session != "s7" || string(content(t, h)) != text {
		t.Errorf("%v, %+v, %s", err, h.Obligations(), content(t, h))
	}
	if s, err := h.Session(); err != nil || s.ID != "s7" || s.Messages != 1 {
		t.Errorf("%+v, %v", s, err)
	}
	turn(t, h, "t1", "a", "b")
	again, _ := reopen(t, dir, newClock())
	if o := again.Obligations(); o.Session != "s7" {
		t.Errorf("after a restart the session is %q", o.Session)
	}
}

// A session whose line cannot be read is found further back, over a line with its name.
func TestSessionIsFoundBehindBrokenLines(t *testing.T) {
	for name, tail := range map[string]string{
		"an end without it":  `{"type":"turn_end","turn":"t","reason":"done"}`,
		"a text that has it": `{"type":"note","text":"\"session\""}` + "\n" + `{"type":"turn_end","turn":"t","reason":"done"}`,
		"a broken line":      `{"type":"turn_end","session":` + "\n" + `{"type":"turn_end","turn":"t","reason":"done"}`,
	} {
		h := begun(t)
		turn(t, h, "t1", "a", "b")
		save(t, h, append(content(t, h), tail+"\n"...))
		again, _ := reopen(t, h.dir, newClock())
		if o := again.Obligations(); o.Session != "s1" || o.LastSeq != 5 {
			t.Errorf("%s: session %q, the newest record is %d", name, o.Session, o.LastSeq)
		}
	}
}

// A draft that a power cut left half written is none.
func TestDraftThatIsBroken(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, draftName), []byte(`{"turn":"t","text":"x`), 0o600); err != nil {
		t.Fatal(err)
	}
	if d, ok, err := ReadDraft(dir); ok || err != nil || d != (Draft{}) {
		t.Errorf("%+v, %v, %v", d, ok, err)
	}
	if err := errors.Join(RemoveDraft(dir), os.MkdirAll(filepath.Join(dir, draftName, "x"), 0o700)); err != nil {
		t.Fatal(err)
	}
	if err := RemoveDraft(dir); err == nil {
		t.Error("a folder in its place was removed")
	}
}

// Times and numbers that no record can have make a line one of a user, or a broken one.
func TestHeadsOfLines(t *testing.T) {
	good := string(Encode(&Entry{Seq: 7, At: time.Date(2026, 1, 2, 3, 4, 5, 6e6, time.UTC), Rec: &Note{Text: "x"}}))
	if h, ok := readHead([]byte(good)); !ok || h.seq != 7 || h.typ != TypeNote || h.at.Nanosecond() != 6e6 {
		t.Errorf("%+v, %v", h, ok)
	}
	for _, bad := range []string{"", "{", `{"seq":7`, `{"seq":-7,"at":"2026-01-02T03:04:05Z","type":"note"}`,
		`{"seq":x,"at":"2026-01-02T03:04:05Z","type":"note"}`,
		`{"seq":7,"at":"yesterday","type":"note"}`, `{"seq":7,"at":"2026-01-02T03:04:05Z"`, `{"seq":7,"at":"2026-01-02T03:04:05Z"}`,
		`{"seq":7,"at":"2026-01-02T03:04:05Z","type":"note"`, `{"seq":7,"at":"2026-01-02T03:04:05Z","type":"note" }`,
		` {"seq":7,"at":"2026-01-02T03:04:05Z","type":"note"}`} {
		if h, ok := readHead([]byte(bad)); ok {
			t.Errorf("%s has the head %+v", bad, h)
		}
	}
	for line, want := range map[string]int64{good: 7, `{"seq":9,garbage`: 9, `{"seq":-9,`: 0, `{"seq":x,`: 0,
		`{"seq":9`: 0, "": 0, `{"seq":0,`: 0} {
		if got := seqOf([]byte(line)); got != want {
			t.Errorf("%q has the number %d, want %d", line, got, want)
		}
	}
	for _, line := range []string{`[1]`, `{}`, `{"type":"note","seq":-1}`, `{"type":"note","seq":9007199254740993}`,
		`{"type":7}`, `7`, `null`, ` `} {
		if e, err := Decode([]byte(line)); err == nil {
			t.Errorf("%s is %+v", line, e)
		}
	}
	if e, err := Decode([]byte(`{"type":"note","seq":9007199254740992}`)); err != nil || e.Seq != maxSeq {
		t.Errorf("the highest number: %+v, %v", e, err)
	}
}

// A turn whose begin was taken out ends where the turn before it ended; a broken line that
// names the item closes nothing.
func TestClosingOfATurnWithoutABegin(t *testing.T) {
	for name, before := range map[string]Record{"a turn": &TurnEnd{Turn: "t0", Reason: ReasonDone},
		"a reset": &Reset{Session: "s2", V: Version, Reason: "user"}} {
		h := begun(t)
		add(t, h, &Summary{Text: "S", From: 1, KeptFrom: 2, Cost: 100}, before, user("it1", "go"), answering("t1", "x"),
			&TurnEnd{Turn: "t1", Items: []string{"it1"}, Reason: ReasonDone})
		save(t, h, append(content(t, h), `{"type":"turn_end","items":["it1"],broken`+"\n"...))
		if o, ok, err := Closing(h.dir, "it1"); err != nil || !ok || o.Cost != 0.25 || o.Text != "x" {
			t.Errorf("behind %s: %+v, %v, %v", name, o, ok, err)
		}
		if list, err := SourcesOf(h.dir); err != nil || len(list) != 0 {
			t.Errorf("behind %s: it had read %v, %v", name, list, err)
		}
	}
	if got, err := begun(t).Closed(nil); err != nil || len(got) != 0 {
		t.Errorf("of no items closed are %v, %v", got, err)
	}
}

// A start reads the end of a history, however long it is; a finding far down in it has its
// own line.
func TestLongHistories(t *testing.T) {
	h := begun(t)
	for i := range 40 {
		turn(t, h, fmt.Sprint("t", i), strings.Repeat("q", 5000), strings.Repeat("r", 5000))
	}
	again, _ := reopen(t, h.dir, newClock())
	if again.file.read > 140<<10 {
		t.Errorf("a start read %d of %d bytes", again.file.read, again.file.Size())
	}
	lines := splitLines(content(t, h))
	lines[150] = []byte("garbage\n")
	save(t, h, bytes.Join(lines, nil))
	_, found, err := h.Refresh()
	if err != nil || len(found) != 1 || found[0].ID != "history-bad-line" || found[0].Line != 151 {
		t.Errorf("%+v, %v", found, err)
	}
}

// A record whose line could not be read again is not written.
func TestARecordOfAnImpossibleYear(t *testing.T) {
	h := begun(t)
	before := content(t, h)
	h.now = func() time.Time { return time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC) }
	if entries, err := h.Append(&Note{Text: "x"}); err == nil || entries != nil ||
		!bytes.Equal(content(t, h), before) || h.Obligations().LastSeq != 1 {
		t.Errorf("%v, %v", entries, err)
	}
}

// Lists that readers rely on are written also when they are empty, each for itself.
func TestEmptyListsAreWritten(t *testing.T) {
	for _, r := range []Record{&TurnEnd{}, &TurnEnd{Items: []string{"i"}}, &TurnEnd{Outs: []Out{{ID: "o"}}}, &TurnBegin{}} {
		if line := Encode(&Entry{Seq: 1, At: checkedAt, Rec: r}); bytes.Contains(line, []byte("null")) ||
			!bytes.Contains(line, []byte(`"items":[`)) {
			t.Errorf("%s", line)
		}
	}
}

// What was counted up to a number is not counted again, also where a line has none.
func TestTotalsAfterANumber(t *testing.T) {
	h := begun(t)
	hand := `{"type":"assistant_message","provider":"p","model":"m","tokens":{"input":100},"finish":"end_turn"}` + "\n"
	save(t, h, append(content(t, h), hand...))
	turn(t, h, "t1", "a", "b")
	since := h.Obligations().LastSeq
	turn(t, h, "t2", "a", "b")
	if stats, _, err := h.Totals(since); err != nil || stats["p"]["m"].Input != 10 {
		t.Errorf("%v, %v", stats, err)
	}
	if stats, _, err := h.Totals(0); err != nil || stats["p"]["m"].Input != 120 {
		t.Errorf("of all: %v, %v", stats, err)
	}
}

// A start reads back to the answers that are owed, and no further.
func TestAStartReadsNoFurtherThanItOwes(t *testing.T) {
	h := begun(t)
	for i := range 40 {
		turn(t, h, fmt.Sprint("t", i), strings.Repeat("q", 5000), strings.Repeat("r", 5000))
	}
	add(t, h, &TurnBegin{Turn: "t", Attempt: 1}, promising("t", "owed", "o1"), &TurnEnd{Turn: "t", Reason: ReasonDone})
	again, _ := reopen(t, h.dir, newClock())
	if o := again.Obligations(); len(o.Outs) != 1 || o.Outs[0].Entry == nil || again.file.read > 210<<10 {
		t.Errorf("%+v after %d of %d bytes", o.Outs, again.file.read, again.file.Size())
	}
}

// An entry without a number stays the same pointer over an edit of another line.
func TestEntriesByHandKeepTheirPointers(t *testing.T) {
	h := begun(t)
	save(t, h, append(content(t, h), `{"type":"user_message","text":"by hand"}`+"\n"...))
	turn(t, h, "t1", "a", "b")
	before, err := h.Context()
	if err != nil {
		t.Fatal(err)
	}
	save(t, h, append(content(t, h), `{"type":"user_message","text":"more"}`+"\n"...))
	if _, _, err := h.Refresh(); err != nil {
		t.Fatal(err)
	}
	after, err := h.Context()
	if err != nil || len(after.Entries) != 4 || after.Generation != before.Generation {
		t.Fatalf("%+v, %v", after, err)
	}
	for i, e := range before.Entries {
		if after.Entries[i] != e {
			t.Errorf("entry %d is another one", i)
		}
	}
}

// A start that names no approval uses none up, and one that does uses that one.
func TestAStartUsesTheApprovalThatItNames(t *testing.T) {
	h := begun(t)
	call := func(id string) ToolCall { return ToolCall{ID: id, Name: "exec", Arguments: []byte("{}")} }
	add(t, h, &Permission{Token: "p1", Event: "once"}, &Permission{Token: "p2", Event: "once"}, &TurnBegin{Turn: "t", Attempt: 1},
		&Assistant{Turn: "t", Finish: FinishToolUse, ToolCalls: []ToolCall{call("c1"), call("c2")}},
		&ToolStart{ToolCallID: "c1", Name: "exec"})
	if o := owes(t, h); len(o.Once) != 2 || !o.Turn.Calls[0].Started || o.Turn.Calls[0].Grant.Token != "" || o.Turn.Calls[1].Started {
		t.Errorf("%+v, %+v", o.Once, o.Turn.Calls)
	}
	add(t, h, &ToolStart{ToolCallID: "c2", Name: "exec", Grant: "p2"})
	if o := owes(t, h); len(o.Once) != 1 || o.Once[0].Token != "p1" || o.Turn.Calls[1].Grant.Token != "p2" {
		t.Errorf("%+v, %+v", o.Once, o.Turn.Calls)
	}
	add(t, h, &ToolStart{ToolCallID: "c2", Name: "exec", Grant: "p2"})
	if o := owes(t, h); o.Turn.Calls[1].Grant.Token != "p2" {
		t.Errorf("after a second start: %+v", o.Turn.Calls)
	}
}
