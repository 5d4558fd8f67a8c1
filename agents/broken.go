package agents

import (
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strconv"
	"strings"

	"daycare/engine/finding"
	"daycare/engine/record"
)

// Users see file problems in the log, in events and in daycare status. The model sees each
// one once, as a line before the next message, and once more when the file is valid
// again. What the model already knows is read from its context, so it survives sleep and
// restarts, and a notice that left the context is repeated.

const (
	brokenFile = "Broken file "
	mendedFile = "Mended file "
	mostBroken = 5 // lines in one message
)

// fileNotices is what the model has read of broken files, as far as its context was read.
type fileNotices struct {
	place record.Place
	open  map[string][]string // lines of files that are broken as far as the model knows, by file
}

// of returns the lines in c on files that are broken as far as the model knows, by file.
func (n *fileNotices) of(c *record.Context) map[string][]string {
	entries, anew := n.place.Read(c)
	if anew {
		n.open = map[string][]string{}
	}
	for _, e := range entries {
		if u, ok := e.Rec.(*record.User); ok && u.Preface != "" {
			n.add(u.Preface)
		}
	}

	return n.open
}

func (n *fileNotices) add(preface string) {
	for line := range strings.SplitSeq(preface, "\n") {
		if rest, ok := strings.CutPrefix(line, brokenFile); ok {
			n.open[quoted(rest)] = append(n.open[quoted(rest)], line)
		} else if rest, ok := strings.CutPrefix(line, mendedFile); ok {
			delete(n.open, quoted(rest))
		}
	}
}

// notices are the lines on broken files that the model has not read yet. open is what it
// has read.
func notices(broken findings, open map[string][]string) []string {
	if len(broken)+len(open) == 0 {
		return nil
	}
	var lines []string
	still := map[string]bool{}
	for _, f := range broken {
		still[f.File] = true
		if line := notice(f); !slices.Contains(open[f.File], line) {
			lines = append(lines, line)
		}
	}

	if n := len(lines) - mostBroken; n > 0 {
		lines = append(lines[:mostBroken], fmt.Sprintf("and %d more; the user can list them with: daycare doctor", n))
	}
	for _, file := range slices.Sorted(maps.Keys(open)) {
		if !still[file] {
			lines = append(lines, mendedFile+strconv.Quote(file)+": it is valid again, and active.")
		}
	}

	return lines
}

// notice is the text that reports a finding to the model.
func notice(f finding.Finding) string {
	place := ""
	switch {
	case f.Column > 0:
		place = fmt.Sprintf(" line %d, column %d:", f.Line, f.Column)
	case f.Line > 0:
		place = fmt.Sprintf(" line %d:", f.Line)
	}

	force := "its last valid version stays active"
	if f.Severity != finding.Error || record.Unreadable(f) {
		force = "that part of it is ignored"
	}

	return brokenFile + strconv.Quote(f.File) + ":" + place + " " + firstLine(f.Reason) + ". Until the user corrects it, " + force + "."
}

// quoted is the file name that a line begins with.
func quoted(s string) string {
	q, err := strconv.QuotedPrefix(s)
	if err != nil {
		return ""
	}
	name, _ := strconv.Unquote(q)

	return name
}

// logProblems returns a list of problems that are only logged.
func logProblems(log *slog.Logger) *finding.Problems {
	return finding.NewProblems(func(agent string, f finding.Finding) {
		f.Log(log, "agent", agent)
	}, func(agent, file string) { log.Info("file is valid again", "agent", agent, "file", file) })
}
