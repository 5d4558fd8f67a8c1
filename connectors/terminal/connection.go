package terminal

import (
	"time"

	tea "charm.land/bubbletea/v2"

	"daycare/engine/event"
)

// freshest is how often the list of agents is read at most.
const freshest = 400 * time.Millisecond

// freshDue ends the pause before the list of agents is read again.
type freshDue struct{}

// A connection is the state of the link to the daemon.
type connection struct {
	up       bool
	was      bool // it was up before
	since    time.Time
	err      error
	listed   bool // the list of agents was read
	stale    bool // the snapshots are out of date
	reading  bool // they are being read
	readEach time.Duration
}

// outdate has the snapshots read again soon, however many ask for it.
func (n *connection) outdate() tea.Cmd {
	if n.stale {
		return nil
	}
	n.stale = true
	return tea.Tick(max(freshest, 5*n.readEach), func(time.Time) tea.Msg { return freshDue{} })
}

// take begins afresh: events were missed while there was no connection.
func (online) take(m *Model) tea.Cmd {
	m.conn = connection{up: true, was: true, since: m.screen.now}
	cmds := []tea.Cmd{m.call.agents(), m.call.asks(), m.call.status(), m.call.wakes(), m.call.icons(), m.call.commands()}
	for id, c := range m.talk.agents.all {
		if id == "" || !c.text.Loaded() || id == m.talk.agents.shown {
			continue
		}
		cmds = append(cmds, m.call.history(id, 0, newest))
	}
	if m.page == talkPage {
		m.link.follow(m.talk.agents.shown)
		if m.talk.agents.shown != "" {
			cmds = append(cmds, m.call.history(m.talk.agents.shown, 0, newest), m.call.inbox(m.talk.agents.shown),
				m.call.draft(m.talk.agents.shown))
		}
	}

	return tea.Batch(cmds...)
}

func (msg offline) take(m *Model) tea.Cmd {
	if m.conn.up {
		m.screen.flash = "" // the state of the connection is more urgent than what was said before
	}
	m.conn.up, m.conn.err = false, msg.err
	return nil
}

func (msg heardAll) take(m *Model) tea.Cmd {
	var cmds []tea.Cmd
	stale := false
	for _, e := range msg.events {
		old, call := m.world.event(e)
		stale = stale || old
		if call {
			cmds = append(cmds, m.call.asks(), tea.Raw("\a"))
		}
		if e.Type == event.PermissionDecided {
			cmds = append(cmds, nextApproval(m), m.call.asks())
		}
		if e.Type == event.ConfigReloaded {
			stale = true // agents that follow the settings have another model
			cmds = append(cmds, m.call.status())
		}
		if m.receiving.set() && (e.Type == event.TurnFinished || e.Type == event.PermissionRequested) && m.world.get(e.Agent) != nil {
			m.receiving = deadline{}
			cmds = append(cmds, m.show(e.Agent))
		}
	}
	if stale {
		cmds = append(cmds, m.conn.outdate())
	}

	return tea.Batch(cmds...)
}

func (freshDue) take(m *Model) tea.Cmd {
	if m.conn.reading {
		return tea.Tick(freshest, func(time.Time) tea.Msg { return freshDue{} })
	}
	m.conn.stale, m.conn.reading = false, true
	return m.call.agents()
}

// take takes over the list of agents.
func (msg agentsRead) take(m *Model) tea.Cmd {
	m.conn.reading, m.conn.readEach = false, msg.took
	if msg.err != nil {
		return nil
	}
	first := m.world.order == nil
	m.conn.listed = true
	m.world.read(msg.agents)
	if m.page == talkPage {
		m.world.looked(m.talk.agents.shown)
	}
	cmds := []tea.Cmd{m.arrive(first), offerSetup(m)}
	if m.page == homePage {
		cmds = append(cmds, m.home.wanted(m))
	}

	return tea.Batch(cmds...)
}
