package terminal

import (
	"cmp"
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"time"

	"daycare/connectors/terminal/markdown"
	"daycare/connectors/terminal/transcript"
	"daycare/engine/control"
	"daycare/engine/event"
	"daycare/engine/lazyregexp"
	"daycare/engine/permission"
)

// An agent is the newest snapshot, with what events told since.
type agent struct {
	event.Agent
	since  time.Time // of the current turn; zero: not known
	says   string    // the newest thing said, on one line
	saidAt time.Time // LastAt when it was read
	unread bool      // something was said since the agent was looked at
	asks   bool      // one of the questions that wait is its
	broke  string    // how the newest turn failed, until the agent is looked at
}

// rank is what the agents are sorted by: who needs a user comes first.
type rank int

const (
	needsYou rank = iota
	working
	unread
	idle
	ended
)

func (a *agent) rank() rank {
	if a.asks && a.State != event.Ended {
		return needsYou
	}
	switch a.State {
	case event.WaitingPermission, event.Failing, event.Paused:
		return needsYou
	case event.Ended:
		return ended
	case event.Idle, "":
		switch {
		case a.broke != "":
			return needsYou
		case a.unread:
			return unread
		}
		return idle
	}

	return working
}

// A world is all agents and what they ask.
type world struct {
	agents   map[string]*agent
	order    []*agent // by handle
	asks     []event.Ask
	status   event.Status
	missed   string                // what the daemon lacks that this shell has
	seen     map[string]time.Time  // agent: LastAt when it was looked at last
	wakes    map[string]time.Time  // agent: when the clock wakes it next
	commands []control.CommandInfo // that users of the workspace wrote
	icons    map[string]string     // of sub-agents, by the name of their definition
}

func newWorld() *world {
	return &world{agents: map[string]*agent{}, seen: map[string]time.Time{}}
}

func (w *world) get(id string) *agent { return w.agents[id] }

// read takes over a list of all agents.
func (w *world) read(list []event.Agent) {
	agents := make(map[string]*agent, len(list))
	for _, s := range list {
		a := w.agents[s.ID]
		if a == nil {
			a = &agent{}
			at, known := w.seen[s.ID]
			news := s.LastAt != nil && s.LastAt.After(at)
			a.unread = known && news && s.ParentAgentID == ""
			if news || !known {
				a.broke = s.Failed
			}
		}
		a.Agent = s
		agents[s.ID] = a
	}
	w.agents = agents
	w.ask(w.asks)
	w.order = w.order[:0]
	for _, a := range agents {
		w.order = append(w.order, a)
	}
	slices.SortFunc(w.order, byHandle)
}

// ask takes over the questions that wait.
func (w *world) ask(asks []event.Ask) {
	w.asks = asks
	for _, a := range w.agents {
		a.asks = slices.ContainsFunc(asks, func(q event.Ask) bool { return q.AgentID == a.ID })
		if !a.asks && a.State == event.WaitingPermission {
			a.State = event.Idle // until the next snapshot knows better
		}
	}
}

// answered takes a question away that someone has answered, here or elsewhere.
func (w *world) answered(token string) {
	w.ask(slices.DeleteFunc(slices.Clone(w.asks), func(q event.Ask) bool { return q.Token == token }))
}

// byHandle compares handles as paths of numbers: 2/ before 10/, 1/ before 1/0.
func byHandle(a, b *agent) int {
	return cmp.Or(slices.CompareFunc(serials(a.Handle), serials(b.Handle), cmp.Compare[int]), cmp.Compare(a.ID, b.ID))
}

func serials(handle string) []int {
	var path []int
	for part := range strings.SplitSeq(strings.Trim(handle, "/"), "/") {
		n, err := strconv.Atoi(part)
		if err != nil {
			n = 1 << 30
		}
		path = append(path, n)
	}

	return path
}

// event applies an event about an agent. It reports whether the snapshots are out
// of date by it, and whether a user should be called.
func (w *world) event(e control.RawEvent) (stale, call bool) {
	if e.Type == event.PermissionDecided {
		hear(e, func(d event.Asked) { w.answered(d.Token) })
	}
	a := w.get(e.Agent)
	if a == nil {
		return e.Agent != "" || e.Type == control.GapType, e.Type == event.PermissionRequested
	}
	switch e.Type {
	case event.TurnStarted:
		a.State, a.Detail, a.since, a.broke = event.Thinking, "", e.At, ""
	case event.ToolStarted:
		hear(e, func(t event.Tool) {
			a.State = event.UsingTool
			a.Detail = strings.TrimSpace(t.Name + " " + transcript.Subject(t.Arguments))
		})
		return false, false
	case event.ToolFinished:
		a.State, a.Detail = event.Thinking, ""
		return false, false
	case event.Retry:
		hear(e, func(r event.Attempt) {
			a.State, a.Detail = event.Retrying, r.Reason
		})
		return false, false
	case event.TurnFinished:
		hear(e, func(f event.Finished) { a.finished(f) })
	case event.ItemTaken, event.ItemDone:
		return false, false
	case event.PermissionRequested:
		hear(e, func(q event.Asked) {
			a.State, a.Detail = event.WaitingPermission, ""
			if _, ok := permission.BudgetOf(q.Tag); ok {
				a.State, a.Detail = event.Paused, q.Reason
			}
		})
		return true, true
	}

	return true, false
}

func (a *agent) finished(f event.Finished) {
	a.State, a.Detail, a.since = event.Idle, "", time.Time{}
	a.unread = a.ParentAgentID == "" // what works for another reports to it
	if f.Text != "" {
		a.says = plain(f.Text)
	}
	switch f.Reason {
	case "error", "poison", "limit", "loop", "budget":
		a.broke = cmp.Or(f.Error, f.Text, f.Reason)
	}
}

// plain is the beginning of a text on one line, without the marks of Markdown.
func plain(text string) string {
	if len(text) > 800 {
		text = strings.ToValidUTF8(text[:800], "")
	}
	text = linked.ReplaceAllString(marks.Replace("\n"+text), "$1")
	return markdown.OneLine(text, 200)
}

var (
	marks = strings.NewReplacer("**", "", "`", "", "\n### ", "\n", "\n## ", "\n", "\n# ", "\n", "\n- ", "\n· ")
	// linked is a link: its text is shown, not its target.
	linked = lazyregexp.New(`\[([^\]\n]+)\]\([^)\s]+\)`)
)

// hear decodes the body of an event for f; one that cannot be read is passed over.
func hear[T any](e control.RawEvent, f func(T)) {
	if body, err := control.Body[T](e); err == nil {
		f(body)
	}
}

// looked notes that a user looks at an agent.
func (w *world) looked(id string) {
	a := w.get(id)
	if a == nil {
		return
	}
	a.unread, a.broke = false, ""
	if a.LastAt != nil {
		w.seen[id] = *a.LastAt
	}
}

// said takes the newest thing said out of a page of history.
func (w *world) said(m saidRead) {
	a := w.get(m.agent)
	if a == nil {
		return
	}
	a.saidAt = m.at
	for _, line := range slices.Backward(m.page.Records) {
		var r struct{ Type, Text string }
		if json.Unmarshal(line, &r) == nil && r.Text != "" && (r.Type == "assistant_message" || r.Type == "user_message") {
			a.says = plain(r.Text)
			return
		}
	}
}

// children are the agents whose parent is id, by handle.
func (w *world) children(id string) []*agent {
	var list []*agent
	for _, a := range w.order {
		if a.ParentAgentID == id {
			list = append(list, a)
		}
	}

	return list
}

// count is how many agents have a rank.
func (w *world) count(r rank) int {
	n := 0
	for _, a := range w.order {
		if a.rank() == r {
			n++
		}
	}

	return n
}
