package agents

import (
	"fmt"

	"daycare/engine/message"
	"daycare/engine/record"
)

// A turn is the work on one or more items, from taking them to their closing
// record. Everything in it can be computed from history again.
type turn struct {
	self // as it was when the turn began
	addressee
	id       string
	attempt  int
	items    []string // whose user_message is in the turn
	hops     int
	rounds   int  // of tool calls
	waiting  bool // a tool call asked for a permission
	share    int  // characters that one result of the round may have
	squeezed bool // a request was refused as too long, and shortened
	bounds
	hookState
}

// Bounds end a turn that gets nowhere.
type bounds struct {
	loop  loopGuard
	clock *progress // nil before its first model call

	counted bool // this attempt is durable, or about to be
}

// A hookState is what hooks have to do with a turn.
type hookState struct {
	again   bool   // it is taken up again
	opened  bool   // the hooks before its first model call have run
	goneOn  int    // how often hooks had it continue
	stopped string // why a hook ends it; "": none does
	refused string // why hooks refused all of its messages; "": they did not
	said    string // the text of its last message
	origin  string // who sent that
}

// An addressee is who gets the turn's answer.
type addressee struct {
	route   *message.Address // of its last message; nil: that one came from the agent's own address
	spoken  bool             // a user's message is in it
	replyTo string
}

// join makes user messages part of the turn: it closes their items, and answers
// where the last of them asks. One that is answered nowhere, because its sender
// reads along in a terminal, leaves the answer to whoever waits for it elsewhere.
func (t *turn) join(out Outbox, entries []*record.Entry) {
	for _, e := range entries {
		u, ok := e.Rec.(*record.User)
		if !ok {
			continue
		}
		if u.Item == "" { // a hook said it
			continue
		}
		t.items = append(t.items, u.Item)
		t.said, t.origin = u.Text, u.Origin
		if u.Origin == "" {
			t.origin = origin(u.Route)
		}
		t.hops = max(t.hops, u.Hops)
		switch {
		case u.Origin == "":
			readsAlong := u.Route == nil && !out.Answers(t.address())
			if readsAlong && t.spoken && t.route != nil {
				continue
			}
			t.spoken, t.route, t.replyTo = true, u.Route, ""
			if u.Context != nil {
				t.replyTo = u.Context.MessageID
			}
		case !t.spoken && u.Route != nil && t.foreground():
			t.route = u.Route // a report: the answer goes where the work was asked for
		}
	}
}

// answerTo is where the turn's answer goes: the route of its last message, else
// that of the newest message before it, else the agent's own address.
func (t *turn) answerTo(j *journal) message.Address {
	if t.route != nil {
		return *t.route
	}
	if !t.spoken {
		if r := j.lastRoute(); r != nil {
			return *r
		}
	}

	return t.address()
}

// workRoute is the address that results of work started in this turn go to.
func (t *turn) workRoute(j *journal) message.Address {
	if t.foreground() {
		return t.answerTo(j)
	}
	return t.meta.Descriptor.Route
}

// notice is what a user reads when a turn was ended by a limit.
func (t *turn) notice(reason string) *record.Assistant {
	var text string
	if t.stopped != "" {
		return t.says("I stopped, because a hook of the owner ended the turn: " + t.stopped)
	}
	switch reason {
	case record.ReasonLimit:
		text = fmt.Sprintf("I stopped after %d rounds of tool calls. Say \"continue\" to let me continue.", t.rounds)
	case record.ReasonLoop:
		text = fmt.Sprintf("I stopped because I made the same call with the same result %d times. Tell me how to go on.",
			loopTimes)
	default:
		return nil
	}

	return t.says(text)
}

// apology is the one short message that a user gets instead of an answer.
func (t *turn) apology(err error) *record.Assistant { return t.says(short(err)) }

// says is what a user reads that does not come from the model.
func (t *turn) says(text string) *record.Assistant {
	return &record.Assistant{Turn: t.id, Text: text, Finish: record.FinishError}
}
