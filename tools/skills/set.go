package skills

import (
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"sync"
	"time"

	"daycare/engine/finding"
	"daycare/engine/unseen"
)

// maxSkills bounds what is read of one folder of skills.
const maxSkills = 200

// A Set is the active skills: those in some folders and the built-in ones. Every use
// rereads the folders, so an edit takes effect at once. An invalid SKILL.md is reported;
// its last valid version stays active. Its methods are safe for concurrent use.
type Set struct {
	folders func() []Folder
	use     Use
	report  func(path string, found []finding.Finding)

	mu    sync.Mutex      // never held while a file is read
	files map[string]file // by path
	begun int             // how many lists were begun
	ended int             // the newest of those that ended
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

// A Use says which text of a SKILL.md is to be used: see unseen.Texts.
type Use = func(path string, data []byte, info fs.FileInfo) (text []byte, there bool, waits *unseen.Change)

// NewSet makes a Set. folders, asked at each use, need not exist. use may be nil. report takes
// all that is wrong with a file, when it is not what was
// notified of it before.
func NewSet(folders func() []Folder, use Use, report func(path string, found []finding.Finding)) *Set {
	return &Set{folders: folders, use: use, report: report, files: map[string]file{}}
}

// List is the active skills, by name. Of two with one name the one of the earlier
// folder counts, and what is built in last.
func (s *Set) List() []Skill {
	s.mu.Lock()
	s.begun++
	turn, before := s.begun, s.files // which is never changed once made
	s.mu.Unlock()
	var list []Skill
	now := map[string]file{}
	for _, src := range sources(s.folders()) {
		path := src.file
		f := src.look(before[path], s.use)
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

	for path, f := range before {
		if _, there := now[path]; !there && len(f.told) > 0 {
			s.report(path, nil)
		}
	}

	s.mu.Lock()
	if turn > s.ended { // else a list that was begun later knows better
		s.files, s.ended = now, turn
	}

	s.mu.Unlock()
	for _, b := range Builtin() {
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
