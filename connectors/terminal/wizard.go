package terminal

import (
	"cmp"
	"context"
	"strings"
	"unicode/utf8"

	tea "charm.land/bubbletea/v2"
	"charm.land/lipgloss/v2"

	"daycare/connectors/terminal/markdown"
)

// A wizard asks where answers come from, one question at a time.
type wizard struct {
	setup   *Setup
	offers  []Offer
	at      int
	step    step
	answers Answers
	field   field
	trouble string // what was wrong with the answers
	stop    context.CancelFunc
}

// A step is what the wizard does with the next key.
type step int

const (
	stepChoose  step = iota // a service
	stepType                // its address, key or model
	stepTry                 // the model is asked for a word
	stepRefused             // that failed
)

// A field is the line that is typed in, and what is said of it.
type field struct {
	title, text, suggested, about string
	hidden                        bool
	next                          func(w *wizard, m *Model, text string) (wrong string, cmd tea.Cmd)
}

func (w *wizard) key(m *Model, k tea.KeyPressMsg) (bool, tea.Cmd) {
	switch w.step {
	case stepChoose:
		return w.choose(m, k)
	case stepType:
		return false, w.edit(m, k)
	case stepTry:
		if k.String() == "esc" {
			w.stop()
		}
	case stepRefused:
		switch k.String() {
		case "enter", "esc":
			w.step, w.trouble = stepChoose, ""
		case "w":
			w.answers.Unchecked = true
			return false, w.apply(m)
		}
	}

	return false, nil
}

// choose handles a key while a service is chosen.
func (w *wizard) choose(m *Model, k tea.KeyPressMsg) (bool, tea.Cmd) {
	switch name := k.String(); name {
	case "esc":
		m.screen.say("later: /setup, or daycare init")
		return true, nil
	case "up", "shift+tab":
		w.at = max(0, w.at-1)
	case "down", "tab":
		w.at = min(w.at+1, len(w.offers)-1)
	case "enter":
		return false, w.chosen(m)
	default:
		if n := strings.IndexAny("123456789", name); len(name) == 1 && n >= 0 && n < len(w.offers) {
			w.at = n
			return false, w.chosen(m)
		}
		if k.Text != "" { // someone writes to the agent: Enter must choose nothing then
			m.over = nil
			m.screen.say("later: /setup, or daycare init")
			return true, m.key(k)
		}
	}

	return false, nil
}

// chosen continues with the questions that the chosen service needs.
func (w *wizard) chosen(m *Model) tea.Cmd {
	o := w.offers[w.at]
	w.answers, w.trouble = Answers{Name: o.Name, Address: o.Address}, ""
	if o.AskAddress {
		w.ask(field{title: "its address", suggested: o.Address, about: "It usually ends with /v1.", next: (*wizard).addressed})
		return nil
	}

	return w.askKey(m)
}

func (w *wizard) addressed(m *Model, text string) (wrong string, cmd tea.Cmd) {
	if !strings.HasPrefix(text, "http://") && !strings.HasPrefix(text, "https://") {
		return "An address begins with http:// or https://.", nil
	}
	w.answers.Address = text
	return "", w.askKey(m)
}

func (w *wizard) askKey(m *Model) tea.Cmd {
	o := w.offers[w.at]
	if !o.AskKey {
		return w.askModel(m)
	}
	about := "It is kept in .daycare/auth.json, which only you can read."
	switch {
	case o.KeyEnv != "":
		about += " Enter keeps " + o.KeyEnv + " of this shell there."
	case o.Server:
		about += " Enter: it needs no key."
	}
	w.ask(field{title: "its key", hidden: true, about: about, next: func(w *wizard, m *Model, text string) (string, tea.Cmd) {
		if text == "" && o.KeyEnv == "" && !o.Server {
			return "Paste the key, or Esc goes back.", nil
		}
		w.answers.Key = text
		return "", w.askModel(m)
	}})
	return nil
}

func (w *wizard) askModel(m *Model) tea.Cmd {
	o := w.offers[w.at]
	if o.Model == "" && !o.Server {
		return w.apply(m)
	}
	w.ask(field{title: "which model?", suggested: o.Model, next: func(w *wizard, m *Model, text string) (string, tea.Cmd) {
		if text == "" {
			return "Type the name of a model.", nil
		}
		w.answers.Model = text
		return "", w.apply(m)
	}})
	if !o.Server {
		return nil
	}
	w.field.about = "asking it which models it has …"
	a, list := w.answers, w.setup.Models
	return m.background(func(ctx context.Context) tea.Msg {
		names, err := list(ctx, a)
		return modelsListed{names, err}
	})
}

// listed takes what a server said about its models.
func (w *wizard) listed(msg modelsListed) {
	switch {
	case msg.err != nil:
		w.field.about = "It does not list its models: " + msg.err.Error()
	case len(msg.names) > 0:
		w.field.suggested = msg.names[0]
		w.field.about = "It has " + strings.Join(msg.names, ", ")
	default:
		w.field.about = "It lists no models."
	}
}

func (w *wizard) ask(f field) {
	w.field, w.step, w.trouble = f, stepType, ""
}

// edit handles a key while a line is typed.
func (w *wizard) edit(m *Model, k tea.KeyPressMsg) tea.Cmd {
	f := &w.field
	switch k.String() {
	case "esc":
		w.step, w.trouble = stepChoose, ""
	case "backspace":
		_, n := utf8.DecodeLastRuneInString(f.text)
		f.text = f.text[:len(f.text)-n]
	case "ctrl+u":
		f.text = ""
	case "tab":
		f.text = cmp.Or(f.text, f.suggested)
	case "enter":
		wrong, cmd := f.next(w, m, cmp.Or(strings.TrimSpace(f.text), f.suggested))
		if wrong != "" {
			w.trouble = wrong
		}
		return cmd
	default:
		f.text += k.Text
	}

	return nil
}

// paste types what was pasted, mostly a key.
func (w *wizard) paste(text string) {
	if w.step == stepType {
		w.field.text += strings.Join(strings.Fields(text), "")
	}
}

// apply tries the answers out, and writes them down if they are good.
func (w *wizard) apply(m *Model) tea.Cmd {
	ctx, stop := context.WithCancel(context.Background())
	w.stop, w.step, w.trouble = stop, stepTry, ""
	a, apply := w.answers, w.setup.Apply
	return m.background(func(outer context.Context) tea.Msg {
		defer stop()
		defer context.AfterFunc(outer, stop)()
		said, err := apply(ctx, a)
		return setupApplied{said, err}
	})
}

func (w *wizard) help(*Model) string {
	switch w.step {
	case stepChoose:
		return "↑↓ choose · Enter continues · Esc later"
	case stepType:
		return "Enter continues · Ctrl+U clears · Esc goes back"
	case stepTry:
		return "Esc stops"
	}

	return "Enter goes back · w saves it anyway"
}

func (w *wizard) lines(m *Model, width, height int) []string {
	t := m.screen.theme
	out := []string{" " + t.Bold.Render("Which model service do you want to use?"), ""}
	if w.step == stepChoose {
		for i, o := range w.offers {
			room := max(1, width-6)
			if o.Note != "" {
				room = min(44, room)
			}
			line := itoa(i+1) + "  " + cell(o.Label, room)
			if i == w.at {
				out = append(out, t.Selected.Render(cell(strings.TrimRight(" ▌ "+line+" "+o.Note, " "), width)))
				continue
			}
			out = append(out, "   "+line+" "+t.Dim.Render(cellMax(o.Note, max(1, width-50))))
		}
		return out[:min(len(out), height)]
	}
	say := func(style lipgloss.Style, words string) {
		lines := strings.Split(lipgloss.Wrap(markdown.Clean(words), max(10, width-6), ""), "\n")
		out = append(out, styleAll(style, indented(indented(lines)))...)
	}
	label := w.offers[w.at].Label
	switch w.step {
	case stepType:
		say(t.Bold, label+": "+w.field.title)
		out = append(out, cellMax("    › "+w.field.shown(width-10)+"▏"+t.Dim.Render(w.field.hint()), width), "")
		say(t.Dim, w.field.about)
	case stepTry:
		say(t.Accent, "Asking "+strings.TrimSpace(label+" "+w.answers.Model)+" for a word …")
	}
	if w.trouble != "" {
		say(t.Bad, w.trouble)
	}

	return out[:min(len(out), height)]
}

// shown is the end of what is typed; dots for what must not be seen.
func (f *field) shown(width int) string {
	text := []rune(f.text)
	if f.hidden {
		text = []rune(strings.Repeat("•", min(len(text), 40)))
	}

	return markdown.OneLine(string(text[max(0, len(text)-max(1, width)):]), max(1, width))
}

// hint is what Enter takes while nothing is typed.
func (f *field) hint() string {
	if f.text != "" {
		return ""
	}
	return f.suggested
}
