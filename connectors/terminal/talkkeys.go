package terminal

import (
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"

	"daycare/engine/event"
)

// key is a key on the page of a conversation.
func (p *talk) key(m *Model, k tea.KeyPressMsg) tea.Cmd {
	in := &p.input
	if in.menu.open() && in.menu.key(m, k.String()) {
		return nil
	}
	c := p.agents.current()
	if cmd, ok := readingKey(p, m, c, k.String()); ok {
		return cmd
	}

	switch k.String() {
	case "enter":
		if c.text.View.Chosen() && in.empty() {
			c.text.View.Toggle()
			return nil
		}
		return p.submit(m, false)
	case "tab":
		return p.sendLater(m)
	case "alt+up":
		return p.takeBack(m)
	case "esc":
		return p.escape(m, c)
	case "ctrl+q":
		openQueue(m)
		return nil
	case "ctrl+o":
		cmd, err := p.input.edit()
		if err != nil {
			m.screen.fail("open the editor", err)
		}
		return cmd
	case "up":
		if in.older() {
			return nil
		}
	case "down":
		if in.newer() {
			return nil
		}
	case "?":
		if in.empty() {
			m.over = &help{}
			return nil
		}
	}
	cmd := in.update(k)
	in.menu.suggest(m, in.shown())
	if in.shown() == "/" {
		cmd = tea.Batch(cmd, m.call.commands()) // one may have been written just now
	}

	return cmd
}

// readingKey is a key that shows another part of the conversation; false: it is not one.
func readingKey(p *talk, m *Model, c *conversation, key string) (tea.Cmd, bool) {
	switch key {
	case "pgup", "shift+pgup":
		return p.scroll(m, -(p.bodyHeight(m) - 2)), true
	case "pgdown", "shift+pgdown":
		return p.scroll(m, p.bodyHeight(m)-2), true
	case "ctrl+home":
		return p.scroll(m, -1<<20), true
	case "ctrl+end":
		c.text.View.Follow()
	case "shift+up":
		c.text.View.Choose(-1, p.frame(m))
	case "shift+down":
		c.text.View.Choose(1, p.frame(m))
	case "ctrl+t":
		c.text.View.ToggleAll()
	default:
		return nil, false
	}

	return nil, true
}

// sendLater sends what is typed when the agent is done. A mention that names no file is
// only begun, and with an idle agent there is nothing to wait for.
func (p *talk) sendLater(m *Model) tea.Cmd {
	in := &p.input
	switch mention := halfMention(m.opts.Workspace, in.shown()); {
	case in.empty():
	case mention != "":
		m.screen.say("no file fits " + mention + "; Enter sends it as it is")
	case !p.agents.current().busy(m):
		m.screen.say("Enter sends; Tab is for agents at work: it sends when they are done")
	default:
		return p.submit(m, true)
	}

	return nil
}

// escape interrupts the turn; where work would be lost, only the second time.
func (p *talk) escape(m *Model, c *conversation) tea.Cmd {
	if c.text.View.Chosen() {
		c.text.View.Unchoose()
		return nil
	}
	if !c.text.View.Following() {
		c.text.View.Follow()
		return nil
	}
	a := m.world.get(c.agent)
	if a == nil || !c.busy(m) || a.State == event.WaitingPermission {
		return nil
	}
	if a.State == event.UsingTool && (m.stopping.IsZero() || m.screen.now.Sub(m.stopping) > again) {
		m.stopping = m.screen.now
		m.screen.say("Esc again stops " + strings.SplitN(a.Detail, " ", 2)[0] + ", which is under way")
		return nil
	}
	m.stopping = time.Time{}
	return m.call.stop(c.agent)
}

// scroll moves the text, and asks for older pages at its top.
func (p *talk) scroll(m *Model, n int) tea.Cmd {
	c := p.agents.current()
	if !c.text.View.Scroll(n, p.frame(m)) || c.paging {
		return nil
	}
	seq, more := c.text.Older()
	if !more {
		return nil
	}
	c.paging = true
	return m.call.history(c.agent, seq, before)
}
