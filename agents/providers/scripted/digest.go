package scripted

import (
	"fmt"
	"path"
	"strconv"
	"strings"

	"daycare/agents/providers"
	"daycare/engine/lazyregexp"
)

// content is a file as the tool read gives it: numbered lines, and a mark at the
// end if there are more.
type content struct {
	lines []string
	first int // number of lines[0]
	total int // lines in the file
}

var (
	numbered = lazyregexp.New(`^\s*(\d+)\t(.*)$`)
	ofTotal  = lazyregexp.New(`^\[.*\bof (\d+)\b`)
)

func parseContent(text string) content {
	c := content{first: 1}
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, "\r\n")
		if m := numbered.FindStringSubmatch(line); m != nil {
			if len(c.lines) == 0 {
				c.first, _ = strconv.Atoi(m[1])
			}
			c.lines = append(c.lines, m[2])
		} else if m := ofTotal.FindStringSubmatch(line); m != nil {
			c.total, _ = strconv.Atoi(m[1])
		} else if !strings.HasPrefix(line, "[") && line != "" {
			c.lines = append(c.lines, line)
		}
	}
	c.total = max(c.total, c.first+len(c.lines)-1)
	return c
}

func (j *job) readAnswer(name string, r providers.Result) string {
	if len(r.Images) > 0 {
		return fmt.Sprintf("`%s` is a picture. I cannot look at it offline.", name)
	}
	c := parseContent(r.Text)
	if len(c.lines) == 0 {
		return strings.TrimSpace(fmt.Sprintf("`%s` is empty.", name))
	}
	switch j.in.do {
	case says:
		return c.about(name, j.in.what)
	case about:
		return c.summary(name)
	}
	return c.show(name)
}

func (c content) show(name string) string {
	shown := c.lines
	more := ""
	if len(shown) > shownLines {
		shown = shown[:shownLines]
	}
	if c.first+len(shown)-1 < c.total {
		more = fmt.Sprintf("\nThese are lines %d to %d of %d.", c.first, c.first+len(shown)-1, c.total)
	}
	return fmt.Sprintf("`%s`:\n\n%s%s", name, fence(strings.Join(shown, "\n"), language(name)), more)
}

// summary is the first heading and paragraph of a text, the first lines of
// anything else.
func (c content) summary(name string) string {
	head := fmt.Sprintf("`%s` has %s.", name, count(c.total, "line"))
	switch strings.ToLower(path.Ext(name)) {
	case ".md", ".markdown", ".txt", ".rst", "":
		if heading, paragraph := c.opening(); heading != "" || paragraph != "" {
			if heading != "" {
				head += " Its first heading is “" + heading + "”."
			}
			if paragraph != "" {
				head += " It begins:\n\n" + quote(clip(paragraph, 700))
			}
			return head
		}
	}
	shown := c.lines[:min(len(c.lines), 12)]
	return head + " It begins:\n\n" + fence(strings.Join(shown, "\n"), language(name))
}

// opening finds the first heading and the first paragraph of Markdown.
func (c content) opening() (heading, paragraph string) {
	var words []string
	inFence := false
	for _, line := range c.lines {
		line = strings.TrimSpace(line)
		fenceMark := strings.HasPrefix(line, "```")
		if fenceMark {
			inFence = !inFence
		}
		switch {
		case fenceMark || inFence || strings.HasPrefix(line, "<") || strings.HasPrefix(line, "[!"):
			line = ""
		case strings.HasPrefix(line, "#"):
			if heading == "" && len(words) == 0 {
				heading = strings.TrimSpace(strings.Trim(line, "#"))
			}
			line = ""
		}
		if line != "" {
			words = append(words, line)
		} else if len(words) > 0 {
			break
		}
	}
	return heading, strings.Join(words, " ")
}

// about lists the lines that mention what, in any case.
func (c content) about(name, what string) string {
	var hits []string
	for i, line := range c.lines {
		if strings.Contains(strings.ToLower(line), strings.ToLower(what)) {
			hits = append(hits, fmt.Sprintf("%d: %s", c.first+i, clip(strings.TrimSpace(line), 300)))
		}
	}
	part := ""
	if len(c.lines) < c.total {
		part = fmt.Sprintf(" in the first %d of its %d lines", len(c.lines), c.total)
	}
	if len(hits) == 0 {
		return fmt.Sprintf("`%s` does not mention “%s”%s.", name, what, part)
	}
	more := ""
	if n := len(hits) - 10; n > 0 {
		hits, more = hits[:10], fmt.Sprintf("\n… and %s more.", count(n, "line"))
	}
	return fmt.Sprintf("`%s` mentions “%s”%s here:\n\n%s%s", name, what, part, fence(strings.Join(hits, "\n"), ""), more)
}

func count(n int, word string) string {
	if n == 1 {
		return "1 " + word
	}
	return fmt.Sprintf("%d %ss", n, word)
}

// language is the name behind the fence by which user interfaces colour code.
func language(name string) string {
	switch ext := strings.TrimPrefix(strings.ToLower(path.Ext(name)), "."); ext {
	case "go", "py", "js", "ts", "json", "yaml", "sh", "rs", "html", "css", "sql", "toml":
		return ext
	case "yml":
		return "yaml"
	}
	return ""
}
