package terminal

import (
	"fmt"

	"daycare/connectors/terminal/markdown"
)

// A help is every key and command.
type help struct {
	reading
	below int
}

// keyHelp are the keys, in the order in which a user meets them.
var keyHelp = [][2]string{
	{"Enter", "send; a busy agent reads it at its next step"},
	{"Tab", "send when the agent has finished its turn"},
	{"Alt+↑", "take back the last queued message"},
	{"Ctrl+Q", "list this agent's queued items"},
	{"Alt+Enter, Ctrl+J", "new line"},
	{"Esc", "stop the agent; twice while a tool runs"},
	{"Ctrl+C", "clear the input; press twice to leave"},
	{"", ""},
	{"Ctrl+Y", "answer approvals"},
	{"Ctrl+G", "all agents"},
	{"Ctrl+P", "find an agent"},
	{"Ctrl+←→, Alt+←→", "previous or next agent in the head line"},
	{"Ctrl+↑↓, Alt+K/J", "its parent, and its children"},
	{"Alt+1…9", "one of the agents in the head line"},
	{"", ""},
	{"PgUp PgDn, wheel", "scroll; Esc goes back to the end"},
	{"Shift+↑↓", "choose a tool call or a thought; Enter opens it"},
	{"Ctrl+T", "open or close all of them"},
	{"↑↓", "input history"},
	{"Ctrl+O", "write in $EDITOR; opens folded pastes"},
	{"F4", "let the mouse select text; Shift+drag does, too"},
	{"Ctrl+L", "draw the screen again"},
	{"Ctrl+Z", "put daycare in the background"},
	{"", ""},
}

func (h *help) help(m *Model) string {
	rest := ""
	if h.below > 0 {
		rest = fmt.Sprintf(" (%d more lines)", h.below)
	}

	return "↑↓ scroll" + rest + " · any other key closes"
}

// sideBySide is from how many columns on commands stand beside the keys.
const sideBySide = 130

func (h *help) lines(m *Model, width, height int) []string {
	half := width
	if width >= sideBySide {
		half = width / 2
	}
	keys, words := m.screen.helpKeys(half), helpCommands(m, half)
	all := append(keys, words...)
	if half < width {
		all = beside(keys, words, half)
	}
	h.top = max(0, min(h.top, len(all)-height))
	h.below = max(0, len(all)-height-h.top)
	return all[h.top:min(len(all), h.top+height)]
}

func (s *screen) helpKeys(width int) (lines []string) {
	for _, k := range keyHelp {
		lines = append(lines, " "+s.theme.Accent.Render(cell(k[0], 20))+cellMax(k[1], width-21))
	}
	return lines
}

func helpCommands(m *Model, width int) (lines []string) {
	line := func(typed, does string) {
		lines = append(lines, " "+m.screen.theme.Accent.Render(cell(typed, 22))+cellMax(does, width-23))
	}
	for _, c := range commands() {
		line("/"+c.name+" "+c.args, c.does)
	}
	for _, c := range m.world.commands {
		line(markdown.OneLine("/"+c.Name+" "+c.Arguments, 40), markdown.OneLine(c.Description, 200))
	}
	line("!COMMAND", "run a shell command; the agent sees what it printed")
	line("@FILE", "name a file; Tab completes it")
	return lines
}

// beside puts two columns next to each other, the left one width wide.
func beside(left, right []string, width int) []string {
	out := make([]string, max(len(left), len(right)))
	for i := range out {
		l, r := "", ""
		if i < len(left) {
			l = left[i]
		}
		if i < len(right) {
			r = right[i]
		}
		out[i] = cell(l, width) + r
	}

	return out
}
