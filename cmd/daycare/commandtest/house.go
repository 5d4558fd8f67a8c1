// Package commandtest is what tests of commands share: a House, which is a backend of the
// control API without a daemon, a Shell, which is a command line without a terminal, and Start,
// which runs a real daemon for a test.
package commandtest

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"daycare/engine/control"
	"daycare/engine/event"
	"daycare/engine/finding"
	"daycare/engine/message"
	"daycare/engine/record"
)

// House is a backend of one agent whose turns are functions. It is served by the
// real handler, so the commands are tested against the real API.
type House struct {
	Known []event.Agent   // to be changed before the first command
	Open  []event.Ask     // requests that wait; see Ask
	Items []event.Waiting // in the inbox
	Stops chan struct{}   // receives for each Stop

	events *event.Stream
	turn   func(h *House, in message.Incoming) event.Outcome

	mu       sync.Mutex
	lines    []json.RawMessage
	outcomes map[string]chan event.Outcome
	got      []message.Incoming
	decided  []string
	wg       sync.WaitGroup
}

// NewHouse is a house whose agent takes each message with turn; nil never ends one.
func NewHouse(t *testing.T, turn func(h *House, in message.Incoming) event.Outcome) *House {
	h := &House{events: event.NewStream("boot"), turn: turn,
		outcomes: map[string]chan event.Outcome{}, Stops: make(chan struct{}, 4),
		Known: []event.Agent{{ID: Agent0, Handle: "0/", Name: "me", Type: "user", State: event.Idle, Model: "scripted"}}}
	t.Cleanup(h.wg.Wait)
	return h
}

// Agent0 is the id of the agent.
const Agent0 = "aaaaaaaaaaaaaaaaaaaaaaaa"

// Client speaks to the house through the real API.
func (h *House) Client() *control.Client {
	return control.NewClient(control.Local(control.Handler(
		control.Backend{Agents: h, Permissions: h, Daemon: h, Events: h.events}, control.Options{})))
}

// Begin starts a turn that works on an item.
func (h *House) Begin(turn string, in message.Incoming) {
	h.Emit(event.TurnStarted, turn, event.Started{Items: []string{in.ID}, Attempt: 1})
}

// Emit sends an event of the agent.
func (h *House) Emit(t event.Type, turn string, b event.Body) {
	h.events.Emit(event.Event{Type: t, Agent: Agent0, Turn: turn, Body: b})
}

// State sets how the agent is.
func (h *House) State(s event.State) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.Known[0].State = s
}

// Record adds a line to the agent's history.
func (h *House) Record(r record.Record) {
	h.mu.Lock()
	defer h.mu.Unlock()
	line := record.Encode(&record.Entry{Seq: int64(len(h.lines) + 1), At: time.Unix(1700000000, 0), Rec: r})
	h.lines = append(h.lines, bytes.TrimSpace(line))
}

// Ask leaves the agent with one request that waits for an answer.
func (h *House) Ask(a event.Ask) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.Open = []event.Ask{a}
	h.Known[0].State = event.WaitingPermission
}

// Received is what was sent.
func (h *House) Received() []message.Incoming {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.got
}

// Decided lists the answers that were given: the token, a space, the decision.
func (h *House) Decided() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return strings.Join(h.decided, ",")
}

func (h *House) Deliver(_ context.Context, in message.Incoming) (message.Receipt, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	in.ID = fmt.Sprintf("item%d", len(h.got)+1)
	h.got = append(h.got, in)
	item := in.ID
	done := make(chan event.Outcome, 1)
	h.outcomes[item] = done
	if h.turn != nil {
		h.wg.Go(func() {
			o := h.turn(h, in)
			o.Agent, o.Item = Agent0, item
			time.Sleep(5 * time.Millisecond) // a real turn ends behind a disk barrier
			done <- o
		})
	}
	return message.Receipt{Agent: Agent0, Item: item, Seq: int64(len(h.got))}, nil
}

func (h *House) Await(ctx context.Context, _, item string) (event.Outcome, error) {
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

func (h *House) Agents(context.Context) ([]event.Agent, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return append([]event.Agent{}, h.Known...), nil
}

// Family is every agent: none has children of another.
func (h *House) Family(ctx context.Context, _ string) ([]event.Agent, error) { return h.Agents(ctx) }

func (h *House) Resolve(ref string) (string, error) {
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

func (h *House) Agent(_ context.Context, id string) (event.Agent, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, a := range h.Known {
		if a.ID == id {
			return a, nil
		}
	}
	return event.Agent{}, message.ErrUnknownAgent
}

func (h *House) Create(context.Context, control.NewAgent) (event.Agent, error) {
	return h.Known[0], nil
}

func (h *House) History(context.Context, string, int64, int) (event.Page, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return event.Page{Records: append([]json.RawMessage{}, h.lines...)}, nil
}

func (h *House) Inbox(context.Context, string) ([]event.Waiting, error) { return h.Items, nil }
func (h *House) Drop(context.Context, string, string) error             { return nil }
func (h *House) Front(context.Context, string, string) error            { return nil }
func (h *House) Kill(context.Context, string) error                     { return control.ErrProtected }
func (h *House) Remove(context.Context, string, bool) (string, error) {
	return "", control.ErrBusy
}
func (h *House) Draft(context.Context, string) (event.Draft, error) { return event.Draft{}, nil }

func (h *House) Stop(context.Context, string) (bool, error) {
	h.Stops <- struct{}{}
	return true, nil
}

func (h *House) Asks(context.Context) ([]event.Ask, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return append([]event.Ask{}, h.Open...), nil
}

// Decide takes the request from the queue and runs the turn that follows.
func (h *House) Decide(_ context.Context, token, decision, by string) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.decided = append(h.decided, token+" "+decision)
	h.Open = nil
	h.Known[0].State = event.Queued
	h.wg.Go(func() {
		h.Record(&record.Permission{Token: token, Event: decision})
		h.turn(h, message.Incoming{Kind: message.Permission, Token: token, Decision: decision})
	})
	return nil
}

func (h *House) Status(context.Context) (event.Status, error) {
	return event.Status{Running: true, PID: 42, Workspace: "/w", Agents: 1}, nil
}
func (h *House) Reload(context.Context) ([]finding.Finding, error) { return nil, nil }
func (h *House) Shutdown(context.Context) error                    { return nil }
func (h *House) Config(context.Context) (any, error)               { return struct{}{}, nil }
func (h *House) Tools(context.Context) ([]control.ToolInfo, error) {
	return []control.ToolInfo{{Name: "read", Description: "Read a file", Replay: "read-only"}}, nil
}
