package terminal

import (
	"strings"

	"charm.land/bubbles/v2/key"
	"charm.land/bubbles/v2/textarea"
	tea "charm.land/bubbletea/v2"
	"charm.land/lipgloss/v2"

	"daycare/connectors/terminal/theme"
)

// maxInput is how many lines of what is typed are shown at once.
const maxInput = 8

// An input is the line to type in, with what was typed before and completion.
type input struct {
	area   textarea.Model
	pastes pastes            // that tokens in the text stand for
	marks  *strings.Replacer // draws the tokens
	typed  []string          // what was sent before, packed, oldest first
	back   int               // how far back it is shown; 0: what is being typed
	kept   string            // what was being typed when going back began, packed
	menu   menu              // completion
}

func newInput(typed []string) input {
	a := textarea.New()
	a.Prompt = "› "
	a.ShowLineNumbers = false
	a.DynamicHeight, a.MinHeight, a.MaxHeight, a.MaxContentHeight = true, 1, maxInput, 10_000
	a.CharLimit = 0
	a.EndOfBufferCharacter = ' '
	a.SetVirtualCursor(false)
	a.SetHeight(1)
	a.SetPromptFunc(2, func(i textarea.PromptInfo) string {
		if i.LineNumber == 0 {
			return "› "
		}
		return "  "
	})
	// Enter sends; terminals that cannot tell shift+enter have the other two.
	a.KeyMap.InsertNewline = key.NewBinding(key.WithKeys("alt+enter", "ctrl+j", "shift+enter"))
	a.Focus()
	return input{area: a, typed: typed}
}

func (in *input) dress(t *theme.Theme) {
	plain := lipgloss.NewStyle()
	state := textarea.StyleState{Base: plain, Text: plain, CursorLine: plain, EndOfBuffer: plain,
		Placeholder: t.Dim, Prompt: t.Accent.Bold(true), Selection: plain.Reverse(true), LineNumber: plain, CursorLineNumber: plain}
	in.area.SetStyles(textarea.Styles{Focused: state, Blurred: state, Cursor: textarea.CursorStyle{Shape: tea.CursorBar, Blink: true}})
	on, off := theme.Around(t.Accent)
	in.marks = strings.NewReplacer(opens, on+"[", gap, " ", closes, "]"+off)
}

// value is what is typed, packed.
func (in *input) value() string { return in.pastes.packed(in.area.Value()) }

// shown is what is typed, with tokens for its pastes.
func (in *input) shown() string { return in.area.Value() }

func (in *input) empty() bool { return in.area.Length() == 0 }

// set puts text from elsewhere into the input.
func (in *input) set(text string) { in.restore(packedAs(text)) }

// restore puts packed text into the input.
func (in *input) restore(packed string) {
	in.pastes = nil
	in.replace(unpack(packed, in.pastes.add))
	in.back = 0
}

// replace changes what is shown; its tokens stay what they are.
func (in *input) replace(shown string) {
	in.area.SetValue(shown)
	in.area.MoveToEnd()
	in.menu = menu{}
}

// update gives a key or a paste to the text.
func (in *input) update(msg tea.Msg) tea.Cmd {
	line, column := in.area.Line(), in.area.Column()
	var cmd tea.Cmd
	in.area, cmd = in.area.Update(msg)
	if len(in.pastes) > 0 {
		in.keepTokens(line, column)
	}

	return cmd
}

// sent notes what was sent, packed.
func (in *input) sent(packed string) {
	if n := len(in.typed); n == 0 || in.typed[n-1] != packed {
		in.typed = append(in.typed, packed)
	}
	in.set("")
}

// older and newer walk through what was typed before, from the first and last
// line of the text. They report whether the key was for them.
func (in *input) older() bool {
	if in.area.Line() > 0 || in.area.LineInfo().RowOffset > 0 || in.back >= len(in.typed) {
		return false
	}
	if in.back == 0 {
		in.kept = in.value()
	}

	return in.show(in.back + 1)
}

func (in *input) newer() bool {
	if in.back == 0 || in.area.Line() < in.area.LineCount()-1 {
		return false
	}
	return in.show(in.back - 1)
}

func (in *input) show(back int) bool {
	text := in.kept
	if back > 0 {
		text = in.typed[len(in.typed)-back]
	}
	in.restore(text)
	in.back = back
	return true
}

// lines are the text as it is shown.
func (in *input) lines(width int) []string {
	in.area.SetWidth(width)
	return strings.Split(in.marks.Replace(in.area.View()), "\n")
}
