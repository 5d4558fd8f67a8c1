package compact

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"daycare/engine/record"
)

// digestHead begins a digest.
const digestHead = "No model could summarise what came before. The oldest turns were left out; this is a list of what was asked. All of it is in the history file."

const (
	maxAsked = 240 // characters of a request in a digest
	maxGiven = 160 // of its answer
	maxPaths = 60
)

// Digest is the text of a summary made without a model: what was asked and
// answered, and the files. It is what is left when the oldest whole turns are
// dropped. If it grows too long, its oldest lines go.
func Digest(t Task) string {
	asked, files := earlier(t.Plan.Before)
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
	return t.complete(t.fit(asked, files))
}

// fit drops the oldest lines until the text is short enough.
func (t Task) fit(asked, files []string) string {
	files = files[max(0, len(files)-maxPaths):]
	for {
		var b strings.Builder
		b.WriteString(digestHead + "\n\n## Progress\n" + strings.Join(asked, "\n"))
		if len(files) > 0 {
			b.WriteString("\n\n## Files\n" + strings.Join(files, "\n"))
		}
		if b.Len()/4 <= t.Limits.Summary || len(asked) == 0 {
			return b.String()
		}
		asked = asked[1+len(asked)/20:]
	}
}

// earlier takes the lists of an earlier digest up again. The summary of a model is
// kept whole, as the first line.
func earlier(text string) (asked, files []string) {
	text = strip(text)
	if text == "" {
		return nil, nil
	}
	rest, ok := strings.CutPrefix(text, digestHead)
	if !ok {
		return []string{text}, nil
	}
	rest, list, _ := strings.Cut(rest, "\n## Files\n")
	_, rest, _ = strings.Cut(rest, "## Progress\n")
	if list != "" {
		files = strings.Split(strings.TrimSpace(list), "\n")
	}
	return strings.Split(strings.TrimSpace(rest), "\n"), files
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
