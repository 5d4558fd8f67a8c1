package terminal

import (
	"cmp"
	"strings"

	"daycare/connectors/terminal/markdown"
	"daycare/engine/event"
	"daycare/engine/message"
)

// Texts about agents and what is queued for them.

// name is what users call an agent: handle and name.
func (w *world) name(id string) string {
	if a := w.get(id); a != nil {
		return a.Handle + " " + title(a)
	}
	return id
}

// title is an agent's name on one line.
func title(a *agent) string {
	return markdown.OneLine(strings.TrimPrefix(a.Name, "terminal:"), 40)
}

func (w *world) sender(id string) string {
	if id == "system" {
		return "the system"
	}
	return w.name(id)
}

// stateText is the state in words that fit a column.
func (w *world) stateText(a *agent) string {
	for _, ask := range w.asks {
		if a.asks && ask.AgentID == a.ID && a.State != event.Paused {
			return "asks: " + askLine(ask)
		}
	}
	switch a.State {
	case event.WaitingPermission:
		return "asks for permission"
	case event.UsingTool:
		return markdown.OneLine(a.Detail, 200)
	case event.Retrying:
		if strings.HasPrefix(a.Detail, "retry ") { // how often and when, not the cause alone
			return a.Detail
		}
		return "retrying: " + a.Detail
	case event.WaitingAgent:
		return "waits for its agents"
	case event.Failing:
		return "error: " + a.Detail
	case event.Paused:
		return strings.TrimSuffix("paused: "+a.Detail, ": ")
	case event.Idle, "":
		if a.broke != "" {
			return "failed: " + markdown.OneLine(a.broke, 200)
		}
		if a.unread {
			return "answered"
		}
		return "idle"
	}

	return string(a.State)
}

// How agents take what is written to them while they work, unless the message says.
const (
	collect   = "collect"
	interrupt = "interrupt"
	followup  = string(message.Followup)
)

// queueOf is how an agent takes what is written to it while it works.
func (w *world) queueOf(agent string) string {
	if a := w.get(agent); a != nil {
		return a.Queue
	}
	return ""
}

// readWhen is when an agent at work reads what waits.
func (w *world) readWhen(agent string, x event.Waiting) string {
	switch cmp.Or(x.Queue, w.queueOf(agent)) {
	case followup:
		return "read when it is done"
	case collect:
		return "read together when done"
	case interrupt:
		return "it stops and reads this"
	}

	return "read at its next step"
}

// kindOf says of what kind an item is, and of messages when they are read.
func (w *world) kindOf(agent string, x event.Waiting) string {
	if x.Type == string(message.Text) {
		return w.readWhen(agent, x)
	}
	return strings.ReplaceAll(x.Type, "_", " ")
}

// enterHelp is what Enter and Tab do while the agent works.
func enterHelp(queue string) string {
	switch queue {
	case followup:
		return "Enter: it reads this when it is done"
	case collect:
		return "Enter: when it is done, with all that waits · Tab: in a separate turn"
	case interrupt:
		return "Enter: it stops and reads this · Tab: when it is done"
	}

	return "Enter: it reads this at its next step · Tab: when it is done"
}
