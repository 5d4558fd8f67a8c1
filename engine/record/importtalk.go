package record

import (
	"time"

	"daycare/engine/disk"
)

// A Said is one message of a conversation stored by another program.
type Said struct {
	At    time.Time // zero: unknown
	Agent bool      // said by the agent; false: by its user
	Text  string
}

// Retell writes a conversation of another program as the history of a new agent, which owes
// nothing. summary stands for what was said before ("": nothing). session is the id of the new
// session.
func Retell(session, summary string, said []Said, now time.Time) Cut {
	begin := now
	if len(said) > 0 && !said[0].At.IsZero() {
		begin = said[0].At
	}
	c := cutter{cut: Cut{Session: Session{ID: session}}}
	c.write(begin, &Start{Session: session, V: Version})
	if summary != "" {
		c.summary(&Entry{At: begin, Rec: &Summary{Text: summary}})
	}

	c.write(begin, &TurnBegin{Turn: retold, Items: []string{}, Attempt: 1})
	at := begin
	for _, s := range said {
		if !s.At.IsZero() {
			at = s.At
		}
		e := &Entry{At: at, Rec: &User{Text: s.Text}}
		if s.Agent {
			e.Rec = &Assistant{Turn: retold, Text: s.Text, Finish: FinishEndTurn}
		}
		c.entry(e)
	}

	c.write(now, &TurnEnd{Turn: retold, Session: session, Reason: ReasonDone})
	c.cut.Session.First, c.cut.Session.StartedAt, c.cut.Session.UpdatedAt = 1, disk.StampOf(begin), disk.StampOf(now)
	c.cut.At = c.cut.Last
	return c.cut
}

// retold is the one turn that Retell writes.
const retold = "import"
