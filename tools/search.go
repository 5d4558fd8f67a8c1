package tools

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// What an agent rarely needs is behind a search: with every call its model is told the names of
// families of tools alone. tool_search finds some of the tools with their schemas, and tool_call
// calls one. The beginning of a prompt then stays the same, however many there are. A tool that
// is called by its own name, found or not, is called.

// The names of the two tools.
const (
	SearchTool = "tool_search"
	CallTool   = "tool_call"
)

// A Family is tools for one purpose.
type Family struct {
	Name  string // as models read it: "scheduled tasks"
	Tools []string
}

// Behind is the set with the tools of these families behind a search. Without a tool of any
// of them it is the set itself.
func (s *Set) Behind(families ...Family) (*Set, error) {
	family := map[string]string{}
	var purposes []string
	for _, f := range families {
		for _, name := range f.Tools {
			if _, ok := s.byName[name]; !ok {
				continue
			}
			family[name] = f.Name
			if !slices.Contains(purposes, f.Name) {
				purposes = append(purposes, f.Name)
			}
		}
	}
	if len(family) == 0 {
		return s, nil
	}
	behind, err := s.With(&finder{s, family, purposes}, caller{s})
	if err != nil {
		return nil, err
	}
	behind.family = family
	return behind, nil
}

// Told yields the specs of the tools that a model is told of with every call, in order.
func (s *Set) Told(yield func(Spec) bool) {
	for _, name := range s.names {
		if s.family[name] == "" && !yield(s.byName[name].spec) {
			return
		}
	}
}

// Called is the tool that a call of tool_call is for, with its arguments; ok is false where they
// name no tool of the set.
func (s *Set) Called(arguments json.RawMessage) (name string, inner json.RawMessage, ok bool) {
	var a struct {
		Tool      string          `json:"tool"`
		Arguments json.RawMessage `json:"arguments"`
	}
	if json.Unmarshal(arguments, &a) != nil || a.Tool == CallTool {
		return "", nil, false
	}
	if _, ok := s.byName[a.Tool]; !ok {
		return "", nil, false
	}
	var text string
	if json.Unmarshal(a.Arguments, &text) == nil { // models write objects as text, or null
		a.Arguments = json.RawMessage(strings.TrimSpace(text))
	}
	if len(a.Arguments) == 0 {
		a.Arguments = json.RawMessage(`{}`)
	}
	if a.Arguments[0] != '{' || !json.Valid(a.Arguments) {
		return "", nil, false
	}

	return a.Tool, a.Arguments, true
}

// A finder is the tool tool_search.
type finder struct {
	set      *Set
	family   map[string]string // by tool
	purposes []string          // the families, in order
}

// mostPurposes is how many families are named with every call.
const mostPurposes = 40

// Spec describes the tool.
func (f *finder) Spec() Spec {
	purposes := f.purposes
	more := ""
	if len(purposes) > mostPurposes {
		more = fmt.Sprintf(", and %d more", len(purposes)-mostPurposes)
		purposes = purposes[:mostPurposes]
	}
	return Spec{Name: SearchTool, Replay: ReadOnly, Parallel: true,
		Description: "Find more tools, then call them with " + CallTool + ". There are tools for: " + strings.Join(purposes, ", ") + more,
		Schema: json.RawMessage(`{"type":"object","properties":{"query":{"type":"string","description":"words; empty lists all"}},` +
			`"required":["query"],"additionalProperties":false}`)}
}

const (
	// mostFound is how many tools one search describes.
	mostFound = 8
	// mostShown bounds the descriptions and schemas of one search, in bytes.
	mostShown = 16_000
)

// Run searches.
func (f *finder) Run(ctx context.Context, call Call) (Result, error) {
	if ctx.Err() != nil {
		return Result{Text: "Cancelled", Status: Canceled}, nil
	}
	var a struct{ Query string }
	if err := json.Unmarshal(call.Arguments, &a); err != nil {
		return Errorf("the arguments do not fit: %v", err), nil
	}
	words := wordsOf(a.Query)
	if len(words) == 0 {
		return Result{Text: "Names only; search by words for descriptions and schemas.\n" + f.names()}, nil
	}
	type hit struct {
		spec  Spec
		score int
	}
	var hits []hit
	for _, name := range f.set.names {
		if spec := f.set.byName[name].spec; f.family[name] != "" {
			if n := score(spec, f.family[name], words); n > 0 {
				hits = append(hits, hit{spec, n})
			}
		}
	}
	slices.SortStableFunc(hits, func(a, b hit) int { return cmp.Compare(b.score, a.score) })

	var b strings.Builder
	for i, h := range hits {
		text := fmt.Sprintf("%s\n%s\narguments: %s\n\n", h.spec.Name, h.spec.Description, h.spec.Schema)
		if i == mostFound || b.Len()+len(text) > mostShown && i > 0 {
			fmt.Fprintf(&b, "%d more fit: %s", len(hits)-i, some(hits[i:], func(h hit) string { return h.spec.Name }))
			break
		}
		b.WriteString(text)
	}
	if len(hits) == 0 {
		return Result{Text: "No tool fits. There are tools for: " + strings.Join(f.purposes, ", ") +
			"; an empty query lists all names."}, nil
	}

	return Result{Text: strings.TrimSpace(b.String())}, nil
}

// wordsOf are the words of a query. Short ones stand in every description, and count only where
// there are no others.
func wordsOf(query string) []string {
	words := strings.FieldsFunc(strings.ToLower(query), func(r rune) bool { return strings.ContainsRune(" \t\n,;.:/\"'()", r) })
	long := slices.DeleteFunc(slices.Clone(words), func(w string) bool { return len(w) < 4 })
	if len(long) == 0 {
		return words
	}

	return long
}

// names are all names, by family.
func (f *finder) names() string {
	var lines []string
	for _, purpose := range f.purposes {
		var of []string
		for _, name := range f.set.names {
			if f.family[name] == purpose {
				of = append(of, name)
			}
		}
		lines = append(lines, purpose+": "+strings.Join(of, ", "))
	}

	return strings.Join(lines, "\n")
}

// some are the names of the first of a list.
func some[T any](list []T, name func(T) string) string {
	const most = 20
	var names []string
	for _, one := range list[:min(most, len(list))] {
		names = append(names, name(one))
	}
	if len(list) > most {
		names = append(names, "…")
	}

	return strings.Join(names, ", ")
}

// score is how well a tool fits words: those of its name count more than those of its purpose, and
// these more than those of its description.
func score(spec Spec, family string, words []string) (n int) {
	name, purpose, text := strings.ToLower(spec.Name), strings.ToLower(family), strings.ToLower(spec.Description)
	for _, w := range words {
		if strings.Trim(w, "abcdefghijklmnopqrstuvwxyz") == "" && len(w) > 4 { // schedules, scheduling: sched
			w = w[:max(4, len(w)-3)]
		}
		if strings.Contains(name, w) {
			n += 3
		}
		if strings.Contains(purpose, w) {
			n += 2
		}
		if strings.Contains(text, w) {
			n++
		}
	}

	return n
}

// A caller is the tool tool_call. What it names is called in its place (Set.Called); a call that
// comes here names nothing that can be called.
type caller struct{ set *Set }

// Spec describes the tool.
func (caller) Spec() Spec {
	return Spec{Name: CallTool, Replay: ReadOnly,
		Description: "Call a tool that " + SearchTool + " found.",
		Schema: json.RawMessage(`{"type":"object","properties":{"tool":{"type":"string"},"arguments":{"type":"object"}},` +
			`"required":["tool","arguments"],"additionalProperties":false}`)}
}

// Run says what is wrong with the call.
func (c caller) Run(_ context.Context, call Call) (Result, error) {
	var a struct{ Tool string }
	json.Unmarshal(call.Arguments, &a) // what cannot be read names no tool
	if _, ok := c.set.byName[a.Tool]; ok {
		return Errorf("the arguments of %s must be a JSON object", a.Tool), nil
	}

	return Errorf("there is no tool %q; find one with %s", a.Tool, SearchTool), nil
}
