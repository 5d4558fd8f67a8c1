package terminal

import (
	"slices"
	"strings"

	tea "charm.land/bubbletea/v2"
)

// A picker finds an agent by a few letters of its handle, its name or what it said
// last.
type picker struct {
	query string
	at    int
}

func newPicker() *picker { return &picker{} }

// maxPicked is how many agents a picker offers at once.
const maxPicked = 12

func (p *picker) found(m *Model) []*agent {
	type hit struct {
		a     *agent
		score int
	}
	var hits []hit
	for _, a := range m.world.order {
		best := -1
		for i, text := range []string{a.Handle, title(a), a.says} {
			if s := fuzzy(p.query, text); s >= 0 && (best < 0 || s+10*i < best) {
				best = s + 10*i
			}
		}
		if best >= 0 {
			hits = append(hits, hit{a, best})
		}
	}
	slices.SortStableFunc(hits, func(x, y hit) int {
		if x.score != y.score {
			return x.score - y.score
		}
		return int(x.a.rank()) - int(y.a.rank())
	})
	list := make([]*agent, len(hits))
	for i, h := range hits {
		list[i] = h.a
	}

	return list
}

// fuzzy reports whether the letters of query occur in text in their order; lower is
// better, -1 is not. Letters that stand together are best.
func fuzzy(query, text string) int {
	q, t := []rune(strings.ToLower(query)), []rune(strings.ToLower(text))
	if i := strings.Index(string(t), string(q)); i >= 0 {
		return min(i, 5)
	}
	score, i := 6, 0
	for _, r := range q {
		if r == ' ' {
			continue
		}
		from := i
		for i < len(t) && t[i] != r {
			i++
		}
		if i == len(t) {
			return -1
		}
		score += i - from
		i++
	}

	return score
}

func (p *picker) key(m *Model, k tea.KeyPressMsg) (bool, tea.Cmd) {
	list := p.found(m)
	switch k.String() {
	case "esc", "ctrl+p":
		return true, nil
	case "up", "ctrl+k", "shift+tab":
		p.at--
	case "down", "ctrl+n", "tab":
		p.at++
	case "enter":
		if len(list) == 0 {
			return false, nil
		}
		return true, m.show(list[min(p.at, len(list)-1)].ID)
	case "backspace":
		if r := []rune(p.query); len(r) > 0 {
			p.query = string(r[:len(r)-1])
		}
	default:
		if k.Text != "" {
			p.query, p.at = p.query+k.Text, 0
		}
	}
	p.at = max(0, min(p.at, len(list)-1))
	return false, nil
}

func (p *picker) help(*Model) string {
	return "type letters of a name · ↑↓ choose · Enter goes there · Esc closes"
}

func (p *picker) lines(m *Model, width, height int) []string {
	t := m.screen.theme
	list := p.found(m)
	out := []string{t.Accent.Bold(true).Render(" find: ") + p.query + "▏"}
	n := min(maxPicked, height-2)
	first := max(0, p.at-n+1)
	for i := first; i < min(len(list), first+n); i++ {
		a := list[i]
		sign, style := m.screen.mark(a)
		name := cell(a.Handle+" "+title(a), min(30, width/3))
		rest := cell(m.world.stateText(a), 20) + " " + a.says
		if i == p.at {
			out = append(out, t.Selected.Render(cell(" ▌"+sign+" "+name+" "+rest, width)))
			continue
		}
		out = append(out, "  "+style.Render(sign)+" "+name+" "+t.Dim.Render(cell(rest, width-5-min(30, width/3))))
	}
	if len(list) == 0 {
		out = append(out, t.Dim.Render("   nobody"))
	}

	return out
}
