package compact

import (
	"slices"

	"daycare/engine/record"
)

// Limits are sizes in tokens, all derived from the context that there is room for.
type Limits struct {
	Trigger int // a context larger than this is shortened
	Tail    int // what stays as it is
	Round   int // what stays of a turn in progress whose newest round alone passes Tail
	Summary int // the longest summary
	Request int // the longest quotation of the latest request
	Part    int // of a transcript that is summarised at once
}

// maxSummary is enough for any conversation: a longer summary is read less well.
const maxSummary = 4000

// For derives the limits from the smaller of the model's window and the owner's
// limit. What is left over is for system prompt, tools and the next round.
func For(limit int) Limits {
	return Limits{
		Trigger: limit * 3 / 4,
		Tail:    limit / 4,
		Round:   limit * 3 / 8,
		Summary: min(limit/8, maxSummary),
		Request: limit / 8,
		Part:    limit / 2,
	}
}

// A Plan is what goes and what stays.
type Plan struct {
	Before   string          // text of the current summary, which goes too
	Gone     []*record.Entry // oldest first
	Kept     []*record.Entry
	Requests []*record.User // the latest request, where it is not among Kept
	Quoted   string         // or as Before quotes it: nobody has asked anything since
	Answered bool           // the latest request has had its final answer
	From     int64          // seq of the oldest record that the summary stands for
	KeptFrom int64          // seq of the first that stays
}

// Make plans what goes; next is the seq that the summary will get at least. ok is
// false if there is nothing worth replacing.
func Make(ctx *record.Context, l Limits, next int64) (p Plan, ok bool) {
	cut := l.cut(ctx.Entries)
	p = Plan{Gone: ctx.Entries[:cut], Kept: ctx.Entries[cut:], KeptFrom: next}
	if cut < len(ctx.Entries) {
		p.KeptFrom = ctx.Entries[cut].Seq
	}
	if len(p.Gone) == 0 {
		return p, false
	}

	p.From = p.Gone[0].Seq
	if ctx.Summary != nil {
		if s, is := ctx.Summary.Rec.(*record.Summary); is {
			p.Before, p.From = s.Text, s.From
		}
	}

	r := request(ctx.Entries)
	p.Answered = slices.ContainsFunc(ctx.Entries[min(r+1, len(ctx.Entries)):], final)
	if r == len(ctx.Entries) {
		var before bool
		p.Quoted, before = quoted(p.Before)
		p.Answered = before || slices.ContainsFunc(ctx.Entries, final)
	}
	if r < cut {
		for _, e := range ctx.Entries[r:cut] {
			if u, is := e.Rec.(*record.User); is && !u.Silent {
				p.Requests = append(p.Requests, u)
			}
		}
	}

	return p, true
}

// SHA256 is the hash of the records that are replaced, as they are in history.
func (p Plan) SHA256() string { return record.SummedUp(p.Gone) }

// Holds reports whether the records to be replaced are still in the context as they were:
// a user may have edited it while the summary was written.
func (p Plan) Holds(ctx *record.Context) bool {
	before := ""
	if ctx.Summary != nil {
		if s, is := ctx.Summary.Rec.(*record.Summary); is {
			before = s.Text
		}
	}

	return before == p.Before && len(ctx.Entries) >= len(p.Gone) && slices.Equal(ctx.Entries[:len(p.Gone)], p.Gone)
}

// cut is how many of the entries go. The tail is as long as Tail allows; the whole
// turn in progress, or at least its newest round, is worth the room of Round.
func (l Limits) cut(entries []*record.Entry) int {
	n, asked := len(entries), request(entries)
	tail, turn, newest := n, n, n
	size := 0
	for i := n - 1; i >= 0; i-- {
		if size += Size(entries[i]); size > max(l.Tail, l.Round) {
			break
		}
		if !begins(entries[i]) {
			continue
		}
		if size <= l.Tail {
			tail = i
		}
		if newest == n {
			newest = i
		}
		if i == asked {
			turn = i
		}
	}

	switch {
	case turn < n:
		return min(tail, turn)
	case tail < n:
		return tail
	}

	return newest
}

// final reports whether an entry is an answer after which nothing more is done.
func final(e *record.Entry) bool {
	a, is := e.Rec.(*record.Assistant)
	return is && len(a.ToolCalls) == 0
}

// begins reports whether a conversation may begin with an entry: what somebody
// said, or an answer. (A result needs the call before it, and a line without a
// number, written by a hand, cannot be named in a record.)
func begins(e *record.Entry) bool {
	if e.Seq == 0 {
		return false
	}
	switch e.Rec.(type) {
	case *record.User, *record.Assistant, *record.Permission:
		return true
	}

	return false
}

// request is where the latest request begins: the newest messages that no final
// answer has followed yet, else the newest message. Without any it is len(entries).
func request(entries []*record.Entry) int {
	at := len(entries)
	for i := len(entries) - 1; i >= 0; i-- {
		switch r := entries[i].Rec.(type) {
		case *record.User:
			if !r.Silent {
				at = i
			}
		case *record.Assistant:
			if final(entries[i]) && at < len(entries) {
				return at
			}
		}
	}

	return at
}
