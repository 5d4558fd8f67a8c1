package terminal

import (
	"context"
	"fmt"
	"time"

	tea "charm.land/bubbletea/v2"
)

// key takes a key: what is open over the page has it first, then what means the
// same everywhere, then the page.
func (m *Model) key(k tea.KeyPressMsg) tea.Cmd {
	name := k.String()
	if name == "ctrl+c" {
		return m.interrupt()
	}
	m.leaving = time.Time{}
	if name != "esc" {
		m.stopping = time.Time{}
	}
	if m.over != nil {
		if plain, ok := afterEscape(k); ok { // it closes what is open, and then is a key like any other
			m.over = nil
			return m.key(plain)
		}
		over := m.over
		done, cmd := over.key(m, k)
		if done && m.over == over {
			m.over = nil
		}
		return cmd
	}
	if name == "esc" && time.Since(m.emptied) < settling {
		return nil
	}
	if cmd, ok := m.anywhere(name); ok {
		return cmd
	}
	if m.page == homePage {
		return m.home.key(m, k)
	}

	return m.talk.key(m, k)
}

// afterEscape is the key of a user who typed on right after Esc: terminals tell
// the two as one, with Alt. Nothing that opens over a page has keys with Alt, and a
// letter there may be an answer.
func afterEscape(k tea.KeyPressMsg) (tea.KeyPressMsg, bool) {
	if k.Mod != tea.ModAlt || k.Code < ' ' || k.Code >= tea.KeyExtended {
		return k, false
	}
	return tea.KeyPressMsg{Code: k.Code, Text: string(k.Code)}, true
}

// anywhere are the keys that mean the same on every page.
func (m *Model) anywhere(name string) (tea.Cmd, bool) {
	switch name {
	case "ctrl+p":
		m.over = newPicker()
	case "ctrl+y":
		openApprovals(m, time.Time{})
	case "ctrl+g":
		return m.goHome(), true
	case "f1":
		m.over = &help{}
	case "f4":
		m.screen.mouse = !m.screen.mouse
		if m.screen.mouse {
			m.screen.say("the mouse scrolls and opens; Shift+drag selects text")
		} else {
			m.screen.say("the mouse selects text; F4 gives it back to daycare")
		}
	case "ctrl+l":
		return tea.ClearScreen, true
	case "ctrl+z":
		return tea.Suspend, true
	case "ctrl+r":
		return m.restart(), true
	case "ctrl+left", "alt+left", "alt+h":
		return m.turn(-1), true
	case "ctrl+right", "alt+right", "alt+l":
		return m.turn(1), true
	case "ctrl+up", "alt+k":
		return m.up(), true
	case "ctrl+down", "alt+j":
		return m.down(), true
	case "alt+1", "alt+2", "alt+3", "alt+4", "alt+5", "alt+6", "alt+7", "alt+8", "alt+9":
		return m.nth(int(name[len(name)-1] - '1')), true
	default:
		return nil, false
	}

	return nil, true
}

func (m *Model) goHome() tea.Cmd {
	m.talk.keepDraft()
	m.page, m.home.filter, m.home.asking = homePage, "", false
	if m.talk.agents.shown != "" {
		m.home.selected = m.talk.agents.shown
	}
	m.link.follow("")
	return m.home.wanted(m)
}

// turn goes along the ring.
func (m *Model) turn(n int) tea.Cmd {
	if m.page == homePage {
		return m.show(m.talk.agents.shown)
	}
	return m.show(m.ring.next(m.world, m.talk.agents.shown, n))
}

func (m *Model) up() tea.Cmd {
	if a := m.world.get(m.talk.agents.shown); a != nil && m.world.get(a.ParentAgentID) != nil {
		return m.show(a.ParentAgentID)
	}
	return m.goHome()
}

func (m *Model) down() tea.Cmd {
	if id, ok := m.talk.agents.current().text.View.ChosenChild(m.talk.frame(m)); ok && m.page == talkPage && m.world.get(id) != nil {
		return m.show(id)
	}
	children := m.world.children(m.talk.agents.shown)
	if len(children) == 0 {
		m.screen.say("it has no child agents")
		return nil
	}
	for _, c := range children {
		if c.rank() < idle {
			return m.show(c.ID)
		}
	}

	return m.show(children[0].ID)
}

// nth goes to one of the first nine of the ring, as the head line numbers them.
func (m *Model) nth(i int) tea.Cmd {
	ids := m.ring.list(m.world, m.talk.agents.shown)
	if i >= len(ids) {
		m.screen.say(fmt.Sprintf("there is no agent %d in the row above", i+1))
		return nil
	}

	return m.show(ids[i])
}

// interrupt is Ctrl-C: it clears what is typed, then it leaves, asked twice.
func (m *Model) interrupt() tea.Cmd {
	switch {
	case m.over != nil:
		m.over = nil
	case m.page == talkPage && !m.talk.input.empty():
		m.talk.input.set("")
	case m.screen.now.Sub(m.leaving) < again && !m.leaving.IsZero():
		return tea.Quit
	default:
		m.leaving = m.screen.now
		m.screen.say("press Ctrl+C again to leave; the agents continue")
	}

	return nil
}

// farewell is the text in the shell after leaving.
func (w *world) farewell() string {
	at := ""
	if n := w.count(working); n > 0 {
		at = count(n, "agent") + " at work. "
	}

	return at + "Come back with: daycare   stop everything with: daycare stop\n"
}

// restart starts the daemon when it is gone.
func (m *Model) restart() tea.Cmd {
	if m.conn.up || m.opts.Start == nil {
		return nil
	}
	m.screen.say("starting daycare…")
	start := m.opts.Start
	return m.background(func(ctx context.Context) tea.Msg {
		if err := start(ctx); err != nil {
			return failed{"start", err}
		}
		return did{"daycare was started"}
	})
}

func paste(m *Model, msg tea.PasteMsg) tea.Cmd {
	if w, ok := m.over.(*wizard); ok {
		w.paste(msg.Content)
	}
	if m.over != nil || m.page != talkPage {
		return nil
	}

	return m.talk.input.paste(msg.Content)
}

// wheelLines is how far one notch of the wheel goes.
const wheelLines = 3

func wheel(m *Model, msg tea.MouseWheelMsg) tea.Cmd {
	n := wheelLines
	if msg.Button == tea.MouseWheelUp {
		n = -n
	}
	switch {
	case m.over != nil:
		return nil
	case m.page == homePage:
		m.home.move(m.world, n/wheelLines)
		return nil
	}

	return m.talk.scroll(m, n)
}

func click(m *Model, msg tea.MouseClickMsg) tea.Cmd {
	if m.over != nil || msg.Button != tea.MouseLeft {
		return nil
	}
	if m.page == homePage {
		rows := m.home.rows(m.world)
		i := msg.Y - 2 + m.home.top // below the head line and the titles
		if i < 0 || i >= len(rows) || rows[i].agent == nil {
			return nil
		}
		if id := rows[i].agent.ID; id != m.home.selected {
			m.home.selected = id
			return nil
		}
		return m.show(m.home.selected)
	}
	if msg.X >= m.screen.talkWidth() {
		if rows := sideOf(m, m.screen.height-3); msg.Y > 0 && msg.Y <= len(rows) && rows[msg.Y-1].agent != "" {
			return m.show(rows[msg.Y-1].agent)
		}
		return nil
	}
	m.talk.agents.current().text.View.ToggleAt(msg.Y-m.talk.textTop(m), m.talk.frame(m))
	return nil
}
