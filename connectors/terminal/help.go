package terminal

import (
	tea "charm.land/bubbletea/v2"
)

// A help is every key and command.
type help struct{ top int }

// keyHelp are the keys, in the order in which a person meets them.
var keyHelp = [][2]string{
	{"Enter", "send; an agent at work reads it at its next step"},
	{"Tab", "send when the agent is done with what it does"},
	{"Alt+↑", "take back the last message that waits"},
	{"Ctrl+Q", "everything that waits for this agent"},
	{"Alt+Enter, Ctrl+J", "new line"},
	{"Esc", "stop the agent; twice while a tool runs"},
	{"Ctrl+C", "clear what is typed; then leave, asked twice"},
	{"", ""},
	{"Ctrl+Y", "answer what agents ask"},
	{"Ctrl+G", "all agents"},
	{"Ctrl+P", "find an agent"},
	{"Ctrl+←→, Alt+←→", "the agents of the head line, one after the other"},
	{"Ctrl+↑↓, Alt+K/J", "whom it works for, and who works for it"},
	{"Alt+1…9", "one of the agents of the head line"},
	{"", ""},
	{"PgUp PgDn, wheel", "scroll; Esc goes back to the end"},
	{"Shift+↑↓", "choose a tool call or a thought; Enter opens it"},
	{"Ctrl+T", "open or close all of them"},
	{"↑↓", "what was typed before"},
	{"Ctrl+O", "write in $EDITOR"},
	{"F4", "let the mouse select text; Shift+drag does, too"},
	{"Ctrl+L", "draw the screen again"},
	{"Ctrl+Z", "put daycare in the background"},
	{"", ""},
}

func (h *help) key(_ *Model, k tea.KeyPressMsg) (bool, tea.Cmd) {
	switch k.String() {
	case "up", "k":
		h.top--
	case "down", "j":
		h.top++
	case "pgup":
		h.top -= 10
	case "pgdown", "space":
		h.top += 10
	default:
		return true, nil
	}
	return false, nil
}

func (h *help) help(*Model) string { return "↑↓ scroll · any other key closes" }

func (h *help) lines(m *Model, width, height int) []string {
	t := m.screen.theme
	var all []string
	for _, k := range keyHelp {
		all = append(all, " "+t.Accent.Render(cell(k[0], 20))+cellMax(k[1], width-21))
	}
	for _, c := range commands() {
		all = append(all, " "+t.Accent.Render(cell("/"+c.name+" "+c.args, 26))+cellMax(c.does, width-27))
	}
	all = append(all, " "+t.Accent.Render(cell("!COMMAND", 26))+cellMax("run a shell command; the agent sees what it printed", width-27))
	all = append(all, " "+t.Accent.Render(cell("@FILE", 26))+cellMax("name a file; Tab completes it", width-27))
	h.top = max(0, min(h.top, len(all)-height))
	return all[h.top:min(len(all), h.top+height)]
}
