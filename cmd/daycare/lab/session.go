package lab

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"daycare/agents/trial"
	"daycare/cmd/daycare/show"
	"daycare/engine/control"
	"daycare/engine/event"
	"daycare/engine/record"
)

// A session is the talk of one test with its agent.
type session struct {
	client *control.Client
	test   trial.Test
	where  throwaway
	judge  *judge
	agent  string // id
	family bool   // others work in the workspace: only the agent and its descendants are looked at

	seen   map[string]bool   // tokens of requests that were answered
	due    map[string]string // those whose answer no turn has followed yet, with who asked
	asked  []trial.Asked
	run    trial.Run
	failed []trial.Failure
}

// begin makes the agent.
func (s *session) begin(ctx context.Context, who subject) (err error) {
	if s.agent, err = who.born(ctx, s.client); err != nil {
		return err
	}
	for _, tag := range s.test.Permissions {
		if err := s.client.Grant(ctx, s.agent, control.Granting{Permission: tag}); err != nil {
			return fmt.Errorf("grant %s: %w", tag, err)
		}
	}

	return nil
}

// talk sends the messages, and checks what is expected after each.
func (s *session) talk(ctx context.Context) error {
	began := time.Now()
	for i, m := range s.test.Messages {
		if _, err := s.client.Stream(ctx, s.agent, control.Message{Text: m.Text}, nil); err != nil {
			return cmp.Or(context.Cause(ctx), fmt.Errorf("send message %d: %w", i+1, err))
		}
		if err := s.settle(ctx); err != nil {
			return err
		}
		if err := s.read(ctx); err != nil {
			return err
		}

		s.run.Question, s.run.Took = m.Text, time.Since(began)
		expected := m.Expect
		if i == len(s.test.Messages)-1 {
			expected = slices.Concat(expected, s.test.Expect)
		}
		if failed := s.check(ctx, expected); len(failed) > 0 {
			if len(s.test.Messages) > 1 {
				failed[0].Got = fmt.Sprintf("after message %d of %d: %s", i+1, len(s.test.Messages), failed[0].Got)
			}
			s.failed = failed
			return nil // what follows would fail for the same reason
		}
	}

	return nil
}

// check compares what happened with what is expected now.
func (s *session) check(ctx context.Context, expected []trial.Expect) []trial.Failure {
	r := s.run
	r.File = s.where.readFile
	r.Judge = func(rubric, question, answer string) (float64, string, error) {
		return s.judge.ask(ctx, rubric, question, answer)
	}
	failed := trial.Check(expected, r)
	s.run.Cost += s.judge.took()

	return failed
}

// lookEvery is how often a test asks whether its agents still work.
const lookEvery = 20 * time.Millisecond

// settle waits until no agent works any more, and answers what they ask.
func (s *session) settle(ctx context.Context) error {
	for {
		if err := s.answer(ctx); err != nil {
			return cmp.Or(context.Cause(ctx), err)
		}
		agents, err := s.agents(ctx)
		if err != nil {
			return cmp.Or(context.Cause(ctx), err)
		}
		calm := !slices.ContainsFunc(agents, works)
		if calm && len(s.due) > 0 {
			if calm, err = s.followed(ctx); err != nil {
				return cmp.Or(context.Cause(ctx), err)
			}
		}
		if calm {
			return nil
		}

		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(lookEvery):
		}
	}
}

// agents are those that the session is about.
func (s *session) agents(ctx context.Context) ([]event.Agent, error) {
	if s.family {
		return s.client.Family(ctx, s.agent)
	}
	return s.client.Agents(ctx)
}

// works reports whether an agent is at work, or about to be.
func works(a event.Agent) bool {
	switch a.State {
	case event.Queued, event.Thinking, event.UsingTool, event.Retrying:
		return true
	case event.Paused, event.Failing, event.Ended, event.WaitingAgent:
		return false
	}

	return a.OldestAt != nil
}

// answer answers new requests as the test says: nobody else can.
func (s *session) answer(ctx context.Context) error {
	asks, err := s.client.Permissions(ctx)
	if err != nil || len(asks) == 0 {
		return err
	}
	agents, err := s.agents(ctx)
	if err != nil {
		return err
	}
	for _, a := range asks {
		mine := slices.ContainsFunc(agents, func(one event.Agent) bool { return one.ID == a.AgentID })
		if s.seen[a.Token] || !mine {
			continue
		}
		s.seen[a.Token] = true
		decision := "deny"
		if s.test.Answers == "allow" && !show.IsBudget(a) {
			decision = "once"
		}
		if err := s.client.Decide(ctx, a.Token, decision, ""); err != nil {
			return fmt.Errorf("answer approval request: %w", err)
		}
		s.due[a.Token] = a.AgentID
		s.asked = append(s.asked, trial.Asked{Permission: a.Tag, Answer: decision})
	}

	return nil
}

// followed reports whether a turn has ended after each answer.
func (s *session) followed(ctx context.Context) (bool, error) {
	for token, agent := range s.due {
		entries, err := s.history(ctx, agent)
		if err != nil {
			return false, err
		}
		decided := false
		for _, e := range entries {
			switch r := e.Rec.(type) {
			case *record.Permission:
				decided = decided || r.Token == token && r.Event != "asked"
			case *record.TurnEnd:
				if decided {
					delete(s.due, token)
				}
			}
		}
	}

	return len(s.due) == 0, nil
}

// maxRecords bounds what is read of a history.
const maxRecords = 100_000

func (s *session) history(ctx context.Context, agent string) (entries []*record.Entry, err error) {
	lines, err := show.Newest(ctx, s.client, agent, maxRecords)
	if err != nil {
		return nil, err
	}
	for _, line := range lines {
		if e, err := record.Decode(line); err == nil {
			entries = append(entries, e)
		}
	}

	return entries, nil
}

// read learns from the histories what has happened so far.
func (s *session) read(ctx context.Context) error {
	agents, err := s.agents(ctx)
	if err != nil {
		return err
	}
	s.run = trial.Run{Asked: s.asked}
	own := func(a event.Agent) int {
		if a.ID == s.agent {
			return 0
		}
		return 1
	}
	slices.SortStableFunc(agents, func(a, b event.Agent) int { return cmp.Compare(own(a), own(b)) })
	for _, a := range agents {
		entries, err := s.history(ctx, a.ID)
		if err != nil {
			return err
		}
		s.add(a, entries)
	}

	return nil
}

// add adds what one agent did.
func (s *session) add(a event.Agent, entries []*record.Entry) {
	r, calls := &s.run, map[string]int{}
	for _, e := range entries {
		switch rec := e.Rec.(type) {
		case *record.Assistant:
			if rec.Provider != "" {
				r.Rounds++
			}
			r.Cost, r.Input, r.Output = r.Cost+rec.Cost, r.Input+rec.Tokens.Input+rec.Tokens.CacheRead+rec.Tokens.CacheWrite,
				r.Output+rec.Tokens.Output
			for _, c := range rec.ToolCalls {
				calls[c.ID] = len(r.Calls)
				r.Calls = append(r.Calls, trial.Call{Agent: a.Handle, Tool: c.Name, Arguments: c.Arguments})
			}
			if a.ID == s.agent && strings.TrimSpace(rec.Text) != "" {
				r.Answer = rec.Text
			}
		case *record.Summary:
			r.Cost += rec.Cost
		case *record.ToolResult:
			if i, known := calls[rec.ToolCallID]; known {
				r.Calls[i].Status = string(rec.Status)
			}
		case *record.TurnBegin:
			if a.ID == s.agent {
				r.Answer = ""
			}
		case *record.TurnEnd:
			if a.ID == s.agent {
				r.Reason, r.Error = rec.Reason, rec.Error
			}
		}
	}
}

// standing says what a test that takes too long was doing.
func (s *session) standing() string {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	if s.read(ctx) != nil {
		return "it still works"
	}
	var b strings.Builder
	fmt.Fprintf(&b, "it is still working after %d model calls and %d tool calls\n", s.run.Rounds, len(s.run.Calls))
	from := max(0, len(s.run.Calls)-10)
	for _, c := range s.run.Calls[from:] {
		fmt.Fprintf(&b, "  %s %.120s %s\n", c.Tool, c.Arguments, c.Status)
	}

	return b.String()
}
