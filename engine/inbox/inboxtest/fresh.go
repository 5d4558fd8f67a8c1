package inboxtest

import (
	"maps"
	"testing"
	"time"

	"daycare/engine/inbox"
	"daycare/engine/message"
)

// fresh: an item that came just now under an id of the mailbox's own is told from
// one that someone looked at, that may have come before, or that lay there.
func fresh(t *testing.T, b *bench) {
	is := func(id string) bool {
		for _, h := range b.box.Open() {
			if h.ID == id {
				return h.Fresh
			}
		}
		t.Fatalf("item %s is not open", id)

		return false
	}
	read, taken, left := b.accept("read"), b.accept("taken"), b.accept("left")
	named := b.offer(inbox.Item{ID: "namedbysomebodyelse00000", Kind: message.Text, Text: "named"}).Item

	for _, id := range []string{read, taken, left} {
		if !is(id) {
			t.Errorf("item %s came just now, and is not fresh", id)
		}
	}

	if is(named) {
		t.Error("an id from outside may have come before: it must not be fresh")
	}
	if _, err := b.box.Read(read); err != nil {
		t.Fatal(err)
	}
	if _, err := b.box.Take(taken); err != nil {
		t.Fatal(err)
	}

	b.box.Untake(taken)
	if is(read) || is(taken) || !is(left) {
		t.Error("only what nobody looked at stays fresh")
	}
	b.crash()
	if is(left) {
		t.Error("what lay in the inbox at the start must not be fresh")
	}
}

// reached: an item notes how far history had come when it was accepted, unless it is so
// old that its key may be forgotten.
func reached(t *testing.T, b *bench) {
	early := b.accept("early")
	b.box.Reached(41)
	late := b.accept("late")
	old := b.offer(inbox.Item{ID: "namedbysomebodyelse00000", Kind: message.Text, Text: "old",
		At: time.Now().Add(-2 * inbox.DedupeWindow)}).Item
	b.crash()
	b.box.Reached(50)
	got := map[string]int64{}
	for _, h := range b.box.Open() {
		got[h.ID] = h.After
	}

	if want := map[string]int64{early: 0, late: 41, old: 0}; !maps.Equal(got, want) {
		t.Errorf("the items note %v, want %v", got, want)
	}
}
