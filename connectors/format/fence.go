package format

import "strings"

// A fence is the code fence or the table that a place in a text is in; zero:
// none. A part that begins in one begins with its first lines again.
type fence struct {
	line string // the opening line, without its end; of a table its two
	mark string // its run of ` or ~; "" in a table
}

// open is what a part begins with that begins inside the fence.
func (f fence) open() string {
	if f.line == "" {
		return ""
	}
	return f.line + "\n"
}

// close is what a part ends with that ends inside the fence.
func (f fence) close(text string) string {
	switch {
	case f.mark == "":
		return ""
	case strings.HasSuffix(text, "\n"):
		return f.mark
	}

	return "\n" + f.mark
}

// after is the fence at the end of text, which begins in f.
func (f fence) after(text string) fence {
	before := ""
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, "\r\n")
		mark, rest := fenceMark(line)
		switch {
		case mark == "" && f.mark == "":
			f = f.table(before, line)
			before = line
		case mark == "":
		case f.mark == "":
			if mark[0] != '`' || !strings.Contains(rest, "`") { // else it is code in a line
				f = fence{line, mark}
			}
		case mark[0] == f.mark[0] && len(mark) >= len(f.mark) && strings.TrimSpace(rest) == "":
			f = fence{}
		}
	}

	return f
}

// table is the table, if any, at the end of a line outside of code, which follows
// another. It ends where its rows do: models write every row with a bar.
func (f fence) table(before, line string) fence {
	switch {
	case f.line != "" && strings.Contains(line, "|"):
		return f
	case strings.Contains(before, "|") && strings.Contains(line, "-") && strings.Contains(line, "|") && strings.Trim(line, "|-: \t") == "":
		return fence{line: before + "\n" + line}
	}

	return fence{}
}

// opensAt reports whether the last line of text, which begins in f, opens a fence
// or is the beginning of a line that may: cut there, the fence would be empty.
func (f fence) opensAt(text string) bool {
	start := strings.LastIndexByte(strings.TrimSuffix(text, "\n"), '\n') + 1
	if mark, _ := fenceMark(text[start:]); mark == "" {
		return false
	}

	return f.after(text[:start]).mark == "" && f.after(text).mark != ""
}

// fenceMark returns the run of three or more ` or ~ that a line begins with, and
// what follows it.
func fenceMark(line string) (mark, rest string) {
	body := strings.TrimLeft(line, " ")
	if len(line)-len(body) > 3 || body == "" || body[0] != '`' && body[0] != '~' {
		return "", ""
	}
	rest = strings.TrimLeft(body, body[:1])
	mark = body[:len(body)-len(rest)]
	if len(mark) < 3 {
		return "", ""
	}

	return mark, rest
}
