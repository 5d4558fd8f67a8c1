package terminal

import tea "charm.land/bubbletea/v2"

// An answer is a message of the link or of the API: it knows what it changes.
type answer interface {
	take(m *Model) tea.Cmd
}

func (msg heardOne) take(m *Model) tea.Cmd { return m.talk.agents.heard(m, msg) }

func (msg fetchDue) take(m *Model) tea.Cmd { return m.talk.agents.fetch(m, msg.agent) }

func (msg historyRead) take(m *Model) tea.Cmd { return m.talk.agents.takePage(m, msg) }

func (msg inboxRead) take(m *Model) tea.Cmd {
	m.talk.agents.takeInbox(msg)
	return nil
}

func (msg draftRead) take(m *Model) tea.Cmd {
	m.talk.agents.get(msg.agent).text.Draft(msg.draft, m.screen.now)
	return nil
}

func (msg saidRead) take(m *Model) tea.Cmd {
	m.world.said(msg)
	return nil
}

func (msg sent) take(m *Model) tea.Cmd { return m.talk.takeSent(m, msg) }

func (msg tookBack) take(m *Model) tea.Cmd {
	m.talk.putBack(msg.text)
	return m.call.inbox(msg.agent)
}

func (msg asksRead) take(m *Model) tea.Cmd {
	m.world.ask(msg.asks)
	return nextApproval(m)
}

func (msg statusRead) take(m *Model) tea.Cmd {
	m.world.status = msg.status
	return tea.Batch(readMissed(m), offerSetup(m))
}

func (msg iconsRead) take(m *Model) tea.Cmd {
	m.world.icons = msg.icons
	return nil
}

func (msg commandsRead) take(m *Model) tea.Cmd {
	m.world.commands = msg.list
	return nil
}

func (msg wakesRead) take(m *Model) tea.Cmd {
	m.world.wakes = msg.at
	return nil
}

func (msg panelRead) take(m *Model) tea.Cmd {
	m.over = &panel{title: msg.title, text: msg.lines}
	return nil
}

func (msg chooserRead) take(m *Model) tea.Cmd {
	m.over = msg.chooser
	return nil
}

func (msg did) take(m *Model) tea.Cmd {
	m.screen.say(msg.what)
	return tea.Batch(m.conn.outdate(), m.talk.agents.soon(m, m.talk.agents.shown))
}

func (msg failed) take(m *Model) tea.Cmd {
	m.screen.fail(msg.what, msg.err)
	return nil
}
