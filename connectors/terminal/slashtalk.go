package terminal

import (
	"cmp"
	"context"
	"fmt"

	tea "charm.land/bubbletea/v2"

	"daycare/engine/control"
	"daycare/engine/message"
)

// orderCommand is a command that has an agent do something with its conversation.
func orderCommand(what, done string, order func(*control.Client, context.Context, string) (message.Receipt, error)) func(*Model,
	string) tea.Cmd {
	return func(m *Model, _ string) tea.Cmd {
		a, ok := m.target("")
		if !ok {
			return nil
		}
		return m.call.order(what, done, func(ctx context.Context, api *control.Client) error {
			_, err := order(api, ctx, a.ID)
			return err
		})
	}
}

func contextCommand(m *Model, _ string) tea.Cmd {
	a, ok := m.target("")
	if !ok {
		return nil
	}
	u := m.talk.agents.current().text.Usage()
	if u.Context == 0 {
		m.screen.say("no model calls in this conversation yet")
		return nil
	}
	text := fmt.Sprintf("%s in the context of %s", thousands(u.Context), cmp.Or(u.Model, "the model"))
	if p := percent(u.Context, a.Window); p != "" {
		text = fmt.Sprintf("%s in context, %s of %s; /compact shortens it", thousands(u.Context), p, thousands(a.Window))
	}
	m.screen.say(text)
	return nil
}

func markCommand(m *Model, name string) tea.Cmd {
	a, ok := m.target("")
	if !ok {
		return nil
	}
	if name == "" {
		m.screen.say("like this: /mark before-the-change")
		return nil
	}
	return m.call.order("mark", "checkpoint set; /rewind "+name+" goes back to here", func(ctx context.Context, api *control.Client) error {
		_, err := api.Folders().Mark(ctx, a.ID, name)
		return err
	})
}

func renameCommand(m *Model, name string) tea.Cmd {
	a, ok := m.target("")
	if !ok {
		return nil
	}
	if name == "" {
		m.screen.say("like this: /rename release notes")
		return nil
	}
	who := a.Agent
	return m.call.order("rename", a.Handle+" is "+name+" now", func(ctx context.Context, api *control.Client) error {
		return api.Folders().Rename(ctx, who, name)
	})
}
