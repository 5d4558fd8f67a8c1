package terminal

import (
	"cmp"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"daycare/connectors/terminal/markdown"
	"daycare/engine/control"
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
		n.commands(text, m.world.commands)
	case strings.HasPrefix(text, "/"):
		n.agents(m, text)
	}
	if at := strings.LastIndexByte(text, '@'); !n.open() && at >= 0 && (at == 0 || strings.ContainsAny(text[at-1:at], " \n")) {
		n.files(m.opts.Workspace, text, at)
	}
}

func (n *menu) commands(text string, own []control.CommandInfo) {
	for _, c := range commands() {
		if strings.HasPrefix("/"+c.name, text) {
			full := "/" + c.name
			if c.args != "" {
				full += " "
			}
			n.choices = append(n.choices, choice{full, strings.TrimSpace(c.args + "  " + c.does)})
		}
	}
	for _, c := range own {
		if full := "/" + c.Name; strings.HasPrefix(full, text) && !known(c.Name) {
			n.choices = append(n.choices, choice{full + " ", strings.TrimSpace(c.Arguments + "  " + c.Description)})
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

const (
	// maxListed bounds how many files are looked at.
	maxListed = 2000
	// maxFound bounds how many of them are offered.
	maxFound = 50
	// maxApart is how far apart letters may be in a path that is still offered.
	maxApart = 30
)

// files completes a path below the workspace: what the folder that is typed holds, and,
// once letters are typed, what lies anywhere below it and has them in their order.
func (n *menu) files(root, text string, at int) {
	typed := text[at+1:]
	if strings.ContainsAny(typed, " \n") {
		return
	}
	dir, start := filepath.Split(typed)
	for _, f := range found(root, dir, start) {
		if "@"+f.path == text[at:] && !f.folder {
			n.choices = nil
			return
		}
		c := choice{"@" + f.path + " ", ""}
		if f.folder {
			c = choice{"@" + f.path + "/", "folder"}
		}
		if n.choices = append(n.choices, c); len(n.choices) == maxFound {
			break
		}
	}
	n.from = at
}

// A candidate is a file or folder that may be meant; the lower its score the likelier.
type candidate struct {
	path   string
	folder bool
	score  int
}

// found lists what start may mean in a folder of the workspace, the likeliest first. The
// folders nearest to it are looked at first.
func found(root, dir, start string) (list []candidate) {
	seen := 0
	for queue := []string{dir}; len(queue) > 0 && seen < maxListed; queue = queue[1:] {
		for _, e := range entries(filepath.Join(root, queue[0])) {
			seen++
			c := candidate{path: queue[0] + e.Name(), folder: e.IsDir()}
			if !plainName(e.Name(), start) {
				continue
			}
			if c.folder && start != "" {
				queue = append(queue, c.path+"/")
			}
			if c.score = likeness(start, strings.TrimPrefix(c.path, dir)); c.score >= 0 {
				list = append(list, c)
			}
		}
	}
	slices.SortStableFunc(list, func(a, b candidate) int {
		return cmp.Or(a.score-b.score, strings.Count(a.path, "/")-strings.Count(b.path, "/"))
	})
	return list
}

// entries is what a folder holds, in the order of names.
func entries(dir string) []os.DirEntry {
	f, err := os.Open(dir)
	if err != nil {
		return nil
	}
	defer f.Close()
	list, _ := f.ReadDir(maxListed)
	slices.SortFunc(list, func(a, b os.DirEntry) int { return strings.Compare(a.Name(), b.Name()) })
	return list
}

// plainName reports a name that can be mentioned: a hidden one only if a dot was typed.
func plainName(name, start string) bool {
	return (name[0] != '.' || strings.HasPrefix(start, ".")) && !strings.ContainsAny(name, " \n") && markdown.Clean(name) == name
}

// likeness is 0 for a name in the folder itself that begins as typed, more for letters that
// stand elsewhere, -1 for a path that does not have them.
func likeness(start, path string) int {
	if len(path) >= len(start) && strings.EqualFold(path[:len(start)], start) {
		return 0
	}
	s := fuzzy(start, filepath.Base(path))
	if s < 0 {
		if s = fuzzy(start, path); s >= 0 {
			s += 10
		}
	}
	if s < 0 || s > maxApart {
		return -1
	}

	return s + 1
}

// halfMention returns the mention at the end of a text that names no file; "": none.
func halfMention(root, text string) string {
	word := text[strings.LastIndexAny(text, " \n")+1:]
	if len(word) < 2 || word[0] != '@' {
		return ""
	}
	if _, err := os.Stat(filepath.Join(root, word[1:])); err == nil {
		return ""
	}

	return word
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
		text := in.shown()
		done := text[:n.from] + n.choices[n.at].text
		if n.from == 0 && strings.TrimSpace(done) == strings.TrimSpace(text) {
			return false // the command stands there whole: run it
		}
		n.take(m)
		// A command without arguments runs at once.
		return n.from > 0 || strings.HasSuffix(done, " ")
	case "esc":
		closed := in.shown()
		*n = menu{closed: closed}
	default:
		return false
	}

	return true
}

func (n *menu) take(m *Model) {
	in := &m.talk.input
	text := in.shown()[:n.from] + n.choices[n.at].text
	from := n.from
	in.replace(text)
	in.back = 0
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
