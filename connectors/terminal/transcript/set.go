package transcript

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"charm.land/lipgloss/v2"
	"github.com/charmbracelet/x/ansi"

	"daycare/connectors/terminal/markdown"
	"daycare/connectors/terminal/theme"
)

const (
	// shownOutput is how many lines of an open card's output are shown: its head
	// and its tail.
	shownOutput = 40
	// shownProgress is how many lines of what a running tool prints are shown.
	shownProgress = 3
	// A message of more than longMessage lines shows so many of its beginning and its end.
	longMessage, foldedHead, foldedTail = 40, 6, 3
	// maxText is how wide text is set: longer lines are hard to read.
	maxText = 110
)

// asks is the status of a call that waits for a user's answer: for the model it
// was denied, for users it is not over.
const asks = "asks"

// lines are the block as it is shown now.
func (b *block) lines(f Frame, chosen bool) []string {
	s := &b.set
	child, _ := b.child(f)
	if s.lines == nil || b.volatile() || s.width != f.Width || s.theme != f.Theme || s.open != b.open ||
		s.size != len(b.text) || s.child != child {
		*s = setting{f.Width, f.Theme, b.open, len(b.text), child, b.make(f)}
		if b.gone {
			s.lines = pale(f, s.lines)
		}
	}
	if chosen && len(s.lines) > 0 {
		marked := append([]string(nil), s.lines...)
		marked[0] = f.Theme.Accent.Bold(true).Render("▸") + ansi.TruncateLeft(marked[0], 1, "")
		return marked
	}

	return s.lines
}

// pale takes the styles from lines.
func pale(f Frame, lines []string) []string {
	out := make([]string, len(lines))
	for i, l := range lines {
		out[i] = f.Theme.Dim.Faint(true).Render(ansi.Strip(l))
	}

	return out
}

// make sets the block. Every line begins with two columns for marks.
func (b *block) make(f Frame) []string {
	t, width := f.Theme, min(f.Width-3, maxText)
	switch b.kind {
	case person:
		style := t.Person
		mark := t.Accent.Bold(true).Inherit(style).Render("› ")
		if b.Seq == 0 {
			mark = t.Dim.Inherit(style).Render("… ")
		}
		return filled(mark, style.Render("  "), b.words(f, width), style, f.Width)
	case system:
		from := b.from
		if f.Names != nil {
			from = f.Names(b.from)
		}
		head := t.Accent.Render("✉ from " + from)
		return append([]string{head}, indent("  ", b.words(f, width))...)
	case answer:
		if b.streak {
			b.growing.Margin = "  "
			return b.growing.Lines(f.Renderer, b.text, width)
		}
		return indent("  ", f.Lines(b.text, width))
	case thinking:
		return b.thought(f, width)
	case card:
		return b.card(f, width)
	case shell:
		head := t.Accent.Render("! ") + markdown.OneLine(b.text, width)
		return append([]string{head}, b.detail(f, width)...)
	case trouble:
		return marked(t.Bad.Render("✗ "), styled(t.Bad, wrapped(b.text, width)))
	}

	return marked(t.Dim.Render("· "), styled(t.Dim, wrapped(b.text, width)))
}

// words are a message with its files. Of a long one, such as a paste, the beginning and the end
// are shown until it is opened.
func (b *block) words(f Frame, width int) []string {
	lines := wrapped(b.text, width)
	if b.foldable() && !b.open && len(lines) > foldedHead+foldedTail {
		all := fmt.Sprintf("… %d lines; Shift+↑ and Enter show them all …", b.long())
		lines = slices.Concat(lines[:foldedHead], []string{f.Theme.Dim.Render(all)}, lines[len(lines)-foldedTail:])
	}
	for _, file := range b.files {
		lines = append(lines, fileLine(f, file))
	}

	return lines
}

func fileLine(f Frame, x file) string {
	return f.Theme.Link.Hyperlink("file://"+x.Path).Render(markdown.Clean(x.Name)) +
		f.Theme.Dim.Render(fmt.Sprintf("  %s, %s  %s", x.MimeType, size(x.Size), markdown.Clean(x.Path)))
}

// thought shows the last line while it streams, else one line, until it is opened.
func (b *block) thought(f Frame, width int) []string {
	dim := f.Theme.Dim
	text := strings.TrimSpace(b.text)
	if !b.open {
		head := "thought: " + markdown.OneLine(text, width-12)
		if b.streak {
			head = "thinking… " + markdown.OneLine(lastLine(text), width-12)
		}
		return []string{dim.Render("∴ " + head)}
	}

	return append([]string{dim.Render("∴ thought")}, indent("  ", styled(dim, wrapped(text, width)))...)
}

// card is a call on one line; what went wrong is shown under it, opened or not.
func (b *block) card(f Frame, width int) []string {
	if child, ok := b.child(f); ok {
		return b.subCard(f, child, width)
	}
	t, c := f.Theme, b.tool
	mark, took := t.Accent.Render("●"), ""
	switch c.status {
	case "":
		if d := f.Now.Sub(c.began); d >= time.Second {
			took = Elapsed(d)
		}
	case "ok":
		mark, took = t.Good.Render("✓"), brief(c.ms)
	case "canceled", "interrupted":
		mark, took = t.Dim.Render("∅"), c.status
	case asks:
		mark, took = b.asking(t)
	default:
		mark, took = t.Bad.Render("✗"), joined(", ", c.status, brief(c.ms))
	}
	name := markdown.OneLine(c.Name, 40)
	room := width - ansi.StringWidth(name) - ansi.StringWidth(took) - 4
	head := mark + " " + t.Bold.Render(name) + " " + markdown.OneLine(Subject(c.Arguments), max(room, 8))
	if took != "" {
		head += t.Dim.Render("  " + took)
	}
	lines := []string{head}
	switch {
	case b.open:
		return append(lines, b.detail(f, width)...)
	case c.status == "":
		return append(lines, b.tail(f, width)...)
	case c.status == asks:
	case c.status == "error" || c.status == "denied" || c.status == "timeout":
		return append(lines, failure(f, c.output, width)...)
	case c.diff != "":
		return append(lines, indent("  ", f.Code(firstLines(hunks(c.diff), 8), "diff", width))...)
	}

	return lines
}

// asking is the mark of a call that a user had to be asked about, and how that
// stands. Once it is allowed the model makes the call again, on a card of its own.
func (b *block) asking(t *theme.Theme) (mark, how string) {
	switch a := b.tool.answer; {
	case a == nil:
		return t.Warn.Render("?"), "asks you"
	case a.refused:
		return t.Bad.Render("✗"), a.words
	default:
		return t.Good.Render("?"), a.words
	}
}

// subCard is a call that started an agent: one line, its steps when it is open.
func (b *block) subCard(f Frame, child Child, width int) []string {
	lines := []string{b.subLine(f, child, width)}
	c := b.tool
	switch {
	case b.open:
		lines = append(lines, indent("    ", b.stepLines(f, width-4))...)
		return append(lines, b.detail(f, width)...)
	case c.status == "error" || c.status == "timeout":
		return append(lines, failure(f, c.output, width)...)
	case c.status == "" && c.sub != nil && len(c.sub.steps) > 0:
		steps := b.stepLines(f, width-4)
		return append(lines, "  "+f.Theme.Dim.Render("└ ")+steps[len(steps)-1])
	}

	return lines
}

// shownFailure is how many lines of what went wrong are shown before the card is
// opened.
const shownFailure = 3

// failure is what went wrong, under its card.
func failure(f Frame, output string, width int) []string {
	room := width - 6
	lines := wrapped(markdown.OneLine(output, shownFailure*room-4), room)
	lines = styled(f.Theme.Bad, lines[:min(len(lines), shownFailure)])
	out := indent("    ", lines)
	out[0] = f.Theme.Bad.Render("  └ ") + lines[0]
	return out
}

// tail is what a running tool printed last.
func (b *block) tail(f Frame, width int) []string {
	var lines []string
	text := strings.TrimRight(markdown.Clean(b.tool.progress), "\n")
	if text == "" {
		return nil
	}
	all := strings.Split(text, "\n")
	for _, l := range all[max(0, len(all)-shownProgress):] {
		lines = append(lines, f.Theme.Dim.Render("  │ "+ansi.Truncate(l, width-4, "…")))
	}

	return lines
}

// detail is an open card: arguments, change or output, files.
func (b *block) detail(f Frame, width int) []string {
	c := b.tool
	var lines []string
	if len(c.Arguments) > 0 {
		lines = append(lines, styled(f.Theme.Dim, middle(f.Code(arguments(c.Arguments), "", width-4)))...)
	}
	switch {
	case c.diff != "":
		lines = append(lines, f.Code(c.diff, "diff", width-4)...)
	case c.status == "" && c.progress != "":
		lines = append(lines, middle(f.Code(markdown.Clean(c.progress), "", width-4))...)
	case strings.TrimSpace(c.output) != "":
		lines = append(lines, middle(f.Code(markdown.Clean(c.output), languageOf(c.output), width-4))...)
	}
	lines = indent(f.Theme.Rule.Render("  │ "), lines)
	for _, file := range b.files {
		lines = append(lines, "  "+fileLine(f, file))
	}

	return lines
}

// languageOf is what the output of a tool is set as: a diff, or as it is.
func languageOf(output string) string {
	if markdown.IsDiff(output) {
		return "diff"
	}
	return ""
}

// arguments are shown one a line; text with line breaks as such.
func arguments(raw json.RawMessage) string {
	var args map[string]json.RawMessage
	if json.Unmarshal(raw, &args) != nil {
		return markdown.Clean(string(raw))
	}
	var b strings.Builder
	dec := json.NewDecoder(bytes.NewReader(raw)) // keeps their order
	_, _ = dec.Token()
	for dec.More() {
		key, err := dec.Token()
		if err != nil {
			break
		}
		var value json.RawMessage
		if dec.Decode(&value) != nil {
			break
		}
		var text string
		if json.Unmarshal(value, &text) != nil {
			text = string(value)
		}
		fmt.Fprintf(&b, "%v: %s\n", key, strings.ReplaceAll(markdown.Clean(text), "\n", "\n  "))
	}

	return b.String()
}

// middle leaves out the middle of what is too long.
func middle(lines []string) []string {
	if len(lines) <= shownOutput {
		return lines
	}
	half := shownOutput / 2
	out := append([]string(nil), lines[:half]...)
	out = append(out, fmt.Sprintf("… %d lines …", len(lines)-2*half))
	return append(out, lines[len(lines)-half:]...)
}

// hunks is a diff without the names of the file, which the card has.
func hunks(diff string) string {
	if i := strings.Index(diff, "@@"); i > 0 && strings.HasPrefix(diff, "--- ") {
		return diff[i:]
	}
	return diff
}

func firstLines(s string, n int) string {
	lines := strings.SplitN(s, "\n", n+1)
	if len(lines) > n {
		lines[n] = "…"
	}

	return strings.Join(lines, "\n")
}

func lastLine(s string) string { return s[strings.LastIndexByte(s, '\n')+1:] }

func wrapped(text string, width int) []string {
	return strings.Split(lipgloss.Wrap(strings.TrimRight(markdown.Clean(text), "\n"), max(width, 10), ""), "\n")
}

func styled(s lipgloss.Style, lines []string) []string {
	out := make([]string, len(lines))
	for i, l := range lines {
		out[i] = s.Render(l)
	}

	return out
}

// marked gives the first line a mark of two columns, and the others its space.
func marked(mark string, lines []string) []string {
	out := indent("  ", lines)
	out[0] = mark + lines[0]
	return out
}

func indent(mark string, lines []string) []string {
	out := make([]string, len(lines))
	for i, l := range lines {
		out[i] = mark + l
	}

	return out
}

// filled gives lines a background over the whole width.
func filled(first, next string, lines []string, s lipgloss.Style, width int) []string {
	out := make([]string, len(lines))
	for i, l := range lines {
		mark := next
		if i == 0 {
			mark = first
		}
		gap := max(0, width-2-ansi.StringWidth(l))
		out[i] = mark + s.Render(l+strings.Repeat(" ", gap))
	}

	return out
}

// Elapsed is a time that passed, short: 4s, 1m05s, 2h10m.
func Elapsed(d time.Duration) string {
	switch s := int(d.Seconds()); {
	case s < 60:
		return fmt.Sprintf("%ds", max(s, 0))
	case s < 3600:
		return fmt.Sprintf("%dm%02ds", s/60, s%60)
	case s < 86400:
		return fmt.Sprintf("%dh%02dm", s/3600, s%3600/60)
	default:
		return fmt.Sprintf("%dd", s/86400)
	}
}

// brief is how long a tool took; nothing where nobody would have noticed.
func brief(ms int64) string {
	switch {
	case ms < 100:
		return ""
	case ms < 10_000:
		return fmt.Sprintf("%.1fs", float64(ms)/1000)
	}

	return Elapsed(time.Duration(ms) * time.Millisecond)
}

func size(n int64) string {
	switch {
	case n < 1<<10:
		return fmt.Sprintf("%d B", n)
	case n < 1<<20:
		return fmt.Sprintf("%d KB", n>>10)
	}

	return fmt.Sprintf("%.1f MB", float64(n)/(1<<20))
}
