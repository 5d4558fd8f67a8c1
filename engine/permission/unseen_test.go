package permission

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"daycare/engine/event"
)

func TestUnseenCharactersHaveTheirPlace(t *testing.T) {
	want := []event.Unseen{{Char: "U+202E", Line: 1, Column: 6}, {Char: "U+200B", Line: 3, Column: 2}, {Char: "0xFF", Line: 3, Column: 3}}
	if diff := cmp.Diff(want, Unseen("rm ä \u202efdp\n\ta b\nx\u200b\xff")); diff != "" {
		t.Error(diff)
	}
	if got := Unseen(strings.Repeat("\u200b", 1000)); len(got) != mostUnseen {
		t.Errorf("%d of 1000 are listed", len(got))
	}
	if got := Unseen("git push\n\torigin main"); got != nil {
		t.Errorf("of a plain command: %v", got)
	}
}
