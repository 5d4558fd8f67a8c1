package record

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestClosing(t *testing.T) {
	h := begun(t)
	turn(t, h, "t1", "a", "b")
	add(t, h, &TurnBegin{Turn: "t2", Items: []string{"i2"}, Attempt: 1}, user("i2", "go"))
	add(t, h, &Assistant{Turn: "t2", Text: "I look", Finish: FinishToolUse, Cost: 1, Tokens: Tokens{Input: 5}})
	add(t, h, &Note{Text: "crash"}, &TurnBegin{Turn: "t2", Items: []string{"i2"}, Attempt: 2}, user("i3", "and"))
	add(t, h, &Assistant{Turn: "t2", Text: "final", Finish: FinishEndTurn, Cost: 2, Tokens: Tokens{Input: 7, Output: 1}},
		&TurnEnd{Turn: "t2", Reason: ReasonLimit, Error: "too many"})
	silent := user("i4", "psst")
	silent.Silent = true
	add(t, h, silent, &Permission{Token: "p", Item: "i5", Event: "deny"}, &Summary{Text: "S", From: 1, KeptFrom: 99, Item: "i6", Cost: 3},
		&Note{Text: "nothing to shorten", Item: "i7"}, &Rewind{To: 99, Item: "i9"}, &Reset{Session: "s2", Reason: "user", Item: "i8"})
	add(t, h, user("i10", "open"))

	both := Outcome{Turn: "t2", Reason: ReasonLimit, Text: "final", Error: "too many", Cost: 3,
		Tokens: Tokens{Input: 12, Output: 1}, Seq: 13, Work: Work{Said: "I look"}, Finish: FinishEndTurn}
	of := func(o Outcome, item string) Outcome { o.Item = item; return o }
	for _, want := range []Outcome{
		of(both, "i2"), of(both, "i3"),
		{Item: "it1", Turn: "t1", Reason: ReasonDone, Text: "b", Cost: 0.25, Tokens: Tokens{Input: 10, Output: 2}, Seq: 5,
			Work:   Work{Rounds: 1},
			Finish: FinishEndTurn},
		{Item: "i4", Reason: "recorded", Seq: 14}, {Item: "i5", Reason: "permission", Seq: 15},
		{Item: "i6", Reason: "compact", Cost: 3, Seq: 16}, {Item: "i7", Reason: "compact", Text: "nothing to shorten", Seq: 17},
		{Item: "i9", Reason: "rewind", Seq: 18}, {Item: "i8", Reason: "reset", Seq: 19},
	} {
		got, ok, err := Closing(h.dir, want.Item)
		if err != nil || !ok {
			t.Errorf("%s: found %v, %v", want.Item, ok, err)
		}
		checkAsked(t, &got, want.Turn != "" || want.Reason == "recorded")
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", want.Item, diff)
		}
	}

	for _, item := range []string{"i10", "never"} {
		if _, ok, err := Closing(h.dir, item); ok || err != nil {
			t.Errorf("%s: closed %v, %v", item, ok, err)
		}
	}
	if _, ok, err := Closing(t.TempDir(), "i"); ok || err != nil {
		t.Errorf("no history: %v, %v", ok, err)
	}
}

// checkAsked looks at the message of an outcome, and at its times, and takes them out.
func checkAsked(t *testing.T, o *Outcome, asked bool) {
	t.Helper()
	if o.At.IsZero() || asked != (o.Asked != nil) || asked && (o.Asked.Item != o.Item || o.AskedAt.After(o.At) || o.AskedAt.IsZero()) {
		t.Errorf("%s: asked %+v at %s, ended at %s", o.Item, o.Asked, o.AskedAt, o.At)
	}
	o.Span = Span{}
}

func TestSettled(t *testing.T) {
	end := []Record{&TurnBegin{Turn: "t", Attempt: 1}, &TurnEnd{Turn: "t", Reason: ReasonDone}}
	owing := []Record{&TurnBegin{Turn: "t", Attempt: 1}, promising("t", "x", "o1"), &TurnEnd{Turn: "t", Reason: ReasonDone}}
	tests := []struct {
		name string
		recs []Record
		want bool
	}{
		{"begun", nil, true},
		{"turn open", []Record{&TurnBegin{Turn: "t", Attempt: 1}}, false},
		{"turn ended", end, true},
		{"answer owed", owing, false},
		{"answer delivered", append(owing, &Delivery{Out: "o1", Parts: 1}), true},
		{"one part missing", append(owing, &Delivery{Out: "o1", Parts: 2}), false},
		{"both parts", append(owing, &Delivery{Out: "o1", Parts: 2}, &Delivery{Out: "o1", Part: 1, Parts: 2}), true},
		{"failed try", append(owing, &Delivery{Out: "o1", Parts: 1, Error: "x"}), false},
		{"given up", append(owing, &Delivery{Out: "o1", Parts: 2, Error: "x", Final: true}), true},
		{"delivered before a later turn",
			append(append(owing, &Delivery{Out: "o1", Parts: 2}), append(end, &Delivery{Out: "o1", Part: 1, Parts: 2})...), true},
		{"message without a turn", append(end, user("i", "x")), false},
		{"silent message", append(end, &User{Item: "i", Silent: true}), true},
		{"decision", append(end, &Permission{Event: "once"}), false},
		{"request", append(end, &Permission{Event: "asked"}), true},
		{"long after", append(end, &Note{Text: strings.Repeat("x", 5000)}), false},
		{"reset", append(end, &Reset{Session: "s2"}), true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			h := begun(t)
			if len(tt.recs) > 0 {
				add(t, h, tt.recs...)
			}
			got, err := Settled(h.dir)
			if err != nil || got != tt.want {
				t.Errorf("settled %v, %v; want %v", got, err, tt.want)
			}
			o := h.Obligations()
			if work := o.Turn != nil || o.Owed || len(o.Outs) > 0; got && work {
				t.Errorf("said to be settled, but owes %+v", o)
			}
		})
	}

	if got, err := Settled(t.TempDir()); !got || err != nil {
		t.Errorf("no history: %v, %v", got, err)
	}
}

func TestSettledDoubtsWhatWasTouched(t *testing.T) {
	h := begun(t)
	turn(t, h, "t1", "a", "b")
	whole := content(t, h)
	for what, data := range map[string][]byte{
		"by hand": bytes.Replace(whole, []byte(`"reason":"done"`), []byte(`"reason":"dome"`), 1),
		"torn":    append(bytes.Clone(whole), `{"seq":7`...),
		"garbage": append(bytes.Clone(whole), "garbage\n"...),
	} {
		if err := os.WriteFile(h.path(), data, 0o600); err != nil {
			t.Fatal(err)
		}
		if got, err := Settled(h.dir); got || err != nil {
			t.Errorf("%s: settled %v, %v", what, got, err)
		}
	}
}

// TestTailPages reads everything in pages of every size, over a rotation and with
// lines of a hand in between: each line once, in order.
func TestTailPages(t *testing.T) {
	h := large(t)
	kept := h.Obligations().LastSeq - 3
	add(t, h, &Summary{Text: "S", From: 2, KeptFrom: kept})
	want := strings.Split(strings.TrimSpace(string(content(t, h))), "\n")
	rotate(t, h)
	turn(t, h, "t9", "x", "y")
	want = append(want, strings.Split(strings.TrimSpace(string(content(t, h))), "\n")[6:]...)
	hand := `{"type":"note","text":"by hand"}`
	lines := strings.Split(strings.TrimSpace(string(content(t, h))), "\n")
	lines = append(lines[:len(lines)-1], hand, "no JSON", lines[len(lines)-1])
	if err := os.WriteFile(h.path(), []byte(strings.Join(lines, "\n")+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}

	want = append(want[:len(want)-1], hand, want[len(want)-1])
	for _, limit := range []int{1, 2, 3, 7, 50, 1000} {
		var got []string
		pages := 0
		for before := int64(0); ; pages++ {
			page, next, err := Tail(h.dir, before, limit)
			if err != nil || pages > 200 {
				t.Fatalf("limit %d: page %d: %v", limit, pages, err)
			}
			var some []string
			for _, line := range page {
				some = append(some, string(line))
			}

			got = append(some, got...)
			if next == nil {
				break
			}
			before = *next
		}

		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatalf("limit %d (-want +got):\n%s", limit, diff)
		}
	}
}

func TestLastAt(t *testing.T) {
	h := begun(t)
	e := add(t, h, &Note{Text: "x"})[0]
	if at, err := LastAt(h.dir); err != nil || !at.Equal(e.At) {
		t.Errorf("last at %v, %v; want %v", at, err, e.At)
	}
	if at, err := LastAt(t.TempDir()); err != nil || !at.IsZero() {
		t.Errorf("no history: %v, %v", at, err)
	}
}

func TestNewest(t *testing.T) {
	h := begun(t)
	turn(t, h, "t1", "a", "the first answer")
	turn(t, h, "t2", "b", "the second answer")
	e := add(t, h, &Note{Text: `"assistant_message", "turn_end"`})[0]
	if last, err := Newest(h.dir); err != nil || last != (Last{At: e.At, Said: "the second answer"}) {
		t.Errorf("newest %+v, %v; want the second answer at %v", last, err, e.At)
	}
	if last, err := Newest(t.TempDir()); err != nil || last != (Last{}) {
		t.Errorf("no history: %+v, %v", last, err)
	}

	for range saidWithin/10_000 + 1 { // an answer far from the end is not looked for
		add(t, h, &Note{Text: strings.Repeat("long ", 2000)})
	}
	if last, err := Newest(h.dir); err != nil || last.At.IsZero() || last.Said != "" {
		t.Errorf("behind long records: %+v, %v", last, err)
	}
}

// A failed turn is the agent's state until the next turn, a rewind or a new conversation.
func TestNewestFailure(t *testing.T) {
	after := map[string]Record{"a turn": &TurnBegin{Turn: "t2", Attempt: 1}, "a reset": &Reset{Session: "s2"}, "a rewind": &Rewind{To: 1}}
	for name, next := range after {
		t.Run(name, func(t *testing.T) {
			h := begun(t)
			add(t, h, &TurnBegin{Turn: "t1", Attempt: 1}, &Assistant{Turn: "t1", Text: "Sorry.", Finish: FinishError},
				&TurnEnd{Turn: "t1", Reason: ReasonError, Error: "the model refused"}, &Note{Text: "later"})
			if last, err := Newest(h.dir); err != nil || last.Failed != "the model refused" || last.Said != "Sorry." {
				t.Errorf("after a failed turn: %+v, %v", last, err)
			}
			add(t, h, next)
			if last, err := Newest(h.dir); err != nil || last.Failed != "" {
				t.Errorf("then: %+v, %v", last, err)
			}
		})
	}
	h := begun(t)
	add(t, h, &TurnBegin{Turn: "t1", Attempt: 1}, &TurnEnd{Turn: "t1", Reason: ReasonLimit})
	if last, err := Newest(h.dir); err != nil || last.Failed != ReasonLimit {
		t.Errorf("a failure without words: %+v, %v", last, err)
	}
	add(t, h, &TurnBegin{Turn: "t2", Attempt: 1}, &TurnEnd{Turn: "t2", Reason: ReasonCanceled})
	if last, err := Newest(h.dir); err != nil || last.Failed != "" {
		t.Errorf("a turn that was stopped failed: %+v, %v", last, err)
	}
}

func TestDraftAndBlob(t *testing.T) {
	h := begun(t)
	if _, ok, err := ReadDraft(h.dir); ok || err != nil {
		t.Errorf("no draft: %v, %v", ok, err)
	}
	want := Draft{Turn: "t1", Text: "half an", Thinking: "hm"}
	if err := WriteDraft(h.vol, h.dir, want); err != nil {
		t.Fatal(err)
	}
	if got, ok, err := ReadDraft(h.dir); got != want || !ok || err != nil {
		t.Errorf("draft %+v, %v, %v", got, ok, err)
	}
	if err := errors.Join(RemoveDraft(h.dir), RemoveDraft(h.dir)); err != nil {
		t.Error(err)
	}

	text := strings.Repeat("output ", 10_000)
	sha, err := PutBlob(h.vol, h.dir, text)
	if err != nil {
		t.Fatal(err)
	}
	if again, err := PutBlob(h.vol, h.dir, text); again != sha || err != nil {
		t.Errorf("stored again as %s, %v", again, err)
	}
	if got, err := ReadBlob(h.dir, sha); got != text || err != nil {
		t.Errorf("read %d bytes, %v", len(got), err)
	}
	if _, err := ReadBlob(h.dir, "../state.json"); err == nil {
		t.Error("a name that is no hash was read")
	}
}

func TestBeginWritesOnce(t *testing.T) {
	h, _ := reopen(t, t.TempDir(), newClock())
	if h.file.Size() != 0 || h.Obligations().LastSeq != 0 {
		t.Error("opening wrote something")
	}

	for range 2 {
		if err := h.Begin("s1"); err != nil {
			t.Fatal(err)
		}
	}
	again, _ := reopen(t, h.dir, newClock())
	if err := again.Begin("s2"); err != nil {
		t.Fatal(err)
	}
	if o := again.Obligations(); o.Session != "s1" || o.LastSeq != 1 {
		t.Errorf("%+v", o)
	}
}

// benchHistory is a history of at least size bytes, most of it before the last
// session.
func benchHistory(b *testing.B, size int64) string {
	h := begun(b)
	var lines []byte
	for seq := int64(2); int64(len(lines)) < size; seq += 4 {
		for i, rec := range []Record{&TurnBegin{Turn: "t", Attempt: 1}, user("i", strings.Repeat("question ", 100)),
			answering("t", strings.Repeat("answer ", 100)), &TurnEnd{Turn: "t", Reason: ReasonDone, Session: "s1"}} {
			lines = append(lines, Encode(&Entry{Seq: seq + int64(i), At: h.now(), Rec: rec})...)
		}
	}

	f, err := os.OpenFile(h.path(), os.O_APPEND|os.O_WRONLY, 0)
	if err == nil {
		_, err = f.Write(lines)
	}
	if err := errors.Join(err, f.Close()); err != nil {
		b.Fatal(err)
	}

	return h.dir
}

func BenchmarkOpen(b *testing.B) {
	for _, mib := range []int64{1, 100} {
		b.Run(fmt.Sprint(mib, "MiB"), func(b *testing.B) {
			dir := benchHistory(b, mib<<20)
			b.ReportAllocs()
			for b.Loop() {
				h, _ := reopen(b, dir, newClock())
				h.Close()
			}
		})
	}
}

func BenchmarkContext1MiB(b *testing.B) {
	dir := benchHistory(b, 1<<20)
	for b.Loop() {
		h, _ := reopen(b, dir, newClock())
		if _, err := h.Context(); err != nil {
			b.Fatal(err)
		}
		h.Close()
	}
}

func BenchmarkSettled(b *testing.B) {
	dir := benchHistory(b, 1<<20)
	for b.Loop() {
		if ok, err := Settled(dir); !ok || err != nil {
			b.Fatal(ok, err)
		}
	}
}

func BenchmarkClosingNotFound100MiB(b *testing.B) {
	dir := benchHistory(b, 100<<20)
	for b.Loop() {
		if _, ok, err := Closing(dir, "tz4a98xxat96iws9zmbrgj3a"); ok || err != nil {
			b.Fatal(ok, err)
		}
	}
}
