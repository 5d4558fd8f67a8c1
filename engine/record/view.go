package record

import (
	"reflect"
	"slices"
)

// A Context is what the model sees of the conversation: the records since the start of the session
// or since a summary, without rewound ones. Its Entries are User, Assistant (neither interrupted
// nor error), ToolResult, the decisions and changes among Permission, and each TurnEnd that set its
// messages aside or was canceled. A rewind never goes back beyond a reset.
type Context struct {
	Session    string
	Generation int    // changes when this is not the previous context plus new entries
	Summary    *Entry // the summary that replaces older records; nil: none
	Entries    []*Entry
}

// A Place is how far somebody has read in the contexts of one agent. The zero Place is before everything.
type Place struct {
	session    string
	generation int
	summary    *Entry
	n          int
	last       *Entry // entry n-1, as a check
}

// Read returns the entries that c has beyond the place, and moves it to their end. With anew these are all entries: nothing was
// read before, or c is not the same with more at its end.
func (p *Place) Read(c *Context) (entries []*Entry, anew bool) {
	if anew = p.last == nil || !p.within(c); anew {
		*p = Place{session: c.Session, generation: c.Generation, summary: c.Summary}
	}
	entries = c.Entries[p.n:]
	if p.n = len(c.Entries); p.n > 0 {
		p.last = c.Entries[p.n-1]
	}

	return entries, anew
}

func (p *Place) within(c *Context) bool {
	return p.session == c.Session && p.generation == c.Generation && p.summary == c.Summary &&
		p.n <= len(c.Entries) && c.Entries[p.n-1] == p.last
}

// view keeps the context, made on first use and extended by appends.
type view struct {
	made     bool // entries are up to date
	session  string
	summary  *Entry
	entries  []*Entry
	returned int // how many entries Context has returned
	gen      int
	given    bool // Context was called
}

// apply takes an appended entry in. What changes more than the end makes the view
// anew at its next use.
func (v *view) apply(e *Entry) {
	switch e.Rec.(type) {
	case *Start, *Reset, *Rewind, *Summary:
		v.made = false
	default:
		if v.made && visible(e) {
			v.entries = append(v.entries, e)
		}
	}
}

// visible reports whether the model sees an entry.
func visible(e *Entry) bool {
	switch r := e.Rec.(type) {
	case *User, *ToolResult:
		return true
	case *TurnEnd: // what was set aside or stopped is shown as such
		return r.Reason == ReasonPoison || r.Reason == ReasonCanceled
	case *Permission:
		return r.owes() || r.Event == "revoked" || r.Event == "changed-by-hand"
	case *Assistant:
		switch r.Finish {
		case FinishInterrupted, FinishError:
			return false
		case FinishCanceled:
			return r.Text != "" || len(r.ToolCalls) > 0
		}
		return true
	}

	return false
}

// Context returns what the model sees. The first call reads the file backward to the start of the
// session or the newest summary, later calls read nothing unless a user changed the file. The
// result must not be modified; its entries stay the same pointers as long as they are part of it.
func (h *History) Context() (*Context, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	v := &h.view
	if !v.made {
		var s *contextScan
		err := h.steady(func() (err error) { s, err = h.scanContext(); return err })
		if err != nil {
			return nil, err
		}
		v.renew(h.fold.o.Session, s.summary, s.entries)
	}

	v.returned, v.given = len(v.entries), true
	return &Context{Session: v.session, Generation: v.gen, Summary: v.summary,
		Entries: slices.Clip(v.entries)}, nil
}

// renew takes a freshly read context over. Entries that were there before keep
// their pointers, because readers use those as keys.
func (v *view) renew(session string, summary *Entry, entries []*Entry) {
	old := v.entries[:v.returned]
	bySeq := make(map[int64]*Entry, len(v.entries))
	for _, e := range v.entries {
		if e.Seq > 0 {
			bySeq[e.Seq] = e
		}
	}

	for i, e := range entries {
		if known := bySeq[e.Seq]; known != nil && same(known, e) {
			entries[i] = known
		} else if i < len(old) && same(old[i], e) {
			entries[i] = old[i]
		}
	}

	if same(v.summary, summary) {
		summary = v.summary
	}
	extends := session == v.session && summary == v.summary &&
		len(entries) >= len(old) && slices.Equal(old, entries[:len(old)])
	if v.given && !extends {
		v.gen++
	}

	v.made, v.session, v.summary, v.entries = true, session, summary, entries
}

func same(a, b *Entry) bool {
	if a == nil || b == nil {
		return a == b
	}
	return a.Seq == b.Seq && a.At.Equal(b.At) && reflect.DeepEqual(a.Rec, b.Rec)
}

// contextScan reads the context backward.
type contextScan struct {
	report  *report
	entries []*Entry
	summary *Entry
	floor   int64 // seq of the oldest record kept by the summary
	rewind  int64 // what is above it is skipped; -1: nothing is
	begin   int64 // offset of the oldest line that the context needs
}

func (o *ownFile) scanContext() (*contextScan, error) {
	s := &contextScan{report: &o.report, rewind: -1, begin: o.file.Size()}
	if _, err := o.source().back(s.step); err != nil {
		return nil, err
	}
	slices.Reverse(s.entries)

	return s, nil
}

// step takes one line, newest first; false: the context needs nothing older.
func (s *contextScan) step(l rawLine) bool {
	head, ok := readHead(l.text)
	var e *Entry
	if !ok || !silent(head.typ) {
		if e = s.report.decode(l); e != nil {
			head.seq = e.Seq
		}
	}
	if s.summary != nil && head.seq > 0 && head.seq < s.floor {
		return false
	}
	if s.rewind >= 0 && head.seq > 0 && head.seq <= s.rewind {
		s.rewind = -1
	}

	s.begin = l.off
	return e == nil || s.take(e)
}

// silent are the types that the context never needs; their lines are not parsed.
func silent(t Type) bool {
	switch t {
	case TypeMark, TypeTurnBegin, TypeToolStart, TypeDelivery, TypeNote:
		return true
	default:
		return false
	}
}

func (s *contextScan) take(e *Entry) bool {
	switch r := e.Rec.(type) {
	case *Start, *Reset:
		return false
	case *Rewind:
		if s.rewind < 0 || r.To < s.rewind {
			s.rewind = r.To
		}
	case *Summary:
		return s.summarized(e, r)
	default:
		if s.rewind < 0 && visible(e) {
			s.entries = append(s.entries, e)
		}
	}

	return true
}

// summarized applies the newest active summary. A rewind undoes a summary only
// when it leads back into what the summary stands for.
func (s *contextScan) summarized(e *Entry, r *Summary) bool {
	undone := s.rewind >= 0 && r.KeptFrom-1 > s.rewind
	if s.summary != nil || undone {
		return true
	}
	s.summary, s.floor = e, r.KeptFrom

	return r.KeptFrom > 0 && (e.Seq == 0 || r.KeptFrom < e.Seq)
}
