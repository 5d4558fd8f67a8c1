package record

import (
	"fmt"
	"slices"
	"time"

	"daycare/engine/disk"
	"daycare/engine/fault"
)

// ErrNoRecord: history has no record with the given number or name.
var ErrNoRecord = fault.NoRecord

// A Cut is the part of a history that a fork gets: the context as it was after one record. A fork
// owes nothing: promised answers, approvals and items stay with the original agent, and no cost is
// counted twice.
type Cut struct {
	Content []byte   // the new history.jsonl
	Blobs   []string // hashes of the long outputs that it names
	Session Session
	At      int64 // seq of the newest record that was copied
	Last    int64 // seq of the last line of Content
}

// CutAt reads the history of an agent's folder and cuts it after the record at; 0: after the newest
// turn that ended. A record of an earlier session selects that session. session is the id of the
// new one. It works whether the agent runs or not.
func CutAt(dir, agent string, at int64, session string, now time.Time) (Cut, error) {
	if at <= 0 {
		var err error
		if at, err = newestEnd(dir); err != nil {
			return Cut{}, err
		}
	}

	s := contextScan{report: &report{}, rewind: -1}
	found := false
	err := backFiles(dir, func(l rawLine) bool {
		if !found {
			seq := seqOf(l.text)
			if e, err := Decode(l.text); seq == 0 && err == nil { // a user's line, its members in any order
				seq = e.Seq
			}
			if seq == 0 || seq > at {
				return true
			}
			if found = seq == at; !found {
				return false
			}
		}

		return s.step(l)
	})
	if err != nil {
		return Cut{}, fmt.Errorf("read history: %w", err)
	}
	if !found {
		return Cut{}, noRecord("history has no record %d", at)
	}

	slices.Reverse(s.entries)
	c := cutter{cut: Cut{At: at, Session: Session{ID: session, Parent: agent}}}
	c.write(now, &Start{Session: session, V: Version, ForkedFrom: &Fork{Agent: agent, Seq: at}})
	if s.summary != nil {
		c.summary(s.summary)
	}

	for _, e := range s.entries {
		c.entry(e)
	}
	c.write(now, &TurnEnd{Turn: "fork", Session: session, Reason: ReasonDone})
	c.cut.Session.First, c.cut.Session.StartedAt, c.cut.Session.UpdatedAt = 1, disk.StampOf(now), disk.StampOf(now)

	return c.cut, nil
}

// newestEnd is the seq of the newest record that is not part of an open turn.
func newestEnd(dir string) (at int64, err error) {
	last, open := int64(0), false
	err = backFiles(dir, func(l rawLine) bool {
		e, err := Decode(l.text)
		if err != nil || e.Seq == 0 {
			return true
		}
		last = max(last, e.Seq)
		switch e.Rec.(type) {
		case *TurnBegin:
			open = true
		case *TurnEnd, *Reset, *Start:
			if at = last; open {
				at = e.Seq
			}
			return false
		}

		return true
	})
	if err != nil {
		return 0, fmt.Errorf("read history: %w", err)
	}
	if at == 0 {
		return 0, noRecord("the history is empty")
	}

	return at, nil
}

// A cutter writes the lines of a Cut.
type cutter struct{ cut Cut }

func (c *cutter) write(at time.Time, r Record) {
	c.cut.Last++
	c.cut.Content = append(c.cut.Content, Encode(&Entry{Seq: c.cut.Last, At: at, Rec: r})...)
}

func (c *cutter) summary(e *Entry) {
	r := *e.Rec.(*Summary)
	r.From, r.KeptFrom = 0, c.cut.Last+2
	r.Item, r.Provider, r.Cost = "", "", 0
	c.write(e.At, &r)
	c.cut.Session.Summary = c.cut.Last
}

func (c *cutter) entry(e *Entry) {
	switch r := e.Rec.(type) {
	case *User:
		u := *r
		u.Item, u.Route = "", nil
		c.write(e.At, &u)
		c.cut.Session.Messages++
		if c.cut.Session.Title == "" && u.Origin == "" {
			c.cut.Session.Title = title(u.Text)
		}
	case *Assistant:
		a := *r
		a.Out, a.Provider, a.Cost = nil, "", 0
		a.Thinking = nil // its signature is good for the vendor that gave it, in that conversation
		c.write(e.At, &a)
		c.cut.Session.Messages++
	case *ToolResult:
		t := *r
		c.write(e.At, &t)
		if t.Output.Blob != "" {
			c.cut.Blobs = append(c.cut.Blobs, t.Output.Blob)
		}
	case *TurnEnd:
		c.write(e.At, &TurnEnd{Turn: r.Turn, Session: c.cut.Session.ID, Reason: r.Reason})
	}
	// A decision was given to the other agent and is not carried over.
}
