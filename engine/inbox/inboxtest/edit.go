package inboxtest

import (
	"errors"
	"strings"
	"testing"

	"daycare/engine/inbox"
)

func edit(t *testing.T, b *bench) {
	one, two, three := b.accept("one"), b.accept("two"), b.accept("three")
	b.take(one)
	if err := b.box.Edit(one, "1"); !errors.Is(err, inbox.ErrTaken) {
		t.Errorf("editing a taken item: %v, want ErrTaken", err)
	}
	b.must(b.box.Edit(two, "zwei"))
	b.must(b.box.Edit(two, "deux"))
	if err := b.box.Edit(two, strings.Repeat("x", inbox.MaxItemBytes+1)); !errors.Is(err, inbox.ErrTooLarge) {
		t.Errorf("a text that is too large: %v, want ErrTooLarge", err)
	}

	for range 2 {
		b.holds(one, two, three)
		if it, err := b.box.Read(two); err != nil || it.Text != "deux" {
			t.Errorf("the edited item reads %q, %v", it.Text, err)
		}
		b.crash()
	}

	b.take(one, two)
	b.must(b.box.Done(one, two))
	four := b.accept("four")
	if err := b.box.Edit(two, "late"); !errors.Is(err, inbox.ErrUnknown) {
		t.Errorf("editing what is done: %v, want ErrUnknown", err)
	}
	b.crash()
	b.holds(three, four)
}
