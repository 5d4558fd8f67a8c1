package show

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"daycare/cmd/daycare/term"
	"daycare/engine/record"
)

// Record is a record for users: its seq, as rewind and fork take it, a time, who,
// and what. Records that only the runtime cares about give "".
func Record(e *record.Entry, s term.Style) term.Styled {
	who, what := Words(e.Rec)
	if who == "" {
		return ""
	}
	at := s.Dim(fmt.Sprintf("%4d  %s", e.Seq, e.At.Local().Format("01-02 15:04:05"))) + "  "
	name := fmt.Sprintf("%-10s", who)
	text := strings.ReplaceAll(strings.TrimRight(what, "\n"), "\n", "\n"+strings.Repeat(" ", 32))
	if who == "you" || who == "agent" {
		return at + s.Bold(name) + term.Plain(text)
	}

	return at + term.Plain(name) + s.Dim(text)
}

func Words(r record.Record) (who, what string) {
	switch r := r.(type) {
	case *record.User:
		return speakUser(r)
	case *record.Assistant:
		return speakAssistant(r)
	case *record.ToolResult:
		return "result", fmt.Sprintf("%s %s %dms  %s", r.Name, r.Status, r.MS, term.OneLine(r.Output.Text, 160))
	case *record.TurnEnd:
		if r.Reason == record.ReasonDone {
			return "", ""
		}
		return "turn", term.Join(": ", "ended "+r.Reason, r.Error)
	case *record.Reset:
		return "session", term.Join(": ", "new ("+r.Reason+")", r.Message)
	case *record.Start:
		return "session", "began"
	case *record.Summary:
		return "summary", r.Text
	case *record.Permission:
		return "rights", term.Join("  ", r.Event, r.Tag, term.OneLine(r.Request, 120), By(r.By))
	case *record.Delivery:
		return speakDelivery(r)
	case *record.Mark:
		return "mark", r.Name
	case *record.Rewind:
		return "rewind", fmt.Sprintf("to %d", r.To)
	case *record.Note:
		return "note", r.Text
	}

	return "", ""
}

func speakUser(r *record.User) (who, what string) {
	what = r.Text
	for _, f := range r.Files {
		what += fmt.Sprintf("\n[file %s, %s, %s]", f.Name, f.MimeType, term.Size(f.Size))
	}

	switch {
	case r.Origin == "":
		return "you", what
	case r.Silent:
		return "system", "(silent, from " + r.Origin + ") " + what
	}

	return "system", "(from " + r.Origin + ") " + what
}

func speakAssistant(r *record.Assistant) (who, what string) {
	var lines []string
	if r.Text != "" {
		lines = append(lines, r.Text)
	}
	for _, call := range r.ToolCalls {
		lines = append(lines, "→ "+Call(call.Name, call.Arguments))
	}

	if r.Finish != record.FinishEndTurn && r.Finish != record.FinishToolUse {
		lines = append(lines, "("+string(r.Finish)+")")
	}

	return "agent", strings.Join(lines, "\n")
}

// speakDelivery reports failed deliveries; successful ones need not be shown.
func speakDelivery(r *record.Delivery) (who, what string) {
	switch {
	case r.Final:
		return "delivery", "given up: " + r.Error
	case r.Error != "":
		return "delivery", "failed, will be retried: " + r.Error
	}

	return "", ""
}

func By(who string) string {
	if who == "" {
		return ""
	}
	return "by " + who
}

// mainArguments are what a call is about, in the words of common tools.
var mainArguments = []string{"command", "path", "file", "file_path", "pattern", "query", "url",
	"permission", "name", "task", "prompt", "text"}

// Call is a tool call on one line: its name and what it is about.
func Call(name string, arguments json.RawMessage) string {
	var args map[string]any
	if json.Unmarshal(arguments, &args) != nil {
		return term.OneLine(name, 60)
	}

	return term.Join(" ", term.OneLine(name, 60), term.OneLine(mainArgument(args), 100))
}

func mainArgument(args map[string]any) string {
	for _, key := range mainArguments {
		if s, ok := args[key].(string); ok && s != "" {
			return s
		}
	}

	var keys []string
	for key, v := range args {
		if _, ok := v.(string); ok {
			keys = append(keys, key)
		}
	}

	if len(keys) == 0 {
		return ""
	}
	first, _ := args[slices.Min(keys)].(string)
	return first
}
