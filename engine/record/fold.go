package record

import (
	"bytes"
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	"daycare/engine/crash"
	"daycare/engine/disk"
	"daycare/engine/permission"
)

// Obligations are what an agent owes at one moment, folded over the log: the open turn, promised
// answers, a decision to act on. It is a copy; later appends do not change it.
type Obligations struct {
	Turn    *OpenTurn // nil: no turn is open
	Outs    []OpenOut
	Owed    bool // a decision was made after the newest turn, so a turn must follow
	Once    []OnceGrant
	Sources []Source // what was read from outside since an owner's message started a turn
	Session string
	LastSeq int64
	LastAt  time.Time
}

// An OpenTurn is a turn that began and has not ended.
type OpenTurn struct {
	ToolWork
	Turn    string
	Items   []string  // items whose user_message belongs to the turn, without silent ones
	Taken   []string  // items named by the newest turn_begin
	Users   []*Entry  // the user_messages of Items, in order
	Attempt int       // from 1
	Began   time.Time // time of the newest turn_begin
	// HasAnswer is the answer that ended the conversation of the turn, while its
	// turn_end is still missing: finish end_turn, max_tokens, canceled or error.
	HasAnswer *Entry
	// Held: the newest answer calls no tools and still did not end the turn, and what the
	// model was asked to do first is not recorded yet.
	Held bool
	// Progress: an answer or a result was recorded since the newest turn_begin. What
	// recovery writes (interrupted) does not count.
	Progress bool
	// Suspended: an orderly stop left it open; reopening it does not count as an attempt.
	Suspended bool
}

// ToolWork is the state of the tool calls of a turn.
type ToolWork struct {
	Calls  []OpenCall // calls without a result, in the order of the model
	Worked []ToolCall // calls whose result was ok
	Asked  []string   // tokens of the approval requests that were made
	Rounds int        // number of answers with tool calls so far
}

// An OpenCall is a tool call without a result.
type OpenCall struct {
	Call    ToolCall
	Started bool // a tool_started was recorded: the call may have had its effect
	// Grant is the Once approval that its start used up. After a crash this call, and no
	// other, can run again with it.
	Grant OnceGrant
}

// An OpenOut is a promised answer that is not delivered yet.
type OpenOut struct {
	Out
	Entry     *Entry       // the assistant_message with the answer; nil: not found in any file
	Delivered map[int]bool // which parts were delivered, by number from 0
	Parts     int          // how many parts the answer has; 0: not known yet
}

// fold keeps the obligations up to date, one entry at a time.
type fold struct {
	o     Obligations
	loose []*Entry // user_messages since the newest turn, before any turn_begin
}

func (f *fold) snapshot() *Obligations {
	o := f.copied()
	return &o
}

func (f *fold) copied() Obligations {
	o := f.o
	o.Once, o.Sources = slices.Clone(o.Once), slices.Clone(o.Sources)
	o.Outs = slices.Clone(o.Outs)
	for i := range o.Outs {
		o.Outs[i].Delivered = maps.Clone(o.Outs[i].Delivered)
	}
	if o.Turn != nil {
		t := *o.Turn
		t.Items, t.Taken = slices.Clone(t.Items), slices.Clone(t.Taken)
		t.Calls, t.Users = slices.Clone(t.Calls), slices.Clone(t.Users)
		t.Worked = slices.Clone(t.Worked)
		o.Turn = &t
	}

	return o
}

// clone is a fold that goes its own way from here.
func (f *fold) clone() fold {
	return fold{o: f.copied(), loose: slices.Clone(f.loose)}
}

// fill sets what a boundary record must say of what is owed. The record handed in
// is left as it is.
func (f *fold) fill(rec Record) Record {
	switch r := rec.(type) {
	case *TurnEnd:
		c := *r
		c.Outs, c.OwedFrom = f.owed()
		c.Once, c.Session, c.Sources = slices.Clone(f.o.Once), f.o.Session, slices.Clone(f.o.Sources)
		if c.Items == nil && f.o.Turn != nil {
			c.Items = slices.Clone(f.o.Turn.Items)
		}
		return &c
	case *Reset:
		c := *r
		c.Outs, c.OwedFrom = f.owed()
		c.Once = slices.Clone(f.o.Once)
		return &c
	}

	return rec
}

// apply folds one entry in. Records that owe nothing (marks, summaries, rewinds)
// only move LastSeq and LastAt.
func (f *fold) apply(e *Entry) {
	f.o.LastSeq = max(f.o.LastSeq, e.Seq)
	if !e.At.IsZero() {
		f.o.LastAt = e.At
	}
	switch r := e.Rec.(type) {
	case *Start:
		f.o.Sources = slices.Clone(r.Sources)
		f.boundary(r.Session, r.Outs, r.OwedFrom, r.Once)
	case *Reset:
		f.o.Sources = nil
		f.boundary(r.Session, r.Outs, r.OwedFrom, r.Once)
	case *TurnEnd:
		if r.Session != "" {
			f.o.Session = r.Session
		}
		f.o.Sources = slices.Clone(r.Sources)
		f.boundary(f.o.Session, r.Outs, r.OwedFrom, r.Once)
	case *Permission:
		f.permission(r)
	case *TurnBegin:
		f.begin(e, r)
	case *User:
		f.user(e, r)
	case *Assistant:
		f.assistant(e, r)
	case *ToolStart:
		f.started(r)
	case *ToolResult:
		f.read(e, r.Source)
		f.result(r)
	case *Delivery:
		f.delivery(r)
	case *Note:
		if t := f.o.Turn; t != nil && r.Suspended == t.Turn {
			t.Suspended = true
		}
	}
}

// boundary is a place where no turn is open and everything owed is listed, but for what
// was promised from record from on and is known already (0: all is listed).
func (f *fold) boundary(session string, outs []Out, from int64, once []OnceGrant) {
	known := f.o.Outs
	f.o.Outs = nil
	for _, k := range known {
		listed := slices.ContainsFunc(outs, func(o Out) bool { return o.ID == k.ID })
		if from > 0 && !listed && k.Entry != nil && k.Entry.Seq >= from {
			f.o.Outs = append(f.o.Outs, k)
		}
	}
	for _, out := range outs {
		open := OpenOut{Delivered: map[int]bool{}, Parts: out.Parts}
		for _, part := range out.Delivered {
			open.Delivered[part] = true
		}
		if i := slices.IndexFunc(known, func(k OpenOut) bool { return k.ID == out.ID }); i >= 0 {
			open.Entry = known[i].Entry
		}
		out.Parts, out.Delivered = 0, nil
		open.Out = out
		f.o.Outs = append(f.o.Outs, open)
	}
	f.o.Session, f.o.Once = session, slices.Clone(once)
	f.o.Turn, f.o.Owed, f.loose = nil, false, nil
}

// maxListed is how many promises a boundary record lists: while a chat is down each turn
// adds one, and the lists of all turns together would grow with their square.
const maxListed = 64

// owed is what a boundary record lists of promises: the newest, and from which record on
// the others are found; 0: none.
func (f *fold) owed() (outs []Out, from int64) {
	outs = []Out{}
	more := len(f.o.Outs) - maxListed
	for _, open := range f.o.Outs {
		if more > 0 && open.Entry != nil && open.Entry.Seq > 0 {
			if more--; from == 0 || open.Entry.Seq < from {
				from = open.Entry.Seq
			}
			continue
		}
		out := open.Out
		out.Parts = open.Parts
		out.Delivered = slices.Sorted(maps.Keys(open.Delivered))
		outs = append(outs, out)
	}

	return outs, from
}

func decision(event string) bool {
	switch event {
	case "once", "always", "prefix", "deny", "expired", "freed":
		return true
	default:
		return false
	}
}

// owes reports whether a turn must follow in which the model is notified of it.
func (r *Permission) owes() bool { return decision(r.Event) && !r.Silent }

func (f *fold) permission(r *Permission) {
	f.dropOnce(r.Token)
	if r.Event == "asked" && f.o.Turn != nil {
		f.o.Turn.Asked = append(slices.Clip(f.o.Turn.Asked), r.Token)
	}
	if _, budget := permission.BudgetOf(r.Tag); r.Event == "once" && !budget { // no call uses up what a limit was raised by
		f.o.Once = append(f.o.Once, OnceGrant{r.Token, r.SHA256})
	}
	if r.owes() && f.o.Turn == nil {
		f.o.Owed = true
	}
}

// OnceOf returns the unused Once approvals of the agent in the folder dir, whether it runs or not.
func OnceOf(dir string) ([]OnceGrant, error) {
	f := &fold{}
	var since []*Entry // the newest first
	err := backFiles(dir, func(l rawLine) bool {
		e, err := Decode(bytes.TrimSpace(l.text))
		if err != nil {
			return true
		}
		switch r := e.Rec.(type) {
		case *Permission, *ToolStart:
			since = append(since, e)
		case *Start:
			f.o.Once = r.Once
			return false
		case *Reset:
			f.o.Once = r.Once
			return false
		case *TurnEnd:
			f.o.Once = r.Once
			return false
		}
		return true
	})
	if err != nil {
		return nil, fmt.Errorf("look for approvals: %w", err)
	}
	for _, e := range slices.Backward(since) {
		f.apply(e)
	}

	return f.o.Once, nil
}

func (f *fold) dropOnce(token string) {
	f.o.Once = slices.DeleteFunc(f.o.Once, func(g OnceGrant) bool { return g.Token == token })
}

func (f *fold) begin(e *Entry, r *TurnBegin) {
	t := f.o.Turn
	if t == nil || t.Turn != r.Turn {
		t = &OpenTurn{Turn: r.Turn}
		f.o.Turn = t
	}
	t.Attempt, t.Began, t.Taken = max(r.Attempt, 1), e.At, slices.Clone(r.Items)
	t.Progress, t.Suspended = false, false
	f.o.Owed = false
	for _, e := range f.loose {
		if u := e.Rec.(*User); slices.Contains(r.Items, u.Item) {
			t.add(e, u)
		}
	}
	f.loose = nil
}

func (f *fold) user(e *Entry, r *User) {
	f.trust(e, r)
	switch {
	case r.Silent: // closes its item by itself
	case f.o.Turn == nil:
		f.loose = append(f.loose, e)
	default:
		f.o.Turn.add(e, r)
	}
}

func (t *OpenTurn) add(e *Entry, u *User) {
	if u.Item != "" && slices.Contains(t.Items, u.Item) {
		return
	}
	t.Users, t.HasAnswer, t.Held = append(t.Users, e), nil, false
	if u.Item != "" {
		t.Items = append(t.Items, u.Item)
	}
}

func (f *fold) assistant(e *Entry, r *Assistant) {
	if r.Out != nil && !slices.ContainsFunc(f.o.Outs, func(o OpenOut) bool { return o.ID == r.Out.ID }) {
		f.o.Outs = append(f.o.Outs, OpenOut{Out: *r.Out, Entry: e, Delivered: map[int]bool{}})
	}
	t := f.o.Turn
	if t == nil || r.Finish == FinishInterrupted {
		return
	}
	t.Progress, t.HasAnswer, t.Held = true, nil, false
	if r.Finish == FinishError || len(r.ToolCalls) == 0 {
		if t.Held = r.Finish == FinishToolUse; !t.Held {
			t.HasAnswer = e
		}
		return
	}
	t.Rounds++
	for _, call := range r.ToolCalls {
		t.Calls = append(t.Calls, OpenCall{Call: call})
	}
}

func (f *fold) started(r *ToolStart) {
	var used OnceGrant
	if i := slices.IndexFunc(f.o.Once, func(g OnceGrant) bool { return r.Grant != "" && g.Token == r.Grant }); i >= 0 {
		used = f.o.Once[i]
		if !crash.Bug("oncetwice") {
			f.dropOnce(r.Grant)
		}
	}
	if t := f.o.Turn; t != nil {
		for i := range t.Calls {
			if c := &t.Calls[i]; c.Call.ID == r.ToolCallID {
				c.Started = true
				if used.Token != "" { // a second start, after a crash, uses up nothing more
					c.Grant = used
				}
			}
		}
	}
}

func (f *fold) result(r *ToolResult) {
	t := f.o.Turn
	if t == nil {
		return
	}
	t.Calls = slices.DeleteFunc(t.Calls, func(c OpenCall) bool {
		if c.Call.ID == r.ToolCallID && r.Status == StatusOK {
			t.Worked = append(t.Worked, c.Call)
		}
		return c.Call.ID == r.ToolCallID
	})
	if r.Status != StatusInterrupted {
		t.Progress = true
	}
}

// maxSources is how many sources are remembered; the oldest go.
const maxSources = 20

// read records text from outside; "": none.
func (f *fold) read(e *Entry, source string) {
	if source == "" {
		return
	}
	f.o.Sources = slices.DeleteFunc(f.o.Sources, func(s Source) bool { return s.Source == source })
	f.o.Sources = append(f.o.Sources, Source{source, disk.StampOf(e.At)})
	f.o.Sources = f.o.Sources[max(0, len(f.o.Sources)-maxSources):]
}

// trust notes where a message came from. One of an owner that begins a turn begins anew:
// what was read before it is not what this turn acts on.
func (f *fold) trust(e *Entry, r *User) {
	if r.Source != "" || r.Untrusted {
		f.read(e, cmp.Or(r.Source, "a message of a service"))
		return
	}
	t := f.o.Turn
	if r.Origin != "" || r.Silent || t == nil || t.Progress || t.Attempt > 1 {
		return
	}
	f.o.Sources = slices.DeleteFunc(f.o.Sources, func(s Source) bool { return s.At.Before(t.Began) })
}

// delivery closes a promise when all parts arrived, or when it was given up.
func (f *fold) delivery(r *Delivery) {
	i := slices.IndexFunc(f.o.Outs, func(o OpenOut) bool { return o.ID == r.Out })
	if i < 0 {
		return
	}
	out := &f.o.Outs[i]
	out.Parts = max(r.Parts, 1)
	if r.Error == "" {
		out.Delivered[r.Part] = true
	}
	if r.Final || len(out.Delivered) >= out.Parts {
		f.o.Outs = slices.Delete(f.o.Outs, i, i+1)
	}
}
