package terminal

import (
	"cmp"
	"context"
	"time"
	"unicode/utf8"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"

	"daycare/engine/control"
	"daycare/engine/event"
	"daycare/engine/message"
)

// Answers of the API as messages.
type (
	// failed says what went wrong with what the user asked for.
	failed struct {
		what string
		err  error
	}
	agentsRead struct {
		agents []event.Agent
		took   time.Duration
		err    error
	}
	asksRead   struct{ asks []event.Ask }
	statusRead struct{ status event.Status }
	// iconsRead are the icons of sub-agents by the names of their definitions.
	iconsRead struct{ icons map[string]string }
	// wakesRead is when the clock wakes which agent next.
	wakesRead struct{ at map[string]time.Time }
	// historyRead is a page: the newest one, or one before what is here.
	historyRead struct {
		agent string
		page  event.Page
		kind  pageKind
		err   error
	}
	draftRead struct {
		agent string
		draft event.Draft
	}
	inboxRead struct {
		agent string
		items []event.Waiting
	}
	// saidRead is the newest thing that an agent or a user said, for Home.
	saidRead struct {
		agent string
		at    time.Time
		page  event.Page
	}
	sent struct {
		agent   string // as it was sent to; "" is the user's own
		key     string
		receipt message.Receipt
		err     error
	}
	created struct {
		agent event.Agent
		err   error
	}
	decided struct {
		token string
		err   error
	}
	// did reports that something was done, in words for the user.
	did struct{ what string }
)

type pageKind int

const (
	newest pageKind = iota // what may continue what is here
	afresh                 // begin again with it
	before                 // older than what is here
)

const (
	pageSize = 60 // records of history asked for at once
	saidSize = 6  // records looked through for the newest thing said
)

// read is a call that says nothing where there is no answer, because it is made again by itself, or the daemon is an older one.
func read[T any](c caller, get func(*control.Client, context.Context) (T, error), made func(T) tea.Msg) tea.Cmd {
	return c.quietly(func(error) tea.Msg { return nil }, func(ctx context.Context, api *control.Client) tea.Msg {
		got, err := get(api, ctx)
		if err != nil {
			return nil
		}
		return made(got)
	})
}

// quietly is a call that says itself what it means that there was no answer.
func (c caller) quietly(unanswered func(error) tea.Msg, f func(context.Context, *control.Client) tea.Msg) tea.Cmd {
	cmd := c(f)
	return func() tea.Msg {
		msg := cmd()
		if bad, ok := msg.(failed); ok {
			return unanswered(bad.err)
		}
		return msg
	}
}

func (c caller) agents() tea.Cmd {
	return c.quietly(func(err error) tea.Msg { return agentsRead{err: err} }, func(ctx context.Context, api *control.Client) tea.Msg {
		began := time.Now()
		list, err := api.Agents(ctx)
		return agentsRead{list, time.Since(began), err}
	})
}

func (c caller) asks() tea.Cmd {
	return read(c, (*control.Client).Permissions, func(asks []event.Ask) tea.Msg { return asksRead{asks} })
}

func (c caller) wakes() tea.Cmd {
	tasks := func(api *control.Client, ctx context.Context) ([]control.Task, error) {
		return api.Schedule().Tasks(ctx)
	}
	return read(c, tasks, func(tasks []control.Task) tea.Msg {
		at := map[string]time.Time{}
		for _, t := range tasks {
			id := cmp.Or(t.AgentID, t.TaskID)
			if old, ok := at[id]; len(t.Next) > 0 && (!ok || t.Next[0].Before(old)) {
				at[id] = t.Next[0]
			}
		}
		return wakesRead{at}
	})
}

// commandsRead are the commands that users of the workspace wrote.
type commandsRead struct{ list []control.CommandInfo }

func (c caller) commands() tea.Cmd {
	return read(c, (*control.Client).Commands, func(list []control.CommandInfo) tea.Msg { return commandsRead{list} })
}

func (c caller) icons() tea.Cmd {
	return read(c, (*control.Client).SubAgents, func(kinds []control.SubAgentInfo) tea.Msg {
		icons := map[string]string{}
		for _, k := range kinds {
			icons[k.Name] = safeIcon(k.Icon)
		}
		return iconsRead{icons}
	})
}

// safeIcon is an icon that all terminals give two columns: one character, not one
// that is put together of several, about whose width they disagree; "" otherwise.
func safeIcon(icon string) string {
	if utf8.RuneCountInString(icon) != 1 || ansi.StringWidth(icon) != 2 {
		return ""
	}
	return icon
}

func (c caller) status() tea.Cmd {
	return read(c, (*control.Client).Status, func(s event.Status) tea.Msg { return statusRead{s} })
}

func (c caller) history(agent string, from int64, kind pageKind) tea.Cmd {
	return c.quietly(func(err error) tea.Msg { return historyRead{agent: agent, kind: kind, err: err} },
		func(ctx context.Context, api *control.Client) tea.Msg {
			p, err := api.History(ctx, agent, from, pageSize)
			return historyRead{agent, p, kind, err}
		})
}

func (c caller) said(agent string, at time.Time) tea.Cmd {
	page := func(api *control.Client, ctx context.Context) (event.Page, error) {
		return api.History(ctx, agent, 0, saidSize)
	}
	return read(c, page, func(p event.Page) tea.Msg { return saidRead{agent, at, p} })
}

func (c caller) draft(agent string) tea.Cmd {
	draft := func(api *control.Client, ctx context.Context) (event.Draft, error) { return api.Draft(ctx, agent) }
	return read(c, draft, func(d event.Draft) tea.Msg { return draftRead{agent, d} })
}

func (c caller) inbox(agent string) tea.Cmd {
	items := func(api *control.Client, ctx context.Context) ([]event.Waiting, error) { return api.Inbox(ctx, agent) }
	return read(c, items, func(items []event.Waiting) tea.Msg { return inboxRead{agent, items} })
}

// send sends a message; key is what the screen knows it by until it has an item,
// and what makes sending it again harmless.
func (c caller) send(agent, key string, m control.Message) tea.Cmd {
	m.Dedupe = key
	return c.quietly(func(err error) tea.Msg { return sent{agent: agent, key: key, err: err} },
		func(ctx context.Context, api *control.Client) tea.Msg {
			r, err := api.Send(ctx, agent, m)
			return sent{agent, key, r, err}
		})
}

func (c caller) create(n control.NewAgent) tea.Cmd {
	return c(func(ctx context.Context, api *control.Client) tea.Msg {
		a, err := api.Create(ctx, n)
		return created{a, err}
	})
}

func (c caller) decide(token, decision string) tea.Cmd {
	return c.quietly(func(err error) tea.Msg { return decided{token, err} }, func(ctx context.Context, api *control.Client) tea.Msg {
		return decided{token, api.Decide(ctx, token, decision, "")}
	})
}

// order does one thing and says so.
func (c caller) order(what, done string, f func(context.Context, *control.Client) error) tea.Cmd {
	return c(func(ctx context.Context, api *control.Client) tea.Msg {
		if err := f(ctx, api); err != nil {
			return failed{what, err}
		}
		return did{done}
	})
}

func (c caller) stop(agent string) tea.Cmd {
	return c(func(ctx context.Context, api *control.Client) tea.Msg {
		stopped, err := api.Stop(ctx, agent, "")
		switch {
		case err != nil:
			return failed{"stop", err}
		case !stopped:
			return did{"there is no turn to stop"}
		}
		return did{"stopped"}
	})
}
