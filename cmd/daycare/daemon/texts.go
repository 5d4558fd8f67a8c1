package daemon

import (
	"path/filepath"

	"daycare/agents/prompt"
	"daycare/engine/disk"
)

// commandBegan looks at all texts of prompts before a command of an agent runs, and again when
// it has ended: what it changed meanwhile waits until its owner saw it. In a sandbox those that
// exist can only be read.
func (r workbench) commandBegan(agent string, sandboxed bool) (ended func()) {
	r.lookAtTexts()
	var safe []string
	if sandboxed {
		for _, path := range append(prompt.Paths(r.workspace), filepath.Join(r.workspace, ".agents")) {
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
	factory{r.Daemon}.promptFiles()
	r.skills.List()
}
