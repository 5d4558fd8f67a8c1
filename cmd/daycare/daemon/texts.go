package daemon

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"daycare/agents/prompt"
	"daycare/engine/beneath"
	"daycare/engine/disk"
	"daycare/engine/watch"
)

// shared is what the prompts of all agents share, as it was read last. It is used again while no
// event tells of a change in places, and never after a second: see watch.Quiet. What a command of an
// agent may have changed is looked at in any case, by lookAtTexts.
type shared struct {
	files  prompt.Files
	skills []prompt.Skill
	mark   watch.Mark    // before it was read
	places []watch.Place // all that it follows from; nil: it must be read again
}

// sharedTexts returns what users wrote for all agents, and the skills, as the files are now.
func (r factory) sharedTexts() (prompt.Files, []prompt.Skill) {
	last := r.shared.Load()
	if last != nil && last.places != nil && r.quiet.Still(last.mark, last.places...) {
		return last.files, last.skills
	}

	now, fine := &shared{mark: r.quiet.Mark()}, false
	now.files, fine = r.promptFiles()
	now.skills = r.knownSkills()
	// Turns that follow each other more slowly than that would only pay for the watches.
	if fine && last != nil && last.mark.Age() < 2*watch.MaxStill && len(r.texts.Waiting()) == 0 {
		now.places = r.sharedPlaces()
	}
	r.shared.Store(now)

	return now.files, now.skills
}

// sharedPlaces are the folders of the shared texts; nil if one of them is a link or has other
// names, so that it may change elsewhere.
func (r factory) sharedPlaces() []watch.Place {
	for _, path := range prompt.Paths(r.at) {
		info, err := os.Lstat(path)
		if err == nil && info.Mode().IsRegular() && beneath.Links(info) == 1 || errors.Is(err, fs.ErrNotExist) {
			continue
		}
		return nil
	}

	text := func(name string) bool { return strings.HasSuffix(name, ".md") }
	places := []watch.Place{{Dir: r.at.Dir, Names: text}, {Dir: r.at.Data, Names: text}}
	for _, f := range SkillFolders(r.at, r.folders.Writable) {
		path := filepath.Join(f.Root, f.Path)
		places = append(places, watch.Place{Dir: path})
		dir, err := beneath.Dir(f.Root, f.Path)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil
		}

		entries, err := fs.ReadDir(dir.FS(), ".")
		dir.Close()
		for _, e := range entries {
			if e.Type()&fs.ModeSymlink != 0 {
				return nil
			}
			if e.IsDir() && !strings.HasPrefix(e.Name(), ".") {
				places = append(places, watch.Place{Dir: filepath.Join(path, e.Name())})
			}
		}
		if err != nil {
			return nil
		}
	}

	return places
}

// commandBegan looks at all texts of prompts before a command of an agent runs, and again when
// it has ended: what it has changed since waits until its owner saw it. In a sandbox those that
// exist can only be read.
func (r workbench) commandBegan(agent string, sandboxed bool) (ended func()) {
	r.lookAtTexts()
	var safe []string
	if sandboxed {
		for _, path := range append(prompt.Paths(r.at), filepath.Join(r.at.Dir, ".agents")) {
			if disk.Exists(path) {
				safe = append(safe, path)
			}
		}
	}

	done := r.texts.Began(agent, safe...)
	return func() {
		r.lookAtTexts()
		done()
	}
}

func (r workbench) lookAtTexts() {
	_, _ = factory{r.Daemon}.promptFiles()
	r.skills.List()
}
