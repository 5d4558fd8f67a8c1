package chaos

import "strings"

// effects: no call had an effect twice, nor one of which history does not say that
// it began.
func (c *checker) effects(v view) {
	started := map[string]bool{}
	for _, a := range v.agents {
		for _, l := range a.history {
			if l.Type == "tool_started" {
				started[l.ToolCallID] = true
			}
		}
	}

	calls, keys := map[string]int{}, map[string]int{}
	for _, e := range v.effects {
		calls[e.call]++
		if e.key != approvedKey { // a user may allow it twice; see usedRights
			keys[e.key]++
		}
		if !started[e.call] && !c.anyRemoved(v) {
			c.play.result.violate("unrecorded: call %s had an effect and history does not say that it began", e.call)
		}
	}

	for _, counts := range []map[string]int{calls, keys} {
		for what, n := range counts {
			if n > 1 {
				c.play.result.Repeated++
				c.play.result.violate("repeated: the effect of %s came %d times", what, n)
			}
		}
	}
}

// results: what the record of a call says came of it is what came of it.
func (c *checker) results(v view) {
	happened := map[string]bool{}
	for _, e := range v.effects {
		happened[e.call] = true
	}

	for _, a := range v.agents {
		calls := map[string]toolCall{}
		for _, l := range a.history {
			for _, call := range l.ToolCalls {
				calls[call.ID] = call
			}
			call, known := calls[l.ToolCallID]
			if l.Type != "tool_result" || l.Status != "ok" || !known {
				continue
			}
			if call.Name != l.Name {
				c.violate("wrong contents: the result of call %s is of %s, and %s was called", call.ID, l.Name, call.Name)
			}
			if strings.Contains(call.Arguments.Command, c.play.user.effects) && !happened[call.ID] {
				c.violate("never came: call %s is recorded as ok and had no effect", call.ID)
			}
			if want := shows(call); !strings.Contains(l.Output.Text, want) {
				c.violate("wrong contents: the result of call %s of %s is %.60q, without %q", call.ID, call.Name, l.Output.Text, want)
			}
		}
	}
}

// shows is a part of what a call must show.
func shows(call toolCall) string {
	switch {
	case call.Name == "read" && call.Arguments.Path == "README.md":
		return "# Read me"
	case call.Name == "glob", call.Name == "ls":
		return "README.md"
	}

	return ""
}
