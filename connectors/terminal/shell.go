package terminal

import (
	"context"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"

	"daycare/connectors/terminal/transcript"
	"daycare/engine/control"
	"daycare/engine/message"
)

const (
	// shellLimit bounds a command that a person runs here.
	shellLimit = 2 * time.Minute
	// shellShared is how much of its output the agent gets, in bytes.
	shellShared = 16 << 10
)

type (
	// shellRan is a command that the person ran.
	shellRan struct {
		agent, command, output string
	}
	// edited is the text that came back from the editor.
	edited struct {
		from, text string
		err        error
	}
)

func itoa(n int) string { return strconv.Itoa(n) }

// runShell runs a command in the workspace as the person, who could as well type it
// in another window.
func (m *Model) runShell(command string) tea.Cmd {
	command = strings.TrimSpace(command)
	if command == "" {
		m.say1("like this: !git status")
		return nil
	}
	agent, dir := m.talk.agents.shown, m.opts.Workspace
	m.say1("running " + command)
	return m.background(func(ctx context.Context) tea.Msg {
		ctx, cancel := context.WithTimeout(ctx, shellLimit)
		defer cancel()
		shell := os.Getenv("SHELL")
		if shell == "" {
			shell = "/bin/sh"
		}
		cmd := exec.CommandContext(ctx, shell, "-c", command)
		cmd.Dir, cmd.WaitDelay = dir, time.Second
		out, err := cmd.CombinedOutput()
		text := strings.TrimRight(string(out), "\n")
		if err != nil {
			text = strings.TrimPrefix(text+"\n["+err.Error()+"]", "\n")
		}
		return shellRan{agent, command, text}
	})
}

// takeShell shows what a command printed, and lets the agent see it.
func (m *Model) takeShell(msg shellRan) tea.Cmd {
	m.flash = ""
	c := m.talk.agents.get(msg.agent)
	c.text.Shell(msg.command, msg.output, m.screen.now)
	c.text.View.Follow()
	if msg.agent == "" {
		return nil
	}
	c.due.History = true
	output := msg.output
	if over := len(output) - shellShared; over > 0 {
		output = "[…]\n" + strings.ToValidUTF8(output[over:], "")
	}
	return m.call(func(ctx context.Context, api *control.Client) tea.Msg {
		note := control.Message{Kind: message.System, Silent: true, Origin: transcript.ShellOrigin,
			Text: transcript.ShellNote(msg.command, output)}
		if _, err := api.Send(ctx, msg.agent, note); err != nil {
			return failed{"the agent did not see it", err}
		}
		return fetchDue{msg.agent}
	})
}

// edit opens $EDITOR on what is typed.
func (m *Model) edit() tea.Cmd {
	from := whole(m.talk.input.value())
	f, err := os.CreateTemp("", "daycare-*.md")
	if err == nil {
		_, err = f.WriteString(from)
		if e := f.Close(); err == nil {
			err = e
		}
	}
	if err != nil {
		m.fail("open the editor", err)
		return nil
	}
	editor := os.Getenv("VISUAL")
	if editor == "" {
		editor = os.Getenv("EDITOR")
	}
	if editor == "" {
		editor = "vi"
	}
	path := f.Name()
	words := append(strings.Fields(editor), path)
	return tea.ExecProcess(exec.Command(words[0], words[1:]...), func(err error) tea.Msg {
		defer os.Remove(path)
		text, readErr := os.ReadFile(path)
		if err == nil {
			err = readErr
		}
		return edited{from, string(text), err}
	})
}

func (m *Model) takeEdited(msg edited) {
	if msg.err != nil {
		m.fail("the editor", msg.err)
		return
	}
	if msg.text == msg.from || msg.text == msg.from+"\n" { // which most editors add
		return
	}
	in := &m.talk.input
	in.restore(in.pastes.refold(strings.TrimRight(msg.text, "\n")))
}
