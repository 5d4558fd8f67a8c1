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
	"slices"
	"strings"

	"daycare/engine/finding"
	"daycare/tools"
)

// maxSkills bounds what is read of one folder of skills.
const maxSkills = 200

// Load reads the skills in folders, each of which holds a folder a skill. Of two
// with one name the one of the earlier folder counts, and what is built in last.
func Load(folders []string) (list []Skill, found []finding.Finding) {
	for _, folder := range folders {
		entries, err := os.ReadDir(folder)
		if err != nil {
			continue // most people have not all of them
		}
		for _, e := range entries[:min(len(entries), maxSkills)] {
			if strings.HasPrefix(e.Name(), ".") {
				continue
			}
			s, f, ok := load(filepath.Join(folder, e.Name()))
			found = append(found, f...)
			if !ok {
				continue
			}
			if i := slices.IndexFunc(list, func(have Skill) bool { return have.Name == s.Name }); i >= 0 {
				found = append(found, finding.Finding{ID: "skill-hidden", Severity: finding.Info, File: s.File,
					Reason: fmt.Sprintf("%s has a skill of the same name, %q, which is used instead", list[i].File, s.Name)})
				continue
			}
			list = append(list, s)
		}
	}
	for _, s := range Builtin() {
		if !slices.ContainsFunc(list, func(have Skill) bool { return have.Name == s.Name }) {
			list = append(list, s)
		}
	}
	slices.SortStableFunc(list, func(a, b Skill) int { return strings.Compare(a.Name, b.Name) })
	return list, found
}

// load reads one skill's folder; a folder without SKILL.md is none.
func load(dir string) (Skill, []finding.Finding, bool) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return Skill{}, nil, false // a file, or not ours to read
	}
	defer root.Close()
	for _, name := range []string{"SKILL.md", "skill.md"} {
		data, err := read(root, name, maxFile)
		file := filepath.Join(dir, name)
		switch {
		case errors.Is(err, fs.ErrNotExist):
		case err != nil:
			return Skill{}, []finding.Finding{{ID: "skill-unreadable", Severity: finding.Error, File: file, Reason: err.Error()}}, false
		default:
			return Parse(file, data)
		}
	}
	return Skill{}, nil, false
}

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

// New makes the tool skill. folders is asked at each call.
func New(folders func() []string) []tools.Tool { return []tools.Tool{skill{folders}} }

type skill struct{ folders func() []string }

var spec = tools.Spec{Name: "skill", Replay: tools.ReadOnly, Parallel: true,
	Description: "Read the instructions of one of your skills, or a file that they mention.",
	Schema: json.RawMessage(`{"type":"object","properties":{
"name":{"type":"string"},
"file":{"type":"string","description":"a file of the skill"}},
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
	list, _ := Load(t.folders()) // what is wrong with them is told to people
	i := slices.IndexFunc(list, func(s Skill) bool { return s.Name == a.Name })
	if i < 0 {
		return tools.Errorf("there is no skill %q; there are: %s", a.Name, names(list)), nil
	}
	if a.File != "" {
		return file(list[i], a.File), nil
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

// file is one file of a skill as text.
func file(s Skill, name string) tools.Result {
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
