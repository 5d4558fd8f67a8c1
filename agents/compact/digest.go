package compact

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"daycare/engine/record"
)

// digestHead begins a digest.
const digestHead = "No model could summarise what came before. The oldest turns were left out; this is a list of what " +
	"was asked. All of it is in the history file."

const (
	maxAsked = 240 // characters of a request in a digest
	maxGiven = 160 // of its answer
	maxPaths = 60
)

// The parts of a digest, by which a later one takes it up again.
const (
	beforeHead = "## Earlier summary"
	askedHead  = "## Asked since"
	filesHead  = "## Files named since"
)

// Digest is the text of a summary made without a model: what was asked and
// answered, and the files. It is what is left when the oldest whole turns are
// dropped. If it grows too long, its oldest lines go.
func Digest(t Task) string {
	before, asked, files := earlier(t.Plan.Before)
	for _, e := range t.Plan.Gone {
		switch r := e.Rec.(type) {
		case *record.User:
			who := "asked"
			if r.Origin != "" {
				who = "told by " + r.Origin
			}
			asked = append(asked, fmt.Sprintf("- %s %s: %s", e.At.UTC().Format("2006-01-02 15:04"), who, flat(r.Text, maxAsked)))
		case *record.Assistant:
			if len(r.ToolCalls) == 0 && strings.TrimSpace(r.Text) != "" {
				asked = append(asked, "  answered: "+flat(r.Text, maxGiven))
			}
			for _, c := range r.ToolCalls {
				files = note(files, c)
			}
		}
	}

	files = files[max(0, len(files)-maxPaths):]
	before = shorten(before, 4*t.Limits.Summary/2)
	for {
		text := digest(before, asked, files)
		if len(text)/4 <= t.Limits.Summary || len(asked) == 0 {
			return t.complete(text)
		}
		asked = asked[min(1+len(asked)/20, len(asked)):]
	}
}

func digest(before string, asked, files []string) string {
	text := digestHead
	if before != "" {
		text += "\n\n" + beforeHead + "\n" + before
	}
	if len(asked) > 0 {
		text += "\n\n" + askedHead + "\n" + strings.Join(asked, "\n")
	}
	if len(files) > 0 {
		text += "\n\n" + filesHead + "\n" + strings.Join(files, "\n")
	}

	return text
}

// earlier takes an earlier digest apart. Any other summary is kept as it is.
func earlier(text string) (before string, asked, files []string) {
	text = strip(text)
	rest, ok := strings.CutPrefix(text, digestHead)
	if !ok {
		return text, nil, nil
	}

	rest, list, _ := strings.Cut(rest, filesHead+"\n")
	rest, lines, _ := strings.Cut(rest, askedHead+"\n")
	_, before, _ = strings.Cut(rest, beforeHead+"\n")

	return strings.TrimSpace(before), lined(lines), lined(list)
}

func lined(text string) []string {
	if text = strings.TrimSpace(text); text == "" {
		return nil
	}
	return strings.Split(text, "\n")
}

// note adds the path that a call names.
func note(files []string, c record.ToolCall) []string {
	var args struct {
		Path string `json:"path"`
	}
	if json.Unmarshal(c.Arguments, &args) != nil || args.Path == "" {
		return files // a call without a path, or arguments that are no object
	}

	line := "- " + flat(args.Path, maxAsked)
	files = slices.DeleteFunc(files, func(f string) bool { return f == line })

	return append(files, line)
}

// flat is the beginning of a text, on one line.
func flat(text string, limit int) string {
	return shorten(strings.Join(strings.Fields(text), " "), limit)
}
