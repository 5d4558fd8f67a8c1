package terminal

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"
	"charm.land/lipgloss/v2"

	"daycare/connectors/terminal/markdown"
	"daycare/connectors/terminal/transcript"
	"daycare/engine/control"
	"daycare/engine/event"
	"daycare/engine/permission"
)

// askText is what is asked for: the exact command or path, else the permission.
func askText(a event.Ask) string { return cmp.Or(a.Shown, a.Tag) }

// askLine is askText where one line is all there is: a diff is named, not begun.
func askLine(a event.Ask) string {
	if strings.Contains(strings.TrimSpace(a.Shown), "\n") {
		return a.Tag
	}
	return markdown.OneLine(askText(a), 200)
}

// approvals is the queue of questions, one of them open. It is opened by a key and
// never by itself, so that nobody answers while typing; and it keeps to the question
// that is read, whatever comes in behind it.
type approvals struct {
	token  string
	choice int       // of the answers that are offered
	read   bool      // all of it was on the screen: before, nothing can be allowed
	from   time.Time // keys before it answer nothing: they were meant for something else
	sent   bool      // it is being answered
	top    int       // first line of the request that is shown
}

// decisionKeys are the keys of the decisions.
var decisionKeys = map[string]string{"once": "o", "always": "a", "prefix": "p", "deny": "d"}

// offered are the answers that can be given now.
func (o *approvals) offered(a event.Ask) []event.Choice {
	if o.read {
		return a.Choices
	}
	return slices.DeleteFunc(slices.Clone(a.Choices), func(c event.Choice) bool { return c.Decision != "deny" })
}

// openApprovals opens the question of the agent that is shown, else the oldest. It takes
// answers from then on.
func openApprovals(m *Model, from time.Time) {
	if len(m.world.asks) == 0 {
		m.screen.say("no pending approvals")
		return
	}
	token := m.world.asks[0].Token
	for _, a := range m.world.asks {
		if m.page == talkPage && a.AgentID == m.talk.agents.shown || m.page == homePage && a.AgentID == m.home.selected {
			token = a.Token
			break
		}
	}
	m.over = &approvals{token: token, from: from}
}

// open is the question that is read, and its place in the queue.
func (o *approvals) open(m *Model) (event.Ask, int, bool) {
	i := slices.IndexFunc(m.world.asks, func(a event.Ask) bool { return a.Token == o.token })
	if i < 0 {
		return event.Ask{}, 0, false
	}

	return m.world.asks[i], i, true
}

func (o *approvals) key(m *Model, k tea.KeyPressMsg) (bool, tea.Cmd) {
	ask, at, ok := o.open(m)
	if !ok {
		return true, nil
	}
	answers := o.offered(ask)
	tooSoon := o.sent || time.Now().Before(o.from)
	switch name := k.String(); name {
	case "esc", "ctrl+y", "q":
		return true, nil
	case "left", "shift+tab":
		o.choice = max(0, o.choice-1)
	case "right":
		o.choice = min(max(0, len(answers)-1), o.choice+1)
	case "tab", "n":
		*o = approvals{token: m.world.asks[(at+1)%len(m.world.asks)].Token}
	case "up", "k":
		o.top--
	case "down", "j":
		o.top++
	case "pgup":
		o.top -= 10
	case "pgdown":
		o.top += 10
	case "enter":
		if tooSoon || o.choice >= len(answers) {
			return false, nil
		}
		return false, o.answer(m, answers[o.choice].Decision)
	default:
		for _, a := range answers {
			if decisionKeys[a.Decision] == name && !tooSoon {
				return false, o.answer(m, a.Decision)
			}
		}
		o.from = later(o.from, time.Now().Add(typingPause))
	}

	return false, nil
}

// answer sends an answer; keys that follow it are for no other question.
func (o *approvals) answer(m *Model, decision string) tea.Cmd {
	o.sent = true
	return m.call.decide(o.token, decision)
}

// take opens the next question, or closes the queue.
func (msg decided) take(m *Model) tea.Cmd {
	var first *control.Decided
	switch {
	case errors.As(msg.err, &first):
		m.screen.say(fmt.Sprintf("already answered: %s by %s", first.Decision, first.By))
	case msg.err != nil && !errors.Is(msg.err, control.ErrNoAsk):
		if o, ok := m.over.(*approvals); ok {
			o.sent = false
		}
		m.screen.fail("answer", msg.err)
		return nil
	}
	m.world.answered(msg.token)
	return tea.Batch(nextApproval(m), m.call.asks(), m.conn.outdate())
}

// nextApproval moves an open dialog on when its question was answered.
func nextApproval(m *Model) tea.Cmd {
	o, ok := m.over.(*approvals)
	if !ok {
		return nil
	}
	if _, _, still := o.open(m); still {
		return nil
	}
	if len(m.world.asks) == 0 {
		m.over, m.emptied = nil, time.Now()
		return nil
	}
	m.over = &approvals{token: m.world.asks[0].Token, from: time.Now().Add(settling)}
	return nil
}

// settling is how long keys are ignored that may have been meant for the question
// before: answers, after the next question took its place, and Esc, after the last
// question's dialog closed by itself.
const settling = time.Second

// typingPause is the longest pause between two letters of a sentence that is typed: who types
// one on the page of all agents, where a letter may open this dialog, answers nothing.
const typingPause = 400 * time.Millisecond

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

func (o *approvals) help(m *Model) string {
	next := ""
	if len(m.world.asks) > 1 {
		next = "Tab next question · "
	}
	allow := "d deny · ↑↓ read all of it to allow · "
	if o.read {
		allow = "o once · a always · d deny · ←→ Enter choose · "
	}

	return allow + next + "↑↓ scroll · Esc later"
}

func (o *approvals) lines(m *Model, width, height int) []string {
	ask, at, ok := o.open(m)
	if !ok {
		return nil
	}
	t := m.screen.theme
	count := ""
	if n := len(m.world.asks); n > 1 {
		count = fmt.Sprintf("  question %d of %d", at+1, n)
	}
	what := " asks for " + t.Bold.Render(markdown.OneLine(permission.VisibleLine(ask.Tag), width))
	if _, ok := permission.BudgetOf(ask.Tag); ok {
		what = " is paused and asks to"
	}
	head := []string{" " + t.Warn.Render("? "+m.world.name(ask.AgentID)) + what + t.Dim.Render(count), ""}
	body := append(m.screen.requestLines(ask, width-4), m.screen.factLines(ask, width-4)...)
	room := max(3, height-len(head)-len(ask.Choices)-2)
	o.top = max(0, min(o.top, len(body)-room))
	shown := body[o.top:min(len(body), o.top+room)]
	rest := len(body) - o.top - len(shown)
	if rest > 0 {
		shown = append(shown[:len(shown)-1:len(shown)-1], t.Warn.Render(fmt.Sprintf("   … %d more lines, ↓ shows them", rest+1)))
	}
	o.read = o.read || rest == 0
	return append(append(head, shown...), append([]string{""}, o.buttons(m, ask, width)...)...)
}

// factLines are where and how it would run, a fact a paragraph, none shortened.
func (s *screen) factLines(ask event.Ask, width int) (lines []string) {
	t := s.theme
	for _, f := range ask.Facts {
		if f.Name == "permission" {
			continue // the title has it
		}
		style := t.Dim
		if f.Name == "untrusted" || f.Name == "sandbox" && ask.Sandbox == permission.NoSandbox {
			style = t.Warn
		}
		value := s.render.Code(markdown.Clean(f.Value), "", width-12)
		if f.Name == "reason" || f.Name == "sandbox" { // prose: what names a file or command keeps each space
			value = strings.Split(lipgloss.Wrap(markdown.Clean(f.Value), max(width-12, 1), ""), "\n")
		}
		for i, l := range value {
			name := ""
			if i == 0 {
				name = f.Name
			}
			lines = append(lines, "   "+style.Render(fmt.Sprintf("%-11s", name))+l)
		}
	}

	return lines
}

// requestLines are the exact command, path or diff: nothing of it is shortened.
func (s *screen) requestLines(ask event.Ask, width int) []string {
	language := ""
	if markdown.IsDiff(askText(ask)) {
		language = "diff"
	}
	lines := s.render.Code(markdown.Clean(askText(ask)), language, width)
	for i := range lines {
		lines[i] = s.theme.Rule.Render("  │ ") + lines[i]
	}

	return lines
}

// buttons are the answers, one a line: each spells what it gives.
func (o *approvals) buttons(m *Model, ask event.Ask, width int) (lines []string) {
	t := m.screen.theme
	answers := o.offered(ask)
	o.choice = min(o.choice, max(0, len(answers)-1))
	for i, c := range answers {
		text := "[" + decisionKeys[c.Decision] + "] " + markdown.OneLine(c.Text, width)
		if i == o.choice {
			lines = append(lines, cellMax(t.Selected.Render(" ▸ "+text+" "), width))
			continue
		}
		lines = append(lines, cellMax("   "+text, width))
	}
	age := "asked " + transcript.Elapsed(m.screen.now.Sub(ask.AskedAt)) + " ago"
	if !ask.ExpiresAt.IsZero() {
		age += " · expires in " + transcript.Elapsed(ask.ExpiresAt.Sub(m.screen.now))
	}

	return append(lines, t.Dim.Render("   "+age))
}
