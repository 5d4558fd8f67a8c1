package engine

import (
	"path/filepath"
	"time"

	"daycare/engine/beneath"
	"daycare/engine/inbox"
	"daycare/engine/record"
)

// A story is what state.json and history.jsonl say of an agent.
type story struct {
	ended   *record.Ended
	queue   string
	model   record.Model
	budget  *record.Budget
	cost    float64 // of its own calls, in US dollars
	context int64   // tokens; 0: unknown
	last    record.Last
}

// story reads what an agent did, or has it from an earlier look.
func (dy *directory) story(id string) story {
	dir := dy.folder(id)
	return dy.stories.of(id, func() (record.Look, bool) { return record.LookAt(dir) }, func() (s story, whole bool) {
		state, found, err := record.CurrentState(dy.vol, dir) // problems of the file are reported elsewhere
		dy.index.SawEnded(id, state.Ended != nil)
		s = story{ended: state.Ended, queue: state.Queue, model: state.Provider, budget: state.Budget}
		whole = err == nil && len(found) == 0
		if s.cost, err = dy.actors.ownCost(id); err != nil {
			whole = false
		}
		if n, err := record.InContext(dir); err == nil {
			s.context = n
		} else {
			whole = false
		}
		if last, err := record.Newest(dir); err == nil {
			s.last = record.Last{At: last.At, Said: firstLine(last.Said), Failed: firstLine(last.Failed)}
		} else {
			whole = false
		}

		return s, whole
	})
}

// A backlog is what waits for an agent.
type backlog struct {
	n      int       // items
	queued int       // of them, those that no turn has begun on
	oldest time.Time // zero if there is none
}

// backlog counts what waits for an agent.
func (dy *directory) backlog(id string) backlog {
	if heads, ok := dy.actors.opened(id); ok {
		return backlogOf(heads)
	}
	path := filepath.Join(dy.folder(id), inbox.FileName)
	return dy.backlogs.of(id, func() (beneath.Stamp, bool) { return beneath.Look(path) }, func() (backlog, bool) {
		heads, err := dy.actors.survey(id)
		return backlogOf(heads), err == nil
	})
}

func backlogOf(heads []inbox.Head) (b backlog) {
	b.n = len(heads)
	for _, h := range heads {
		if !h.Taken {
			b.queued++
		}
	}
	if b.n > 0 {
		b.oldest = heads[0].At
	}

	return b
}
