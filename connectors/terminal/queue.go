package terminal

import (
	"context"
	"fmt"

	tea "charm.land/bubbletea/v2"

	"daycare/connectors/terminal/markdown"
	"daycare/engine/control"
	"daycare/engine/event"
)

// A queue is what waits for one agent: first what is in its inbox, which the daemon
// keeps, then what is held here until the agent is done.
type queue struct{ at int }

func (m *Model) openQueue() {
	c := m.talk.current()
	if len(c.inbox)+len(c.held) == 0 {
		m.say1("nothing waits")
		return
	}
	m.over = &queue{}
}

// item is the one under the cursor: a waiting one, or the i-th held.
func (q *queue) item(c *conversation) (w *event.Waiting, held int) {
	if q.at < len(c.inbox) {
		return &c.inbox[q.at], -1
	}
	return nil, q.at - len(c.inbox)
}

func (q *queue) key(m *Model, k tea.KeyPressMsg) (bool, tea.Cmd) {
	c := m.talk.current()
	n := len(c.inbox) + len(c.held)
	if n == 0 {
		return true, nil
	}
	q.at = min(q.at, n-1)
	w, held := q.item(c)
	var cmd tea.Cmd
	switch k.String() {
	case "esc", "q", "ctrl+q":
		return true, nil
	case "up", "k":
		q.at = max(0, q.at-1)
	case "down", "j":
		q.at = min(n-1, q.at+1)
	case "d", "delete", "backspace":
		cmd = q.drop(m, c, w, held)
	case "f":
		cmd = q.front(m, c, w, held)
	case "e", "enter":
		if w != nil {
			return true, m.unsend(c.agent, *w)
		}
		m.putBack(c.held[held])
		c.held = append(c.held[:held:held], c.held[held+1:]...)
		return true, nil
	}
	return len(c.inbox)+len(c.held) == 0, cmd
}

func (q *queue) drop(m *Model, c *conversation, w *event.Waiting, held int) tea.Cmd {
	if w == nil {
		c.held = append(c.held[:held:held], c.held[held+1:]...)
		return nil
	}
	id := w.ID
	return tea.Sequence(m.call.order("drop", "dropped", func(ctx context.Context, api *control.Client) error {
		return api.Drop(ctx, c.agent, id)
	}), m.call.inbox(c.agent))
}

// front moves an item before all others; of what is held, before what is held.
func (q *queue) front(m *Model, c *conversation, w *event.Waiting, held int) tea.Cmd {
	if w == nil {
		text := c.held[held]
		rest := append(c.held[:held:held], c.held[held+1:]...)
		c.held = append([]string{text}, rest...)
		q.at = len(c.inbox)
		return nil
	}
	id := w.ID
	q.at = 0
	return tea.Sequence(m.call.order("move to the front", "it is the first now", func(ctx context.Context, api *control.Client) error {
		return api.Front(ctx, c.agent, id)
	}), m.call.inbox(c.agent))
}

func (q *queue) help(*Model) string {
	return "e edit (takes it back) · d drop · f to the front · ↑↓ choose · Esc closes"
}

func (q *queue) lines(m *Model, width, height int) []string {
	t := m.screen.theme
	c := m.talk.current()
	out := []string{t.Bold.Render(fmt.Sprintf(" What waits for %s", m.world.name(c.agent)))}
	n := len(c.inbox) + len(c.held)
	q.at = max(0, min(q.at, n-1))
	first := max(0, q.at-(height-3))
	for i := first; i < n && len(out) < height; i++ {
		text, how := "", "held here"
		if i < len(c.inbox) {
			text, how = c.inbox[i].Text, m.age(&c.inbox[i].At)
			if k := c.inbox[i].Type; k != "message" {
				text = k + " " + text
			}
		} else {
			text = c.held[i-len(c.inbox)]
		}
		line := cell(how, 10) + " " + markdown.OneLine(text, width)
		if i == q.at {
			out = append(out, t.Selected.Render(cell(" ▌ "+line, width)))
			continue
		}
		out = append(out, cell("   "+line, width))
	}
	return out
}
