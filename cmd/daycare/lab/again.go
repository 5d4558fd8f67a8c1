package lab

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/charmbracelet/x/ansi"

	"daycare/agents/providers"
	"daycare/cmd/daycare/daemon"
	"daycare/cmd/daycare/term"
	"daycare/engine/cuid"
	"daycare/engine/record"
	"daycare/tools"
)

// A side is one answer to what a turn was about: the recorded one, or one of a replay.
type side struct {
	Name   string   `json:"name"` // recorded, or the number of the replay
	Model  string   `json:"model"`
	Answer string   `json:"answer"`
	Ended  string   `json:"ended"` // done, or why it ended without an answer
	Rounds int      `json:"rounds"`
	Tools  []string `json:"tools"` // calls, in their order
	Input  int64    `json:"input"`
	Output int64    `json:"output"`
	Cost   float64  `json:"cost"`
	MS     int64    `json:"ms"`
}

// A compared turn is what replay prints of it.
type compared struct {
	Turn  string `json:"turn"`
	Sides []side `json:"sides"`
}

// done is how a side ended that has an answer.
const done = "done"

// again asks a model what the agent was asked in each turn.
func again(ctx context.Context, c *term.App, r daemon.Requests, turns []turn, o replayOptions) error {
	var spent float64
	in := bufio.NewReader(c.In)
	for _, t := range turns {
		choice, err := r.Choice(t.meta)
		if err == nil && o.model != "" {
			choice, err = r.Models().Choose(choice, o.model)
		}
		if err == nil {
			_, err = r.Models().CheckChoice(choice)
		}
		if err != nil {
			return err
		}
		system, err := t.system(r, o)
		if err != nil {
			return err
		}

		out := compared{Turn: t.trace.Turn, Sides: []side{t.recorded()}}
		for n := range o.times {
			h := &hand{app: c, in: in, at: o.at, requests: r, turn: t, mode: o.unrecorded, benches: map[string]*workplace{}}
			p := &play{turn: t, requests: r, choice: choice, system: system, hand: h, used: map[int]bool{}}
			s, err := p.run(ctx)
			if err = errors.Join(err, h.close()); err != nil {
				return err
			}
			s.Name = fmt.Sprintf("#%d", n+1)
			out.Sides, spent = append(out.Sides, s), spent+s.Cost
		}
		if err := showSides(c, out); err != nil {
			return err
		}
	}

	if !c.JSON {
		c.Note("%s spent", term.Money(spent))
	}

	return nil
}

// maxSystem bounds the file of a system prompt.
const maxSystem = 16 << 20

// system is the system prompt of a replay.
func (t turn) system(r daemon.Requests, o replayOptions) (string, error) {
	if o.system != "" {
		data, err := ownFile(o.system, maxSystem)
		return string(data), err
	}
	sum := ""
	if sent := t.calls()[0].Rec.(*record.Assistant).Sent; sent != nil {
		sum = sent.System
	}

	return r.System(t.meta, sum)
}

// recorded is what happened.
func (t turn) recorded() side {
	s := side{Name: "recorded", Ended: done, Tools: []string{}}
	var began time.Time
	for _, e := range t.trace.Entries {
		if began.IsZero() {
			began = e.At
		}
		switch rec := e.Rec.(type) {
		case *record.Assistant:
			if rec.Provider == "" {
				continue
			}
			s.Model = strings.TrimSuffix(rec.Provider+"/"+rec.Model, "/")
			if rec.Sent != nil {
				s.Model = rec.Provider + "/" + rec.Sent.Model
			}
			s.Rounds, s.Cost, s.Output = s.Rounds+1, s.Cost+rec.Cost, s.Output+rec.Tokens.Output
			s.Input += rec.Tokens.Input + rec.Tokens.CacheRead + rec.Tokens.CacheWrite
			for _, call := range rec.ToolCalls {
				s.Tools = append(s.Tools, spelled(call))
			}
			if strings.TrimSpace(rec.Text) != "" {
				s.Answer = rec.Text
			}
		case *record.TurnEnd:
			s.Ended, s.MS = rec.Reason, e.At.Sub(began).Milliseconds()
		}
	}

	return s
}

func spelled(c record.ToolCall) string {
	return c.Name + " " + term.OneLine(string(c.Arguments), 60)
}

// A play is one replay of a turn.
type play struct {
	turn     turn
	requests daemon.Requests
	choice   record.Model
	system   string
	hand     *hand // gives a call that was never recorded its result

	used    map[int]bool // recorded calls whose result was given
	entries []*record.Entry
	side    side
}

// mostRounds ends a replay that goes on and on.
const mostRounds = 100

func (p *play) run(ctx context.Context) (side, error) {
	calls := p.turn.calls()
	before, err := p.turn.past.Before(p.turn.session, calls[0].Seq)
	if err != nil {
		return side{}, err
	}
	p.entries = slices.Clone(before.Entries)
	p.side = side{Ended: "too many rounds", Tools: []string{}}
	began := time.Now()
	caller := p.requests.Models().Caller(p.choice)
	for round := range mostRounds {
		now := &record.Context{Session: p.turn.session, Summary: before.Summary, Entries: p.entries}
		req, err := p.requests.Make(p.requests.Builder(p.turn.meta), p.turn.meta, now, p.system, p.choice)
		if err != nil {
			return p.side, fmt.Errorf("make request: %w", err)
		}
		answer, err := caller.Call(ctx, req, nil)
		if ctx.Err() != nil {
			return p.side, context.Cause(ctx)
		}
		if err != nil {
			p.side.Ended = "error: " + err.Error()
			break
		}

		p.count(answer)
		if len(answer.Calls) == 0 {
			p.side.Ended = done
			break
		}
		unknown, err := p.results(ctx, answer)
		if errors.Is(err, errStopped) {
			p.side.Ended = fmt.Sprintf("%v: %s", err, unknown)
			break
		}
		if err != nil {
			return p.side, err
		}
		p.entries = append(p.entries, p.turn.saidAfter(round)...)
	}
	p.side.MS = time.Since(began).Milliseconds()

	return p.side, nil
}

// count adds what an answer took.
func (p *play) count(a *providers.Response) {
	s, u := &p.side, a.Usage
	s.Model = strings.TrimSuffix(a.Provider+"/"+cmp.Or(a.Asked, a.Model), "/")
	s.Rounds, s.Output = s.Rounds+1, s.Output+u.Output
	s.Input += u.Input + u.CacheRead + u.CacheWrite
	s.Cost += p.requests.Models().Price(a.Provider, a.Model, u)
	if strings.TrimSpace(a.Text) != "" {
		s.Answer = a.Text
	}
}

// results records the calls of an answer with the results that the history has of them, or the hand.
// unknown is the call that an error is about. Errors: errStopped.
func (p *play) results(ctx context.Context, a *providers.Response) (unknown string, err error) {
	as := &record.Assistant{Turn: p.turn.trace.Turn, Text: a.Text, Finish: record.FinishToolUse, Provider: a.Provider, Model: a.Model,
		Asked: a.Asked}
	for _, th := range a.Thinking {
		as.Thinking = append(as.Thinking, record.Thinking{Text: th.Text, Signature: th.Signature})
	}
	var results []*record.Entry
	for _, c := range a.Calls {
		call := meant(c)
		as.ToolCalls = append(as.ToolCalls, call)
		p.side.Tools = append(p.side.Tools, spelled(call))
		result := p.recorded(call)
		if result == nil {
			var how string
			if result, how, err = p.hand.result(ctx, call); err != nil {
				return spelled(call), err
			}
			p.side.Tools[len(p.side.Tools)-1] += " (" + how + ")"
		}
		own := *result
		own.ToolCallID, own.Name = call.ID, call.Name
		results = append(results, &record.Entry{At: time.Now(), Rec: &own})
	}
	p.entries = append(append(p.entries, &record.Entry{At: time.Now(), Rec: as}), results...)

	return "", nil
}

// meant is a call as history has it: one through tool_call is a call of the tool that it names.
func meant(c providers.ResponseCall) record.ToolCall {
	call := record.ToolCall{ID: cuid.New(), RemoteID: c.RemoteID, Name: c.Name, Arguments: c.Arguments}
	if !c.Valid {
		call.Arguments, _ = json.Marshal(string(c.Arguments)) // a text
		return call
	}
	var inner struct {
		Tool      string          `json:"tool"`
		Arguments json.RawMessage `json:"arguments"`
	}
	if c.Name == tools.CallTool && json.Unmarshal(c.Arguments, &inner) == nil && inner.Tool != "" && len(inner.Arguments) > 0 {
		call.Name, call.Arguments, call.Via = inner.Tool, inner.Arguments, c.Name
	}

	return call
}

// recorded is the result of the same call in the turn: of several the first that was not given yet.
func (p *play) recorded(call record.ToolCall) (result *record.ToolResult) {
	results := map[string]*record.ToolResult{}
	for _, e := range p.turn.trace.Entries {
		if r, ok := e.Rec.(*record.ToolResult); ok {
			results[r.ToolCallID] = r
		}
	}

	n := 0
	for _, e := range p.turn.calls() {
		for _, c := range e.Rec.(*record.Assistant).ToolCalls {
			n++
			if c.Name != call.Name || !alike(c.Arguments, call.Arguments) || results[c.ID] == nil {
				continue
			}
			if result = results[c.ID]; !p.used[n] {
				p.used[n] = true
				return result
			}
		}
	}

	return result
}

// alike compares two values of JSON.
func alike(a, b json.RawMessage) bool {
	plain := func(raw json.RawMessage) []byte {
		var v any
		if json.Unmarshal(raw, &v) != nil {
			return raw
		}
		data, _ := json.Marshal(v) // which sorts keys
		return data
	}

	return bytes.Equal(plain(a), plain(b))
}

// saidAfter is what users said between two model calls of the turn, for the replay to hear it at
// the same place.
func (t turn) saidAfter(round int) (said []*record.Entry) {
	calls := t.calls()
	if round+1 >= len(calls) {
		return nil
	}
	for _, e := range t.trace.Entries {
		if _, ok := e.Rec.(*record.User); ok && e.Seq > calls[round].Seq && e.Seq < calls[round+1].Seq {
			said = append(said, e)
		}
	}

	return said
}

// showSides prints the sides of a turn beside each other.
func showSides(c *term.App, out compared) error {
	if c.JSON {
		return c.PrintJSON(out)
	}
	table := term.Table{{"turn " + out.Turn}}
	row := func(name string, value func(side) string) {
		cells := []string{name}
		for _, s := range out.Sides {
			cells = append(cells, value(s))
		}
		table.Row(cells...)
	}
	for _, s := range out.Sides {
		table[0] = append(table[0], s.Name)
	}
	width := max(24, 120/len(out.Sides))
	row("model", func(s side) string { return s.Model })
	row("model calls", func(s side) string { return fmt.Sprint(s.Rounds) })
	row("tokens in, out", func(s side) string { return fmt.Sprintf("%d, %d", s.Input, s.Output) })
	row("cost", func(s side) string { return term.Money(s.Cost) })
	row("time", func(s side) string { return took(s.MS) })
	block(&table, "tools", out.Sides, width, func(s side) string { return strings.Join(s.Tools, "\n") })
	block(&table, "answer", out.Sides, width, func(s side) string { return s.Answer })
	block(&table, "ended", out.Sides, width, func(s side) string { return s.Ended })
	if err := table.Write(c.Out, c.OutStyle()); err != nil {
		return err
	}
	c.Print("\n")

	return nil
}

// block adds rows for texts of several lines.
func block(table *term.Table, name string, sides []side, width int, value func(side) string) {
	columns, most := make([][]string, len(sides)), 0
	for i, s := range sides {
		columns[i] = strings.Split(ansi.Wrap(term.Clean(strings.TrimSpace(value(s))), width, ""), "\n")
		most = max(most, len(columns[i]))
	}
	for n := range most {
		cells := []string{name}
		if n > 0 {
			cells[0] = ""
		}
		for _, lines := range columns {
			text := ""
			if n < len(lines) {
				text = lines[n]
			}
			cells = append(cells, text)
		}
		table.Row(cells...)
	}
}
