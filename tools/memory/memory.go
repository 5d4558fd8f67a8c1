package memory

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"time"

	"daycare/engine/message"
	"daycare/tools"
)

// Options say where memory is.
type Options struct {
	Dir string           // .daycare/memory
	Now func() time.Time // in the zone of the users; names the daily notes
}

// New makes the tools memory_search, memory_get, memory_write and memory_list.
func New(o Options) []tools.Tool {
	s := newStore(o.Dir)
	return []tools.Tool{
		tool[searchArgs]{searchSpec, func(_ tools.Call, a searchArgs) (string, error) { return search(s, a) }},
		tool[getArgs]{getSpec, func(_ tools.Call, a getArgs) (string, error) { return get(s, a) }},
		tool[writeArgs]{writeSpec, func(call tools.Call, a writeArgs) (string, error) {
			a.Text = message.WithSource(a.Text, message.Relayed(call.Agent, call.Sources))
			return write(s, a, o.Now())
		}},
		tool[listArgs]{listSpec, func(_ tools.Call, a listArgs) (string, error) { return listed(s, a) }},
	}
}

// tool is one of the tools: A are its arguments, run does it.
type tool[A any] struct {
	spec tools.Spec
	run  func(tools.Call, A) (string, error)
}

func (t tool[A]) Spec() tools.Spec { return t.spec }

func (t tool[A]) Run(ctx context.Context, call tools.Call) (tools.Result, error) {
	if ctx.Err() != nil {
		return tools.Result{Text: "Cancelled", Status: tools.Canceled}, nil
	}
	raw := bytes.TrimSpace(call.Arguments)
	if len(raw) == 0 {
		raw = []byte("{}")
	}
	var args A
	if err := json.Unmarshal(raw, &args); err != nil {
		return tools.Errorf("%s: the arguments do not fit: %v", t.spec.Name, err), nil
	}
	text, err := t.run(call, args)
	if err != nil {
		return tools.Errorf("%s: %v", t.spec.Name, err), nil
	}

	return tools.Result{Text: text, Source: noted(text)}, nil
}

// noted says of notes that were read where they came from, if that was outside.
func noted(text string) string {
	if source := message.SourceOf(text); source != "" {
		return "a note by " + source
	}
	return ""
}

var (
	searchSpec = tools.Spec{Name: "memory_search", Replay: tools.ReadOnly, Parallel: true,
		Description: "Search the notes from earlier conversations by keywords. Do this before you say that you do not know.",
		Schema: json.RawMessage(`{"type":"object","properties":{
"query":{"type":"string"},
"limit":{"type":"integer","minimum":1,"maximum":20}},
"required":["query"],"additionalProperties":false}`)}

	getSpec = tools.Spec{Name: "memory_get", Replay: tools.ReadOnly, Parallel: true,
		Description: "Read a note.",
		Schema: json.RawMessage(`{"type":"object","properties":{
"file":{"type":"string"},
"from":{"type":"integer","minimum":1,"description":"first line"},
"lines":{"type":"integer","minimum":1}},
"required":["file"],"additionalProperties":false}`)}

	// Run twice, it would append the note twice.
	writeSpec = tools.Spec{Name: "memory_write", Replay: tools.Once,
		Description: "Save facts for later conversations; no chatter, no secrets. Without file: in today's notes. About a person or " +
			"thing: entities/NAME.md.",
		Schema: json.RawMessage(`{"type":"object","properties":{
"text":{"type":"string"},
"file":{"type":"string"},
"replace":{"type":"boolean","description":"replace the whole file"}},
"required":["text"],"additionalProperties":false}`)}

	listSpec = tools.Spec{Name: "memory_list", Replay: tools.ReadOnly, Parallel: true,
		Description: "List the notes.",
		Schema: json.RawMessage(`{"type":"object","properties":{
"folder":{"type":"string"}},"additionalProperties":false}`)}
)

type searchArgs struct {
	Query string  `json:"query"`
	Limit float64 `json:"limit"`
}

const (
	usualHits = 6
	maxShown  = 600 // bytes of one hit
)

// search shows each hit as file:line with the passage.
func search(s *store, a searchArgs) (string, error) {
	if len(words(a.Query)) == 0 {
		return "", errors.New("the query has no words")
	}
	limit := usualHits
	if a.Limit >= 1 {
		limit = int(min(a.Limit, 20))
	}
	hits, err := s.search(a.Query, limit)
	if err != nil {
		return "", err
	}
	if len(hits) == 0 {
		return "[nothing is noted with these words]", nil
	}
	var b strings.Builder
	for _, h := range hits {
		fmt.Fprintf(&b, "%s:%d (%.1f)\n%s\n\n", h.file, h.at.line, h.score, cut(h.at.text, maxShown))
	}

	return strings.TrimRight(b.String(), "\n"), nil
}

func cut(text string, n int) string {
	if len(text) <= n {
		return text
	}
	short := strings.ToValidUTF8(text[:n], "") + " …"
	if source := message.SourceOf(text); source != message.SourceOf(short) {
		return message.WithSource(short, source)
	}

	return short
}

type getArgs struct {
	File  string  `json:"file"`
	From  float64 `json:"from"`
	Lines float64 `json:"lines"`
}

const maxLines = 500

func get(s *store, a getArgs) (string, error) {
	name, err := fileName(a.File)
	if err != nil {
		return "", err
	}
	text, err := s.get(name)
	if err != nil {
		return "", err
	}
	from, count := int(max(a.From, 1)), maxLines
	if a.Lines >= 1 {
		count = int(min(a.Lines, maxLines))
	}
	var b strings.Builder
	n := 0
	for line := range strings.Lines(text) {
		n++
		if n >= from && n < from+count {
			fmt.Fprintf(&b, "%d\t%s\n", n, strings.TrimRight(line, "\r\n"))
		}
	}
	switch {
	case n == 0:
		return "[" + name + " is empty]", nil
	case from > n:
		return "", fmt.Errorf("%s has %d lines", name, n)
	case n >= from+count:
		fmt.Fprintf(&b, "[lines %d-%d of %d]\n", from, from+count-1, n)
	}
	if source := message.SourceOf(text); source != "" && message.SourceOf(b.String()) == "" {
		b.WriteString(message.WithSource("[other lines]", source) + "\n") // the mark is at the end of a paragraph
	}

	return b.String(), nil
}

func (s *store) get(name string) (string, error) {
	root, err := s.open(false)
	if err != nil {
		return "", err
	}
	if root == nil {
		return "", fmt.Errorf("there is no note %s", name)
	}
	defer root.Close()
	text, err := readFile(root, name)
	if errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("there is no note %s; memory_list shows them", name)
	}

	return text, err
}

type writeArgs struct {
	Text    string `json:"text"`
	File    string `json:"file"`
	Replace bool   `json:"replace"`
}

func write(s *store, a writeArgs, now time.Time) (string, error) {
	text := strings.TrimSpace(strings.ToValidUTF8(a.Text, "\uFFFD"))
	if text == "" {
		return "", errors.New("there is no text")
	}
	daily := strings.TrimSpace(a.File) == ""
	if daily {
		a.File = "daily/" + now.Format("2006-01-02")
		text = "- " + now.Format("15:04") + " " + strings.ReplaceAll(text, "\n", "\n  ")
		a.Replace = false
	}
	name, err := fileName(a.File)
	if err != nil {
		return "", err
	}
	before, after, err := s.change(name, func(old string) string {
		if a.Replace || strings.TrimSpace(old) == "" {
			return text + "\n"
		}
		return strings.TrimRight(old, "\n") + "\n" + text + "\n"
	})
	if err != nil {
		return "", err
	}
	if a.Replace && before != "" {
		return fmt.Sprintf("Replaced %s: %d lines instead of %d.", name, strings.Count(after, "\n"), strings.Count(before, "\n")), nil
	}

	return fmt.Sprintf("Noted in %s:%d.", name, strings.Count(after, "\n")-strings.Count(text, "\n")), nil
}

type listArgs struct {
	Folder string `json:"folder"`
}

const maxListed = 300

// listed shows the newest notes first.
func listed(s *store, a listArgs) (string, error) {
	root, err := s.open(false)
	if err != nil || root == nil {
		return "[there are no notes yet]", err
	}
	defer root.Close()
	files := list(root)
	folder := strings.Trim(strings.TrimPrefix(a.Folder, "memory/"), "/. ")
	if folder != "" {
		files = slices.DeleteFunc(files, func(e entry) bool { return !strings.HasPrefix(e.name, folder+"/") })
	}
	if len(files) == 0 {
		return "[there are no notes here]", nil
	}
	slices.SortStableFunc(files, func(a, b entry) int { return b.info.ModTime().Compare(a.info.ModTime()) })
	var b strings.Builder
	for _, f := range files[:min(len(files), maxListed)] {
		fmt.Fprintf(&b, "%s (%d bytes, %s)\n", f.name, f.info.Size(), f.info.ModTime().UTC().Format("2006-01-02"))
	}
	if len(files) > maxListed {
		fmt.Fprintf(&b, "[the newest %d of %d]\n", maxListed, len(files))
	}

	return b.String(), nil
}
