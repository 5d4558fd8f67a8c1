package folders

import (
	"testing"

	"daycare/engine/address"
)

// What a user makes of an agent stands by itself: a colleague stays one, everything else
// becomes an agent of the terminal.
func TestAForkStandsByItself(t *testing.T) {
	f := &Folders{User: "ann"}
	ops := address.Descriptor{Type: address.Permanent, ID: "ops", Name: "Ops", Description: "d", CreatedBy: "one"}
	d := f.byHand(ops, "other")
	if d.Type != address.Permanent || d.ID == ops.ID || d.Name != "other" || d.Description != "d" || d.CreatedBy != "" {
		t.Errorf("of a colleague: %+v", d)
	}
	d = f.byHand(address.Descriptor{Type: address.Subagent, Name: "x"}, "y")
	if d.Type != address.User || d.Connector != "terminal" || d.UserID != "ann" || d.Name != "y" {
		t.Errorf("of a sub-agent: %+v", d)
	}
}
