package movein

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"path/filepath"
	"strings"

	"daycare/cmd/daycare/term"
	"daycare/engine/beneath"
	"daycare/engine/lazyregexp"
	"daycare/tools/skills"
)

// Bounds of one skill.
const (
	maxSkillFile  = 5 << 20  // bytes of a file
	maxSkillBytes = 20 << 20 // bytes of all files
	maxSkillFiles = 500
)

// plainName is a name that a file or a folder can have everywhere.
var plainName = lazyregexp.New(`^[A-Za-z0-9][A-Za-z0-9._ -]{0,99}$`)

// skills takes the skills of a folder, which are folders with a SKILL.md (agentskills.io).
func (h *home) skills(at string) {
	for _, e := range h.list("skill", at) {
		rel := path.Join(at, e.Name())
		switch {
		case e.Type()&fs.ModeSymlink != 0:
			h.skip("skill", rel, "%v", beneath.ErrLink)
		case e.IsDir() && !plainName.MatchString(e.Name()):
			h.skip("skill", rel, "a skill cannot have this name")
		case e.IsDir():
			h.skill(rel)
		}
	}
}

// skill takes one skill with all its files, or none of them.
func (h *home) skill(rel string) {
	var t tree
	programs := 0
	err := h.leaves(rel, "", &t.files)
	if err != nil {
		h.skip("skill", rel, "%v", err)
		return
	}

	main := false
	for _, f := range t.files {
		if f.program {
			programs++
		}
		if f.rel != "SKILL.md" && f.rel != "skill.md" {
			continue
		}

		main = true
		name := path.Join(rel, f.rel)
		if at := notText(f.content); at >= 0 {
			h.skip("skill", rel, "%s", notTextAt(name, f.content, at))
			return
		}
		if _, found, ok := skills.Parse(name, f.content); !ok {
			h.skip("skill", rel, "%s", within(name, found))
			return
		}
	}

	if !main {
		h.skip("skill", rel, "it has no SKILL.md")
		return
	}
	t.dir, t.name = "skills", path.Base(rel)
	i := item{what: "skill", from: rel, put: t}
	if n := len(t.files); n > 1 {
		i.note = term.Plural(n, "file", "files")
	}
	if programs > 0 {
		i.note += ", with " + term.Plural(programs, "program", "programs") +
			" that agents can run with their own permissions: read it first"
	}

	h.add(i)
}

// leaves reads all files below a folder. What it cannot read is an error.
func (h *home) leaves(top, below string, into *[]leaf) error {
	dir, err := beneath.Sub(h.root, filepath.Join(top, below))
	if err != nil {
		return fmt.Errorf("%s: %w", path.Join(top, below), beneath.Reason(err))
	}
	defer dir.Close()
	names, err := fs.ReadDir(dir.FS(), ".")
	if err != nil {
		return err
	}

	for _, e := range names {
		rel := path.Join(below, e.Name())
		switch {
		case strings.HasPrefix(e.Name(), "."), e.Name() == "node_modules", e.Name() == "__pycache__":
			continue
		case !plainName.MatchString(e.Name()):
			return fmt.Errorf("%q: a file cannot have this name", path.Join(top, rel))
		case len(*into) >= maxSkillFiles:
			return fmt.Errorf("it has more than %d files", maxSkillFiles)
		case e.IsDir() && strings.Count(rel, "/") > maxDepth:
			return fmt.Errorf("%s: it is nested more than %d folders deep", path.Join(top, rel), maxDepth)
		case e.IsDir():
			if err := h.leaves(top, rel, into); err != nil {
				return err
			}
			continue
		}

		data, info, err := beneath.Read(dir, e.Name(), min(maxSkillFile, h.left))
		h.left -= int64(len(data))
		if err != nil {
			return fmt.Errorf("%s: %w", path.Join(top, rel), beneath.Reason(err))
		}

		*into = append(*into, leaf{rel: rel, content: data, program: info.Mode()&0o111 != 0})
		if size(*into) > maxSkillBytes {
			return errors.New("it is too large: more than 20 MiB")
		}
	}

	return nil
}

func size(files []leaf) (bytes int) {
	for _, f := range files {
		bytes += len(f.content)
	}
	return bytes
}
