package cassette

import (
	"fmt"
	"slices"
	"strings"

	"github.com/aymanbagabas/go-udiff"
)

// A Mismatch is a request that is not on a tape.
type Mismatch struct {
	Head    Head
	Call    int    // number of the recorded call that is most like it; 0: there is none
	Differs string // how the two differ, in lines
}

// Error says so in a line; Differs has the details.
func (m *Mismatch) Error() string {
	if m.Call == 0 {
		return "the cassette has no such request: " + strings.TrimSpace(firstLine(m.Differs))
	}
	return fmt.Sprintf("the request is not the one on the cassette (call %d): %s", m.Call, strings.TrimSpace(firstLine(m.Differs)))
}

func firstLine(s string) string {
	first, _, _ := strings.Cut(s, "\n")
	return strings.TrimSuffix(first, ":")
}

// differences says how a request differs from the recorded one, first what comes first in it.
func differences(was, now frame) string {
	var b strings.Builder
	option := func(name string, was, now any) {
		if was != now {
			fmt.Fprintf(&b, "%s: recorded %v, now %v\n", name, was, now)
		}
	}
	option("model", was.options.Model, now.options.Model)
	option("maxTokens", was.options.MaxTokens, now.options.MaxTokens)
	option("temperature", number(was.options.Temperature), number(now.options.Temperature))
	option("thinking", was.options.Thinking, now.options.Thinking)
	if was.system != now.system {
		b.WriteString("the system prompt:\n" + unified(was.system, now.system))
	}

	toolDifferences(&b, was.tools, now.tools)
	messageDifferences(&b, was.messages, now.messages)

	return b.String()
}

func number(n *float64) string {
	if n == nil {
		return "unset"
	}
	return fmt.Sprint(*n)
}

func toolDifferences(b *strings.Builder, was, now []tool) {
	named := func(list []tool, name string) int {
		return slices.IndexFunc(list, func(t tool) bool { return t.Name == name })
	}
	for _, t := range was {
		switch i := named(now, t.Name); {
		case i < 0:
			fmt.Fprintf(b, "the tool %s: recorded, and the agent does not have it now\n", t.Name)
		case now[i].Description != t.Description || string(now[i].Schema) != string(t.Schema):
			fmt.Fprintf(b, "the tool %s:\n%s", t.Name, unified(t.definition(), now[i].definition()))
		}
	}

	for _, t := range now {
		if named(was, t.Name) < 0 {
			fmt.Fprintf(b, "the tool %s: not recorded, and the agent has it now\n", t.Name)
		}
	}
}

// definition is what the model reads of a tool.
func (t tool) definition() string { return t.Description + "\n" + string(t.Schema) }

// messageDifferences shows the first message that differs: those after it follow from it.
func messageDifferences(b *strings.Builder, was, now []said) {
	for i := range max(len(was), len(now)) {
		switch {
		case i >= len(was):
			fmt.Fprintf(b, "message %d of %d is not recorded:\n%s", i+1, len(now), newest(frame{messages: now[:i+1]}))
			return
		case i >= len(now):
			fmt.Fprintf(b, "message %d (%s) is recorded, and not in the request:\n%s", i+1, was[i].Role, indent(was[i].Text))
			return
		case was[i] != now[i]:
			fmt.Fprintf(b, "message %d (%s):\n%s", i+1, now[i].Role, unified(was[i].Role+"\n"+was[i].Text, now[i].Role+"\n"+now[i].Text))
			return
		}
	}
}

// newest is the end of a request, for one that has nothing to be compared with.
func newest(f frame) string {
	if len(f.messages) == 0 {
		return ""
	}
	m := f.messages[len(f.messages)-1]
	return indent(m.Role + ": " + m.Text)
}

// maxShown is how many lines of a difference are shown.
const maxShown = 60

func unified(was, now string) string {
	text := udiff.Unified("recorded", "now", was+"\n", now+"\n")
	return indent(strings.TrimSuffix(text, "\n"))
}

func indent(text string) string {
	lines := strings.Split(text, "\n")
	if len(lines) > maxShown {
		lines = append(lines[:maxShown:maxShown], fmt.Sprintf("… %d more lines", len(lines)-maxShown))
	}

	return "  " + strings.Join(lines, "\n  ") + "\n"
}
