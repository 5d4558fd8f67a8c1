package record

import (
	"fmt"
	"slices"
)

// A Past is a history as it was at any moment, read once from the files of an agent's folder,
// whether the agent runs or not. Lines that cannot be read are skipped.
type Past struct {
	dir     string
	entries []*Entry // all of them, oldest first
	next    int      // the first that the view does not know
	view    view
}

// OpenPast reads the history in dir.
func OpenPast(dir string) (*Past, error) {
	p := &Past{dir: dir}
	err := backFiles(dir, func(l rawLine) bool {
		if e, err := Decode(l.text); err == nil {
			p.entries = append(p.entries, e)
		}
		return true
	})
	slices.Reverse(p.entries)
	if err != nil {
		return nil, fmt.Errorf("read history: %w", err)
	}

	return p, nil
}

// Before is the context of the model before the record seq, in a session. Contexts that are asked
// for in the order of their records share what they have in common.
func (p *Past) Before(session string, seq int64) (*Context, error) {
	if p.next > 0 && p.entries[p.next-1].Seq >= seq || session != p.view.session {
		p.next, p.view = 0, view{gen: p.view.gen + 1}
	}
	for ; p.next < len(p.entries) && p.entries[p.next].Seq < seq; p.next++ {
		p.view.apply(p.entries[p.next])
	}

	v := &p.view
	if !v.made {
		entries, summary, err := contextAt(p.dir, seq)
		if err != nil {
			return nil, fmt.Errorf("read history: %w", err)
		}
		v.renew(session, summary, entries)
	}
	v.returned, v.given = len(v.entries), true

	return &Context{Session: v.session, Generation: v.gen, Summary: v.summary, Entries: slices.Clip(v.entries)}, nil
}

// Turns are the turns that have ended in a session, oldest first, without what was before each.
func (p *Past) Turns(session string) (turns []Trace) {
	var now Trace
	for _, e := range p.entries {
		switch r := e.Rec.(type) {
		case *TurnBegin:
			if r.Turn != now.Turn {
				now = Trace{Turn: r.Turn}
			}
		case *Start, *Reset:
			now = Trace{}
		}
		if now.Turn != "" {
			now.Entries = append(now.Entries, e)
		}
		if end, ok := e.Rec.(*TurnEnd); ok {
			if end.Turn == now.Turn && end.Session == session {
				turns = append(turns, now)
			}
			now = Trace{}
		}
	}

	return turns
}

// Begins is the record that the history begins with; nil: it has none.
func (p *Past) Begins() *Start {
	for _, e := range p.entries {
		if s, ok := e.Rec.(*Start); ok {
			return s
		}
	}

	return nil
}
