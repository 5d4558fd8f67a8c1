package terminal

import (
	"cmp"
	"slices"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"
)

// A home is the page of all agents: who needs you first, then who works, then who
// has something new, then the rest. A family stays together, under the rank of its
// most urgent member.
type home struct {
	selected string // agent
	filter   string
	asking   bool // the filter is being typed
	top      int  // first row shown
	asked    map[string]time.Time
}

// A row is an agent in the table, or the head of a group.
type row struct {
	agent *agent
	depth int
	head  string
}

var groups = map[rank]string{needsYou: "Needs you", working: "Working", unread: "Something new", idle: "Done", ended: "Ended"}

// rows is the table as it stands.
func (h *home) rows(w *world) []row {
	families := map[string][]*agent{}
	var roots []*agent
	for _, a := range w.order {
		if !h.matches(a) {
			continue
		}
		parent := w.get(a.ParentAgentID)
		if parent == nil || !h.matches(parent) {
			roots = append(roots, a)
			continue
		}
		families[parent.ID] = append(families[parent.ID], a)
	}
	urgency := map[string]rank{}
	var urge func(a *agent) rank
	urge = func(a *agent) rank {
		r := a.rank()
		for _, child := range families[a.ID] {
			r = min(r, urge(child))
		}
		urgency[a.ID] = r
		return r
	}
	for _, a := range roots {
		urge(a)
	}
	slices.SortStableFunc(roots, func(a, b *agent) int { return cmp.Compare(urgency[a.ID], urgency[b.ID]) })

	var rows []row
	var add func(a *agent, depth int)
	add = func(a *agent, depth int) {
		rows = append(rows, row{agent: a, depth: depth})
		for _, child := range families[a.ID] {
			add(child, depth+1)
		}
	}
	for i, a := range roots {
		if g := urgency[a.ID]; i == 0 || g != urgency[roots[i-1].ID] {
			rows = append(rows, row{head: groups[g]})
		}
		add(a, 0)
	}

	return rows
}

func (h *home) matches(a *agent) bool {
	if h.filter == "" {
		return true
	}
	return contains(a.Handle+" "+a.Name+" "+string(a.State)+" "+a.Detail+" "+a.says, h.filter)
}

// contains reports whether a text has every word in it, whatever their case.
func contains(text, words string) bool {
	text = strings.ToLower(text)
	for word := range strings.FieldsSeq(strings.ToLower(words)) {
		if !strings.Contains(text, word) {
			return false
		}
	}

	return true
}

// move moves the selection by n agents.
func (h *home) move(w *world, n int) {
	var ids []string
	for _, r := range h.rows(w) {
		if r.agent != nil {
			ids = append(ids, r.agent.ID)
		}
	}
	if len(ids) == 0 {
		return
	}
	i := max(0, slices.Index(ids, h.selected))
	h.selected = ids[min(max(i+n, 0), len(ids)-1)]
}

// key is a key on this page.
func (h *home) key(m *Model, k tea.KeyPressMsg) tea.Cmd {
	if h.asking {
		return h.filterKey(m, k)
	}
	switch k.String() {
	case "up", "k":
		h.move(m.world, -1)
	case "down", "j":
		h.move(m.world, 1)
	case "pgup":
		h.move(m.world, -10)
	case "pgdown":
		h.move(m.world, 10)
	case "home", "g":
		h.move(m.world, -len(m.world.order))
	case "end", "G":
		h.move(m.world, len(m.world.order))
	case "enter", "right", "l":
		if m.world.get(h.selected) != nil {
			return m.show(h.selected)
		}
		return m.show(m.talk.agents.own)
	case "/":
		h.filter, h.asking = "", true
	case "esc":
		h.filter = ""
	case "n":
		return m.show(spawnHere(m))
	case "a":
		openApprovals(m, time.Now().Add(typingPause))
	case "x":
		if m.world.get(h.selected) != nil {
			return m.call.stop(h.selected)
		}
	case "?":
		m.over = &help{}
	case "q":
		return tea.Quit
	default:
		if strings.TrimSpace(k.Text) != "" { // the beginning of a name, or of a sentence: no letter of it is a key
			h.filter, h.asking = "", true
			return h.filterKey(m, k)
		}
	}

	return nil
}

// typed is the command that was typed where a filter is expected. An agent of that
// name takes precedence; one that only mentions the word does not.
func (h *home) typed(w *world) (text string, ok bool) {
	word, _, _ := strings.Cut(h.filter, " ")
	named := func(a *agent) bool { return contains(a.Handle+" "+a.Name, h.filter) }
	if !known(word) || slices.ContainsFunc(w.order, named) {
		return "", false
	}

	return "/" + h.filter, true
}

func (h *home) filterKey(m *Model, k tea.KeyPressMsg) tea.Cmd {
	switch k.String() {
	case "esc":
		h.filter, h.asking = "", false
	case "enter":
		if text, ok := h.typed(m.world); ok {
			h.filter, h.asking = "", false
			m.memory.addTyped(text)
			return m.command(text)
		}
		h.asking = false
	case "backspace":
		if r := []rune(h.filter); len(r) > 0 {
			h.filter = string(r[:len(r)-1])
		}
	case "up":
		h.move(m.world, -1)
	case "down":
		h.move(m.world, 1)
	default:
		h.filter += k.Text
	}
	if a := m.world.get(h.selected); a == nil || !h.matches(a) {
		h.selected = ""
		h.move(m.world, 0)
	}

	return nil
}
