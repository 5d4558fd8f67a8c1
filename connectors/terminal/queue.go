package terminal

import (
	"context"
	"fmt"

	tea "charm.land/bubbletea/v2"

	"daycare/connectors/terminal/markdown"
	"daycare/engine/control"
)

// A queue is what waits in the inbox of one agent.
type queue struct{ at int }

func openQueue(m *Model) {
	if _, ok := m.target(""); !ok {
		return
	}
	if len(m.talk.agents.current().inbox) == 0 {
		m.screen.say("no queued items")
		return
	}
	m.over = &queue{}
}

func (q *queue) key(m *Model, k tea.KeyPressMsg) (bool, tea.Cmd) {
	c := m.talk.agents.current()
	n := len(c.inbox)
	if n == 0 {
		return true, nil
	}
	q.at = min(q.at, n-1)
	w := c.inbox[q.at]
	switch k.String() {
	case "esc", "q", "ctrl+q":
		return true, nil
	case "up", "k":
		q.at = max(0, q.at-1)
	case "down", "j":
		q.at = min(n-1, q.at+1)
	case "d", "delete", "backspace":
		return n == 1, m.call.ofInbox(c, "drop", "dropped", func(ctx context.Context, api *control.Client) error {
			return api.Drop(ctx, c.agent, w.ID)
		})
	case "f":
		q.at = 0
		return false, m.call.ofInbox(c, "move to the front", "it is the first now", func(ctx context.Context, api *control.Client) error {
			return api.Front(ctx, c.agent, w.ID)
		})
	case "e", "enter":
		return true, m.talk.unsend(m, c.agent, w)
	}

	return false, nil
}

// ofInbox does something with what waits, and looks at it again.
func (call caller) ofInbox(c *conversation, what, done string, f func(context.Context, *control.Client) error) tea.Cmd {
	return tea.Sequence(call.order(what, done, f), call.inbox(c.agent))
}

func (q *queue) help(*Model) string {
	return "e edit (takes it back) · d drop · f to the front · ↑↓ choose · Esc closes"
}

func (q *queue) lines(m *Model, width, height int) []string {
	t := m.screen.theme
	c := m.talk.agents.current()
	out := []string{t.Bold.Render(fmt.Sprintf(" Queued for %s", m.world.name(c.agent)))}
	q.at = max(0, min(q.at, len(c.inbox)-1))
	for i := max(0, q.at-(height-3)); i < len(c.inbox) && len(out) < height; i++ {
		line := cell(m.screen.age(&c.inbox[i].At), 5) + " " + cell(m.world.kindOf(c.agent, c.inbox[i]), 23) + " " +
			markdown.OneLine(c.inbox[i].Text, width)
		if i == q.at {
			out = append(out, t.Selected.Render(cell(" ▌ "+line, width)))
			continue
		}
		out = append(out, cell("   "+line, width))
	}

	return out
}
