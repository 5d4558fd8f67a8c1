package acp

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

	acp "github.com/coder/acp-go-sdk"

	"daycare/engine/control"
	"daycare/engine/fault"
	"daycare/engine/message"
)

// typed is what was typed into a session.
type typed struct{ *session }

// A command is what follows a slash.
type command struct {
	name, args, does string
	run              func(s typed, ctx context.Context, c *control.Client, agent, arg string) (string, error)
}

// commands are those of the terminal that make sense in an editor.
func commands() []command {
	return []command{
		{"reset", "", "start a new conversation; the files stay", ordered(message.Reset, "A new conversation begins.")},
		{"compact", "", "compact the conversation to a summary", ordered(message.Compact, "The conversation is compacted.")},
		{"context", "", "show how full the model's context is", typed.context},
		{"model", "[NAME]", "show or change the model, from the next turn on", typed.model},
		{"mark", "NAME", "set a checkpoint to rewind to", ordered(message.Mark, "The checkpoint is set.")},
		{"rewind", "[NAME]", "undo the newest turn, or go back to a checkpoint", ordered(message.Rewind, "Rewound.")},
	}
}

// ordered is a command that posts an order to the agent, and waits until it has carried it out.
func ordered(kind message.Kind, done string) func(typed, context.Context, *control.Client, string, string) (string, error) {
	return func(_ typed, ctx context.Context, c *control.Client, agent, arg string) (string, error) {
		if kind == message.Mark && arg == "" {
			return "Name the checkpoint: /mark before-the-change", nil
		}
		o, err := c.Stream(ctx, agent, control.Message{Kind: kind, Text: arg}, nil)
		if err != nil {
			return "", err
		}
		return cmp.Or(o.Error, o.Text, done), nil
	}
}

func (typed) context(ctx context.Context, c *control.Client, agent, _ string) (string, error) {
	a, err := c.Agent(ctx, agent)
	switch {
	case err != nil:
		return "", err
	case a.Context == 0:
		return "No model calls in this conversation yet.", nil
	case a.Window == 0:
		return fmt.Sprintf("%d tokens in the context of %s.", a.Context, a.Model), nil
	}

	return fmt.Sprintf("%d of %d tokens (%d %%) in the context of %s; /compact shortens it.", a.Context, a.Window,
		100*a.Context/a.Window, a.Model), nil
}

func (typed) model(ctx context.Context, c *control.Client, agent, name string) (string, error) {
	if name != "" {
		choice, err := c.Folders().Switch(ctx, agent, name)
		return fmt.Sprintf("From the next turn on: %s/%s. %s", choice.Provider, choice.Model, choice.Problem), err
	}
	all, err := c.Models(ctx)
	if err != nil {
		return "", err
	}
	text := "/model NAME changes the model:\n\n"
	for _, m := range all {
		text += "- " + m.Choice + "\n"
	}

	return text, nil
}

// slash splits "/name rest"; a path, or a slash alone, is not a command.
func slash(text string) (name, rest string, ok bool) {
	word, rest, _ := strings.Cut(strings.TrimSpace(text), " ")
	if len(word) < 2 || word[0] != '/' || strings.ContainsAny(word[1:], "/.\n") {
		return "", "", false
	}

	return word[1:], strings.TrimSpace(rest), true
}

// command runs a command, which is all then, or makes the message of one of the workspace.
func (s typed) command(ctx context.Context, m *control.Message) (done bool, err error) {
	name, arg, ok := slash(m.Text)
	if !ok {
		return false, nil
	}
	for _, known := range commands() {
		if known.name != name {
			continue
		}
		agent, err := s.ensure(ctx)
		if err != nil {
			return true, err
		}
		text := ""
		err = s.door.link.with(ctx, func(c *control.Client) error {
			text, err = known.run(s, ctx, c, agent, arg)
			return err
		})
		if err != nil {
			return true, explain("/"+name, err)
		}
		s.say(acp.UpdateAgentMessageText(text))
		return true, nil
	}

	err = s.door.link.with(ctx, func(c *control.Client) error {
		text, err := c.Expand(ctx, name, arg)
		if err == nil {
			m.Text = text
		}
		return err
	})
	if errors.Is(err, fault.NoCommand) {
		return true, problem(codeInvalid, "there is no command /%s; your editor lists the commands", name)
	}

	return false, explain("/"+name, err)
}

// announce tells the editor which commands there are.
func (s *session) announce(ctx context.Context) {
	list := []acp.AvailableCommand{}
	add := func(name, does, args string) {
		a := acp.AvailableCommand{Name: name, Description: does}
		if args != "" {
			a.Input = &acp.AvailableCommandInput{Unstructured: &acp.UnstructuredCommandInput{Hint: args}}
		}
		list = append(list, a)
	}
	for _, c := range commands() {
		add(c.name, c.does, c.args)
	}
	_ = s.door.link.with(ctx, func(c *control.Client) error {
		written, err := c.Commands(ctx)
		for _, w := range written {
			add(w.Name, cmp.Or(w.Description, w.File), w.Arguments)
		}
		return err
	})
	s.say(acp.SessionUpdate{AvailableCommandsUpdate: &acp.SessionAvailableCommandsUpdate{AvailableCommands: list}})
}
