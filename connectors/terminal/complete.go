package terminal

import (
	"os"
	"path/filepath"
	"strings"

	"daycare/connectors/terminal/markdown"
)

// A menu is what could complete the text that is typed: commands after a slash,
// agents after a command that wants one, files after @.
type menu struct {
	choices []choice
	at      int
	from    int // where the part to replace begins, in bytes of the text
	closed  string
}

type choice struct{ text, about string }

// maxChoices is how many choices are shown at once.
const maxChoices = 7

func (n *menu) open() bool { return len(n.choices) > 0 }

// suggest looks for choices after the text has changed.
func (n *menu) suggest(m *Model, text string) {
	if text == n.closed {
		n.choices = nil
		return
	}
	*n = menu{}
	switch {
	case strings.HasPrefix(text, "/") && !strings.ContainsAny(text, " \n"):
		n.commands(text)
	case strings.HasPrefix(text, "/"):
		n.agents(m, text)
	}
	if at := strings.LastIndexByte(text, '@'); !n.open() && at >= 0 && (at == 0 || strings.ContainsAny(text[at-1:at], " \n")) {
		n.files(m.opts.Workspace, text, at)
	}
}

func (n *menu) commands(text string) {
	for _, c := range commands() {
		if strings.HasPrefix("/"+c.name, text) {
			full := "/" + c.name
			if c.args != "" {
				full += " "
			}
			n.choices = append(n.choices, choice{full, strings.TrimSpace(c.args + "  " + c.does)})
		}
	}
	if len(n.choices) == 1 && strings.TrimSpace(n.choices[0].text) == text {
		n.choices = nil // it stands there already
	}
}

func (n *menu) agents(m *Model, text string) {
	name, arg, _ := strings.Cut(text[1:], " ")
	if strings.ContainsAny(arg, " \n") {
		return
	}
	for _, c := range commands() {
		if c.name != name || !c.agents {
			continue
		}
		for _, a := range m.world.order {
			if a.rank() == ended || !strings.HasPrefix(a.Handle, arg) &&
				!strings.HasPrefix(strings.ToLower(title(a)), strings.ToLower(arg)) {
				continue
			}
			if a.Handle == arg {
				n.choices = nil
				return
			}
			n.choices = append(n.choices, choice{a.Handle + " ", title(a) + "  " + m.world.stateText(a)})
		}
		n.from = len(name) + 2
	}
}

// maxListed bounds how much of a large folder is looked at.
const maxListed = 2000

// files completes a path below the workspace.
func (n *menu) files(root, text string, at int) {
	typed := text[at+1:]
	if strings.ContainsAny(typed, " \n") {
		return
	}
	dir, start := filepath.Split(typed)
	f, err := os.Open(filepath.Join(root, dir))
	if err != nil {
		return
	}
	defer f.Close()
	list, _ := f.ReadDir(maxListed)
	for _, e := range list {
		name := e.Name()
		if !strings.HasPrefix(strings.ToLower(name), strings.ToLower(start)) || name[0] == '.' && !strings.HasPrefix(start, ".") {
			continue
		}
		if strings.ContainsAny(name, " \n") || markdown.Clean(name) != name {
			continue
		}
		full := "@" + dir + name
		if e.IsDir() {
			n.choices = append(n.choices, choice{full + "/", "folder"})
			continue
		}
		if full == text[at:] {
			n.choices = nil
			return
		}
		n.choices = append(n.choices, choice{full + " ", ""})
	}
	n.from = at
}

// key is a key while the menu is open. It reports whether the key was for it.
func (n *menu) key(m *Model, name string) bool {
	in := &m.talk.input
	switch name {
	case "up":
		n.at = (n.at + len(n.choices) - 1) % len(n.choices)
	case "down":
		n.at = (n.at + 1) % len(n.choices)
	case "tab":
		n.take(m)
	case "enter":
		text := in.value()
		done := text[:n.from] + n.choices[n.at].text
		if n.from == 0 && strings.TrimSpace(done) == strings.TrimSpace(text) {
			return false // the command stands there whole: run it
		}
		n.take(m)
		// A command without arguments runs at once.
		return n.from > 0 || strings.HasSuffix(done, " ")
	case "esc":
		closed := in.value()
		*n = menu{closed: closed}
	default:
		return false
	}
	return true
}

func (n *menu) take(m *Model) {
	in := &m.talk.input
	text := in.value()[:n.from] + n.choices[n.at].text
	from := n.from
	in.set(text)
	in.menu.suggest(m, text)
	if in.menu.from == 0 && from == 0 && len(in.menu.choices) > 0 && in.menu.choices[0].text == text {
		in.menu = menu{}
	}
}

func (n *menu) lines(m *Model, width int) []string {
	t := m.screen.theme
	first := max(0, n.at-maxChoices+1)
	var out []string
	for i := first; i < min(len(n.choices), first+maxChoices); i++ {
		c := n.choices[i]
		line := cell(strings.TrimSpace(c.text), 28) + " " + markdown.OneLine(c.about, width)
		if i == n.at {
			out = append(out, t.Selected.Render(cell(" ▌ "+line, width)))
			continue
		}
		out = append(out, t.Dim.Render(cell("   "+line, width)))
	}
	if rest := len(n.choices) - first - len(out); rest > 0 {
		out = append(out, t.Dim.Render(cell("   … "+itoa(rest)+" more", width)))
	}
	return out
}
