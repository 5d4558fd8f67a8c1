package terminal

import (
	"context"
	"fmt"
	"strings"

	tea "charm.land/bubbletea/v2"

	"daycare/connectors/terminal/markdown"
	"daycare/engine/control"
	"daycare/engine/event"
)

// spawnHere goes to a new agent: it is made when the first message is sent, unless
// there is none yet; then the user's own agent is created.
func spawnHere(m *Model) string {
	m.talk.input.set("/spawn ")
	m.talk.agents.current().draft = "/spawn "
	return m.talk.agents.shown
}

func spawnCommand(m *Model, prompt string) tea.Cmd {
	m.screen.say("starting an agent…")
	return m.call.create(control.NewAgent{Type: "user", Name: nameFor(prompt), Prompt: prompt, Spawned: true})
}

// nameFor is a name out of the first words of a prompt.
func nameFor(prompt string) string {
	words := strings.Fields(markdown.Clean(prompt))
	return markdown.OneLine(strings.Join(words[:min(4, len(words))], " "), 28)
}

func (msg created) take(m *Model) tea.Cmd {
	if msg.err != nil {
		m.screen.fail("spawn", msg.err)
		return nil
	}
	list := []event.Agent{msg.agent}
	for _, a := range m.world.order {
		if a.ID != msg.agent.ID {
			list = append(list, a.Agent)
		}
	}
	m.world.read(list)
	m.screen.flash = ""
	return tea.Batch(m.show(msg.agent.ID), m.conn.outdate())
}

func sendCommand(m *Model, arg string) tea.Cmd {
	ref, text, _ := strings.Cut(arg, " ")
	if strings.TrimSpace(text) == "" {
		m.screen.say("like this: /send 0/1 the text")
		return nil
	}
	a, ok := m.target(ref)
	if !ok {
		return nil
	}
	return m.call.order("send to "+ref, "sent to "+m.world.name(a.ID), func(ctx context.Context, api *control.Client) error {
		_, err := api.Send(ctx, a.ID, m.opts.Own(control.Message{Text: strings.TrimSpace(text)}))
		return err
	})
}

func stopCommand(m *Model, ref string) tea.Cmd {
	if a, ok := m.target(ref); ok {
		return m.call.stop(a.ID)
	}
	return nil
}

// killCommand asks when someone of the family works.
func killCommand(m *Model, ref string) tea.Cmd {
	a, ok := m.target(ref)
	if !ok {
		return nil
	}
	busy := 0
	for _, x := range append(m.world.family(a.ID), a) {
		if x.rank() == working {
			busy++
		}
	}
	kill := m.call(func(ctx context.Context, api *control.Client) tea.Msg {
		if err := api.Kill(ctx, a.ID); err != nil {
			return failed{"kill " + ref, err}
		}
		return killed{a.ID}
	})
	if busy == 0 {
		return kill
	}
	m.over = &confirm{question: fmt.Sprintf("End %s? %d of its family at work, which would be lost.", m.world.name(a.ID), busy), yes: kill}
	return nil
}

// killed: an agent was ended. Who looked at it, or at one of its own, is taken to
// the agent visited before.
type killed struct{ agent string }

func (msg killed) take(m *Model) tea.Cmd {
	m.screen.say(m.world.name(msg.agent) + " was ended")
	lost := map[string]bool{msg.agent: true}
	for _, x := range m.world.family(msg.agent) {
		lost[x.ID] = true
	}
	for id := range lost {
		if a := m.world.get(id); a != nil {
			a.State, a.asks = event.Ended, false
		}
	}
	cmds := []tea.Cmd{m.call.agents(), m.call.asks()}
	if m.page == talkPage && lost[m.talk.agents.shown] {
		cmds = append(cmds, m.show(m.ring.before(m.world, m.talk.agents.shown)))
	}
	for id := range lost {
		m.ring.forget(id)
		delete(m.talk.agents.all, id)
	}

	return tea.Batch(cmds...)
}

// family are all agents below one.
func (w *world) family(id string) []*agent {
	var list []*agent
	for _, c := range w.children(id) {
		list = append(append(list, c), w.family(c.ID)...)
	}

	return list
}

// forkCommand continues beside an agent from where it is now.
func forkCommand(m *Model, name string) tea.Cmd {
	a, ok := m.target("")
	if !ok {
		return nil
	}
	return m.call(func(ctx context.Context, api *control.Client) tea.Msg {
		made, err := api.Folders().Fork(ctx, a.ID, 0, name)
		return created{made, err}
	})
}

// reapCommand ends the agents of this one that have nothing left to do.
func reapCommand(m *Model, _ string) tea.Cmd {
	a, ok := m.target("")
	if !ok {
		return nil
	}
	var done []*agent
	for _, c := range m.world.children(a.ID) {
		if r := c.rank(); c.Type == "subagent" && (r == idle || r == unread) && c.Queued == 0 {
			done = append(done, c)
		}
	}
	if len(done) == 0 {
		m.screen.say("none of its agents is done")
		return nil
	}
	var kills []tea.Cmd
	for _, c := range done {
		kills = append(kills, m.call(func(ctx context.Context, api *control.Client) tea.Msg {
			if err := api.Kill(ctx, c.ID); err != nil {
				return failed{"end " + c.Handle, err}
			}
			return killed{c.ID}
		}))
	}
	m.over = &confirm{question: "End " + count(len(done), "agent") + " of " + m.world.name(a.ID) +
		" with nothing left to do?", yes: tea.Sequence(kills...)}
	return nil
}
