package record

import (
	"path/filepath"
	"sync"
	"time"

	"daycare/engine/beneath"
	"daycare/engine/disk"
	"daycare/engine/permission"
)

// A Gist is what of an agent's state.json is asked for before every call of a model or a tool.
type Gist struct {
	Profile permission.Profile // as written; "": that of the settings
	Budget  Budget             // the zero Budget: none
}

// Gists remembers the Gist of each agent, so that state.json is looked at and not read while it is
// as it was: the same file with the same size and times. One that was changed within the last moment
// is read again, because two changes may have the same time. A state.json that is missing or has
// errors is not remembered. Gists may be used from many goroutines.
type Gists struct {
	mu    sync.Mutex
	known map[string]gist // by folder
}

type gist struct {
	Gist
	stamp beneath.Stamp
}

// maxGists bounds the memory; beyond it all are forgotten.
const maxGists = 4096

// Of returns the Gist of the agent folder dir, as CurrentState has it.
func (g *Gists) Of(vol *disk.Volume, dir string) (Gist, error) {
	begun := time.Now()
	var seen gist
	now, serr := beneath.StampAt(filepath.Join(dir, stateName)) // before it is read: it may be written in between
	if serr == nil {
		seen.stamp = now
		if known, ok := g.look(dir, seen); ok {
			return known, nil
		}
	}

	s, found, err := CurrentState(vol, dir)
	if seen.Profile = s.Permissions.Profile; s.Budget != nil {
		seen.Budget = *s.Budget
	}
	if serr == nil && err == nil && len(found) == 0 && seen.stamp.Lasts(begun) {
		g.keep(dir, seen)
	}

	return seen.Gist, err
}

func (g *Gists) look(dir string, seen gist) (Gist, bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	known, ok := g.known[dir]
	seen.Gist = known.Gist
	return known.Gist, ok && known == seen
}

func (g *Gists) keep(dir string, seen gist) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.known == nil || len(g.known) >= maxGists {
		g.known = map[string]gist{}
	}
	g.known[dir] = seen
}
