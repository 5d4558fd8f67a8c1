package acp

import (
	"cmp"
	"encoding/json"
	"path/filepath"
	"strconv"
	"strings"

	acp "github.com/coder/acp-go-sdk"

	"daycare/engine/plain"
	"daycare/engine/record"
)

// kinds are what tools do, in the words of the protocol.
var kinds = map[string]acp.ToolKind{
	"read": acp.ToolKindRead, "ls": acp.ToolKindRead, "skill": acp.ToolKindRead, "memory_get": acp.ToolKindRead,
	"glob": acp.ToolKindSearch, "grep": acp.ToolKindSearch, "web_search": acp.ToolKindSearch, "memory_search": acp.ToolKindSearch,
	"write": acp.ToolKindEdit, "edit": acp.ToolKindEdit, "apply_patch": acp.ToolKindEdit, "memory_write": acp.ToolKindEdit,
	"exec": acp.ToolKindExecute, "process": acp.ToolKindExecute,
	"web_fetch": acp.ToolKindFetch, "submit_plan": acp.ToolKindSwitchMode,
}

func kindOf(tool string) acp.ToolKind { return cmp.Or(kinds[tool], acp.ToolKindOther) }

// arguments are those of common tools that say what a call is about.
type arguments struct {
	Path    string `json:"path"`
	Offset  int    `json:"offset"`
	Command string `json:"command"`
	Pattern string `json:"pattern"`
	Query   string `json:"query"`
	URL     string `json:"url"`
	Patch   string `json:"patch"`
	Plan    string `json:"plan"`
	Name    string `json:"name"`
	Task    string `json:"task"`
	Prompt  string `json:"prompt"`
}

// argumentsOf reads what is known of a call's arguments; what does not fit is left out.
func argumentsOf(raw json.RawMessage) (a arguments) {
	var members map[string]json.RawMessage
	if json.Unmarshal(raw, &members) != nil {
		return a
	}
	for name, to := range map[string]any{"path": &a.Path, "offset": &a.Offset, "command": &a.Command, "pattern": &a.Pattern,
		"query": &a.Query, "url": &a.URL, "patch": &a.Patch, "plan": &a.Plan, "name": &a.Name, "task": &a.Task, "prompt": &a.Prompt} {
		_ = json.Unmarshal(members[name], to)
	}

	return a
}

// maxTitle bounds the title of a call, in bytes.
const maxTitle = 200

// titleOf is a call on one line.
func titleOf(tool string, a arguments) string {
	subject := cmp.Or(a.Command, a.Path, a.Pattern, a.Query, a.URL, a.Name, a.Task, a.Prompt)
	title := strings.Join(strings.Fields(plain.Text(tool+" "+subject)), " ")
	if len(title) > maxTitle {
		title = strings.ToValidUTF8(title[:maxTitle], "") + "…"
	}

	return title
}

// locations are the files that a call is about.
func locations(root string, a arguments) (list []acp.ToolCallLocation) {
	if a.Path != "" {
		at := acp.ToolCallLocation{Path: absolute(root, a.Path)}
		if a.Offset > 0 {
			at.Line = &a.Offset
		}
		list = append(list, at)
	}
	for line := range strings.Lines(a.Patch) {
		for _, head := range []string{"*** Update File: ", "*** Add File: ", "*** Delete File: "} {
			if name, ok := strings.CutPrefix(strings.TrimSpace(line), head); ok {
				list = append(list, acp.ToolCallLocation{Path: absolute(root, name)})
			}
		}
	}

	return list
}

func absolute(root, path string) string {
	if filepath.IsAbs(path) {
		return filepath.Clean(path)
	}
	return filepath.Join(root, path)
}

// A hunk is one changed place of a file.
type hunk struct {
	path     string
	line     int // in the changed file, from 1
	old, new []byte
	fresh    bool // the file was not there before
}

// hunks reads a unified diff.
func hunks(diff string) (list []hunk) {
	path, old, changed := "", 0, 0 // old, changed: lines of the hunk that are still to come
	for line := range strings.Lines(diff) {
		text := strings.TrimRight(line, "\r\n")
		switch {
		case strings.HasPrefix(text, `\`): // the file has no line break at its end
		case old > 0 || changed > 0:
			o, n := list[len(list)-1].add(line)
			old, changed = old-o, changed-n
		case strings.HasPrefix(text, "--- "), strings.HasPrefix(text, "+++ "):
			if name, _, _ := strings.Cut(text[4:], "\t"); name != "/dev/null" {
				path = strings.TrimPrefix(strings.TrimPrefix(name, "a/"), "b/")
			}
		case strings.HasPrefix(text, "@@ -"):
			h := hunk{path: path}
			old, changed = h.begin(text)
			list = append(list, h)
		}
	}

	return list
}

// add takes a line of the hunk, and returns of how many lines before and after it is.
func (h *hunk) add(line string) (old, changed int) {
	switch line[0] {
	case '+':
		h.new = append(h.new, line[1:]...)
		return 0, 1
	case '-':
		h.old = append(h.old, line[1:]...)
		return 1, 0
	}
	both := strings.TrimPrefix(line, " ")
	h.old, h.new = append(h.old, both...), append(h.new, both...)

	return 1, 1
}

// begin reads "@@ -7,3 +7,4 @@", and returns how many lines the hunk has before and after.
func (h *hunk) begin(text string) (old, changed int) {
	fields := strings.Fields(text)
	if len(fields) < 3 {
		return 0, 0
	}
	from, old := lines(fields[1][1:])
	at, changed := lines(strings.TrimPrefix(fields[2], "+"))
	h.line, h.fresh = max(at, 1), from == 0 && old == 0

	return old, changed
}

// lines reads "7,3", or "7" for one line.
func lines(text string) (at, many int) {
	first, rest, several := strings.Cut(text, ",")
	at, _ = strconv.Atoi(first)
	if !several {
		return at, 1
	}
	many, _ = strconv.Atoi(rest)

	return at, many
}

// changes are the diffs of a result, and where they are.
func changes(root string, out record.Output) (content []acp.ToolCallContent, at []acp.ToolCallLocation) {
	for _, b := range out.Blocks {
		if b.Type != "diff" {
			continue
		}
		for _, h := range hunks(b.Text) {
			path := absolute(root, h.path)
			d := acp.ToolCallContentDiff{Type: "diff", Path: path, NewText: string(h.new)}
			if !h.fresh {
				old := string(h.old)
				d.OldText = &old
			}
			content = append(content, acp.ToolCallContent{Diff: &d})
			at = append(at, acp.ToolCallLocation{Path: path, Line: &h.line})
		}
	}

	return content, at
}

// fenced is text as a block of code.
func fenced(text string) acp.ToolCallContent {
	return acp.ToolContent(acp.TextBlock(plain.Fenced(text)))
}

// planOf are the steps of a plan: the items of its lists, or its lines where it has none.
func planOf(text string) (entries []acp.PlanEntry) {
	var all, items []string
	for line := range strings.Lines(text) {
		step := strings.TrimSpace(line)
		bare := strings.TrimLeft(step, "0123456789")
		switch {
		case step == "" || strings.HasPrefix(step, "#"):
			continue
		case strings.HasPrefix(step, "- "), strings.HasPrefix(step, "* "):
			items = append(items, step[2:])
		case bare != step && (strings.HasPrefix(bare, ". ") || strings.HasPrefix(bare, ") ")):
			items = append(items, bare[2:])
		}
		all = append(all, step)
	}
	if len(items) == 0 {
		items = all
	}
	for _, step := range items {
		entries = append(entries, acp.PlanEntry{Content: step, Priority: acp.PlanEntryPriorityMedium, Status: acp.PlanEntryStatusPending})
	}

	return entries
}
