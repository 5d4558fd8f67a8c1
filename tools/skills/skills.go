package skills

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io/fs"
	"path"
	"path/filepath"
	"strings"

	"daycare/engine/beneath"
	"daycare/tools"
)

// New makes the tool skill. list is the active skills, asked at each call.
func New(list func() []Skill) []tools.Tool { return []tools.Tool{skill{list}} }

type skill struct{ list func() []Skill }

var spec = tools.Spec{Name: "skill", Replay: tools.ReadOnly, Parallel: true,
	Description: "Read one of your skills, or a file that it mentions.",
	Schema: json.RawMessage(`{"type":"object","properties":{
"name":{"type":"string"},
"file":{"type":"string"}},
"required":["name"],"additionalProperties":false}`)}

// Spec describes the tool.
func (skill) Spec() tools.Spec { return spec }

// Run gives the how-to of a skill, or one of its files.
func (t skill) Run(ctx context.Context, call tools.Call) (tools.Result, error) {
	if ctx.Err() != nil {
		return tools.Result{Text: "Cancelled", Status: tools.Canceled}, nil
	}
	var a struct {
		Name string `json:"name"`
		File string `json:"file"`
	}
	raw := bytes.TrimSpace(call.Arguments)
	if len(raw) == 0 {
		raw = []byte("{}")
	}
	if err := json.Unmarshal(raw, &a); err != nil {
		return tools.Errorf("skill: the arguments do not fit: %v", err), nil
	}

	list := t.list()
	i := named(list, a.Name)
	if i < 0 {
		return tools.Errorf("there is no skill %q; there are: %s", a.Name, names(list)), nil
	}
	if a.File != "" {
		return content(list[i], a.File), nil
	}

	return tools.Result{Text: show(list[i])}, nil
}

func names(list []Skill) string {
	if len(list) == 0 {
		return "none"
	}
	all := make([]string, len(list))
	for i, s := range list {
		all[i] = s.Name
	}

	return strings.Join(all, ", ")
}

// show is the how-to with what belongs to it.
func show(s Skill) string {
	var b strings.Builder
	fmt.Fprintf(&b, "# Skill %s\nFolder: %s (sha256 %.12s)\n", s.Name, cmp.Or(s.Dir, "none, it is built in"), s.SHA256)
	if s.Compatibility != "" {
		b.WriteString("Needs: " + s.Compatibility + "\n")
	}
	if s.Dir != "" {
		if files := s.source.contents(); len(files) > 0 {
			b.WriteString("Files: " + strings.Join(files, ", ") + "\n")
		}
	}

	return b.String() + "\n" + s.Body
}

const (
	maxListed = 100
	maxShown  = 50 << 10 // bytes of a file that is shown
)

// content is one file of a skill as text.
func content(s Skill, name string) tools.Result {
	clean := path.Clean(strings.TrimPrefix(name, "./"))
	if s.Dir == "" {
		return tools.Errorf("skill %s is built in; it has no files", s.Name)
	}
	if !fs.ValidPath(clean) {
		return tools.Errorf("%q is not a file of the skill", name)
	}

	data, err := s.source.read(clean)
	switch {
	case err != nil:
		return tools.Errorf("skill %s: %s cannot be read: %v", s.Name, clean, beneath.Reason(err))
	case bytes.IndexByte(data, 0) >= 0:
		return tools.Errorf("%s is not text; its path is %s", clean, filepath.Join(s.Dir, clean))
	}

	return tools.Result{Text: strings.ToValidUTF8(string(data), "\uFFFD")}
}
