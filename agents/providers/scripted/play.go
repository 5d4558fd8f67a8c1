package scripted

import (
	"context"
	"fmt"
	"strconv"
	"syscall"
	"time"
	"unicode/utf8"

	"daycare/agents/providers"
)

// player yields the events of one answer.
type player struct {
	p      *Provider
	ctx    context.Context
	req    *providers.Request
	yield  func(providers.Event) bool
	finish providers.Finish
	out    int // characters of the answer
	part   int // number of the rule that plays, from 1
	said   int // number of the rule that said something last, 0: none did
	usage  *usage
	ended  bool
}

// say yields one event; false: the caller wants no more.
func (pl *player) say(e providers.Event) bool {
	if pl.ended {
		return false
	}
	if !pl.yield(e) {
		pl.ended = true
	}

	return !pl.ended
}

func (pl *player) fail(err error) bool {
	pl.say(providers.Error{Err: err})
	pl.ended = true
	return false
}

// wait is false if the caller gave up meanwhile.
func (pl *player) wait(d time.Duration) bool {
	if d <= 0 {
		if err := pl.ctx.Err(); err != nil {
			return pl.fail(err)
		}
		return true
	}

	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-pl.ctx.Done():
		return pl.fail(pl.ctx.Err())
	}
}

// rule plays all steps of a rule.
func (pl *player) rule(r *rule, v View) bool {
	for i := range r.Reply {
		if !pl.step(&r.Reply[i], v) {
			return false
		}
	}

	if r.Finish != "" {
		pl.finish = providers.Finish(r.Finish)
	}

	return true
}

func (pl *player) step(s *step, v View) bool {
	if !pl.wait(s.Delay) {
		return false
	}
	thinking, err := s.thinking.String(v)
	if err != nil {
		return pl.broken("fill in thinking", err)
	}
	if thinking != "" {
		pl.out += utf8.RuneCountInString(thinking)
		if !pl.say(providers.ThinkingDelta{Text: thinking}) || !pl.say(providers.ThinkingDelta{Signature: "scripted"}) {
			return false
		}
	}

	text, err := s.text.String(v)
	if err != nil {
		return pl.broken("fill in text", err)
	}
	if !pl.text(text, s.Chunk, s.Every) {
		return false
	}

	for i := range s.Calls {
		args, err := s.Calls[i].arguments(v)
		if err != nil {
			return pl.broken("fill in arguments", err)
		}
		if !pl.call(s.Calls[i].Name, args) {
			return false
		}
	}

	if s.Usage != nil {
		pl.usage = s.Usage
	}

	return s.Fault == nil || pl.fault(s.Fault)
}

func (pl *player) broken(what string, err error) bool {
	return pl.fail(&providers.Failure{Kind: providers.Rejected, Provider: pl.p.id, Err: fmt.Errorf("%s: %w", what, err)})
}

// shown is how many characters a piece has when the answer is slowed down for
// users and the script does not say.
const shown = 12

// text yields text in pieces of chunk characters.
func (pl *player) text(text string, chunk int, every time.Duration) bool {
	if text != "" {
		if pl.said > 0 && pl.said < pl.part {
			text = "\n\n" + text
		}
		pl.said = pl.part
	}

	pl.out += utf8.RuneCountInString(text)
	every = max(every, pl.p.delay)
	if chunk == 0 && every > 0 {
		chunk = shown
	}

	for text != "" {
		n := len(text)
		if chunk > 0 {
			n = prefix(text, chunk)
		}
		if !pl.wait(every) || !pl.say(providers.ContentDelta{Text: text[:n]}) {
			return false
		}
		text = text[n:]
	}

	return true
}

// prefix is the length in bytes of the first n characters of s.
func prefix(s string, n int) int {
	i := 0
	for ; n > 0 && i < len(s); n-- {
		_, size := utf8.DecodeRuneInString(s[i:])
		i += size
	}

	return i
}

func (pl *player) call(name, arguments string) bool {
	pl.out += len(name) + utf8.RuneCountInString(arguments)
	pl.finish = providers.ToolUse
	id := "call_" + strconv.FormatInt(pl.p.calls.Add(1), 10)
	return pl.say(providers.ToolUseStart{ID: id, Name: name}) &&
		pl.say(providers.ToolUseDelta{ID: id, Arguments: arguments}) &&
		pl.say(providers.ToolUseStop{ID: id, Arguments: arguments})
}

// fault ends the answer as a service would that fails.
func (pl *player) fault(f *fault) bool {
	failure := &providers.Failure{Kind: f.Kind, Provider: pl.p.id, Status: f.Status, RetryAfter: f.RetryAfter, Message: f.Message}
	kind := providers.Broken
	switch {
	case f.Hang:
		<-pl.ctx.Done()
		return pl.fail(pl.ctx.Err())
	case f.Status != 0:
		kind = kindOf(f.Status)
	case f.Reset:
		failure.Err = fmt.Errorf("read answer: %w", syscall.ECONNRESET)
	case f.NoEnd:
		failure.Message = "the stream ended without its end mark"
	case f.Garbage:
		failure.Message = "the stream holds something unreadable"
	}

	if failure.Kind == "" {
		failure.Kind = kind
	}

	return pl.fail(failure)
}

func kindOf(status int) providers.Kind {
	switch status {
	case 429, 503, 529:
		return providers.Busy
	case 401, 402, 403:
		return providers.Auth
	}

	return providers.Rejected
}

func (pl *player) complete() {
	u := providers.EstimateUsage(pl.req, pl.out)
	if pl.usage != nil {
		u = providers.Usage{Input: pl.usage.Input, Output: pl.usage.Output, CacheRead: pl.usage.CacheRead, CacheWrite: pl.usage.CacheWrite,
			Reasoning: pl.usage.Reasoning}
	}
	model := pl.p.model
	if pl.req.Model != "" {
		model = pl.req.Model
	}
	pl.say(providers.Complete{Finish: pl.finish, Usage: u, Model: model})
}
