package record

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"daycare/engine/disk"
	"daycare/engine/finding"
)

// later is a record of a newer version, or one that does not hold what its type says.
type later struct {
	Text any `json:"text"`
	kind Type
}

func (l *later) Type() Type { return l.kind }

// A line that the runtime wrote and that cannot be used says why, and keeps its number.
func TestSealedLinesThatCannotBeUsed(t *testing.T) {
	unknown := Encode(&Entry{Seq: 7, At: checkedAt, Rec: &later{kind: "later"}})
	if e, err := Decode(unknown); !errors.Is(err, ErrUnknownType) || e == nil || e.Seq != 7 || !e.At.Equal(checkedAt) || e.Rec != nil {
		t.Errorf("%+v, %v", e, err)
	}
	var f finding.Finding
	if e, err := Decode(Encode(&Entry{Seq: 7, At: checkedAt,
		Rec: &later{kind: TypeNote, Text: 8}})); !errors.As(err, &f) || e != nil || f.Column == 0 ||
		!strings.Contains(f.Reason, `"text" is a number`) {
		t.Errorf("%+v, %v", e, err)
	}
	if errors.As(badLine([]byte("x"), errors.New("plain")), &f); f.Column != 0 || f.Reason != "plain" || f.Line != 1 {
		t.Errorf("%+v", f)
	}
}

// A fork takes the conversation along: without addresses, prices, promises and signatures,
// in the session that is its own.
func TestCutTakesTheConversationAlong(t *testing.T) {
	h := begun(t)
	sha := strings.Repeat("a", 64)
	child := user("i0", "from an agent")
	child.Origin = "a"
	add(t, h, &TurnBegin{Turn: "t1", Attempt: 1}, child, user("i1", "the question"),
		&Assistant{Turn: "t1", Finish: FinishToolUse, Provider: "p", Cost: 3,
			Thinking: []Thinking{{Text: "hm", Signature: "s"}}, ToolCalls: []ToolCall{{ID: "c", Name: "x", Arguments: []byte("{}")}}},
		&ToolResult{ToolCallID: "c", Status: StatusOK, Output: Output{Text: "long", Blob: sha}}, &Permission{Token: "p", Event: "deny"},
		promising("t1", "the answer", "o1"), &TurnEnd{Turn: "t1", Reason: ReasonCanceled}) // 2 to 9
	add(t, h, &TurnBegin{Turn: "t2", Attempt: 1}, user("i2", "open")) // 10, 11
	now := time.Date(2027, 1, 1, 0, 0, 0, 0, time.UTC)
	for at, want := range map[int64]int64{0: 9, 9: 9} {
		c, err := CutAt(h.dir, "agent", at, "new", now)
		if err != nil || c.At != want || c.Last != 8 || !slices.Equal(c.Blobs, []string{sha}) ||
			c.Session.ID != "new" || c.Session.Parent != "agent" ||
			c.Session.Messages != 4 || c.Session.Title != "the question" || c.Session.First != 1 || !c.Session.StartedAt.Equal(now) {
			t.Errorf("at %d: %d %d %v %+v, %v", at, c.At, c.Last, c.Blobs, c.Session, err)
		}

		var types []string
		for _, line := range splitLines(c.Content) {
			e, err := Decode(line)
			if err != nil || e.Seq != int64(len(types)+1) {
				t.Fatalf("%s: %v", line, err)
			}
			types = append(types, string(e.Rec.Type()))

			switch r := e.Rec.(type) {
			case *User:
				if r.Item != "" || r.Route != nil {
					t.Errorf("%+v", r)
				}
			case *Assistant:
				if r.Out != nil || r.Provider != "" || r.Cost != 0 || r.Thinking != nil {
					t.Errorf("%+v", r)
				}
			}
		}

		if diff := cmp.Diff("start user_message user_message assistant_message tool_result assistant_message turn_end turn_end",
			strings.Join(types, " ")); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	}

	save(t, h, append(content(t, h), `{"text":"by hand","type":"user_message","seq":12}`+"\n"...))
	if c, err := CutAt(h.dir, "agent", 12, "new", now); err != nil || c.At != 12 || !bytes.Contains(c.Content, []byte("by hand")) {
		t.Errorf("%+v, %v", c, err)
	}

	for _, at := range []int64{13, 99} {
		if c, err := CutAt(h.dir, "agent", at, "new", now); !errors.Is(err, ErrNoRecord) {
			t.Errorf("at %d: %+v, %v", at, c, err)
		}
	}
}

// A state that cannot be read leaves the last good one in force, and says so.
func TestAStateThatCannotBeReadLeavesTheLastGoodOne(t *testing.T) {
	dir := t.TempDir()
	state(t, dir, `{"permissions":{"workingDir":"/w"},"budget":{"tokens":7}}`)
	v := disk.NewVolume(dir)
	if s, _, err := CurrentState(v, dir); err != nil || s.Budget.Tokens != 7 {
		t.Fatalf("%+v, %v", s, err)
	}
	if err := os.Remove(filepath.Join(dir, stateName)); err != nil {
		t.Fatal(err)
	}

	loop(t, filepath.Join(dir, stateName))
	if s, found, err := CurrentState(v, dir); err != nil || s.Budget == nil || s.Budget.Tokens != 7 ||
		s.Permissions.WorkingDir != "/w" || !slices.Equal(ids(found), []string{"state-unreadable"}) {
		t.Errorf("%+v, %v, %v", s, found, err)
	}
}

// What differs between two objects is changed in the text of a third, and nothing else.
func TestMerge(t *testing.T) {
	for name, tt := range map[string][4]string{ // raw, old, updated, want
		"a change":           {`{"b":1,"mine":true,"a":2}`, `{"a":2,"b":1}`, `{"a":3,"b":1}`, `{"b":1,"mine":true,"a":3}`},
		"a new member":       {`{"b":1}`, `{"b":1}`, `{"a":3,"b":1}`, `{"b":1,"a":3}`},
		"a member less":      {`{"b":1,"a":2}`, `{"a":2,"b":1}`, `{"b":1}`, `{"b":1}`},
		"inside":             {`{"o":{"x":1,"mine":2}}`, `{"o":{"x":1}}`, `{"o":{"x":5}}`, `{"o":{"x":5,"mine":2}}`},
		"an object for none": {`{"o":null}`, `{"o":null}`, `{"o":{"x":5}}`, `{"o":{"x":5}}`},
		"none for an object": {`{"o":{"mine":2}}`, `{"o":{"x":1}}`, `{"o":null}`, `{"o":null}`},
		"put in by hand":     {`{"o":{"mine":2}}`, `{}`, `{"o":{"x":1}}`, `{"o":{"x":1}}`},
		"twice in the text":  {`{"a":1,"a":2}`, `{"a":2}`, `{"a":3}`, `{"a":3}`},
		"nothing":            {`{"a":1.0}`, `{"a":1}`, `{"a":1}`, `{"a":1.0}`},
		"a key with quotes":  {`{"a\"\u00e4":1,"x":[ 1, {"y":2} ]}`, `{"a\"ä":1}`, `{"a\"ä":2}`, `{"a\"ä":2,"x":[ 1, {"y":2} ]}`},
		"spaces and lines":   {"{ \"a\" :\n1 ,\t\"b\": null }", `{"a":1}`, `{"a":2}`, `{"a":2,"b":null}`},
	} {
		if got := merge([]byte(tt[0]), []byte(tt[1]), []byte(tt[2])); string(got) != tt[3] {
			t.Errorf("%s: %s, want %s", name, got, tt[3])
		}
	}
}

// A history whose folder was taken away can be read from memory and is never made again.
func TestAHistoryThatWasTakenAway(t *testing.T) {
	h := large(t)
	add(t, h, &Reset{Session: "s2", V: Version, Reason: "user"})
	if err := os.RemoveAll(h.dir); err != nil {
		t.Fatal(err)
	}
	_, rewind := h.RewindTo("")
	_, appended := h.Append(&Note{Text: "x"})
	_, _, refreshed := h.Refresh()
	for what, err := range map[string]error{"rewind": rewind, "append": appended, "refresh": refreshed} {
		if !errors.Is(err, ErrGone) {
			t.Errorf("%s: %v", what, err)
		}
	}

	if err := h.Barrier(); err == nil {
		t.Error("what nobody can find is durable")
	}
	if rotated, err := h.Rotate(); rotated || err == nil {
		t.Errorf("rotate: %v, %v", rotated, err)
	}
	if disk.Exists(h.dir) {
		t.Error("the folder is there again")
	}
	if recs, err := h.Append(); recs != nil || err != nil {
		t.Errorf("nothing: %v, %v", recs, err)
	}
	if err := h.file.Log.Close(); err != nil {
		t.Fatal(err)
	}

	h.view.made, h.tally.loaded = false, false
	_, session := h.Session()
	_, context := h.Context()
	_, _, totals := h.Totals(0)
	_, closed := h.Closed(map[string]int64{"x": 0})
	for what, err := range map[string]error{"session": session, "context": context, "totals": totals, "closed": closed,
		"recover": h.recover()} {
		if err == nil {
			t.Errorf("%s of a closed file says nothing", what)
		}
	}
}

// A damaged line keeps its number, unless that is damaged itself.
func TestNumbersOfDamagedLines(t *testing.T) {
	for number, want := range map[string]int64{"6": 6, "10004": 10004, "10005": 5, "99999999": 5, "3": 5} {
		h := begun(t)
		turn(t, h, "t", "a", "b") // up to 5
		save(t, h, append(content(t, h), `{"seq":`+number+`,"at":garbage`+"\n"...))
		again, _ := reopen(t, h.dir, newClock())
		if got := again.Obligations().LastSeq; got != want {
			t.Errorf("after a damaged line %s the newest is %d, want %d", number, got, want)
		}
	}
}

// Of what was written the newest two turns are kept, and more while it is little.
func TestRecentLinesAreBounded(t *testing.T) {
	var r recent
	const each = keepBytes / 4
	for seq := range int64(20) {
		rec := Record(&Note{})
		if seq%2 == 1 {
			rec = &TurnEnd{}
		}
		r.add(ownLine{&Entry{Seq: seq, Rec: rec}, each})
		r.trim()
		ends, size := 0, 0
		for _, l := range r.lines {
			size += l.bytes
			if l.ends() {
				ends++
			}
		}

		if r.ends != ends || r.bytes != size || size > 2*keepBytes || seq > 4 && ends < 2 {
			t.Errorf("after %d lines %d are kept with %d ends of %d bytes, counted as %d and %d", seq+1, len(r.lines),
				ends, size, r.ends, r.bytes)
		}
	}

	r.keep(func(l ownLine) bool { return l.Seq == 19 })
	if r.ends != 1 || len(r.lines) != 1 || r.bytes != each {
		t.Errorf("%d lines with %d ends of %d bytes", len(r.lines), r.ends, r.bytes)
	}
}
