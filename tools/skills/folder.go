package skills

import (
	"crypto/sha256"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"daycare/engine/beneath"
	"daycare/engine/finding"
	"daycare/engine/unseen"
)

// A Folder holds a folder for each skill.
type Folder struct {
	Root string // no agent can change this path
	Path string // of the folder beneath Root, which agents may be able to change
	// Links reports whether an entry may be a link to a path. nil: agents write in the
	// folder, so that none may.
	Links func(to string) bool
}

func (f Folder) path() string { return filepath.Join(f.Root, f.Path) }

// A source is where one SKILL.md is, or why it is not read.
type source struct {
	file      string // its path as users know it
	root, dir string // the skill's folder is opened as dir beneath root
	err       error
}

// sources are the skills of all folders, in the order in which they count. A folder
// without SKILL.md is not a skill.
func sources(folders []Folder) (all []source) {
	for _, f := range folders {
		dir, err := beneath.Dir(f.Root, f.Path)
		if errors.Is(err, fs.ErrNotExist) {
			continue // most users have not all of them
		}
		if err != nil {
			all = append(all, source{file: f.path(), err: err})
			continue
		}

		entries, _ := fs.ReadDir(dir.FS(), ".") // none: gone meanwhile
		for _, e := range entries[:min(len(entries), maxSkills)] {
			if s, ok := f.source(dir, e); ok {
				all = append(all, s)
			}
		}

		dir.Close()
	}

	return all
}

// source is one entry of the folder, which is open as dir.
func (f Folder) source(dir *os.Root, e fs.DirEntry) (s source, ok bool) {
	name := e.Name()
	s = source{file: filepath.Join(f.path(), name, "SKILL.md"), root: f.Root, dir: filepath.Join(f.Path, name)}
	switch {
	case strings.HasPrefix(name, "."):
		return s, false
	case e.Type()&fs.ModeSymlink != 0:
		to, err := filepath.EvalSymlinks(filepath.Join(f.path(), name))
		if f.Links == nil || err != nil || !f.Links(to) {
			s.err = beneath.ErrLink
			return s, true
		}
		s.root, s.dir = to, "."
	case !e.IsDir():
		return s, false
	}

	folder, err := beneath.Dir(s.root, s.dir)
	if err != nil {
		s.err = err
		return s, !errors.Is(err, fs.ErrNotExist)
	}
	defer folder.Close()

	for _, name := range []string{"SKILL.md", "skill.md"} {
		if _, err := folder.Lstat(name); err == nil {
			s.file = filepath.Join(filepath.Dir(s.file), name)
			return s, true
		}
	}

	return s, false
}

// look reads a skill, if it is another one than known. One that is no good keeps what
// it was before.
func (s source) look(known file, use Use) file {
	for try := 0; ; try++ {
		now, found, fresh := s.load(use)
		if now.content == known.content {
			return known
		}
		if now.good == nil && try < len(rereads) && fresh {
			time.Sleep(rereads[try])
			continue
		}
		if now.good == nil && known.good != nil {
			now.good = known.good
			for i, f := range found {
				if f.Severity == finding.Error {
					found[i].Reason += "; the previous version stays active"
				}
			}
		}

		now.found, now.told = found, known.told
		return now
	}
}

// load reads a SKILL.md. fresh: it was saved a moment ago, perhaps not wholly.
func (s source) load(use Use) (f file, found []finding.Finding, fresh bool) {
	if s.err != nil {
		return unreadable(s.file, s.err)
	}
	dir, err := beneath.Dir(s.root, s.dir)
	if err != nil {
		return unreadable(s.file, err)
	}
	defer dir.Close()
	data, info, err := beneath.Read(dir, filepath.Base(s.file), maxFile)
	if err != nil {
		return unreadable(s.file, err)
	}

	text := data
	if use != nil {
		there, waits := true, (*unseen.Change)(nil)
		if text, there, waits = use(s.file, data, info); waits != nil {
			found = append(found, waits.Finding(s.file))
			f.content = waits.SHA256 // it is another file once it is seen
		}
		if !there {
			return f, found, false
		}
	}

	sum := sha256.Sum256(text)
	f.content += string(sum[:])
	skill, more, ok := Parse(s.file, text)
	if ok {
		skill.source = s
		f.good = &skill
	}

	return f, append(found, more...), time.Since(info.ModTime()) < settled
}

func unreadable(path string, err error) (file, []finding.Finding, bool) {
	f := finding.Finding{ID: "skill-unreadable", Severity: finding.Error, File: path, Reason: beneath.Reason(err).Error()}
	if errors.Is(err, beneath.ErrLink) || errors.Is(err, beneath.ErrNames) {
		f.Remedy = "Put a copy in its place, or the skill into .daycare/skills, unless an agent made it: then delete it."
	}

	return file{content: f.Reason}, []finding.Finding{f}, errors.Is(err, fs.ErrNotExist)
}

const maxVisits = 10_000 // names that are looked at for the list of a skill's files

// contents are the files of a skill beside SKILL.md.
func (s source) contents() (files []string) {
	root, err := beneath.Dir(s.root, s.dir)
	if err != nil {
		return nil
	}
	defer root.Close()
	visits := 0
	fs.WalkDir(root.FS(), ".", func(name string, d fs.DirEntry, err error) error {
		switch visits++; {
		case visits > maxVisits:
			return fs.SkipAll
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

	slices.Sort(files)
	return files
}

// read reads one file of a skill.
func (s source) read(name string) ([]byte, error) {
	root, err := beneath.Dir(s.root, s.dir)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	data, _, err := beneath.Read(root, filepath.FromSlash(name), maxShown)

	return data, err
}
