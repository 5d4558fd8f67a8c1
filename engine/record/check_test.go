package record

import (
	"errors"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"daycare/engine/finding"
)

var checkedAt = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

// lines are records, numbered from 1, as the runtime writes them.
func lines(recs ...Record) (text string) {
	for i, r := range recs {
		text += string(Encode(&Entry{Seq: int64(i + 1), At: checkedAt, Rec: r}))
	}
	return text
}

func TestCheck(t *testing.T) {
	start := &Start{Session: "s", V: Version}
	called := &Assistant{Turn: "t", Finish: FinishToolUse, ToolCalls: []ToolCall{{ID: "c1", Name: "x", Arguments: []byte("{}")}}}
	hand := `{"seq":3,"type":"note","text":"by hand"}` + "\n"
	for name, tt := range map[string]struct {
		text string
		want string // what is found, with its line
	}{
		"nothing": {"", ""},
		"all is well": {lines(start, &TurnBegin{Turn: "t"}, called, &ToolResult{ToolCallID: "c1"},
			promising("t", "x", "o"), &TurnEnd{Turn: "t"}, &Delivery{Out: "o"}), ""},
		"a blank line":          {lines(start) + "\n  \n" + lines(start, start, &Note{Text: "x"})[2*len(lines(start)):], ""},
		"by hand":               {lines(start) + hand, "2 history-by-hand"},
		"no JSON":               {lines(start) + "garbage\n" + hand, "2 history-bad-line, 3 history-by-hand"},
		"torn":                  {lines(start) + `{"seq":2,"at":"2026`, "2 history-torn"},
		"torn, of another type": {lines(start) + `{"seq":2,"type":"later"}`, "2 history-unknown-type"},
		"another type": {lines(start) + `{"seq":2,"type":"later"}` + "\n" + hand,
			"2 history-unknown-type, 3 history-by-hand"},
		"a number twice": {lines(start, &Note{Text: "x"}) +
			lines(start, &Note{Text: "y"})[len(lines(start)):], "3 history-seq-twice"},
		"no number": {lines(start) + `{"type":"note","text":"a"}` + "\n" +
			`{"type":"note","text":"b"}` + "\n", "2 history-by-hand, 3 history-by-hand"},
		"a turn that never started": {lines(start, &TurnEnd{Turn: "t"}), "2 history-orphan-turn"},
		"another turn's end":        {lines(start, &TurnBegin{Turn: "u"}, &TurnEnd{Turn: "t"}), "3 history-orphan-turn"},
		"a result of no call":       {lines(start, &ToolResult{ToolCallID: "c1"}), "2 history-orphan-result"},
		"a second result": {lines(start, called, &ToolResult{ToolCallID: "c1"},
			&ToolResult{ToolCallID: "c1"}), "4 history-result-twice"},
		"a delivery of no answer": {lines(start, &Delivery{Out: "o"}), "2 history-orphan-delivery"},
		"listed in a start":       {lines(&Start{Session: "s", Outs: []Out{{ID: "o"}}}, &Delivery{Out: "o"}), ""},
		"listed in a reset":       {lines(start, &Reset{Session: "s", Outs: []Out{{ID: "o"}}}, &Delivery{Out: "o"}), ""},
		"listed in an end": {lines(start, &TurnBegin{Turn: "t"},
			&TurnEnd{Turn: "t", Outs: []Out{{ID: "o"}}}, &Delivery{Out: "o"}), ""},
		"of a fork, which has not all": {lines(&Start{Session: "s", ForkedFrom: &Fork{Agent: "a"}},
			&TurnEnd{Turn: "t"}, &Delivery{Out: "o"}), ""},
		"without a start, which may miss": {lines(&TurnEnd{Turn: "t"}), ""},
		"an older part that is gone": {lines(&Start{Session: "s", Continues: "history/000009.jsonl"},
			&TurnEnd{Turn: "t"}), "1 history-part-missing"},
		"the number of what it continues": {lines(&Start{Session: "s", Continues: historyName}) + lines(&Note{Text: "x"}), ""},
		"a blob that is gone": {lines(start, called,
			&ToolResult{ToolCallID: "c1", Output: Output{Blob: strings.Repeat("0", 64)}}), "3 blob-missing"},
		"not yet": {string(Encode(&Entry{Seq: 1, At: checkedAt.Add(future + time.Second),
			Rec: start})), "1 history-future"},
		"a clock a little ahead": {string(Encode(&Entry{Seq: 1, At: checkedAt.Add(future), Rec: start})), ""},
	} {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, historyName), []byte(tt.text), 0o600); err != nil {
			t.Fatal(err)
		}
		found, err := Check(dir, checkedAt)
		var got []string
		for _, f := range found {
			got = append(got, strings.TrimSpace(string(rune('0'+f.Line))+" "+f.ID))
			if f.File != filepath.Join(dir, historyName) || f.Reason == "" {
				t.Errorf("%s: %+v", name, f)
			}
		}
		if err != nil || strings.Join(got, ", ") != tt.want {
			t.Errorf("%s: found %q, %v, want %q", name, got, err, tt.want)
		}
	}
}

// The parts of a history are read oldest first, numbers and promises of all.
func TestCheckReadsThePartsInOrder(t *testing.T) {
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, closedDir), 0o700); err != nil {
		t.Fatal(err)
	}
	first := lines(&Start{Session: "s", V: Version}, &TurnBegin{Turn: "t"}, promising("t", "x", "o"))
	second := lines(&Start{Session: "s", Continues: closedDir + "/000001.jsonl"}, &TurnEnd{Turn: "t"})
	third := lines(&Start{Session: "s", Continues: closedDir + "/000002.jsonl"}, &Delivery{Out: "o"}, &ToolResult{ToolCallID: "c"})
	for name, text := range map[string]string{closedDir + "/000001.jsonl": first, closedDir + "/000002.jsonl": second, historyName: third} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}

	if found, err := Check(dir, checkedAt); err != nil || !slices.Equal(ids(found), []string{"history-orphan-result"}) {
		t.Errorf("%v, %v", found, err)
	}
	if err := os.Remove(filepath.Join(dir, historyName)); err != nil {
		t.Fatal(err)
	}
	if found, err := Check(dir, checkedAt); err != nil || len(found) != 0 {
		t.Errorf("without the open file: %v, %v", found, err)
	}
}

// In a file that is not in its place yet a bad line is an error, a line of another version
// is not.
func TestCheckHistory(t *testing.T) {
	text := lines(&Start{Session: "s"}) + "\n \n" + "garbage\n" + `{"seq":2,"type":"later"}` + "\n" +
		`{"seq":3,"type":"note","text":"x"}` + "\n"
	found := CheckHistory("/x", []byte(text))
	if !slices.Equal(ids(found), []string{"history-bad-line", "history-unknown-type"}) || found[0].Line != 4 || found[1].Line != 5 ||
		found[0].Severity != finding.Error || found[1].Severity != finding.Warning || found[0].File != "/x" {
		t.Errorf("%+v", found)
	}

	for id, want := range map[string]bool{"history-bad-line": true, "history-unknown-type": true, "history-by-hand": false} {
		if Unreadable(finding.Finding{ID: id}) != want {
			t.Errorf("%s: unreadable %v", id, !want)
		}
	}
}

// Calls are rewound that a rewind took out, or one to a place would: not those before it, and not those after.
func TestRewound(t *testing.T) {
	h := begun(t) // 1
	call := func(id string) Record {
		return &Assistant{Turn: "t", Finish: FinishToolUse, ToolCalls: []ToolCall{{ID: id, Name: "write", Arguments: []byte("{}")}}}
	}
	add(t, h, &TurnBegin{Turn: "t", Attempt: 1}, call("before"), call("out"), &Rewind{To: 3}, call("after"), call("last")) // 2 to 7
	text := string(content(t, h))
	again := lines(call("before"), &Rewind{To: 0}) // some models number their calls from 1 in each answer: the newest is meant
	if err := os.WriteFile(h.path(), []byte(again+"garbage\n"+text+"garbage\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	calls := []string{"before", "out", "after", "last", "unknown"}
	for after, want := range map[int64][]string{0: {"out"}, 6: {"last", "out"}, 5: {"after", "last", "out"},
		2: {"after", "before", "last", "out"}} {
		gone, err := Rewound(h.dir, calls, after)
		if err != nil {
			t.Fatal(err)
		}
		maps.DeleteFunc(gone, func(_ string, out bool) bool { return !out })
		if got := slices.Sorted(maps.Keys(gone)); !slices.Equal(got, want) {
			t.Errorf("after %d: rewound are %q, want %q", after, got, want)
		}
	}
}

// A user goes back to a number, a mark, or before the newest turn that counts.
func TestRewindTo(t *testing.T) {
	h := begun(t)                                                                             // 1
	turn(t, h, "t1", "a", "b")                                                                // 2 to 5
	add(t, h, &Mark{Name: "here"})                                                            // 6
	turn(t, h, "t2", "c", "d")                                                                // 7 to 10
	add(t, h, &Mark{Name: "here"}, &Mark{Name: "there"})                                      // 11, 12
	add(t, h, &TurnBegin{Turn: "t3", Attempt: 1}, &TurnBegin{Turn: "t3", Attempt: 2})         // 13, 14
	add(t, h, user("i", "x"), answering("t3", "y"), &TurnEnd{Turn: "t3", Reason: ReasonDone}) // 15 to 17
	check := func(when string, want map[string]int64) {
		t.Helper()
		for to, seq := range want {
			got, err := h.RewindTo(to)
			if got != seq || (seq == 0) != errors.Is(err, ErrNoRecord) || seq != 0 && err != nil {
				t.Errorf("%s: to %q leads to %d, %v, want %d", when, to, got, err, seq)
			}
			if at, err := Rewindable(h.dir, to); at != seq || (seq == 0) != errors.Is(err, ErrNoRecord) || seq != 0 && err != nil {
				t.Errorf("%s: to %q: rewindable %v", when, to, err)
			}
		}
	}
	check("at the end", map[string]int64{"": 12, "here": 11, "there": 12, "nowhere": 0, "1": 1, "7": 7, "17": 17, "18": 0, "0": 0, "-3": 0})
	if _, err := h.RewindTo("18"); err == nil || !strings.Contains(err.Error(), "records 1 to 17") {
		t.Errorf("%v", err)
	}

	add(t, h, &Rewind{To: 12}) // 18
	check("after a rewind", map[string]int64{"": 6, "here": 11, "15": 15})
	add(t, h, &Rewind{To: 10}) // 19
	check("after another", map[string]int64{"": 6})
	add(t, h, &Rewind{To: 11}) // 20, which does not bring back what the other took
	check("after one that goes less far", map[string]int64{"": 6})
	add(t, h, &Rewind{To: 1}) // 21
	check("after all", map[string]int64{"": 0})
	add(t, h, &Reset{Session: "s2", V: Version, Reason: "user"}) // 22
	check("in a new session", map[string]int64{"": 0, "here": 0, "21": 0, "22": 22})
	turn(t, h, "t9", "e", "f") // 23 to 26
	check("after its first turn", map[string]int64{"": 22})
	save(t, h, append(content(t, h), `{"type":"note","text":"no number"}`+"\n"...))
	check("with a line of a hand", map[string]int64{"": 22, "26": 26})
}

// A broken line at the end hides nothing: neither which calls were rewound, nor what a turn had read.
func TestLooksBackBehindABrokenLine(t *testing.T) {
	h := begun(t) // 1
	add(t, h, &TurnBegin{Turn: "t", Items: []string{"i"}, Attempt: 1},
		&Assistant{Turn: "t", Finish: FinishToolUse, ToolCalls: []ToolCall{{ID: "c", Name: "web", Arguments: []byte("{}")}}},
		&ToolResult{ToolCallID: "c", Status: StatusOK, Source: "https://a.example/"},
		&TurnEnd{Turn: "t", Reason: ReasonDone}, &Rewind{To: 1})
	save(t, h, append(content(t, h), `{"type":"turn_end","broken`+"\n"...))
	if gone, err := Rewound(h.dir, []string{"c"}, 0); err != nil || !gone["c"] {
		t.Errorf("rewound are %v, %v", gone, err)
	}
	if list, err := SourcesOf(h.dir); err != nil || len(list) != 1 || list[0].Source != "https://a.example/" {
		t.Errorf("the newest turn had read %v, %v", list, err)
	}
}

// A history has begun once it has a session, and not by a line of anything else.
func TestWhetherAHistoryHasBegun(t *testing.T) {
	h, _ := reopen(t, t.TempDir(), newClock())
	if h.Begun() {
		t.Error("an empty one has")
	}
	add(t, h, &Note{Text: "x"})
	if h.Begun() {
		t.Error("one without a session has")
	}
	if err := h.Begin("s"); err != nil || !h.Begun() {
		t.Errorf("one with a session has not: %v", err)
	}
}

// A call is written as the model made it: by itself, or through the tool that called it.
func TestACallAsTheModelWroteIt(t *testing.T) {
	c := ToolCall{Name: `re"ad`, Arguments: []byte(`{"path":"x"}`)}
	if name, arguments := c.Written(); name != `re"ad` || string(arguments) != `{"path":"x"}` {
		t.Errorf("%s %s", name, arguments)
	}
	c.Via = "call_tool"
	if name, arguments := c.Written(); name != "call_tool" || string(arguments) != `{"tool":"re\"ad","arguments":{"path":"x"}}` {
		t.Errorf("%s %s", name, arguments)
	}
}
