package files

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"path"
	"path/filepath"
	"regexp"
	"regexp/syntax"
	"strings"
	"unicode/utf8"

	"github.com/bmatcuk/doublestar/v4"

	"daycare/engine/beneath"
	"daycare/tools"
)

// Bounds of what grep returns.
const (
	maxMatches   = 200
	maxGrepBytes = tools.MaxOutput - 2_000
	maxGrepLine  = 300 // bytes of a line that are shown
	// maxSteps is how many steps a pattern has when it is compiled: each may be taken at each character of a line.
	maxSteps = 2000
)

type grepArgs struct {
	Pattern    string `json:"pattern"`
	Path       string `json:"path"`
	Include    string `json:"include"`
	Context    number `json:"context"`
	IgnoreCase bool   `json:"ignoreCase"`
}

// A grepper collects matches.
//
// It reads the files itself, through the handle of the folder that was granted. A
// ripgrep beside it opens its files by name: a folder that is exchanged for a link
// while it walks leads it out, and what it then prints under a name inside cannot
// be distinguished from what is there. In the sandbox it would be safe, but its regular
// expressions, its encodings and its reading of .gitignore are not ours, so the same
// call would find other lines where it is there. What is slow here, expressions
// without a fixed beginning, is helped by required instead.
type grepper struct {
	ctx    context.Context
	reach  *reach
	re     *regexp.Regexp
	need   []byte // occurs in every line that matches; nil: unknown
	around int
	in     *bufio.Reader // of one file after the other
	out    strings.Builder
	hits   int
}

// match reports whether a line matches.
func (g *grepper) match(line []byte) bool { return bytes.Contains(line, g.need) && g.re.Match(line) }

// required returns the longest text that occurs in everything that a regular expression
// matches; "" if there is none.
func required(re *syntax.Regexp) string {
	switch re.Op {
	case syntax.OpLiteral:
		text := string(re.Rune)
		if re.Flags&syntax.FoldCase != 0 || strings.ContainsRune(text, utf8.RuneError) { // which stands for broken bytes, too
			return ""
		}
		return text
	case syntax.OpCapture, syntax.OpPlus:
		return required(re.Sub[0])
	case syntax.OpRepeat:
		if re.Min > 0 {
			return required(re.Sub[0])
		}
	case syntax.OpConcat:
		longest := ""
		for _, sub := range re.Sub {
			if text := required(sub); len(text) > len(longest) {
				longest = text
			}
		}
		return longest
	}

	return ""
}

func grep(ctx context.Context, r *reach, a grepArgs) (tools.Result, error) {
	expr := a.Pattern
	if a.IgnoreCase {
		expr = "(?i)" + expr
	}
	re, err := regexp.Compile(expr)
	if err != nil {
		return tools.Errorf("the pattern is not a regular expression (RE2): %v", err), nil
	}

	parsed, _ := syntax.Parse(expr, syntax.Perl) // as Compile did
	if steps, err := syntax.Compile(parsed.Simplify()); err != nil || len(steps.Inst) > maxSteps {
		return tools.Errorf("the pattern repeats too much: it may have %d steps", maxSteps), nil
	}
	if a.Include != "" && !usable(a.Include) {
		return tools.Errorf("include %q is not a valid pattern, or {a,b} in it stands for more than %d", a.Include, maxWays), nil
	}
	p, err := r.locate(a.Path, false)
	if err != nil {
		return tools.Result{}, err
	}
	defer p.close()
	g := &grepper{ctx: ctx, reach: r, re: re, need: []byte(required(parsed)), in: bufio.NewReaderSize(nil, 64<<10),
		around: min(max(int(a.Context), 0), 20)}
	full := true
	switch {
	case p.info == nil:
		return tools.Result{}, fmt.Errorf("no such file or folder: %s", r.shown(p.abs))
	case p.info.IsDir():
		full, err = r.walk(ctx, p, true, func(v visit) error {
			if a.Include != "" && !included(a.Include, v.rel) {
				return nil
			}
			return g.file(v, r.shown(filepath.Join(p.abs, filepath.FromSlash(v.rel))))
		})
	default:
		err = g.file(visit{p.dir, p.name, "", p.info}, r.shown(p.abs))
	}

	if err != nil && !errors.Is(err, errEnough) {
		return tools.Result{}, err
	}

	return tools.Result{Text: g.text(full)}, nil
}

// included matches a pattern without slash against the name alone.
func included(pattern, rel string) bool {
	if !strings.Contains(pattern, "/") {
		rel = path.Base(rel)
	}
	return doublestar.MatchUnvalidated(pattern, rel)
}

func (g *grepper) text(full bool) string {
	switch {
	case g.hits == 0:
		g.out.WriteString("[no match]\n")
	case g.full():
		g.out.WriteString("[more matches follow; make the pattern or the path narrower]\n")
	}

	if !full {
		g.out.WriteString(stoppedEarly)
	}

	return g.out.String()
}

func (g *grepper) full() bool { return g.hits >= maxMatches || g.out.Len() >= maxGrepBytes }

// file searches one file, line by line. What cannot be read is passed over.
func (g *grepper) file(v visit, name string) error {
	f, _ := beneath.Open(v.dir, v.name, v.info) // of none nothing is read
	defer f.Close()
	in := g.in
	in.Reset(f)
	if head, _ := in.Peek(sniff); isBinary(head) {
		return nil
	}

	s := &stretch{g: g, name: printable(name)}
	for n := 1; ; n++ {
		if n%1000 == 0 && g.ctx.Err() != nil {
			return g.ctx.Err()
		}
		line, err := in.ReadSlice('\n')
		if err == bufio.ErrBufferFull {
			line, err = append([]byte(nil), line...), nil
			skipLine(in)
		}
		if err != nil && err != io.EOF || err == io.EOF && len(line) == 0 {
			return nil
		}

		line = bytes.TrimRight(line, "\r\n")
		hit := g.match(line)
		if len(line) > 1000 && g.ctx.Err() != nil { // with such lines a thousand of them take long
			return g.ctx.Err()
		}
		if !hit && g.around == 0 {
			continue
		}

		s.line(n, string(line), hit)
		if g.full() {
			return errEnough
		}
	}
}

// skipLine reads over the rest of a line that is too long to be looked at.
func skipLine(in *bufio.Reader) {
	for {
		if _, err := in.ReadSlice('\n'); err != bufio.ErrBufferFull {
			return
		}
	}
}

// stretch writes matches with the lines around them.
type stretch struct {
	g       *grepper
	name    string
	before  []string // lines not yet written that may come before a match
	after   int      // lines still to write behind the last match
	written int      // number of the last line written
}

func (s *stretch) line(n int, text string, hit bool) {
	around := s.g.around
	switch {
	case hit:
		if around > 0 && s.g.out.Len() > 0 && n-len(s.before) != s.written+1 {
			s.g.out.WriteString("--\n")
		}
		for i, b := range s.before {
			s.write(n-len(s.before)+i, b, '-')
		}

		s.before = s.before[:0]
		s.write(n, text, ':')
		s.after = around
		s.g.hits++
	case s.after > 0:
		s.write(n, text, '-')
		s.after--
	case around > 0:
		if len(s.before) == around {
			s.before = append(s.before[:0], s.before[1:]...)
		}
		s.before = append(s.before, text)
	}
}

func (s *stretch) write(n int, text string, mark byte) {
	if len(text) > maxGrepLine {
		text = cutAt(text, maxGrepLine) + "…"
	}
	fmt.Fprintf(&s.g.out, "%s:%d%c %s\n", s.name, n, mark, strings.ToValidUTF8(text, "\uFFFD"))
	s.written = n
}
