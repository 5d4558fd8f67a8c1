package terminal

import (
	"context"
	"fmt"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"
	"charm.land/lipgloss/v2"

	"daycare/connectors/terminal/markdown"
	"daycare/connectors/terminal/transcript"
	"daycare/engine/control"
)

// checkCommand says what waits, in one line.
func checkCommand(m *Model, _ string) tea.Cmd {
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
		parts = []string{"nothing is waiting for you"}
	}
	m.screen.say(strings.Join(parts, " · "))
	return m.call.asks()
}

// receiveDefault is how long /receive waits without an argument.
const receiveDefault = 5 * time.Minute

func receiveCommand(m *Model, arg string) tea.Cmd {
	wait := receiveDefault
	if arg != "" {
		d, err := time.ParseDuration(strings.TrimSuffix(arg, "s") + "s")
		if err != nil {
			d, err = time.ParseDuration(arg)
		}
		if err != nil || d <= 0 {
			m.screen.say("like this: /receive 60")
			return nil
		}
		wait = d
	}
	for _, a := range m.world.order {
		if a.ID != m.talk.agents.shown && (a.rank() == unread || a.rank() == needsYou) {
			return m.show(a.ID)
		}
	}
	m.receiving = deadline{m.screen.now.Add(wait)}
	m.screen.say("waiting " + transcript.Elapsed(wait) + " for the next answer or question; you can continue typing")
	return nil
}

// A deadline ends what waits for it; the zero one is of nothing.
type deadline struct{ at time.Time }

func (d *deadline) set() bool { return !d.at.IsZero() }

// over reports, once, that the deadline has passed.
func (d *deadline) over(now time.Time) bool {
	if !d.set() || !now.After(d.at) {
		return false
	}
	*d = deadline{}
	return true
}

func cronCommand(m *Model, _ string) tea.Cmd {
	return m.call(func(ctx context.Context, api *control.Client) tea.Msg {
		tasks, err := api.Schedule().Tasks(ctx)
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
			lines = []string{"No scheduled tasks. Add one with: daycare cron add"}
		}
		return panelRead{"Scheduled tasks", lines}
	})
}

func toolsCommand(m *Model, _ string) tea.Cmd {
	return m.call(func(ctx context.Context, api *control.Client) tea.Msg {
		tools, err := api.Tools(ctx)
		if err != nil {
			return failed{"tools", err}
		}
		var lines []string
		for _, t := range tools {
			lines = append(lines, cell(t.Name, 24)+" "+markdown.OneLine(t.Description, 200))
		}
		return panelRead{"Tools", lines}
	})
}

func statusCommand(m *Model, _ string) tea.Cmd {
	missed, room := m.world.missed, max(20, m.screen.width-6)
	return m.call(func(ctx context.Context, api *control.Client) tea.Msg {
		s, err := api.Status(ctx)
		if err != nil {
			return failed{"status", err}
		}
		lines := []string{fmt.Sprintf("daycare %s, pid %d, in %s", s.Version, s.PID, s.Workspace),
			fmt.Sprintf("%s, %d awake, %s, %d to answer", count(s.Agents, "agent"), s.Awake, count(s.Queued, "queued item"), s.Asks)}
		if missed != "" {
			lines = append(lines, strings.Split(lipgloss.Wrap(missed, room, ""), "\n")...)
		}
		for _, c := range s.Connectors {
			lines = append(lines, "connector "+cell(c.ID, 16)+" "+cell(c.State, 10)+" "+c.LastError)
		}
		for _, c := range s.MCP {
			lines = append(lines, "MCP       "+cell(c.ID, 16)+" "+cell(c.State, 10)+" "+
				strings.TrimSpace(c.Detail+" "+markdown.OneLine(c.LastError, 200)))
		}
		for _, p := range s.Providers {
			lines = append(lines, "model     "+cell(p.ID, 16)+" "+cell(p.Model, 24)+" "+p.Detail)
		}
		return panelRead{"Status", lines}
	})
}
