package lab

import (
	"context"
	"fmt"
	"time"

	"daycare/cmd/daycare/term"
	"daycare/engine/record"
)

// A tally is what happened in a simulation.
type tally struct {
	from      time.Time
	approvals []approval
	byAgent   []figure
	byDay     []figure
	steps     int // events of the clock
}

// An approval is one that was requested.
type approval struct {
	At         time.Time `json:"at"`
	Agent      string    `json:"agent"` // handle
	Permission string    `json:"permission"`
	Answer     string    `json:"answer"` // once, deny; "": it had none
}

// A figure is what an agent did, or all agents on a day.
type figure struct {
	Who    string  `json:"who"` // handle, or day
	Name   string  `json:"name,omitempty"`
	Turns  int     `json:"turns"`
	Failed int     `json:"failed"` // of these
	Calls  int     `json:"calls"`  // of models
	Input  int64   `json:"input"`  // tokens
	Output int64   `json:"output"`
	Cost   float64 `json:"cost"` // US dollars
}

func newTally(from time.Time) tally { return tally{from: from} }

// look reads from the histories what has happened since the beginning.
func (s *simulation) look(ctx context.Context) error {
	agents, err := s.client.Agents(ctx)
	if err != nil {
		return err
	}
	for _, a := range agents {
		entries, err := s.history(ctx, a.ID)
		if err != nil {
			return err
		}
		one := figure{Who: a.Handle, Name: a.Name}
		for _, e := range entries {
			if e.At.Before(s.from) {
				continue
			}
			one.add(e.Rec)
			s.day(e.At).add(e.Rec)
		}
		if one.Turns+one.Calls > 0 {
			s.byAgent = append(s.byAgent, one)
		}
	}

	return nil
}

func (f *figure) add(rec record.Record) {
	switch rec := rec.(type) {
	case *record.TurnEnd:
		f.Turns++
		if rec.Reason == record.ReasonError || rec.Reason == "budget" {
			f.Failed++
		}
	case *record.Assistant:
		if rec.Provider != "" {
			f.Calls++
		}
		f.Input += rec.Tokens.Input + rec.Tokens.CacheRead + rec.Tokens.CacheWrite
		f.Output, f.Cost = f.Output+rec.Tokens.Output, f.Cost+rec.Cost
	case *record.Summary:
		f.Cost += rec.Cost
	}
}

// day is the figure of a day; those between it and the first are there, too.
func (t *tally) day(at time.Time) *figure {
	year, month, date := t.from.Date()
	for n := 0; ; n++ {
		begins := time.Date(year, month, date+n, 0, 0, 0, 0, t.from.Location())
		if n == len(t.byDay) {
			t.byDay = append(t.byDay, figure{Who: begins.Format("Mon 2006-01-02")})
		}
		if at.Before(begins.AddDate(0, 0, 1)) {
			return &t.byDay[n]
		}
	}
}

// total is the sum of all agents.
func (t *tally) total() (sum figure) {
	sum.Who = "total"
	for _, f := range t.byAgent {
		sum.Turns, sum.Failed, sum.Calls = sum.Turns+f.Turns, sum.Failed+f.Failed, sum.Calls+f.Calls
		sum.Input, sum.Output, sum.Cost = sum.Input+f.Input, sum.Output+f.Output, sum.Cost+f.Cost
	}

	return sum
}

// report prints what happened.
func (s *simulation) report(c *term.App, took time.Duration) error {
	s.day(s.from.Add(s.script.length - 1))
	total := s.total()
	if c.JSON {
		return c.PrintJSON(map[string]any{"from": s.from, "to": s.from.Add(s.script.length), "total": total, "agents": append([]figure{},
			s.byAgent...), "days": s.byDay, "approvals": append([]approval{}, s.approvals...), "steps": s.steps, "ms": took.Milliseconds()})
	}
	c.Print("%s to %s, played in %s\n\n", s.from.Format("Mon 2006-01-02 15:04"), s.from.Add(s.script.length).Format("Mon 2006-01-02 15:04"),
		took.Round(10*time.Millisecond))
	var t term.Table
	t.Row("AGENT", "NAME", "TURNS", "FAILED", "CALLS", "TOKENS IN", "OUT", "COST")
	for _, f := range append(s.byAgent, total) {
		t.Row(f.Who, f.Name, fmt.Sprint(f.Turns), fmt.Sprint(f.Failed), fmt.Sprint(f.Calls), fmt.Sprint(f.Input),
			fmt.Sprint(f.Output), term.Money(f.Cost))
	}
	if err := t.Write(c.Out, c.OutStyle()); err != nil {
		return err
	}
	c.Print("\n")
	t = term.Table{}
	t.Row("DAY", "TURNS", "FAILED", "CALLS", "COST")
	for _, f := range s.byDay {
		t.Row(f.Who, fmt.Sprint(f.Turns), fmt.Sprint(f.Failed), fmt.Sprint(f.Calls), term.Money(f.Cost))
	}
	if err := t.Write(c.Out, c.OutStyle()); err != nil {
		return err
	}
	c.Print("\n%s\n", term.Plural(len(s.approvals), "approval would be requested", "approvals would be requested"))
	if len(s.approvals) == 0 {
		return nil
	}
	t = term.Table{}
	t.Row("WHEN", "AGENT", "PERMISSION", "ANSWER")
	for _, a := range s.approvals {
		t.Row(a.At.Format("Mon 2006-01-02 15:04"), a.Agent, a.Permission, given(a.Answer))
	}

	return t.Write(c.Out, c.OutStyle())
}

func given(answer string) string {
	switch answer {
	case "":
		return "none"
	case "deny":
		return "denied"
	}

	return "allowed once"
}
