package terminal

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"

	"daycare/connectors/terminal/markdown"
	"daycare/engine/control"
	"daycare/engine/event"
	"daycare/engine/message"
)

// A command is what follows a slash.
type command struct {
	name, args, does string
	agents           bool // its first argument is an agent
	run              func(m *Model, arg string) tea.Cmd
}

// commands are all commands, in the order in which help shows them.
func commands() []command {
	return []command{
		{name: "spawn", args: "[PROMPT]", does: "start another agent and go there", run: (*Model).spawnCommand},
		{name: "agents", does: "all agents (Ctrl+G)", run: func(m *Model, _ string) tea.Cmd { return m.goHome() }},
		{name: "send", args: "AGENT TEXT", does: "write to another agent and stay here", agents: true, run: (*Model).sendCommand},
		{name: "receive", args: "[SECONDS]", does: "wait for the next answer or question of any agent, and go there", run: (*Model).receiveCommand},
		{name: "check", does: "what waits for you, without waiting", run: (*Model).checkCommand},
		{name: "stop", args: "[AGENT]", does: "cancel what the agent is doing", agents: true, run: (*Model).stopCommand},
		{name: "kill", args: "[AGENT]", does: "end an agent with the agents that work for it", agents: true, run: (*Model).killCommand},
		{name: "reset", does: "begin a new conversation; the files stay", run: (*Model).resetCommand},
		{name: "compact", does: "shorten the conversation to a summary", run: (*Model).compactCommand},
		{name: "context", does: "how full the model's context is", run: (*Model).contextCommand},
		{name: "permissions", does: "answer what agents ask (Ctrl+Y)", run: func(m *Model, _ string) tea.Cmd { m.openApprovals(); return nil }},
		{name: "queue", does: "what waits for this agent (Ctrl+Q)", run: func(m *Model, _ string) tea.Cmd { m.openQueue(); return nil }},
		{name: "cron", does: "the tasks that run by the clock", run: (*Model).cronCommand},
		{name: "tools", does: "what agents can do", run: (*Model).toolsCommand},
		{name: "status", does: "the daemon, its connectors and models", run: (*Model).statusCommand},
		{name: "help", does: "every key and command", run: func(m *Model, _ string) tea.Cmd { m.over = &help{}; return nil }},
		{name: "quit", does: "leave; the agents go on", run: func(m *Model, _ string) tea.Cmd { return m.leave() }},
	}
}

// isCommand: a slash and one word without another slash or a dot, so that a path
// can begin a message.
func isCommand(text string) bool {
	word, _, _ := strings.Cut(text, " ")
	return len(word) > 1 && word[0] == '/' && !strings.ContainsAny(word[1:], "/.\n")
}

// command runs what was typed.
func (m *Model) command(text string) tea.Cmd {
	name, arg, _ := strings.Cut(text[1:], " ")
	for _, c := range commands() {
		if c.name == name {
			return c.run(m, strings.TrimSpace(arg))
		}
	}
	m.flash, m.bad, m.flashed = "there is no /"+name+"; /help shows what there is", true, m.screen.now
	m.talk.input.set(text)
	return nil
}

// target is the agent that an argument names, "" the one that is shown.
func (m *Model) target(ref string) (*agent, bool) {
	if ref == "" {
		ref = m.talk.shown
	}
	for _, a := range m.world.order {
		if a.ID == ref || a.Handle == ref || strings.TrimSuffix(a.Handle, "/") == strings.TrimSuffix(ref, "/") || a.Name == ref || title(a) == ref {
			return a, true
		}
	}
	m.flash, m.bad, m.flashed = "there is no agent "+cmp.Or(ref, "yet"), true, m.screen.now
	return nil, false
}

// spawnHere goes to a new agent: it is made when the first message is sent, unless
// there is none yet, for which the person's own is made.
func (m *Model) spawnHere() string {
	m.talk.input.set("/spawn ")
	m.talk.current().draft = "/spawn "
	return m.talk.shown
}

func (m *Model) spawnCommand(prompt string) tea.Cmd {
	m.say1("starting an agent…")
	return m.call.create(control.NewAgent{Type: "user", Name: nameFor(prompt), Prompt: prompt})
}

// nameFor is a name out of the first words of a prompt.
func nameFor(prompt string) string {
	words := strings.Fields(markdown.Clean(prompt))
	return markdown.OneLine(strings.Join(words[:min(4, len(words))], " "), 28)
}

func (m *Model) takeCreated(msg created) tea.Cmd {
	if msg.err != nil {
		m.fail("spawn", msg.err)
		return nil
	}
	list := []event.Agent{msg.agent}
	for _, a := range m.world.order {
		if a.ID != msg.agent.ID {
			list = append(list, a.Agent)
		}
	}
	m.world.read(list)
	m.flash = ""
	return tea.Batch(m.show(msg.agent.ID), m.stale())
}

func (m *Model) sendCommand(arg string) tea.Cmd {
	ref, text, _ := strings.Cut(arg, " ")
	if strings.TrimSpace(text) == "" {
		m.say1("like this: /send 0/1 the text")
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

func (m *Model) stopCommand(ref string) tea.Cmd {
	if a, ok := m.target(ref); ok {
		return m.call.stop(a.ID)
	}
	return nil
}

// killCommand asks when somebody of the family works.
func (m *Model) killCommand(ref string) tea.Cmd {
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

func (m *Model) takeKilled(msg killed) tea.Cmd {
	m.say1(m.world.name(msg.agent) + " was ended")
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
	if m.page == talkPage && lost[m.talk.shown] {
		cmds = append(cmds, m.show(m.ring.before(m.world, m.talk.shown)))
	}
	for id := range lost {
		m.ring.forget(id)
		delete(m.talk.all, id)
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

func (m *Model) resetCommand(string) tea.Cmd {
	a, ok := m.target("")
	if !ok {
		return nil
	}
	return m.call.order("reset", "a new conversation begins", func(ctx context.Context, api *control.Client) error {
		_, err := api.Reset(ctx, a.ID)
		return err
	})
}

func (m *Model) compactCommand(string) tea.Cmd {
	a, ok := m.target("")
	if !ok {
		return nil
	}
	return m.call.order("compact", "it will shorten its conversation", func(ctx context.Context, api *control.Client) error {
		_, err := api.Compact(ctx, a.ID)
		return err
	})
}

func (m *Model) contextCommand(string) tea.Cmd {
	u := m.talk.current().text.Usage()
	if u.Context == 0 {
		m.say1("the model has not been asked anything in this conversation")
		return nil
	}
	m.say1(fmt.Sprintf("%s in the context of %s", thousands(u.Context), cmp.Or(u.Model, "the model")))
	return nil
}

// checkCommand says what waits, in one line.
func (m *Model) checkCommand(string) tea.Cmd {
	var parts []string
	if n := len(m.world.asks); n > 0 {
		parts = append(parts, fmt.Sprintf("%d to answer (Ctrl+Y)", n))
	}
	var news []string
	for _, a := range m.world.order {
		if a.rank() == unread || a.broke != "" {
			news = append(news, a.Handle)
		}
	}
	if len(news) > 0 {
		parts = append(parts, "something new from "+strings.Join(news, " "))
	}
	if n := m.world.count(working); n > 0 {
		parts = append(parts, fmt.Sprintf("%d at work", n))
	}
	if len(parts) == 0 {
		parts = []string{"nothing waits for you"}
	}
	m.say1(strings.Join(parts, " · "))
	return m.call.asks()
}

// receiveDefault is how long /receive waits without an argument.
const receiveDefault = 5 * time.Minute

func (m *Model) receiveCommand(arg string) tea.Cmd {
	wait := receiveDefault
	if arg != "" {
		d, err := time.ParseDuration(strings.TrimSuffix(arg, "s") + "s")
		if err != nil {
			d, err = time.ParseDuration(arg)
		}
		if err != nil || d <= 0 {
			m.say1("like this: /receive 60")
			return nil
		}
		wait = d
	}
	for _, a := range m.world.order {
		if a.ID != m.talk.shown && (a.rank() == unread || a.rank() == needsYou) {
			return m.show(a.ID)
		}
	}
	m.receiving = m.screen.now.Add(wait)
	m.say1("waiting for the next answer or question; any key but the arrows goes on typing")
	return nil
}

// watched goes where /receive waited for.
func (m *Model) watched(agent string, t event.Type) tea.Cmd {
	if m.receiving.IsZero() || t != event.TurnFinished && t != event.PermissionRequested {
		return nil
	}
	late := m.screen.now.After(m.receiving)
	m.receiving = time.Time{}
	if late || m.world.get(agent) == nil {
		return nil
	}
	return m.show(agent)
}

func (m *Model) cronCommand(string) tea.Cmd {
	return m.call(func(ctx context.Context, api *control.Client) tea.Msg {
		tasks, err := api.Tasks(ctx)
		if err != nil {
			return failed{"cron", err}
		}
		lines := []string{}
		for _, t := range tasks {
			next := "off"
			if len(t.Next) > 0 {
				next = t.Next[0].Local().Format("Mon 02 Jan 15:04")
			}
			lines = append(lines, cell(t.Slug, 24)+" "+cell(next, 18)+" "+t.Words)
		}
		if len(lines) == 0 {
			lines = []string{"No task runs by the clock. Add one with: daycare cron add"}
		}
		return panelRead{"Tasks that run by the clock", lines}
	})
}

func (m *Model) toolsCommand(string) tea.Cmd {
	return m.call(func(ctx context.Context, api *control.Client) tea.Msg {
		tools, err := api.Tools(ctx)
		if err != nil {
			return failed{"tools", err}
		}
		var lines []string
		for _, t := range tools {
			lines = append(lines, cell(t.Name, 24)+" "+markdown.OneLine(t.Description, 200))
		}
		return panelRead{"What agents can do", lines}
	})
}

func (m *Model) statusCommand(string) tea.Cmd {
	return m.call(func(ctx context.Context, api *control.Client) tea.Msg {
		s, err := api.Status(ctx)
		if err != nil {
			return failed{"status", err}
		}
		lines := []string{fmt.Sprintf("daycare %s, pid %d, in %s", s.Version, s.PID, s.Workspace),
			fmt.Sprintf("%d agents, %d awake, %d items wait, %d to answer", s.Agents, s.Awake, s.Queued, s.Asks)}
		for _, c := range s.Connectors {
			lines = append(lines, "connector "+cell(c.ID, 16)+" "+cell(c.State, 10)+" "+c.LastError)
		}
		for _, p := range s.Providers {
			lines = append(lines, "model     "+cell(p.ID, 16)+" "+cell(p.Model, 24)+" "+p.Detail)
		}
		return panelRead{"Status", lines}
	})
}

// shared is what a shell command printed, as the agent reads it.
func shared(command, output string) control.Message {
	return control.Message{Kind: message.System, Silent: true, Origin: "terminal",
		Text: "The person ran a shell command.\n$ " + command + "\n" + output}
}
