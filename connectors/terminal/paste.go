package terminal

import (
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	tea "charm.land/bubbletea/v2"
)

// A paste of so many lines or characters is shown as one token.
const pasteLines, pasteRunes = 10, 1000

// The input takes text of so many lines and bytes as it is. Text that has more, or
// characters that the input would change, is folded wherever it comes from.
const heldLines, heldBytes = 1000, 64 << 10

// A token is one word between two characters that no text has: Unicode keeps them for
// the inside of programs. On the screen they are brackets, and gap is a space.
const opens, closes, gap = "\uFDD0", "\uFDD1", "\uFDD2"

// A pasted is text that a token stands for.
type pasted struct {
	token, text string
	n           int
}

// pastes are those of one input, oldest first.
//
// Text with its pastes unfolded in place, each between opens and closes, is called packed:
// so it is kept in drafts and in the history of what was typed.
type pastes []pasted

// tidy makes what a terminal pastes into text: terminals send line breaks as they send Enter.
func tidy(text string) string {
	return strings.NewReplacer("\r\n", "\n", "\r", "\n").Replace(strings.ToValidUTF8(text, "\uFFFD"))
}

// lineCount is how many lines a text has.
func lineCount(text string) int { return strings.Count(strings.TrimSuffix(text, "\n"), "\n") + 1 }

// folds reports whether a paste is shown as a token.
func folds(text string) bool {
	return lineCount(text) >= pasteLines || utf8.RuneCountInString(text) >= pasteRunes ||
		strings.ContainsAny(text, opens+closes+gap)
}

// held reports whether the input takes a text without changing it.
func held(text string) bool {
	return lineCount(text) <= heldLines && len(text) <= heldBytes && !strings.ContainsFunc(text, func(r rune) bool {
		return r != '\n' && unicode.IsControl(r) || r == utf8.RuneError || strings.ContainsRune(opens+closes+gap, r)
	})
}

// inside keeps the marks of tokens apart from the same characters in a text.
var (
	inside  = strings.NewReplacer(gap, gap+"0", opens, gap+"1", closes, gap+"2")
	outside = strings.NewReplacer(gap+"0", gap, gap+"1", opens, gap+"2", closes)
)

// pack is text as one paste.
func pack(text string) string { return opens + inside.Replace(text) + closes }

// packedAs is text from elsewhere, packed where the input would change it.
func packedAs(text string) string {
	if held(text) {
		return text
	}
	return pack(text)
}

// unpack is packed text with each paste as f has it.
func unpack(packed string, f func(text string) string) string {
	var b strings.Builder
	for {
		before, rest, more := strings.Cut(packed, opens)
		b.WriteString(before)
		body, after, closed := strings.Cut(rest, closes)
		if !more || !closed {
			b.WriteString(rest)
			return b.String()
		}
		b.WriteString(f(outside.Replace(body)))
		packed = after
	}
}

// whole is what packed text says.
func whole(packed string) string {
	return unpack(packed, func(text string) string { return text })
}

// add makes the token of a paste.
func (ps *pastes) add(text string) string {
	p := pasted{text: text, n: 1}
	if len(*ps) > 0 {
		p.n = (*ps)[len(*ps)-1].n + 1
	}
	label := "pasted " + grouped(lineCount(text)) + " lines"
	if lineCount(text) < pasteLines {
		label = "pasted " + grouped(utf8.RuneCountInString(text)) + " characters"
	}
	if p.n > 1 {
		label += " #" + strconv.Itoa(p.n)
	}
	p.token = opens + strings.ReplaceAll(label, " ", gap) + closes
	*ps = append(*ps, p)
	return p.token
}

// grouped is a number with a comma before each thousand.
func grouped(n int) string {
	s := strconv.Itoa(n)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}

	return s
}

// packed is the text of the input with its tokens unfolded.
func (ps pastes) packed(shown string) string {
	var pairs []string
	for _, p := range ps {
		pairs = append(pairs, p.token, pack(p.text))
	}

	return strings.NewReplacer(pairs...).Replace(shown)
}

// refold packs a text that came back from an editor: pastes that are still in it as they
// were, and what is between them where the input would change it.
func (ps pastes) refold(text string) string {
	for _, p := range ps {
		if before, after, ok := strings.Cut(text, p.text); ok {
			return ps.refold(before) + pack(p.text) + ps.refold(after)
		}
	}

	return packedAs(text)
}

// mend takes away what is left of tokens that lost a part, and puts the cursor, at rune at,
// where it is in the new text and in no token.
func (ps pastes) mend(shown string, at int, forward bool) (string, int) {
	in, now := []rune(shown), 0
	var out []rune
	for i := 0; i < len(in); {
		if i <= at {
			now = len(out)
		}
		switch string(in[i]) {
		case opens:
			token := ps.at(in[i:])
			if token == nil {
				i += ps.head(in[i:])
				continue
			}
			if i < at && at < i+len(token) && forward {
				at = i + len(token)
			}
			out = append(out, token...)
			i += len(token)
		case closes: // the beginning of its token is gone
			out = out[:len(out)-ps.tail(out)]
			i++
		default:
			out = append(out, in[i])
			i++
		}
	}
	if at >= len(in) {
		now = len(out)
	}

	return string(out), min(now, len(out))
}

// at is the token that a text begins with, nil for none. Its letters may have been
// changed from small to capital.
func (ps pastes) at(text []rune) []rune {
	for _, p := range ps {
		if t := []rune(p.token); len(text) >= len(t) && strings.EqualFold(string(text[:len(t)]), p.token) {
			return t
		}
	}

	return nil
}

// head is how much of a text is the beginning of a token.
func (ps pastes) head(text []rune) int {
	most := 1
	for _, p := range ps {
		n := 0
		for t := []rune(p.token); n < min(len(t), len(text)) && t[n] == text[n]; {
			n++
		}
		most = max(most, n)
	}

	return most
}

// tail is how much at the end of a text is the rest of a token without its last mark.
func (ps pastes) tail(text []rune) int {
	most := 0
	for _, p := range ps {
		t := []rune(p.token)
		t = t[:len(t)-1]
		n := 0
		for n < min(len(t), len(text)) && t[len(t)-1-n] == text[len(text)-1-n] {
			n++
		}
		most = max(most, n)
	}

	return most
}

// among are the pastes that a text still has.
func (ps pastes) among(shown string) pastes {
	return slices.DeleteFunc(slices.Clone(ps), func(p pasted) bool { return !strings.Contains(shown, p.token) })
}

// paste puts pasted text into the input, as a token if it is long.
func (in *input) paste(text string) tea.Cmd {
	text = tidy(text)
	if folds(text) {
		text = in.pastes.add(text)
	}

	return in.update(tea.PasteMsg{Content: text})
}

// keepTokens mends the tokens after a key. The cursor was at a line and column before.
func (in *input) keepTokens(line, column int) {
	shown := in.area.Value()
	at := in.area.Column()
	for _, l := range strings.Split(shown, "\n")[:in.area.Line()] {
		at += utf8.RuneCountInString(l) + 1
	}
	forward := in.area.Line() > line || in.area.Line() == line && in.area.Column() >= column
	mended, now := in.pastes.mend(shown, at, forward)
	in.pastes = in.pastes.among(mended)
	if mended == shown && now == at {
		return
	}
	in.area.SetValue(mended)
	in.area.MoveToBegin()
	before := string([]rune(mended)[:now])
	to := strings.Count(before, "\n")
	for n := 0; in.area.Line() < to && n <= now; n++ {
		in.area.CursorDown()
	}
	in.area.SetCursorColumn(utf8.RuneCountInString(before[strings.LastIndexByte(before, '\n')+1:]))
}

// help says what can be done with what is typed.
func (in *input) help() string {
	if len(in.pastes) > 0 {
		return "Enter sends · Backspace deletes the paste · Ctrl+O opens it · Ctrl+C clears"
	}
	return "Enter sends · Alt+Enter new line · Ctrl+O editor · Ctrl+C clears"
}
