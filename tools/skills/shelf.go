package skills

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"daycare/engine/finding"
)

// maxSkills bounds what is read of one folder of skills.
const maxSkills = 200

// A Shelf is the skills in force: those in some folders and those built in. Every
// use reads the folders again, so an edit counts at once. A SKILL.md that cannot be
// used is reported; its last good version stays in force. Its methods may be called
// from any goroutine.
type Shelf struct {
	folders func() []string
	report  func(path string, found []finding.Finding)

	mu    sync.Mutex
	files map[string]file // by path
	base  []Skill
}

// A file is a SKILL.md as it was read last.
type file struct {
	content string // hash of it, or why it could not be read
	good    *Skill // nil: it never was usable
	found   []finding.Finding
	told    []finding.Finding // with that its skill is hidden
}

// settled is the age of a save after which a broken file is broken: before it an editor
// that writes in pieces may not be done, and the file is read again in a moment.
const settled = 2 * time.Second

var rereads = [...]time.Duration{100 * time.Millisecond, 200 * time.Millisecond, 400 * time.Millisecond}

// NewShelf makes a Shelf. folders, asked at each use, each hold a folder a skill; they
// need not exist. report takes all that is wrong with a file, when it is not what was
// told of it before.
func NewShelf(folders func() []string, report func(path string, found []finding.Finding)) *Shelf {
	return &Shelf{folders: folders, report: report, files: map[string]file{}, base: Builtin()}
}

// List is the skills in force, by name. Of two with one name the one of the earlier
// folder counts, and what is built in last.
func (s *Shelf) List() []Skill {
	s.mu.Lock()
	defer s.mu.Unlock()
	var list []Skill
	now := map[string]file{}
	for _, path := range s.paths() {
		f := s.look(path)
		found := f.found
		if f.good != nil {
			if i := named(list, f.good.Name); i < 0 {
				list = append(list, *f.good)
			} else {
				found = append(slices.Clip(found), finding.Finding{ID: "skill-hidden", Severity: finding.Info, File: path,
					Reason: fmt.Sprintf("%s has a skill of the same name, %q, which is used instead", list[i].File, f.good.Name)})
			}
		}
		if !slices.Equal(found, f.told) {
			f.told = found
			s.report(path, found)
		}
		now[path] = f
	}
	for path, f := range s.files {
		if _, there := now[path]; !there && len(f.told) > 0 {
			s.report(path, nil)
		}
	}
	s.files = now
	for _, b := range s.base {
		if named(list, b.Name) < 0 {
			list = append(list, b)
		}
	}
	slices.SortFunc(list, func(a, b Skill) int { return strings.Compare(a.Name, b.Name) })
	return list
}

func named(list []Skill, name string) int {
	return slices.IndexFunc(list, func(s Skill) bool { return s.Name == name })
}

// paths are the files there are, in the order in which they count. A folder without
// SKILL.md is no skill.
func (s *Shelf) paths() (all []string) {
	for _, folder := range s.folders() {
		entries, err := os.ReadDir(folder)
		if err != nil {
			continue // most people have not all of them
		}
		for _, e := range entries[:min(len(entries), maxSkills)] {
			if strings.HasPrefix(e.Name(), ".") {
				continue
			}
			for _, name := range []string{"SKILL.md", "skill.md"} {
				path := filepath.Join(folder, e.Name(), name)
				if _, err := os.Lstat(path); err == nil {
					all = append(all, path)
					break
				}
			}
		}
	}
	return all
}

// look reads a file, if it is another one than it was. One that is no good keeps what
// it was before.
func (s *Shelf) look(path string) file {
	known := s.files[path]
	for try := 0; ; try++ {
		now, found := load(path)
		if now.content == known.content {
			return known
		}
		if now.good == nil && try < len(rereads) && fresh(path) {
			time.Sleep(rereads[try])
			continue
		}
		if now.good == nil && known.good != nil {
			now.good = known.good
			for i, f := range found {
				if f.Severity == finding.Error {
					found[i].Reason += "; the version before stays in force"
				}
			}
		}
		now.found, now.told = found, known.told
		return now
	}
}

func fresh(path string) bool {
	info, err := os.Stat(path)
	return err != nil || time.Since(info.ModTime()) < settled
}

// load reads one file of a skill's folder.
func load(path string) (file, []finding.Finding) {
	root, err := os.OpenRoot(filepath.Dir(path))
	if err != nil {
		return unreadable(path, err)
	}
	defer root.Close()
	data, err := read(root, filepath.Base(path), maxFile)
	if err != nil {
		return unreadable(path, err)
	}
	sum := sha256.Sum256(data)
	f := file{content: string(sum[:])}
	skill, found, ok := Parse(path, data)
	if ok {
		f.good = &skill
	}
	return f, found
}

func unreadable(path string, err error) (file, []finding.Finding) {
	if errors.Is(err, fs.ErrNotExist) {
		err = errors.New("it leads to nothing that is there, or out of the skill's folder")
	}
	return file{content: err.Error()}, []finding.Finding{{ID: "skill-unreadable", Severity: finding.Error, File: path, Reason: err.Error()}}
}
