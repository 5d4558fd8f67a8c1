package terminal

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"

	"daycare/engine/control"
	"daycare/engine/fault"
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
		{name: "spawn", args: "[PROMPT]", does: "start another agent and go there", run: spawnCommand},
		{name: "agents", does: "all agents (Ctrl+G)", run: func(m *Model, _ string) tea.Cmd { return m.goHome() }},
		{name: "send", args: "AGENT TEXT", does: "write to another agent and stay here", agents: true, run: sendCommand},
		{name: "receive", args: "[SECONDS]", does: "wait for the next answer or question of any agent, and go there", run: receiveCommand},
		{name: "check", does: "show what is waiting for you", run: checkCommand},
		{name: "stop", args: "[AGENT]", does: "cancel the agent's turn", agents: true, run: stopCommand},
		{name: "kill", args: "[AGENT]", does: "end an agent and its children", agents: true, run: killCommand},
		{name: "fork", args: "[NAME]", does: "copy this agent, to continue in the copy", run: forkCommand},
		{name: "rename", args: "NAME", does: "give this agent another name", run: renameCommand},
		{name: "reap", does: "end this agent's finished children", run: reapCommand},
		{name: "reset", does: "start a new conversation; the files stay",
			run: orderCommand("reset", "new conversation", (*control.Client).Reset)},
		{name: "compact", does: "compact the conversation to a summary",
			run: orderCommand("compact", "it will compact its conversation", (*control.Client).Compact)},
		{name: "context", does: "show how full the model's context is", run: contextCommand},
		{name: "model", args: "[NAME]", does: "change the model, from the next turn on", run: modelCommand},
		{name: "mark", args: "NAME", does: "set a checkpoint to rewind to", run: markCommand},
		{name: "rewind", args: "[NAME]", does: "go back to a checkpoint, or to one of your messages", run: rewindCommand},
		{name: "permissions", does: "answer approvals (Ctrl+Y)",
			run: func(m *Model, _ string) tea.Cmd { openApprovals(m, time.Time{}); return nil }},
		{name: "queue", does: "list this agent's queued items (Ctrl+Q)",
			run: func(m *Model, _ string) tea.Cmd { openQueue(m); return nil }},
		{name: "cron", does: "list scheduled tasks", run: cronCommand},
		{name: "skills", does: "list skills and sub-agents", run: skillsCommand},
		{name: "tools", does: "list tools", run: toolsCommand},
		{name: "setup", does: "set up a model: a service and its key, or your own server", run: setupCommand},
		{name: "status", does: "show the daemon, its connectors and models", run: statusCommand},
		{name: "help", does: "list every key and command", run: func(m *Model, _ string) tea.Cmd { m.over = &help{}; return nil }},
		{name: "quit", does: "leave; the agents continue", run: func(m *Model, _ string) tea.Cmd { return tea.Quit }},
	}
}

// isCommand: a slash and one word without another slash or a dot, so that a path
// can begin a message.
func isCommand(text string) bool {
	word, _, _ := strings.Cut(text, " ")
	return len(word) > 1 && word[0] == '/' && !strings.ContainsAny(word[1:], "/.\n")
}

// known reports whether there is a command of this name.
func known(name string) bool {
	return slices.ContainsFunc(commands(), func(c command) bool { return c.name == name })
}

// command runs what was typed.
func (m *Model) command(text string) tea.Cmd {
	name, arg, _ := strings.Cut(text[1:], " ")
	for _, c := range commands() {
		if c.name == name {
			return c.run(m, strings.TrimSpace(arg))
		}
	}

	return m.call.expand(m.page, m.talk.agents.shown, text)
}

// expanded is the message that a command of the workspace makes, or why it makes none.
type expanded struct {
	page        pageName // where it was typed
	agent       string
	typed, text string
	err         error
}

func (c caller) expand(page pageName, agent, typed string) tea.Cmd {
	name, arguments, _ := strings.Cut(typed[1:], " ")
	return c.quietly(func(err error) tea.Msg { return expanded{page, agent, typed, "", err} },
		func(ctx context.Context, api *control.Client) tea.Msg {
			text, err := api.Expand(ctx, name, arguments)
			return expanded{page, agent, typed, text, err}
		})
}

// take sends what a command of the workspace expands to.
func (msg expanded) take(m *Model) tea.Cmd {
	name, _, _ := strings.Cut(msg.typed, " ")
	switch {
	case msg.err == nil && msg.page == talkPage:
		return m.talk.say(m, m.talk.agents.get(msg.agent), msg.text, "")
	case msg.err == nil:
		m.screen.say("to which agent? open it first, then type " + name)
		return nil
	case errors.Is(msg.err, fault.NoCommand), errors.Is(msg.err, fault.NoRoute): // or a daemon of before
		m.screen.warn("there is no " + name + "; /help lists the commands")
	default:
		m.screen.fail(name, msg.err)
	}
	if m.page == talkPage && m.talk.agents.shown == msg.agent && m.talk.input.empty() {
		m.talk.input.set(msg.typed)
	}

	return nil
}

// target is the agent that an argument names, "" the one that is shown.
func (m *Model) target(ref string) (*agent, bool) {
	if ref == "" {
		if m.page == homePage {
			m.screen.say("which agent? open it first, or name it if the command accepts a name")
			return nil, false
		}
		ref = m.talk.agents.shown
	}
	for _, a := range m.world.order {
		if a.ID == ref || a.Handle == ref || strings.TrimSuffix(a.Handle, "/") == strings.TrimSuffix(ref, "/") ||
			a.Name == ref || title(a) == ref {
			return a, true
		}
	}
	m.screen.warn("there is no agent " + cmp.Or(ref, "yet"))
	return nil, false
}
