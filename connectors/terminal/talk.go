package terminal

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"

	"daycare/connectors/terminal/transcript"
	"daycare/engine/control"
	"daycare/engine/event"
	"daycare/engine/message"
)

// A talk is the page of conversations: each agent's is kept as it was left, one of
// them is shown.
type talk struct {
	agents conversations
	input  input
	keys   messageKeys
}

// messageKeys name the messages that are sent.
type messageKeys struct {
	boot string // of this process
	sent int
}

// conversations are those of all agents.
type conversations struct {
	all      map[string]*conversation // by agent; "": the user's own, not made yet
	shown    string
	own      string            // the user's own agent, once it is known
	children map[string]string // call to the id of the agent that it starts, if it does
}

// A conversation is what one agent's page keeps while another is shown.
type conversation struct {
	agent string
	text  *transcript.Transcript
	draft string // packed
	inbox []event.Waiting

	due     transcript.Needs // what is to be asked for, once it has calmed down
	waiting bool             // a calming pause is in progress
	paging  bool             // an older page is on its way
}

// calm is how long events may continue before what they call for is asked for.
const calm = 60 * time.Millisecond

// fetchDue ends the pause of a conversation.
type fetchDue struct{ agent string }

func newTalk(typed []string) talk {
	return talk{agents: conversations{all: map[string]*conversation{}, children: map[string]string{}}, input: newInput(typed),
		keys: messageKeys{boot: fmt.Sprintf("tui:%x", time.Now().UnixNano())}}
}

func (a *conversations) get(id string) *conversation {
	c := a.all[id]
	if c == nil {
		c = &conversation{agent: id, text: transcript.New()}
		a.all[id] = c
	}

	return c
}

func (a *conversations) current() *conversation { return a.get(a.shown) }

func (p *talk) keepDraft() { p.agents.current().draft = p.input.value() }

// next is what a message is known by until it has an item. It is new in every
// process, so that no message is ever taken for an older one.
func (k *messageKeys) next() string {
	k.sent++
	return fmt.Sprintf("%s:%d", k.boot, k.sent)
}

// show turns to another agent: its draft, its place in the text, its events.
func (m *Model) show(id string) tea.Cmd {
	if id == "" {
		id = m.talk.agents.own
	}
	m.talk.keepDraft()
	m.page, m.talk.agents.shown, m.over = talkPage, id, nil
	m.ring.visit(id)
	m.world.looked(id)
	c := m.talk.agents.current()
	m.talk.input.restore(c.draft)
	m.link.follow(id)
	if id == "" {
		return nil
	}
	kind := newest
	if !c.text.Loaded() {
		kind = afresh
	}

	return tea.Batch(m.call.history(id, 0, kind), m.call.inbox(id), m.call.draft(id))
}

// heard takes events of the agent that is followed.
func (a *conversations) heard(m *Model, msg heardOne) tea.Cmd {
	c := a.get(msg.agent)
	for _, e := range msg.events {
		n := c.text.Event(e)
		c.due.History = c.due.History || n.History
		c.due.Reload = c.due.Reload || n.Reload
		c.due.Inbox = c.due.Inbox || n.Inbox
		c.due.Draft = c.due.Draft || n.Draft
	}
	if c.waiting || c.due == (transcript.Needs{}) {
		return nil
	}
	c.waiting = true
	return tea.Tick(calm, func(time.Time) tea.Msg { return fetchDue{c.agent} })
}

// soon looks at the conversation again: what was asked of the agent may leave a
// record that no event reports.
func (a *conversations) soon(m *Model, agent string) tea.Cmd {
	c := a.get(agent)
	if agent == "" || m.page != talkPage {
		return nil
	}
	c.due.History, c.due.Inbox = true, true
	return tea.Tick(5*calm, func(time.Time) tea.Msg { return fetchDue{agent} })
}

// fetch asks for what is due.
func (a *conversations) fetch(m *Model, agent string) tea.Cmd {
	c := a.get(agent)
	due := c.due
	c.due, c.waiting = transcript.Needs{}, false
	var cmds []tea.Cmd
	switch {
	case due.Reload:
		cmds = append(cmds, m.call.history(agent, 0, afresh))
	case due.History:
		cmds = append(cmds, m.call.history(agent, 0, newest))
	}
	if due.Inbox {
		cmds = append(cmds, m.call.inbox(agent))
	}
	if due.Draft {
		cmds = append(cmds, m.call.draft(agent))
	}

	return tea.Batch(cmds...)
}

// page takes a page of history.
func (a *conversations) takePage(m *Model, msg historyRead) tea.Cmd {
	c := a.get(msg.agent)
	switch {
	case msg.err != nil:
		c.paging = false
		return nil // the connection is being made again, and then it is asked for again
	case msg.kind == before:
		c.paging = false
		c.text.Prepend(msg.page)
	case msg.kind == afresh:
		c.text.Replace(msg.page)
	default:
		c.text.Merge(msg.page)
	}
	if msg.agent == a.shown && m.page == talkPage {
		m.world.looked(msg.agent)
	}

	return nil
}

func (a *conversations) takeInbox(msg inboxRead) {
	c := a.get(msg.agent)
	c.inbox = slices.DeleteFunc(msg.items, func(w event.Waiting) bool { return w.State == "taken" })
	for _, w := range c.inbox { // what waits is shown in the queue
		c.text.Unsent(w.ID)
	}
}

// say sends a message to an agent and shows it at once.
// An agent that works takes it as queue says; "": in its own way, which is at its next
// step unless someone has chosen another.
func (p *talk) say(m *Model, c *conversation, text string, queue message.Queue) tea.Cmd {
	key := p.keys.next()
	c.text.Sending(key, text, m.screen.now)
	c.text.View.Follow()
	return m.call.send(c.agent, key, m.opts.Own(control.Message{Text: text, Queue: queue}))
}

// takeSent notes the item of a message, or gives the text back.
func (p *talk) takeSent(m *Model, msg sent) tea.Cmd {
	c := p.agents.get(msg.agent)
	if msg.err != nil {
		text := c.text.Unsent(msg.key)
		if msg.agent == p.agents.shown && p.input.empty() {
			p.input.set(text)
		} else if c.draft == "" {
			c.draft = packedAs(text)
		}
		m.screen.fail("not sent", msg.err)
		return nil
	}
	if msg.agent == "" && msg.receipt.Agent != "" {
		return tea.Batch(p.agents.born(m, msg.receipt.Agent, msg), m.call.agents())
	}
	c.text.Sent(msg.key, msg.receipt.Item)
	return tea.Batch(m.call.inbox(msg.agent), m.call.history(msg.agent, 0, newest))
}

// born: the first message has made the user's own agent.
func (a *conversations) born(m *Model, id string, msg sent) tea.Cmd {
	c := a.get("")
	delete(a.all, "")
	c.agent = id
	a.all[id] = c
	a.own = id
	c.text.Sent(msg.key, msg.receipt.Item)
	m.ring.forget("")
	if a.shown == "" {
		a.shown = id
		m.ring.visit(id)
		m.link.follow(id)
	}

	return tea.Batch(m.call.history(id, 0, newest), m.call.inbox(id), m.call.draft(id))
}

// submit is Enter: a command, a shell command or a message. later is Tab: behind
// what the agent does.
func (p *talk) submit(m *Model, later bool) tea.Cmd {
	typed := strings.TrimSpace(p.input.value()) // packed, so that a paste keeps its own spaces
	if typed == "" {
		return nil
	}
	c := p.agents.current()
	m.memory.addTyped(typed)
	p.input.sent(typed)
	text := whole(typed)
	switch { // a paste is not a command, whatever it begins with
	case isCommand(typed):
		return m.command(text)
	case strings.HasPrefix(typed, "!"):
		command := strings.TrimSpace(strings.TrimPrefix(text, "!"))
		if command == "" {
			m.screen.say("like this: !git status")
			return nil
		}
		m.screen.say("running " + command)
		return m.background.shell(m.opts.Workspace, p.agents.shown, command)
	case later:
		return p.say(m, c, text, message.Followup)
	}

	return p.say(m, c, text, "")
}

func (c *conversation) busy(m *Model) bool {
	a := m.world.get(c.agent)
	return c.text.Turn().ID != "" || a != nil && (a.rank() == working || a.State == event.WaitingPermission)
}

// takeBack puts the last message that waits into the input.
func (p *talk) takeBack(m *Model) tea.Cmd {
	c := p.agents.current()
	for _, w := range slices.Backward(c.inbox) {
		if takesBack(w) {
			return p.unsend(m, c.agent, w)
		}
	}
	m.screen.say("no queued items")
	return nil
}

// takesBack reports whether Alt+↑ may take back what waits: what a user wrote.
func takesBack(w event.Waiting) bool { return w.Type == string(message.Text) }

// unsend drops an item and gives its text back.
func (p *talk) unsend(m *Model, agent string, w event.Waiting) tea.Cmd {
	return m.call(func(ctx context.Context, api *control.Client) tea.Msg {
		if err := api.Drop(ctx, agent, w.ID); err != nil {
			return failed{"take back", err}
		}
		return tookBack{agent, w.Text}
	})
}

// tookBack is a message that does not wait any more.
type tookBack struct{ agent, text string }

func (p *talk) putBack(text string) {
	packed := packedAs(text)
	if now := p.input.value(); now != "" {
		packed += "\n" + now
	}
	p.input.restore(packed)
}
