package prompt

import (
	"slices"

	"daycare/agents/providers"
	"daycare/engine/record"
)

// A group is what is sent together after one answer of the model: the results of
// its calls, then what was said to it.
type group struct {
	calls    []record.ToolCall
	canceled bool // calls without a result were stopped, not lost
	results  map[string]providers.Result
	said     []saying

	// The messages made of it; nil means to be made (anew), or nothing to make.
	fromTools, fromUser *providers.Message
	made                bool // both are up to date
}

func (g *group) empty() bool { return len(g.calls) == 0 && len(g.said) == 0 }

// say adds something on the user's side. With joins it is put to what the same
// sender said directly before it, if that is not answered yet.
func (g *group) say(s saying, joins bool) {
	last := len(g.said) - 1
	if joins && last >= 0 && g.said[last].tag == s.tag {
		g.said[last] = g.said[last].join(s)
	} else {
		g.said = append(g.said, s)
	}
	g.fromUser, g.made = nil, false
}

// waitsFor reports whether the call is one of the group's and has no result yet.
// The first result of a call counts.
func (g *group) waitsFor(call string) bool {
	if _, ok := g.results[call]; ok {
		return false
	}
	return slices.ContainsFunc(g.calls, func(c record.ToolCall) bool { return c.ID == call })
}

// answer adds the result of a call.
func (g *group) answer(r providers.Result) {
	if g.results == nil {
		g.results = make(map[string]providers.Result, len(g.calls))
	}
	g.results[r.CallID] = r
	g.fromTools, g.made = nil, false
}

// end takes note of how the turn ended that the group belongs to.
func (g *group) end(t *record.TurnEnd) {
	switch t.Reason {
	case record.ReasonCanceled:
		if !g.canceled && len(g.results) < len(g.calls) {
			g.canceled = true
			g.fromTools, g.made = nil, false
		}
	case record.ReasonPoison:
		g.leaveOut(t.Items)
	}
}

// leaveOut takes back what given-up items said. Kept in the conversation, the
// same message would bring down the next turn, too.
func (g *group) leaveOut(items []string) {
	given := func(item string) bool { return slices.Contains(items, item) }
	for i, s := range g.said {
		if slices.ContainsFunc(s.items, given) {
			g.said[i] = alone(poisonText)
			g.fromUser, g.made = nil, false
		}
	}
}

const poisonText = `<system_message origin="system">A message was left out here: every attempt to work on it failed.</system_message>`

// messages makes what is not made yet, and gives at most one message of results
// and one of the user's side.
func (g *group) messages() []*providers.Message {
	if g.fromTools == nil && len(g.calls) > 0 {
		g.fromTools = g.makeResults()
	}
	if g.fromUser == nil && len(g.said) > 0 {
		g.fromUser = &providers.Message{Role: providers.User}
		for _, s := range g.said {
			g.fromUser.Parts = append(g.fromUser.Parts, s.parts()...)
		}
	}

	g.made = true
	out := make([]*providers.Message, 0, 2)
	for _, m := range []*providers.Message{g.fromTools, g.fromUser} {
		if m != nil {
			out = append(out, m)
		}
	}

	return out
}

// makeResults gives each call exactly one result, in the order of the calls.
func (g *group) makeResults() *providers.Message {
	m := &providers.Message{Role: providers.Results}
	for _, c := range g.calls {
		r, ok := g.results[c.ID]
		if !ok {
			r = missing(c, g.canceled)
		}
		r.Name, _ = c.Written() // every wire wants the name that was called
		m.Parts = append(m.Parts, r)
	}

	return m
}
