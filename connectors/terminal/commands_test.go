package terminal

import (
	"testing"

	"daycare/engine/control"
)

// A command that a user wrote completes, is in the help, and says its message; one that
// nobody wrote stays where it was typed.
func TestOwnCommands(t *testing.T) {
	bubble(t, func(t *testing.T) {
		d0 := newDaemon()
		d0.commands = []control.CommandInfo{{Name: "review", Arguments: "FILE", Description: "Review a file"}}
		drive(t, d0, 100, 60, func(d *driver) {
			d.write("/rev")
			d.shows("/review", "FILE Review a file")
			d.press("tab")
			d.write("main.go")
			d.press("enter")
			d.shows("Review main.go with care.")
			if len(d0.got) != 1 || d0.got[0].Text != "Review main.go with care." {
				t.Errorf("sent %+v", d0.got)
			}
			d.write("/nosuch thing")
			d.press("enter")
			d.shows("there is no /nosuch", "› /nosuch thing")
			if len(d0.got) != 1 {
				t.Errorf("an unknown command was sent: %+v", d0.got)
			}
			d.press("ctrl+c", "?")
			d.shows("/review FILE")
		})
	})
}
