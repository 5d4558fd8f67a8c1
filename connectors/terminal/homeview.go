package terminal

import (
	"slices"
	"strconv"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"

	"daycare/connectors/terminal/transcript"
)

// How the page of all agents looks.

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
		if text, ok := h.typed(m.world); ok {
			word, _, _ := strings.Cut(text, " ")
			return []string{"", "  " + t.Bold.Render("Enter runs "+word+".") + t.Dim.Render(" Esc shows all agents.")}
		}
		return []string{"", t.Dim.Render(ansi.Truncate("  No agent matches "+strconv.Quote(h.filter)+". Esc shows all.", width, "…"))}
	}
	return []string{"", "  " + t.Bold.Render("No agents yet."), "",
		t.Dim.Render(ansi.Truncate("  Press Enter and write the first message: it creates your agent.", width, "…"))}
}

// columns are the widths of the table; 0: the column is not there.
type columns struct{ name, kind, state, says, inbox, age, next, model, context, cost int }

// wideTable is from when on the type, the state and the newest words have a column each.
const wideTable = 120

// minSays is how wide the words are at least while other columns can be left out.
const minSays = 20

// room is what the other columns leave for the words.
func (c columns) room(width int) int {
	rest := width - 4
	for _, w := range []int{c.name, c.kind, c.state, c.inbox, c.age, c.next, c.model, c.context, c.cost} {
		if w > 0 {
			rest -= w + 1
		}
	}

	return rest
}

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
		if r.agent.Context > 0 && r.agent.Window > 0 {
			c.context = 4
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
		c.kind, c.state, c.model = len("heartbeat"), max(30, width/4), 16
	}
	for _, least := range []*int{&c.context, &c.next, &c.cost} { // on a narrow screen the words come first
		if c.room(width) >= minSays {
			break
		}
		*least = 0
	}
	c.says = max(8, c.room(width))
	return c
}

// cells joins the cells of the columns that are there.
func (c columns) cells(texts [10]string) string {
	widths := [10]int{c.name, c.kind, c.state, c.says, c.inbox, c.age, c.next, c.model, c.context, c.cost}
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
	return "    " + c.cells([10]string{cell("AGENT", c.name), cell("TYPE", c.kind), cell("DOING", c.state), cell(says, c.says),
		cell("INBOX", c.inbox), cell("LAST", c.age), cell("NEXT", c.next), cell("MODEL", c.model),
		right("CTX", c.context), right("COST", c.cost)})
}

func (h *home) line(m *Model, r row, c columns, width int) string {
	t := m.screen.theme
	if r.agent == nil {
		return t.Bold.Render(cell(" "+r.head, width))
	}
	a := r.agent
	mark, style := m.screen.mark(a)
	name := strings.Repeat("  ", r.depth) + a.Handle + " " + title(a)
	state, says, saying := m.world.stateText(a), a.says, t.Dim
	if !a.since.IsZero() && a.rank() == working {
		state = transcript.Elapsed(m.screen.now.Sub(a.since)) + " " + state
	}
	if c.state == 0 && (a.says == "" || a.rank() != idle && a.rank() != unread) {
		says, saying = state, style
	}
	texts := [10]string{cell(name, c.name), t.Dim.Render(cell(a.Type, c.kind)), style.Render(cell(state, c.state)),
		saying.Render(cell(says, c.says)),
		cell(m.screen.inboxText(a), c.inbox),
		t.Dim.Render(cell(m.screen.age(a.LastAt), c.age)), t.Dim.Render(cell(wakeTime(m, a), c.next)), t.Dim.Render(cell(a.Model, c.model)),
		m.screen.fullness(a).Render(right(percent(a.Context, a.Window), c.context)), t.Dim.Render(right(money(a.Cost), c.cost))}
	if a.ID == h.selected {
		return t.Selected.Render(cell("▌ "+mark+" "+ansi.Strip(c.cells(texts)), width))
	}

	return "  " + style.Render(mark) + " " + c.cells(texts)
}

// wakeTime is when the clock wakes an agent next.
func wakeTime(m *Model, a *agent) string {
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
