package files

import (
	"os"
	"sync"
	"time"
)

// maxSeen bounds how many files are remembered, over all agents. Beyond it all is
// forgotten, and with it the check.
const maxSeen = 10_000

// seen remembers what version of a file each agent saw last, so that none changes
// what another program changed meanwhile without having looked. It is not kept over
// a restart: then the agent's word is taken.
type seen struct {
	mu    sync.Mutex
	files map[seenFile]version
}

type seenFile struct{ agent, path string }

// A version is what changes with every save.
type version struct {
	size int64
	at   time.Time
	id   os.FileInfo
}

func versionOf(info os.FileInfo) version { return version{info.Size(), info.ModTime(), info} }

func (v version) is(info os.FileInfo) bool {
	return v.size == info.Size() && v.at.Equal(info.ModTime()) && os.SameFile(v.id, info)
}

// note takes down that the agent knows this version of the file at p.
func (r *reach) note(p *place, info os.FileInfo) {
	if info == nil || r.trial != nil {
		return
	}
	r.seen.mu.Lock()
	defer r.seen.mu.Unlock()
	if len(r.seen.files) >= maxSeen || r.seen.files == nil {
		r.seen.files = map[seenFile]version{}
	}
	r.seen.files[seenFile{r.agent, p.real}] = versionOf(info)
}

// noteWritten takes down what the agent has just put there itself.
func (r *reach) noteWritten(p *place) {
	if info, err := p.dir.Lstat(p.name); err == nil {
		r.note(p, info)
	}
}

// stale refuses to change a file that is not any more what the agent read.
func (s *seen) stale(agent string, p *place, name string) error {
	if p.info == nil {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	v, ok := s.files[seenFile{agent, p.real}]
	if ok && !v.is(p.info) {
		return refuse("%s has changed since you read it (by the user or a command); read it again, then make your change", name)
	}

	return nil
}
