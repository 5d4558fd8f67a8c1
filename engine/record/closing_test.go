package record

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// To learn whether an item was closed the part of history is read in which its closing
// record can be, not the whole past.
func TestSearchForAClosingRecordReadsWhatIsNew(t *testing.T) {
	h := begun(t)
	const turns = 400
	for i := range turns {
		turn, item := fmt.Sprint("t", i), fmt.Sprint("item", i)
		if _, err := h.Append(&TurnBegin{Turn: turn, Items: []string{item}, Attempt: 1}, &User{Item: item, Text: strings.Repeat("x", 5000)},
			&TurnEnd{Turn: turn, Reason: ReasonDone}); err != nil {
			t.Fatal(err)
		}
	}

	last := h.Obligations().LastSeq
	search := func(after int64, items ...string) (closed int, bytes int64) {
		t.Helper()
		wanted := map[string]int64{}
		for _, item := range items {
			wanted[item] = after
		}
		before := h.file.read
		found, err := h.Closed(wanted)
		if err != nil {
			t.Fatal(err)
		}

		return len(found), h.file.read - before
	}
	size := h.file.Size()
	if n, bytes := search(last, "new"); n != 0 || bytes > size/10 {
		t.Errorf("an item that came just now: closed %d, %d of %d bytes were read", n, bytes, size)
	}
	if n, bytes := search(last-6, "item399", "item398", "new"); n != 2 || bytes > size/10 {
		t.Errorf("items of the last turns: closed %d, want 2; %d of %d bytes were read", n, bytes, size)
	}
	if n, bytes := search(0, "item0", "new"); n != 1 || bytes < size {
		t.Errorf("an item without a note: closed %d, want 1; %d of %d bytes were read", n, bytes, size)
	}
	if n, _ := search(last+100, "item0"); n != 1 {
		t.Error("a note from a newer history than this one hid a closing record")
	}
}

// TestEndingIsClosingWithoutTheMessage: who waits for an answer gets what the others get, whatever the turn was.
func TestEndingIsClosingWithoutTheMessage(t *testing.T) {
	h := begun(t)
	for _, attempt := range []int{1, 2} {
		turn := fmt.Sprint("t", attempt)
		item := fmt.Sprint("it", attempt)
		if _, err := h.Append(&TurnBegin{Turn: turn, Items: []string{item}, Attempt: 1},
			&User{Item: item, Text: `say "attempt":1, and }`},
			&Assistant{Turn: turn, Text: "first", Finish: FinishToolUse, Provider: "p", Model: "m", Tokens: Tokens{Input: 3}},
			&TurnBegin{Turn: turn, Items: []string{item}, Attempt: attempt},
			&Assistant{Turn: turn, Text: "done", Finish: FinishEndTurn, Provider: "p", Model: "m", Tokens: Tokens{Input: 4}},
			&TurnEnd{Turn: turn, Items: []string{item}, Reason: ReasonDone}); err != nil {
			t.Fatal(err)
		}
		whole, ok, err := Closing(h.dir, item)
		if !ok || err != nil {
			t.Fatal(ok, err)
		}
		brief, ok, err := Ending(h.dir, item)
		if !ok || err != nil {
			t.Fatal(ok, err)
		}
		if attempt == 2 && (whole.Asked == nil || whole.Tokens.Input != 7 || whole.Rounds != 2) {
			t.Errorf("what came before the second attempt is missing: %+v", whole)
		}
		if brief.Asked != nil {
			t.Error("the message was read")
		}
		whole.Asked, whole.AskedAt = nil, time.Time{}
		if diff := cmp.Diff(whole, brief); diff != "" {
			t.Errorf("attempt %d (-closing +ending):\n%s", attempt, diff)
		}
		kept, ok := h.Ending(item)
		if diff := cmp.Diff(brief, kept); !ok || diff != "" {
			t.Errorf("attempt %d: kept %v (-read +kept):\n%s", attempt, ok, diff)
		}
	}
}

// How a turn ended is known without the file for as long as the file is as it was written.
func TestAnEndingIsNotKeptBeyondAnEdit(t *testing.T) {
	h := begun(t)
	turn(t, h, "t1", "q", "as written")
	if o, ok := h.Ending("it1"); !ok || o.Text != "as written" {
		t.Fatal(ok, o)
	}
	if _, ok := h.Ending("it2"); ok {
		t.Error("an item that no turn closed")
	}

	save(t, h, bytes.Replace(content(t, h), []byte("as written"), []byte("as edited!"), 1))
	if _, _, err := h.Refresh(); err != nil {
		t.Fatal(err)
	}
	if o, ok := h.Ending("it1"); ok {
		t.Error("kept beyond an edit", o.Text)
	}
	if o, ok, err := Ending(h.dir, "it1"); err != nil || !ok || o.Text != "as edited!" {
		t.Error(o.Text, ok, err)
	}

	turn(t, h, "t2", "q", "the next")
	if o, ok := h.Ending("it2"); !ok || o.Text != "the next" || o.Cost != 0.25 || o.Tokens.Input != 10 {
		t.Error("the turn after an edit is not kept", ok, o)
	}
	again, _ := reopen(t, h.dir, newClock())
	if _, ok := again.Ending("it2"); ok {
		t.Error("known of another process")
	}
}
