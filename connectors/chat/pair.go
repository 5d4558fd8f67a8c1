package chat

import (
	"context"
	"strings"

	"daycare/engine/message"
)

// A Stranger is a user who is not on the allow list and wrote to the bot in private. Their
// message is not read.
type Stranger struct {
	From message.Address
	Name string // the name they chose, shortened
}

// A Reply is the answer to a stranger.
type Reply struct {
	Text string // "": nothing
	Code string // instead of a text: the pairing code
}

// Admission grants access to users who are not on the allow list.
type Admission interface {
	// Ask returns the answer to a stranger who wrote in private; ok is false if the
	// connector has no pairing, so that only the allow list counts.
	Ask(ctx context.Context, s Stranger) (r Reply, ok bool)
	// Admit grants access to the stranger with a code, or rejects them, and returns their
	// name. Its error is shown to users.
	Admit(ctx context.Context, connector, code string, reject bool, by string) (who string, err error)
}

// maxName is the longest name that is kept, in characters.
const maxName = 40

// askAdmission asks the host about a stranger. It returns false if only the allow list
// counts: always in a group, where everyone would see the code.
func (d *Desk) askAdmission(ctx context.Context, p Post) bool {
	if d.host.Admission == nil || p.Group {
		return false
	}
	r, ok := d.host.Admission.Ask(ctx, Stranger{p.From, clip(p.Sender, maxName)})
	switch {
	case !ok:
		return false
	case r.Code != "":
		d.log.Info("an unknown user requests access", "user", p.From.UserID, "name", p.Sender)
		d.voice.say(ctx, p, d.voice.t("I do not know you yet, so I did not read your message. To get access, give this code to "+
			"the person who runs me: `%s`. It is valid for one hour.", r.Code))
		if to, ok := d.who.owner(); ok {
			d.voice.sayTo(ctx, to, "", d.voice.t("%s, id %s, requests access. To grant it, answer `%spair %s`, or run "+
				"`daycare connectors pair %s`. To reject it, answer `%spair %s reject`. I did not read their message.",
				nameless(p.Sender), code(p.From.UserID), d.o.mark(), r.Code, r.Code, d.o.mark(), r.Code))
		}
	case r.Text != "":
		d.voice.say(ctx, p, r.Text)
	}

	return true
}

// pair grants or rejects access by code, for an owner.
func (cs *commands) pair(ctx context.Context, p Post, rest string) string {
	words := strings.Fields(rest)
	switch {
	case cs.host.Admission == nil:
		return "I cannot do that now."
	case !cs.who.owns(p.From.UserID):
		return "Only an owner can grant access."
	case len(words) == 0, len(words) == 2 && words[1] != "reject", len(words) > 2:
		return cs.voice.t("Which code? `%spair CODE`, or `%spair CODE reject`.", cs.o.mark(), cs.o.mark())
	}

	reject := len(words) == 2
	who, err := cs.host.Admission.Admit(ctx, cs.o.ID, words[0], reject, cs.o.ID+":"+p.From.UserID)
	switch {
	case err != nil:
		return cs.voice.t("Nothing changed: %s", err)
	case reject:
		return cs.voice.t("%s was rejected.", nameless(who))
	}

	return cs.voice.t("%s now has access.", nameless(who))
}
