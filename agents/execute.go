package agents

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"daycare/engine/crash"
	"daycare/engine/disk"
	"daycare/engine/event"
	"daycare/engine/record"
	"daycare/tools"
	"daycare/tools/hooks"
)

// Bounds of what one tool result may add to the context.
const (
	blobOver   = 32 << 10 // bytes: outputs longer than this are kept whole in blobs/
	shownBytes = 400      // of an output, in events
)

// beside is how many of the first calls may run beside each other.
func (s *self) beside(calls []record.ToolCall) int {
	n := 0
	for n < len(calls) && n < s.settings.Parallel {
		if _, spec, ok := s.tools.Get(calls[n].Name); !ok || !spec.Parallel {
			break
		}
		n++
	}

	return max(n, 1)
}

// A prepared call is ready to run, or has its result already.
type prepared struct {
	tool   tools.Tool
	spec   tools.Spec
	call   tools.Call
	answer *tools.Result
	// sources are what the turn has read from outside; nil: it speaks for the owner.
	sources []record.Source
	hooked  hooks.Verdict // of the hooks before it
}

// run calls the tool under its time limit; a panic is the tool's error, not the
// agent's end.
func run(ctx context.Context, p prepared, log *slog.Logger) (r tools.Result) {
	defer func() {
		if v := recover(); v != nil {
			r = tools.Errorf("the tool %s crashed: %v", p.call.Name, v)
			log.Error("a tool crashed", "tool", p.call.Name, "panic", v, "stack", string(debug.Stack()))
		}
	}()
	limited := ctx
	if d := p.spec.Timeout; d > 0 {
		var cancel context.CancelFunc
		limited, cancel = context.WithTimeout(ctx, d)
		defer cancel()
	}
	r, err := p.tool.Run(limited, p.call)
	switch {
	case ctx.Err() != nil:
		r.Status, r.Text = tools.Canceled, strings.TrimSpace(r.Text+"\nCancelled")
	case err != nil && limited.Err() != nil:
		r = tools.Result{Status: tools.TimedOut, Text: fmt.Sprintf("timed out after %s", p.spec.Timeout)}
	case err != nil:
		r = tools.Errorf("%v", err)
	}

	return r
}

// keep is the results that count when an orderly stop cut calls: one that may be
// run again has none then, so that it is at the next start and finds the agent, the
// item or the file that it had begun with.
func (s *self) keep(results []record.Record) []record.Record {
	return slices.DeleteFunc(results, func(rec record.Record) bool {
		r := rec.(*record.ToolResult)
		_, spec, ok := s.tools.Get(r.Name)
		return ok && r.Status == record.StatusCanceled && spec.Replay != tools.Once
	})
}

// An executor runs tool calls.
type executor struct {
	journal    *journal
	deliveries *deliveries
	permits    *permits
	rights     *rights
	hooks      *hooking
}

// execute runs the calls of one answer, in order; calls of parallel-safe tools that
// stand side by side run beside each other. It returns the reason to end the turn,
// "" to continue.
func (x *executor) execute(ctx, inner context.Context, t *turn, calls []record.ToolCall) (reason string, err error) {
	for len(calls) > 0 {
		if ctx.Err() != nil {
			return suspended, x.journal.suspend(t.id)
		}
		if inner.Err() != nil {
			return record.ReasonCanceled, x.cancelled(calls)
		}
		n := t.beside(calls)
		verdicts, err := x.hooks.before(inner, t, calls[:n])
		if err != nil {
			return "", err
		}
		if verdicts != nil && inner.Err() != nil {
			continue // nothing has begun
		}
		if verdicts != nil {
			n = len(verdicts)
		}
		results, err := x.batch(inner, t, calls[:n], verdicts)
		if err != nil {
			return "", err
		}
		if ctx.Err() != nil {
			results = t.keep(results)
		}
		if _, err := x.journal.append(results...); err != nil {
			return "", err
		}
		for i, r := range results {
			if len(results) == n && t.loop.again(calls[i], r.(*record.ToolResult)) {
				reason = record.ReasonLoop
			}
		}
		if calls = calls[n:]; t.stopped != "" {
			return record.ReasonError, x.cancelled(calls)
		}
	}
	if ctx.Err() != nil {
		return suspended, x.journal.suspend(t.id)
	}
	if inner.Err() != nil {
		return record.ReasonCanceled, nil
	}

	return reason, nil
}

// batch runs calls beside each other; the results keep their order. verdicts are those of
// the hooks before them; nil: none.
func (x *executor) batch(ctx context.Context, t *turn, calls []record.ToolCall, verdicts []hooks.Verdict) ([]record.Record, error) {
	prepared := make([]prepared, len(calls))
	for i, c := range calls {
		var v hooks.Verdict
		if verdicts != nil {
			v = verdicts[i]
		}
		p, err := x.prepare(ctx, t, c, v)
		if err != nil {
			return nil, err
		}
		prepared[i] = p
	}
	if err := x.journal.barrier(); err != nil { // the answer and every start, before any tool runs
		return nil, err
	}
	x.journal.show(event.UsingTool, calls[0].Name)
	results := make([]record.Record, len(calls))
	wholes := make([]*tools.Whole, len(calls))
	shown := x.hooks.watching(t, calls, prepared)
	x.deliveries.meanwhile(func(sync.Locker) {
		var wg sync.WaitGroup
		for i := range calls {
			wg.Go(func() {
				release := t.clock.hold()
				defer release()
				results[i], wholes[i] = x.one(ctx, t, calls[i], prepared[i])
				shown.after(ctx, i, results[i].(*record.ToolResult))
			})
		}
		wg.Wait()
	})
	if last := len(results) - 1; crash.Bug("swapresults") && last > 0 {
		first, second := results[0].(*record.ToolResult), results[last].(*record.ToolResult)
		first.Output, second.Output = second.Output, first.Output
	}
	if err := shown.record(t); err != nil {
		return nil, err
	}
	for i, r := range results {
		x.journal.hide(r)
		if err := x.cap(t, r.(*record.ToolResult), wholes[i]); err != nil {
			return nil, err
		}
		x.finished(t, calls[i], r.(*record.ToolResult))
	}

	return results, nil
}

// prepare finds the tool, checks the arguments and the permission, and writes the
// start of a call that must not run twice.
// What hooks said of it comes first: the rest is about the call as they left it.
func (x *executor) prepare(ctx context.Context, t *turn, c record.ToolCall, v hooks.Verdict) (p prepared, err error) {
	refuse := func(format string, args ...any) (prepared, error) {
		r := tools.Errorf(format, args...)
		return prepared{answer: &r}, nil
	}
	tool, spec, ok := t.tools.Get(c.Name)
	if !ok {
		return refuse("Tool not found: %s", c.Name)
	}
	c, denied := t.hooked(c, v)
	if denied != nil {
		return prepared{answer: denied}, nil
	}
	if err := t.tools.Validate(c.Name, c.Arguments); err != nil {
		return refuse("%v", err)
	}
	access, err := x.rights.access(&t.self)
	if err != nil {
		return refuse("this agent's permissions cannot be read now: %v", err)
	}
	p.tool, p.spec, p.hooked = tool, spec, v
	p.sources = x.journal.history.Obligations().Sources
	p.call = tools.Call{ID: c.ID, Name: c.Name, Arguments: c.Arguments, Agent: x.journal.id, Turn: t.id,
		Access: guarded(access, p.sources), Sources: texts(p.sources), Hops: t.hops + 1,
		Answer: tools.Answer{Route: t.workRoute(x.journal), Message: t.replyTo}, Progress: func(text string) {
			x.journal.emit(event.ToolProgress, t.id, event.Progress{Call: c.ID, Text: text})
		}}
	_, _, asks := t.tools.Get(tools.RequestPermission)
	p.call.Unasked = !asks
	grant, refused, err := x.permits.permit(ctx, t, &p)
	if err != nil {
		return p, err
	}
	if refused != nil {
		return prepared{answer: refused}, nil
	}
	if (spec.Replay == tools.Once || grant != "") && !crash.Bug("nostart") {
		_, err = x.journal.append(&record.ToolStart{ToolCallID: c.ID, Name: c.Name, Grant: grant})
	}

	return p, err
}

// one runs one prepared call. whole is nil unless its tool shortened the output.
func (x *executor) one(ctx context.Context, t *turn, c record.ToolCall, p prepared) (out *record.ToolResult, whole *tools.Whole) {
	x.journal.emit(event.ToolStarted, t.id, event.Tool{Call: c.ID, Name: c.Name, Arguments: c.Arguments})
	began := time.Now()
	r := p.answer
	if r == nil {
		crash.Point("tool.before")
		var got tools.Result
		if p.spec.Replay != tools.Once || !crash.Bug("skipcall") {
			got = run(ctx, p, x.journal.log)
		}
		crash.Point("tool.after")
		r = &got
	}
	out = &record.ToolResult{ToolCallID: c.ID, Name: c.Name, Status: record.Status(r.Status),
		Output: record.Output{Text: r.Text}, Files: r.Files, Source: r.Source, MS: time.Since(began).Milliseconds()}
	if out.Status == "" {
		out.Status = record.StatusOK
	}
	for _, b := range r.Blocks {
		out.Output.Blocks = append(out.Output.Blocks, record.Block{Type: b.Type, File: b.File, Text: b.Text})
	}

	return out, r.Whole
}

// cancelled gives every call that did not run the result it needs.
func (x *executor) cancelled(calls []record.ToolCall) error {
	if len(calls) == 0 {
		return nil
	}
	recs := make([]record.Record, len(calls))
	for i, c := range calls {
		recs[i] = &record.ToolResult{ToolCallID: c.ID, Name: c.Name, Status: record.StatusCanceled,
			Output: record.Output{Text: "Cancelled"}}
	}
	_, err := x.journal.append(recs...)
	return err
}

// cap shortens an output that is too long for the context: head and tail stay, and a
// marker between them names the file that holds the whole. An output that its tool
// shortened already keeps the tool's file.
func (x *executor) cap(t *turn, r *record.ToolResult, whole *tools.Whole) error {
	if whole != nil && whole.Blob != "" {
		if err := x.kept(record.KeepBlob(x.journal.volume, x.journal.dir, whole.Blob)); err != nil {
			return err
		}
		r.Output.Blob = whole.Blob
	}
	text, most := r.Output.Text, tools.MaxOutput
	if _, spec, ok := t.tools.Get(r.Name); ok && spec.MaxOutput > 0 {
		most = spec.MaxOutput
	}
	most = min(most, t.share)
	if len(text) <= most || utf8.RuneCountInString(text) <= most && len(text) <= blobOver {
		return nil
	}

	to, from := most/2, len(text)-most/2
	if whole != nil { // its marker goes, whatever else stays
		if at := strings.Index(text, whole.Marker); at >= 0 {
			to, from = min(to, at), max(from, at+len(whole.Marker))
		}
	}
	head, tail := strings.ToValidUTF8(text[:to], ""), strings.ToValidUTF8(text[from:], "")
	left := int64(len(text) - len(head) - len(tail))
	if whole != nil {
		r.Output.Text = whole.Shorten(head, tail, whole.Left+left-int64(len(whole.Marker)))
		return nil
	}
	whole = &tools.Whole{Bytes: int64(len(text))}
	err := x.kept(x.journal.untilRoom(func() (err error) {
		if r.Output.Blob, err = record.PutBlob(x.journal.volume, x.journal.dir, text); err == nil {
			whole.Blob, whole.Kept = r.Output.Blob, whole.Bytes
		}
		return err
	}))
	r.Output.Text = whole.Shorten(head, tail, left)
	return err
}

// kept judges an error of keeping an output whole. The call worked all the same, so the
// agent goes on without it, unless nothing can be recorded any more.
func (x *executor) kept(err error) error {
	if errors.Is(err, disk.ErrFailed) || errors.Is(err, disk.ErrFull) {
		return fmt.Errorf("save tool output: %w", err)
	}
	if err != nil {
		x.journal.log.Warn("tool output not saved in full", "err", err)
	}

	return nil
}

func (x *executor) finished(t *turn, c record.ToolCall, r *record.ToolResult) {
	shown := r.Output.Text
	if len(shown) > shownBytes {
		shown = strings.ToValidUTF8(shown[:shownBytes], "") + "…"
	}
	x.journal.emit(event.ToolFinished, t.id, event.Tool{Call: c.ID, Name: c.Name, Status: string(r.Status), Output: shown, MS: r.MS})
}

// share is how many characters each of n results of one round may have, whatever its
// tool is. All of them together take a quarter of the context at most, so that the
// round fits beside the summary of what was before it.
func share(limit, n int) int {
	return max(limit/max(n, 1), 500)
}
