package files

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"daycare/tools"
)

type editArgs struct {
	Path string `json:"path"`
	swap
	Edits []swap `json:"edits"`
}

// A swap puts new text in the place of old.
type swap struct {
	Old string `json:"old"`
	New string `json:"new"`
	All bool   `json:"all"`
}

// swaps are the changes of a call, in order.
func (a editArgs) swaps() []swap {
	if a.Old == "" && a.New == "" && len(a.Edits) > 0 {
		return a.Edits
	}
	return append([]swap{a.swap}, a.Edits...)
}

// edit makes all changes of a call or none.
func edit(ctx context.Context, r *reach, a editArgs) (tools.Result, error) {
	p, err := r.file(a.Path, true)
	if err != nil {
		return tools.Result{}, err
	}
	defer p.close()
	name := r.shown(p.abs)
	if err := p.writable(name); err != nil {
		return tools.Result{}, err
	}
	if err := r.seen.stale(r.agent, p, name); err != nil {
		return tools.Result{}, err
	}

	data, err := readAll(p, name, maxChange)
	if err != nil {
		return tools.Result{}, err
	}
	if isBinary(data[:min(len(data), sniff)]) {
		return tools.Errorf("%s is a binary file", name), nil
	}

	before, after := string(data), string(data)
	var told []string
	swaps := a.swaps()
	for i, s := range swaps {
		text, what, err := s.in(after, name)
		if ctx.Err() != nil {
			return tools.Result{}, ctx.Err()
		}
		if err != nil && len(swaps) > 1 {
			return tools.Errorf("edit %d of %d: %v\n[nothing was changed]", i+1, len(swaps), err), nil
		}
		if err != nil {
			return tools.Errorf("%v", err), nil
		}
		after, told = text, append(told, what)
	}

	if err := p.replace([]byte(after)); err != nil {
		return tools.Result{}, fmt.Errorf("edit %s: %s", name, plain(err))
	}

	r.noteWritten(p)
	return tools.Result{Text: strings.Join(told, "\n"), Blocks: diff(name, before, after)}, nil
}

// in makes the change in the text of a file and says what was done.
func (s swap) in(text, name string) (after, what string, err error) {
	switch {
	case s.Old == "":
		return "", "", errors.New("old is empty; to make a file use write")
	case s.Old == s.New:
		return "", "", errors.New("old and new are the same")
	}

	s = s.inLineEndsOf(text)
	n := strings.Count(text, s.Old)
	switch {
	case n == 0:
		return "", "", fmt.Errorf("old is not in %s.%s", name, closest(text, s.Old))
	case n > 1 && !s.All:
		return "", "", fmt.Errorf("old is %d times in %s (lines %s); add lines around it to make it unique, or set all",
			n, name, where(text, s.Old))
	}

	if long := int64(len(text)) + int64(n)*int64(len(s.New)-len(s.Old)); long > maxChange { // before it takes that memory
		return "", "", fmt.Errorf("the file would have %s; at most %s can be written", size(long), size(maxChange))
	}
	what = fmt.Sprintf("changed line %d of %s", lineOf(text, strings.Index(text, s.Old)), name)
	if n > 1 {
		what = fmt.Sprintf("changed %d places in %s (lines %s)", n, name, where(text, s.Old))
	}

	return strings.ReplaceAll(text, s.Old, s.New), what, nil
}

// inLineEndsOf lets a model, which sees lines and not their ends, edit a file
// whose lines end as on Windows.
func (s swap) inLineEndsOf(text string) swap {
	if strings.Contains(text, s.Old) || !strings.Contains(text, "\r\n") || strings.Contains(s.Old, "\r") {
		return s
	}
	s.Old, s.New = strings.ReplaceAll(s.Old, "\n", "\r\n"), strings.ReplaceAll(s.New, "\n", "\r\n")
	return s
}

func lineOf(text string, offset int) int { return strings.Count(text[:offset], "\n") + 1 }

// where lists the lines at which old begins, the first ten.
func where(text, old string) string {
	var lines []string
	for offset := 0; ; {
		i := strings.Index(text[offset:], old)
		if i < 0 {
			return strings.Join(lines, ", ")
		}
		if len(lines) == 10 {
			return strings.Join(lines, ", ") + ", …"
		}

		offset += i
		lines = append(lines, fmt.Sprint(lineOf(text, offset)))
		offset += len(old)
	}
}

const (
	maxCompared = 20_000 // lines that are compared for the closest one
	maxCompare  = 300    // bytes of each that are
)

// closest helps after a miss: it shows the line that is most like the first line
// of what was looked for.
func closest(text, old string) string {
	want := firstLine(old)
	if want == "" {
		return " Read the file again and copy the text exactly."
	}
	grams := bigrams(want)
	best, bestLine, bestText, n := 0.0, 0, "", 0
	for line := range strings.Lines(text) {
		if n++; n > maxCompared {
			break
		}
		line = strings.TrimRight(line, "\r\n")
		score := alike(grams, want, cutAt(strings.TrimSpace(line), maxCompare))
		if score > best {
			best, bestLine, bestText = score, n, line
		}
	}

	if best < 0.4 {
		return " No line is like its first one. Read the file again."
	}
	hint := ""
	if strings.TrimSpace(bestText) == want {
		hint = " Spaces, or the lines after it, differ."
	}

	return fmt.Sprintf(" The closest line is\n%d\t%s\n%sRead the file again and copy the text exactly, without line numbers.",
		bestLine, cutAt(bestText, maxCompare), strings.TrimPrefix(hint+" ", " "))
}

func firstLine(s string) string {
	for line := range strings.Lines(s) {
		if line = strings.TrimSpace(line); line != "" {
			return cutAt(line, maxCompare)
		}
	}

	return ""
}

func cutAt(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}

	return s[:n]
}

type gram [2]byte

func bigrams(s string) map[gram]int {
	m := make(map[gram]int, len(s))
	for i := 0; i+1 < len(s); i++ {
		m[gram{s[i], s[i+1]}]++
	}

	return m
}

// alike is Dice's measure over pairs of letters: 1 for the same text, 0 for
// nothing in common.
func alike(grams map[gram]int, want, line string) float64 {
	if want == line {
		return 1
	}
	if len(want) < 2 || len(line) < 2 {
		return 0
	}

	common := 0
	for g, n := range bigrams(line) {
		common += min(n, grams[g])
	}

	return 2 * float64(common) / float64(len(want)+len(line)-2)
}
