package commandtest

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"daycare/engine/control"
	"daycare/engine/event"
	"daycare/engine/finding"
	"daycare/engine/message"
	"daycare/engine/record"
)

// The parts of the control API that a House serves.
type (
	agents      struct{ *Server }
	permissions struct{ *Server }
	daemon      struct{ *Server }
)

func (h agents) Deliver(_ context.Context, in message.Incoming) (message.Receipt, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for i, known := range h.got {
		if in.Dedupe != "" && known.Dedupe == in.Dedupe {
			return message.Receipt{Agent: Agent0, Item: known.ID, Seq: int64(i + 1), Duplicate: true}, nil
		}
	}
	in.ID = fmt.Sprintf("item%d", len(h.got)+1)
	h.got = append(h.got, in)
	item := in.ID
	done := make(chan event.Outcome, 1)
	h.outcomes[item] = done
	if h.turn != nil {
		h.wg.Go(func() {
			o := h.turn(h.Server, in)
			o.Agent, o.Item = Agent0, item
			time.Sleep(5 * time.Millisecond) // a real turn ends behind a disk barrier
			done <- o
		})
	}

	return message.Receipt{Agent: Agent0, Item: item, Seq: int64(len(h.got))}, nil
}

func (h agents) Await(ctx context.Context, _, item string) (event.Outcome, error) {
	h.mu.Lock()
	done := h.outcomes[item]
	h.mu.Unlock()
	select {
	case o := <-done:
		return o, nil
	case <-ctx.Done():
		return event.Outcome{}, ctx.Err()
	}
}

func (h agents) Agents(context.Context) ([]event.Agent, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return append([]event.Agent{}, h.Known...), nil
}

// Family is every agent: none has children of another.
func (h agents) Family(ctx context.Context, _ string) ([]event.Agent, error) { return h.Agents(ctx) }

func (h agents) Resolve(ref string) (string, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	var fits []string
	for _, a := range h.Known {
		if a.ID == ref || a.Handle == ref || a.Name == ref {
			return a.ID, nil
		}
		if len(ref) >= 4 && strings.HasPrefix(a.ID, ref) {
			fits = append(fits, a.ID)
		}
	}

	switch len(fits) {
	case 0:
		return "", fmt.Errorf("%w: %s", message.ErrUnknownAgent, ref)
	case 1:
		return fits[0], nil
	}

	return "", &control.Ambiguous{Ref: ref, Candidates: fits}
}

func (h agents) Agent(_ context.Context, id string) (event.Agent, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, a := range h.Known {
		if a.ID == id {
			return a, nil
		}
	}

	return event.Agent{}, message.ErrUnknownAgent
}

func (h agents) Create(context.Context, control.NewAgent) (event.Agent, error) {
	return h.Known[0], nil
}

func (h agents) History(_ context.Context, _ string, before int64, limit int) (event.Page, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	lines, page := h.said.lines, event.Page{}
	if before > 0 {
		lines = lines[:before-1]
	}
	if limit > 0 && len(lines) > limit {
		from := int64(len(lines) - limit)
		lines, page.Before = lines[from:], new(from+1)
	}
	page.Records = append([]json.RawMessage{}, lines...)
	return page, nil
}

func (h agents) Inbox(context.Context, string) ([]event.Waiting, error) { return h.Items, nil }
func (h agents) Drop(context.Context, string, string) error             { return nil }
func (h agents) Front(context.Context, string, string) error            { return nil }
func (h agents) Kill(context.Context, string) error                     { return control.ErrProtected }
func (h agents) Remove(context.Context, string, bool) (string, error) {
	return "", control.ErrBusy
}
func (h agents) Item(_ context.Context, id, item string) (event.Posted, error) {
	return event.Posted{Agent: id, Item: item, Type: "message", State: "waiting"}, nil
}
func (h agents) Draft(context.Context, string) (event.Draft, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.said.draft, nil
}

func (h agents) Stop(context.Context, string, string) (bool, error) {
	h.Stops <- struct{}{}
	return true, nil
}

func (h permissions) Answered(context.Context, int) ([]event.Ask, error) { return nil, nil }

func (h permissions) Asks(context.Context) ([]event.Ask, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return append([]event.Ask{}, h.Open...), nil
}

// Decide takes the request from the queue and runs the turn that follows.
func (h permissions) Decide(_ context.Context, token, decision, by string) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.decided = append(h.decided, token+" "+decision)
	h.Open = nil
	h.Known[0].State = event.Queued
	h.wg.Go(func() {
		h.Record(&record.Permission{Token: token, Event: decision})
		h.turn(h.Server, message.Incoming{Kind: message.Permission, Token: token, Decision: decision})
	})

	return nil
}

func (h daemon) Status(context.Context) (event.Status, error) {
	return event.Status{Running: true, PID: 42, Workspace: "/w", Agents: 1}, nil
}
func (h daemon) Reload(context.Context) ([]finding.Finding, error) { return nil, nil }
func (h daemon) Shutdown(context.Context) error                    { return nil }
func (h daemon) Config(context.Context) (any, error)               { return struct{}{}, nil }
func (h daemon) Tools(context.Context) ([]control.ToolInfo, error) {
	return []control.ToolInfo{{Name: "read", Description: "Read a file", Replay: "read-only"}}, nil
}
