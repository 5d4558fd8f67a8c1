package trial

import (
	"encoding/json"
	"fmt"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/google/jsonschema-go/jsonschema"

	"daycare/engine/finding"
	"daycare/engine/form"
	"daycare/engine/workspace"
)

// Suffix is what the names of files with tests end with.
const Suffix = ".test.yaml"

// A Test is one file.
type Test struct {
	Name string `json:"name" jsonschema:"for reports; default: the name of the file"`
	Given
	Messages []Message `json:"messages" check:"required" short:"text" jsonschema:"sent one after the other, each after its turn"`
	Expect   []Expect  `json:"expect" jsonschema:"of the last answer, and of everything that was done"`
	Limits

	File string `json:"-"`
}

// Given is what the agent begins with.
type Given struct {
	Agent       string            `json:"agent" jsonschema:"whose prompt and model are tested: handle, name or id; default: a new one"`
	Model       string            `json:"model" jsonschema:"PROVIDER, PROVIDER/MODEL or a model; default: that of the agent"`
	Script      json.RawMessage   `json:"script" jsonschema:"a scripted model: the path of its file, or the script itself"`
	Files       map[string]string `json:"files" jsonschema:"files of the workspace, by their path"`
	Permissions []string          `json:"permissions" jsonschema:"beside those of the workspace, such as @web:example.com"`
	Answers     string            `json:"answers" allow:"|allow|deny" jsonschema:"how approval requests are answered; default: deny"`
}

// Limits end a test, and say what of it does not count.
type Limits struct {
	Timeout time.Duration `json:"timeout" min:"1s" max:"1h" jsonschema:"of the whole test; default: 2m"`
	Rounds  int           `json:"rounds" min:"1" max:"1000" jsonschema:"rounds of tool calls in a turn; default: as in the settings"`
	Ignore  []string      `json:"ignore" jsonschema:"regular expressions of texts that differ from run to run, for cassettes"`
}

// A Message is what a user says.
type Message struct {
	Text   string   `json:"text" check:"required"`
	Expect []Expect `json:"expect" jsonschema:"of the answer to this message, and of everything that was done until then"`
}

// An Expect is one expectation. One of its members is set.
type Expect struct {
	Contains    string          `json:"contains,omitempty" jsonschema:"the answer contains the text"`
	NotContains string          `json:"notContains,omitempty" jsonschema:"the answer does not contain the text"`
	Regex       string          `json:"regex,omitempty" jsonschema:"a regular expression matches in the answer"`
	Schema      json.RawMessage `json:"schema,omitempty" jsonschema:"the answer is JSON of this JSON Schema, alone or in a code block"`
	Called      *Called         `json:"called,omitempty" short:"tool" jsonschema:"a tool was called"`
	NeverCalled string          `json:"neverCalled,omitempty" jsonschema:"a tool was never called"`
	File        *FileHas        `json:"file,omitempty" short:"path" jsonschema:"a file of the workspace is there, and what is in it"`
	Asks        string          `json:"asks,omitempty" jsonschema:"an approval was requested, of a permission that begins so"`
	Ends        string          `json:"ends,omitempty" allow:"done|waiting|canceled|limit|loop|budget|error|poison"`
	Judge       *Judge          `json:"judge,omitempty" jsonschema:"a model judges the answer"`
	Bounds
}

// Bounds are what a test may take.
type Bounds struct {
	CostUnder   *float64 `json:"costUnder,omitempty" min:"0" jsonschema:"US dollars, of all model calls together"`
	RoundsUnder int      `json:"roundsUnder,omitempty" min:"1" jsonschema:"calls of the agent's model, all turns together"`
}

// Called is a call of a tool.
type Called struct {
	Tool  string         `json:"tool" check:"required"`
	With  map[string]any `json:"with,omitempty" jsonschema:"arguments that it has at least; /…/ is a regular expression"`
	Times int            `json:"times,omitempty" min:"1" jsonschema:"exactly so many such calls; default: one or more"`
}

// FileHas is what a file must be like; with nothing but a path it must be there.
type FileHas struct {
	Path     string  `json:"path" check:"required"`
	Is       *string `json:"is,omitempty" jsonschema:"the whole content"`
	Contains string  `json:"contains,omitempty"`
	Regex    string  `json:"regex,omitempty"`
	Absent   bool    `json:"absent,omitempty" jsonschema:"there is no such file"`
}

// A Judge is a question to a model.
type Judge struct {
	Rubric    string  `json:"rubric" check:"required" jsonschema:"what a good answer is like"`
	Threshold float64 `json:"threshold,omitempty" min:"0" max:"1" jsonschema:"the score it needs, 0 to 1; default: 0.7"`
}

const (
	defaultTimeout   = 2 * time.Minute
	defaultThreshold = 0.7
	// maxFile bounds the file of a test, in bytes.
	maxFile = 4 << 20
)

// kind is how tests are read: a key that is not known would be an expectation that is not checked.
var kind = form.Kind{ID: "test", Max: maxFile, Unknown: finding.Error}

// Parse reads a test; file is for the findings. With one of severity Error it cannot be run.
func Parse(file string, data []byte) (Test, []finding.Finding) {
	t := Test{File: file, Name: strings.TrimSuffix(filepath.Base(file), Suffix), Limits: Limits{Timeout: defaultTimeout}}
	f := kind.YAML(file, data)
	if f.Failed() {
		return t, f.Found
	}

	f.Read(&t)
	f.Need("messages")
	if f.Has("messages") && len(t.Messages) == 0 && !f.Failed() {
		f.Bad("messages", " is empty: a test sends at least one message")
	}
	t.check(f)

	return t, f.Found
}

// CheckFile is Parse for who wants to know what is wrong.
func CheckFile(file string, data []byte) ([]finding.Finding, error) {
	_, found := Parse(file, data)
	return found, nil
}

func (t *Test) check(f *form.File) {
	for _, path := range slices.Sorted(maps.Keys(t.Files)) {
		checkPath(f, form.Join("files", path), path)
	}
	for i, pattern := range t.Ignore {
		checkRegex(f, fmt.Sprintf("ignore[%d]", i), pattern)
	}

	total := len(t.Expect)
	for i := range t.Expect {
		t.Expect[i].check(f, fmt.Sprintf("expect[%d]", i))
	}
	for i := range t.Messages {
		total += len(t.Messages[i].Expect)
		for k := range t.Messages[i].Expect {
			t.Messages[i].Expect[k].check(f, fmt.Sprintf("messages[%d].expect[%d]", i, k))
		}
	}

	if total == 0 && !f.Failed() {
		f.Tell(finding.Error, "missing", "", "nothing is expected: a test that cannot fail tests nothing",
			"add expect, with one entry or more")
	}
}

// check looks at one expectation: the entry at a path of the file.
func (e *Expect) check(f *form.File, at string) {
	if n := len(e.set()); n != 1 && !f.Failed() {
		f.Bad(at, " has %d members, allowed: one in each entry of the list", n)
	}
	checkRegex(f, form.Join(at, "regex"), e.Regex)
	if e.Schema != nil {
		if _, err := compile(e.Schema); err != nil {
			f.Bad(form.Join(at, "schema"), ": %v", err)
		}
	}

	if e.Called != nil {
		for key, value := range e.Called.With {
			if text, ok := value.(string); ok && slashed(text) {
				checkRegex(f, form.Join(at, "called.with."+key), text[1:len(text)-1])
			}
		}
	}

	if e.File != nil {
		checkRegex(f, form.Join(at, "file.regex"), e.File.Regex)
		checkPath(f, form.Join(at, "file.path"), e.File.Path)
	}
	if e.Judge != nil && e.Judge.Threshold == 0 {
		e.Judge.Threshold = defaultThreshold
	}
}

// set lists the members that are set.
func (e *Expect) set() (keys []string) {
	for key, set := range map[string]bool{"contains": e.Contains != "", "notContains": e.NotContains != "", "regex": e.Regex != "",
		"schema": e.Schema != nil, "called": e.Called != nil, "neverCalled": e.NeverCalled != "", "file": e.File != nil,
		"asks": e.Asks != "", "ends": e.Ends != "", "judge": e.Judge != nil, "costUnder": e.CostUnder != nil,
		"roundsUnder": e.RoundsUnder > 0} {
		if set {
			keys = append(keys, key)
		}
	}

	return keys
}

func checkRegex(f *form.File, at, pattern string) {
	if _, err := regexp.Compile(pattern); err != nil {
		f.Bad(at, ": %v", err)
	}
}

// checkPath allows files of a workspace, and in .daycare what prompts are made of.
func checkPath(f *form.File, at, path string) {
	switch first, rest, _ := strings.Cut(filepath.ToSlash(filepath.Clean(path)), "/"); {
	case path == "":
	case !filepath.IsLocal(path):
		f.Bad(at, ": %q is not in the workspace: name a path relative to it", path)
	case strings.EqualFold(first, workspace.Home) && !slices.Contains(ofPrompts, strings.Split(rest, "/")[0]):
		f.Bad(at, ": %q belongs to daycare; in %s a test can have %s", path, workspace.Home, strings.Join(ofPrompts, ", "))
	}
}

// ofPrompts are the files in .daycare that a test can have its own of.
var ofPrompts = []string{"SOUL.md", "USER.md", "AGENTS.md", "subagents", "skills", "memory"}

func compile(schema json.RawMessage) (*jsonschema.Resolved, error) {
	var s jsonschema.Schema
	if err := json.Unmarshal(schema, &s); err != nil {
		return nil, fmt.Errorf("not a JSON Schema: %w", err)
	}
	resolved, err := s.Resolve(nil)
	if err != nil {
		return nil, fmt.Errorf("not a JSON Schema: %w", err)
	}

	return resolved, nil
}

// slashed reports a text that is a regular expression: /…/.
func slashed(text string) bool { return len(text) > 2 && text[0] == '/' && text[len(text)-1] == '/' }
