package skills

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"

	"daycare/tools"
)

// read reads a regular file beneath root.
func read(root *os.Root, name string, limit int64) ([]byte, error) {
	info, err := root.Stat(name) // first, because opening a pipe would hold us up
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s is no file", name)
	}
	f, err := root.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, limit+1))
	if err == nil && int64(len(data)) > limit {
		err = fmt.Errorf("%s has more than %d bytes", name, limit)
	}
	return data, err
}

// New makes the tool skill. list is the skills in force, asked at each call.
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
	if files := contents(s.Dir); len(files) > 0 {
		b.WriteString("Files: " + strings.Join(files, ", ") + "\n")
	}
	return b.String() + "\n" + s.Body
}

const (
	maxListed = 100
	maxShown  = 50 << 10 // bytes of a file that is shown
)

// contents are the files of a skill beside SKILL.md.
func contents(dir string) []string {
	if dir == "" {
		return nil // built in
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil
	}
	defer root.Close()
	var files []string
	fs.WalkDir(root.FS(), ".", func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil || name == ".":
		case strings.HasPrefix(d.Name(), "."):
			if d.IsDir() {
				return fs.SkipDir
			}
		case d.Type().IsRegular() && !strings.EqualFold(name, "SKILL.md"):
			files = append(files, name)
		}
		if len(files) >= maxListed {
			return fs.SkipAll
		}
		return nil
	})
	return files
}

// content is one file of a skill as text.
func content(s Skill, name string) tools.Result {
	clean := path.Clean(strings.TrimPrefix(name, "./"))
	if s.Dir == "" {
		return tools.Errorf("skill %s is built in; it has no files", s.Name)
	}
	root, err := os.OpenRoot(s.Dir)
	if err != nil {
		return tools.Errorf("skill %s cannot be read: %v", s.Name, err)
	}
	defer root.Close()
	if !fs.ValidPath(clean) {
		return tools.Errorf("%q is no file of the skill", name)
	}
	data, err := read(root, clean, maxShown)
	switch {
	case err != nil:
		return tools.Errorf("skill %s: %s cannot be read: %v", s.Name, clean, reason(err))
	case bytes.IndexByte(data, 0) >= 0:
		return tools.Errorf("%s is no text; its path is %s", clean, filepath.Join(s.Dir, clean))
	}
	return tools.Result{Text: strings.ToValidUTF8(string(data), "\uFFFD")}
}

func reason(err error) error {
	var p *fs.PathError
	if errors.As(err, &p) {
		return p.Err
	}
	return err
}
