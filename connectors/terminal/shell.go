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
	// shellLimit bounds a command that a user runs here.
	shellLimit = 2 * time.Minute
	// shellShared is how much of its output the agent gets, in bytes.
	shellShared = 16 << 10
)

type (
	// shellRan is a command that the user ran.
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

// shell runs a command in the workspace as the user, who could as well type it
// in another window.
func (run background) shell(dir, agent, command string) tea.Cmd {
	return run(func(ctx context.Context) tea.Msg {
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

// take shows what a command printed, and lets the agent see it.
func (msg shellRan) take(m *Model) tea.Cmd {
	m.screen.flash = ""
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
func (in *input) edit() (tea.Cmd, error) {
	from := whole(in.value())
	f, err := os.CreateTemp("", "daycare-*.md")
	if err == nil {
		_, err = f.WriteString(from)
		if e := f.Close(); err == nil {
			err = e
		}
	}
	if err != nil {
		return nil, err
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
	}), nil
}

func (msg edited) take(m *Model) tea.Cmd {
	if msg.err != nil {
		m.screen.fail("the editor", msg.err)
		return nil
	}
	if msg.text == msg.from || msg.text == msg.from+"\n" { // which most editors add
		return nil
	}
	in := &m.talk.input
	in.restore(in.pastes.refold(strings.TrimRight(msg.text, "\n")))
	return nil
}
