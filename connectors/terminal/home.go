package terminal

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"

	"daycare/connectors/terminal/markdown"
	"daycare/connectors/terminal/transcript"
	"daycare/engine/event"
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
	text := strings.ToLower(a.Handle + " " + a.Name + " " + string(a.State) + " " + a.Detail + " " + a.says)
	for word := range strings.FieldsSeq(strings.ToLower(h.filter)) {
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
		h.filterKey(m, k)
		return nil
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
		return m.show(m.talk.own)
	case "/":
		h.asking = true
	case "esc":
		h.filter = ""
	case "n":
		return m.show(m.spawnHere())
	case "a":
		m.openApprovals()
	case "x":
		if m.world.get(h.selected) != nil {
			return m.call.stop(h.selected)
		}
	case "?":
		m.over = &help{}
	case "q":
		return m.leave()
	}
	return nil
}

func (h *home) filterKey(m *Model, k tea.KeyPressMsg) {
	switch k.String() {
	case "esc":
		h.filter, h.asking = "", false
	case "enter":
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
}

// lines draw the table.
func (h *home) lines(m *Model, width, height int) []string {
	rows := h.rows(m.world)
	if len(rows) == 0 {
		return h.nobody(m, width)
	}
	if m.world.get(h.selected) == nil {
		h.move(m.world, 0)
	}
	col := h.columns(m, rows, width)
	out := []string{m.screen.theme.Dim.Render(col.titles())}
	height -= len(out)
	at := slices.IndexFunc(rows, func(r row) bool { return r.agent != nil && r.agent.ID == h.selected })
	h.top = min(h.top, max(0, at-1)) // the group's head above the first row, too
	h.top = max(h.top, at-height+1)
	h.top = max(0, min(h.top, len(rows)-height))
	for _, r := range rows[h.top:min(len(rows), h.top+height)] {
		out = append(out, h.line(m, r, col, width))
	}
	return out
}

func (h *home) nobody(m *Model, width int) []string {
	t := m.screen.theme
	if h.filter != "" {
		return []string{"", t.Dim.Render("  no agent matches \"" + h.filter + "\"; Esc shows all")}
	}
	return []string{"", "  " + t.Bold.Render("No agents yet."), "",
		t.Dim.Render(ansi.Truncate("  Press Enter and write the first message: it makes your agent.", width, "…"))}
}

// columns are the widths of the table; 0: the column is not there.
type columns struct{ name, state, says, inbox, age, next, model, cost int }

// wideTable is from when on the state and the newest words have a column each.
const wideTable = 120

func (h *home) columns(m *Model, rows []row, width int) columns {
	c := columns{name: 14, age: 4}
	for _, r := range rows {
		if r.agent == nil {
			continue
		}
		c.name = max(c.name, 2*r.depth+ansi.StringWidth(r.agent.Handle+" "+title(r.agent)))
		if r.agent.Queued > 0 {
			c.inbox = 7
		}
		if r.agent.Cost > 0 {
			c.cost = 8
		}
		if _, ok := m.world.wakes[r.agent.ID]; ok {
			c.next = 6
		}
	}
	c.name = min(c.name, max(20, width/4))
	if width >= wideTable {
		c.state, c.model = 30, 16
	}
	rest := width - 4 - c.name - c.inbox - c.age - c.next - c.model - c.cost - 7
	c.says = max(8, rest-c.state)
	return c
}

// cells joins the cells of the columns that are there.
func (c columns) cells(texts [8]string) string {
	widths := [8]int{c.name, c.state, c.says, c.inbox, c.age, c.next, c.model, c.cost}
	var parts []string
	for i, text := range texts {
		if widths[i] > 0 {
			parts = append(parts, text)
		}
	}
	return strings.Join(parts, " ")
}

func (c columns) titles() string {
	says := "DOING, OR SAID LAST"
	if c.state > 0 {
		says = "SAID LAST"
	}
	return "    " + c.cells([8]string{cell("AGENT", c.name), cell("DOING", c.state), cell(says, c.says), cell("INBOX", c.inbox),
		cell("LAST", c.age), cell("NEXT", c.next), cell("MODEL", c.model), right("COST", c.cost)})
}

func (h *home) line(m *Model, r row, c columns, width int) string {
	t := m.screen.theme
	if r.agent == nil {
		return t.Bold.Render(cell(" "+r.head, width))
	}
	a := r.agent
	mark, style := m.mark(a)
	name := strings.Repeat("  ", r.depth) + a.Handle + " " + title(a)
	state, says, saying := m.stateText(a), a.says, t.Dim
	if !a.since.IsZero() && a.rank() == working {
		state = transcript.Elapsed(m.screen.now.Sub(a.since)) + " " + state
	}
	if c.state == 0 && (a.says == "" || a.rank() != idle && a.rank() != unread) {
		says, saying = state, style
	}
	texts := [8]string{cell(name, c.name), style.Render(cell(state, c.state)), saying.Render(cell(says, c.says)), cell(m.inboxText(a), c.inbox),
		t.Dim.Render(cell(m.age(a.LastAt), c.age)), t.Dim.Render(cell(m.wake(a), c.next)), t.Dim.Render(cell(a.Model, c.model)),
		t.Dim.Render(right(money(a.Cost), c.cost))}
	if a.ID == h.selected {
		return t.Selected.Render(cell("▌ "+mark+" "+ansi.Strip(c.cells(texts)), width))
	}
	return "  " + style.Render(mark) + " " + c.cells(texts)
}

// wake is when the clock wakes an agent next.
func (m *Model) wake(a *agent) string {
	at, ok := m.world.wakes[a.ID]
	if !ok {
		return ""
	}
	d := at.Sub(m.screen.now)
	switch {
	case d < 0:
		return "now"
	case d < 12*time.Hour:
		return at.Local().Format("15:04")
	}
	return "in " + strings.TrimLeft(transcript.Elapsed(d)[:min(3, len(transcript.Elapsed(d)))], " ")
}

func (m *Model) inboxText(a *agent) string {
	if a.Queued == 0 {
		return ""
	}
	if a.OldestAt == nil {
		return fmt.Sprint(a.Queued)
	}
	return fmt.Sprintf("%d %s", a.Queued, m.age(a.OldestAt))
}

// age is how long ago something was, short.
func (m *Model) age(at *time.Time) string {
	if at == nil {
		return "never"
	}
	d := m.screen.now.Sub(*at)
	switch {
	case d < 5*time.Second:
		return "now"
	case d < time.Hour && d >= time.Minute:
		return fmt.Sprintf("%dm", int(d.Minutes()))
	case d < 24*time.Hour && d >= time.Hour:
		return fmt.Sprintf("%dh", int(d.Hours()))
	}
	return transcript.Elapsed(d)
}

func money(usd float64) string {
	switch {
	case usd == 0:
		return ""
	case usd < 10:
		return fmt.Sprintf("$%.4f", usd)
	}
	return fmt.Sprintf("$%.2f", usd)
}

// cell is text in a column: cut or padded to exactly width.
func cell(text string, width int) string {
	if width <= 0 {
		return ""
	}
	text = ansi.Truncate(text, width, "…")
	return text + strings.Repeat(" ", max(0, width-ansi.StringWidth(text)))
}

func right(text string, width int) string {
	return strings.Repeat(" ", max(0, width-ansi.StringWidth(text))) + ansi.Truncate(text, width, "…")
}

// wanted are the agents in sight whose newest words are not known yet.
func (h *home) wanted(m *Model) tea.Cmd {
	if h.asked == nil {
		h.asked = map[string]time.Time{}
	}
	var cmds []tea.Cmd
	rows := h.rows(m.world)
	for _, r := range rows[min(h.top, len(rows)):min(len(rows), h.top+m.screen.height)] {
		a := r.agent
		if a == nil || a.LastAt == nil || a.LastAt.Equal(a.saidAt) || a.LastAt.Equal(h.asked[a.ID]) || a.rank() == working {
			continue
		}
		h.asked[a.ID] = *a.LastAt
		cmds = append(cmds, m.call.said(a.ID, *a.LastAt))
	}
	return tea.Batch(cmds...)
}

// stateText is the state in words that fit a column.
func (m *Model) stateText(a *agent) string {
	for _, ask := range m.world.asks {
		if a.asks && ask.AgentID == a.ID {
			return "asks: " + askLine(ask)
		}
	}
	switch a.State {
	case event.WaitingPermission:
		return "asks for permission"
	case event.UsingTool:
		return markdown.OneLine(a.Detail, 200)
	case event.Retrying:
		return "retrying: " + a.Detail
	case event.WaitingAgent:
		return "waits for its agents"
	case event.Failing:
		return "error: " + a.Detail
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
