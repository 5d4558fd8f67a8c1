package chat

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"golang.org/x/time/rate"
)

// maxStrangers bounds how many users are remembered as told; beyond it nobody
// new gets an answer.
const maxStrangers = 1000

// A gate admits the users of the allow list, and remembers who was refused.
type gate struct {
	allow   []string
	replies *rate.Limiter // how often strangers are answered, all together

	mu     sync.Mutex
	turned map[string]bool
}

func newGate(allow []string) *gate {
	return &gate{allow: allow, replies: rate.NewLimiter(rate.Every(6*time.Minute), 5), turned: map[string]bool{}}
}

func (g *gate) allows(user string) bool { return user != "" && slices.Contains(g.allow, user) }

// first reports whether a user is refused for the first time.
func (g *gate) first(user string) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.turned[user] || len(g.turned) >= maxStrangers {
		return false
	}
	g.turned[user] = true

	return true
}

// stranger refuses an unknown user: logged once, answered once, and the owner learns how
// to let them in. Nothing of what they wrote is kept.
func (d *Desk) stranger(ctx context.Context, p Post) {
	if p.Group && !p.Addressed || p.Note || p.Amends != "" {
		return // they do not talk to us
	}
	if d.askAdmission(ctx, p) {
		return
	}
	if !d.gate.first(p.From.UserID) {
		return
	}

	d.log.Warn("refused a message from a user who is not in allow",
		"user", p.From.UserID, "name", p.Sender, "remedy", fmt.Sprintf("add %q to allow of this connector in settings.yaml", p.From.UserID))
	if !d.gate.replies.Allow() {
		return
	}
	if !d.o.IgnoreStrangers {
		d.voice.say(ctx, p, d.voice.t("I work for another user and did not read your message. "+
			"Your id is `%s`: the person who runs me can add it to `allow`.", p.From.UserID))
	}
	if to, ok := d.who.owner(); ok {
		d.voice.sayTo(ctx, to, "", d.voice.t("A user who is not in `allow` wrote to me: %s, id `%s`. I refused the message. To "+
			"give them access, add\n\n```\n%q\n```\n\nto `allow` of `%s` in `.daycare/settings.yaml`; "+
			"it takes effect as soon as you save the file.",
			nameless(p.Sender), p.From.UserID, p.From.UserID, d.o.ID))
	}
}

// nameless quotes a name that a user chose, so that it does not read as our own words.
func nameless(name string) string {
	return fmt.Sprintf("%q", clip(name, maxName))
}
