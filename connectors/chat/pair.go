package chat

import (
	"context"
	"fmt"
	"strings"

	"daycare/engine/message"
)

// A Stranger is somebody who is not on the allow list and wrote to us alone. What they wrote
// stays with the platform.
type Stranger struct {
	From message.Address
	Name string // that they chose, shortened
}

// A Reply is what a stranger is told.
type Reply struct {
	Text string // "": nothing
	Code string // in the place of a text: what an owner lets them in with
}

// Admission lets in people who are not on the allow list.
type Admission interface {
	// Ask is asked about somebody who wrote to us alone; ok is false where the allow list has
	// the last word.
	Ask(ctx context.Context, s Stranger) (r Reply, ok bool)
	// Admit lets in the stranger who was given a code, or rejects them, and returns who that
	// is. Its error is for people.
	Admit(ctx context.Context, connector, code string, reject bool, by string) (who string, err error)
}

// maxName is how much of a name that somebody chose is kept, in characters.
const maxName = 40

// askAdmission asks the host about a stranger; false: the allow list has the last word. In a group a
// code would be shown to everybody, so there it always has.
func (d *Desk) askAdmission(ctx context.Context, p Post) bool {
	if d.host.Admission == nil || p.Group {
		return false
	}
	r, ok := d.host.Admission.Ask(ctx, Stranger{p.From, clip(p.Sender, maxName)})
	switch {
	case !ok:
		return false
	case r.Code != "":
		d.log.Info("somebody asks to be let in", "user", p.From.UserID, "name", p.Sender)
		d.voice.say(ctx, p, "I do not know you yet, so I did not read that. If you are expected here, give this code to "+
			"whoever runs me: `"+r.Code+"`. It is valid for one hour.")
		if to, ok := d.who.owner(); ok {
			d.voice.sayTo(ctx, to, "", fmt.Sprintf("%s, id %s, asks to be let in. To do so, answer `%spair %s`, or type "+
				"`daycare connectors pair %s` on the computer. `%spair %s reject` turns them away. I did not read what they wrote.",
				nameless(p.Sender), code(p.From.UserID), d.o.mark(), r.Code, r.Code, d.o.mark(), r.Code))
		}
	case r.Text != "":
		d.voice.say(ctx, p, r.Text)
	}
	return true
}

// pair lets in whoever was given a code, if an owner says so.
func (cs *commands) pair(ctx context.Context, p Post, rest string) string {
	words := strings.Fields(rest)
	switch {
	case cs.host.Admission == nil:
		return "I cannot do that now."
	case !cs.who.owns(p.From.UserID):
		return "Only an owner may let somebody in."
	case len(words) == 0, len(words) == 2 && words[1] != "reject", len(words) > 2:
		return fmt.Sprintf("Say which code: `%spair CODE`, or `%spair CODE reject`.", cs.o.mark(), cs.o.mark())
	}
	reject := len(words) == 2
	who, err := cs.host.Admission.Admit(ctx, cs.o.ID, words[0], reject, cs.o.ID+":"+p.From.UserID)
	switch {
	case err != nil:
		return "Nothing was changed: " + err.Error()
	case reject:
		return nameless(who) + " was turned away."
	}
	return nameless(who) + " may write to me now."
}
