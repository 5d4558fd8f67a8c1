package chaos

import (
	"strings"
	"time"
)

// A turnOf is one turn as a history has it.
type turnOf struct {
	id, reason string // reason "": it has not ended
	begin, end time.Time
	messages   []line // of users, that are in it
	answers    []line // that were promised
	calls      int
	reported   bool // another agent spoke after the newest message
}

// newest is the newest message as the model sees it: those of one user that came right
// after each other are one.
func (t turnOf) newest() string {
	from := len(t.messages) - 1
	for from > 0 && t.messages[from].Joins {
		from--
	}
	var texts []string
	for _, m := range t.messages[from:] {
		texts = append(texts, m.Text)
	}

	return strings.Join(texts, "\n")
}

// turns cuts a history into its turns.
func (a *folder) turns() (all []turnOf) {
	var t *turnOf
	for _, l := range a.history {
		switch l.Type {
		case "turn_begin":
			if t == nil || t.id != l.Turn {
				all = append(all, turnOf{id: l.Turn, begin: l.At})
				t = &all[len(all)-1]
			}
		case "turn_end":
			if t != nil && t.id == l.Turn {
				t.reason, t.end = l.Reason, l.At
			}
			t = nil
		case "user_message":
			switch {
			case t == nil || l.Silent:
			case l.Origin != "":
				t.reported = true
			default:
				t.messages, t.reported = append(t.messages, l), false
			}
		case "assistant_message":
			if t != nil {
				t.calls += len(l.ToolCalls)
				if l.promise() != "" {
					t.answers = append(t.answers, l)
				}
			}
		}
	}

	return all
}
