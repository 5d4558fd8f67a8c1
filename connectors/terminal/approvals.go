package terminal

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"

	"daycare/connectors/terminal/markdown"
	"daycare/connectors/terminal/transcript"
	"daycare/engine/control"
	"daycare/engine/event"
)

// askText is what is asked for: the exact command or path, else the permission.
func askText(a event.Ask) string {
	if a.Request != "" {
		return a.Request
	}
	return a.Tag
}

// askLine is askText where one line is all there is: a diff is named, not begun.
func askLine(a event.Ask) string {
	if strings.Contains(strings.TrimSpace(a.Request), "\n") {
		return a.Tag
	}
	return markdown.OneLine(askText(a), 200)
}

// approvals is the queue of questions, one of them open. It is opened by a key and
// never by itself, so that nobody answers while typing; and it keeps to the question
// that is read, whatever comes in behind it.
type approvals struct {
	token  string
	choice int       // of answers
	since  time.Time // when it took the place of another question; zero: it was opened by hand
	sent   bool      // it is being answered
	top    int       // first line of the request that is shown
}

var answers = []struct{ key, decision, text string }{
	{"o", "once", "Once"},
	{"a", "always", "Always"},
	{"d", "deny", "Deny"},
}

// openApprovals opens the question of the agent that is shown, else the oldest.
func (m *Model) openApprovals() {
	if len(m.world.asks) == 0 {
		m.say1("nobody asks for anything")
		return
	}
	token := m.world.asks[0].Token
	for _, a := range m.world.asks {
		if m.page == talkPage && a.AgentID == m.talk.shown || m.page == homePage && a.AgentID == m.home.selected {
			token = a.Token
			break
		}
	}
	m.over = &approvals{token: token}
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
	_, at, ok := o.open(m)
	if !ok {
		return true, nil
	}
	tooSoon := o.sent || time.Since(o.since) < settling
	switch name := k.String(); name {
	case "esc", "ctrl+y", "q":
		return true, nil
	case "left", "shift+tab":
		o.choice = max(0, o.choice-1)
	case "right":
		o.choice = min(len(answers)-1, o.choice+1)
	case "tab", "n":
		o.token, o.top, o.choice, o.since, o.sent = m.world.asks[(at+1)%len(m.world.asks)].Token, 0, 0, time.Time{}, false
	case "up", "k":
		o.top--
	case "down", "j":
		o.top++
	case "pgup":
		o.top -= 10
	case "pgdown":
		o.top += 10
	case "enter":
		if tooSoon {
			return false, nil
		}
		return false, o.answer(m, answers[o.choice].decision)
	default:
		for _, a := range answers {
			if a.key == name && !tooSoon {
				return false, o.answer(m, a.decision)
			}
		}
	}
	return false, nil
}

// answer sends an answer; keys that follow it are for no other question.
func (o *approvals) answer(m *Model, decision string) tea.Cmd {
	o.sent = true
	return m.call.decide(o.token, decision)
}

// takeDecided: the next question opens, or the queue closes.
func (m *Model) takeDecided(msg decided) tea.Cmd {
	var first *control.Decided
	switch {
	case errors.As(msg.err, &first):
		m.say1(fmt.Sprintf("it was answered already: %s by %s", first.Decision, first.By))
	case msg.err != nil && !errors.Is(msg.err, control.ErrNoAsk):
		if o, ok := m.over.(*approvals); ok {
			o.sent = false
		}
		m.fail("answer", msg.err)
		return nil
	}
	m.world.ask(slices.DeleteFunc(m.world.asks, func(a event.Ask) bool { return a.Token == msg.token }))
	return tea.Batch(m.asksChanged(), m.call.asks(), m.stale())
}

// asksChanged moves an open dialog on when its question was answered.
func (m *Model) asksChanged() tea.Cmd {
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
	m.over = &approvals{token: m.world.asks[0].Token, since: time.Now()}
	return nil
}

// settling is how long keys are ignored that may have been meant for the question
// before: answers, after the next question took its place, and Esc, after the last
// question's dialog closed by itself.
const settling = time.Second

func (o *approvals) help(m *Model) string {
	next := ""
	if len(m.world.asks) > 1 {
		next = "Tab next question · "
	}
	return "o once · a always · d deny · ←→ Enter choose · " + next + "↑↓ scroll · Esc later"
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
	head := []string{
		" " + t.Warn.Render("? "+m.world.name(ask.AgentID)) + " asks for " + t.Bold.Render(markdown.OneLine(ask.Tag, width)) + t.Dim.Render(count),
	}
	if ask.Reason != "" {
		for _, l := range m.screen.render.Code(markdown.Clean(ask.Reason), "", width-4) {
			head = append(head, "   "+l)
		}
	}
	head = append(head, "")
	tail := append([]string{""}, o.buttons(m, ask, width)...)
	request := m.requestLines(ask, width-4)
	room := max(3, height-len(head)-len(tail))
	o.top = max(0, min(o.top, len(request)-room))
	shown := request[o.top:min(len(request), o.top+room)]
	if rest := len(request) - o.top - len(shown); rest > 0 {
		shown = append(shown[:len(shown)-1:len(shown)-1], t.Warn.Render(fmt.Sprintf("   … %d more lines, ↓ shows them", rest+1)))
	}
	return append(append(head, shown...), tail...)
}

// requestLines are the exact command, path or diff: nothing of it is shortened.
func (m *Model) requestLines(ask event.Ask, width int) []string {
	language := ""
	if strings.Contains(ask.Request, "\n@@") || strings.HasPrefix(ask.Request, "--- ") || strings.HasPrefix(ask.Request, "@@") {
		language = "diff"
	}
	lines := m.screen.render.Code(markdown.Clean(askText(ask)), language, width)
	for i := range lines {
		lines[i] = m.screen.theme.Rule.Render("  │ ") + lines[i]
	}
	return lines
}

func (o *approvals) buttons(m *Model, ask event.Ask, width int) []string {
	t := m.screen.theme
	var row []string
	for i, a := range answers {
		text := "[" + a.key + "] " + a.text
		if a.decision == "always" {
			text += " " + markdown.OneLine(ask.Tag, 40)
		}
		if i == o.choice {
			row = append(row, t.Selected.Render(" ▸ "+text+" "))
			continue
		}
		row = append(row, "   "+text+" ")
	}
	age := "asked " + transcript.Elapsed(m.screen.now.Sub(ask.AskedAt)) + " ago"
	if !ask.ExpiresAt.IsZero() {
		age += " · expires in " + transcript.Elapsed(ask.ExpiresAt.Sub(m.screen.now))
	}
	return []string{cellMax(" "+strings.Join(row, " "), width), t.Dim.Render("   " + age)}
}
