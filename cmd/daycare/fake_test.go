package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"daycare/cmd/daycare/term"
	"daycare/cmd/daycare/version"
	"daycare/engine/control"
	"daycare/engine/event"
	"daycare/engine/finding"
	"daycare/engine/message"
	"daycare/engine/record"
)

// house is a backend of one agent whose turns are functions. It is served by the
// real handler, so the commands are tested against the real API.
type house struct {
	events *event.Stream
	turn   func(h *house, in message.Incoming) event.Outcome

	mu       sync.Mutex
	agents   []event.Agent
	asks     []event.Ask
	items    []event.Waiting
	lines    []json.RawMessage
	outcomes map[string]chan event.Outcome
	stops    chan struct{} // receives for each Stop
	got      []message.Incoming
	decided  []string
	wg       sync.WaitGroup
}

func newHouse(t *testing.T, turn func(h *house, in message.Incoming) event.Outcome) *house {
	h := &house{events: event.NewStream("boot"), turn: turn,
		outcomes: map[string]chan event.Outcome{}, stops: make(chan struct{}, 4),
		agents: []event.Agent{{ID: agent0, Handle: "0/", Name: "me", Type: "user", State: event.Idle, Model: "scripted"}}}
	t.Cleanup(h.wg.Wait)
	return h
}

const agent0 = "aaaaaaaaaaaaaaaaaaaaaaaa"

func (h *house) client() *control.Client {
	return control.NewClient(control.Local(control.Handler(
		control.Backend{Agents: h, Permissions: h, Daemon: h, Events: h.events}, control.Options{})))
}

// begin starts a turn that works on an item.
func (h *house) begin(turn string, in message.Incoming) {
	h.emit(event.TurnStarted, turn, event.Started{Items: []string{in.ID}, Attempt: 1})
}

func (h *house) emit(t event.Type, turn string, b event.Body) {
	h.events.Emit(event.Event{Type: t, Agent: agent0, Turn: turn, Body: b})
}

func (h *house) state(s event.State) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.agents[0].State = s
}

// record adds a line to the agent's history.
func (h *house) record(r record.Record) {
	h.mu.Lock()
	defer h.mu.Unlock()
	line := record.Encode(&record.Entry{Seq: int64(len(h.lines) + 1), At: time.Unix(1700000000, 0), Rec: r})
	h.lines = append(h.lines, bytes.TrimSpace(line))
}

func (h *house) Deliver(_ context.Context, in message.Incoming) (message.Receipt, error) {
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
			o.Agent, o.Item = agent0, item
			time.Sleep(5 * time.Millisecond) // a real turn ends behind a disk barrier
			done <- o
		})
	}
	return message.Receipt{Agent: agent0, Item: item, Seq: int64(len(h.got))}, nil
}

func (h *house) Await(ctx context.Context, _, item string) (event.Outcome, error) {
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

func (h *house) Agents(context.Context) ([]event.Agent, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return append([]event.Agent{}, h.agents...), nil
}

func (h *house) Family(_ context.Context, id string) (list []event.Agent, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, a := range h.agents {
		if inFamily(h.agents, a.ID, id) {
			list = append(list, a)
		}
	}
	return list, nil
}

func (h *house) Resolve(ref string) (string, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	var fits []string
	for _, a := range h.agents {
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

func (h *house) Agent(_ context.Context, id string) (event.Agent, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, a := range h.agents {
		if a.ID == id {
			return a, nil
		}
	}
	return event.Agent{}, message.ErrUnknownAgent
}

func (h *house) Create(context.Context, control.NewAgent) (event.Agent, error) {
	return h.agents[0], nil
}

func (h *house) History(context.Context, string, int64, int) (event.Page, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return event.Page{Records: append([]json.RawMessage{}, h.lines...)}, nil
}

func (h *house) Inbox(context.Context, string) ([]event.Waiting, error) { return h.items, nil }
func (h *house) Drop(context.Context, string, string) error             { return nil }
func (h *house) Front(context.Context, string, string) error            { return nil }
func (h *house) Kill(context.Context, string) error                     { return control.ErrProtected }
func (h *house) Remove(context.Context, string, bool) (string, error) {
	return "", control.ErrBusy
}
func (h *house) Draft(context.Context, string) (event.Draft, error) { return event.Draft{}, nil }

func (h *house) Stop(context.Context, string) (bool, error) {
	h.stops <- struct{}{}
	return true, nil
}

func (h *house) Asks(context.Context) ([]event.Ask, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return append([]event.Ask{}, h.asks...), nil
}

// Decide takes the request from the queue and runs the turn that follows.
func (h *house) Decide(_ context.Context, token, decision, by string) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.decided = append(h.decided, token+" "+decision)
	h.asks = nil
	h.agents[0].State = event.Queued
	h.wg.Go(func() {
		h.record(&record.Permission{Token: token, Event: decision})
		h.turn(h, message.Incoming{Kind: message.Permission, Token: token, Decision: decision})
	})
	return nil
}

func (h *house) Status(context.Context) (event.Status, error) {
	return event.Status{Running: true, Version: version.Number, PID: 42, Workspace: "/w", Agents: 1}, nil
}
func (h *house) Reload(context.Context) ([]finding.Finding, error) { return nil, nil }
func (h *house) Shutdown(context.Context) error                    { return nil }
func (h *house) Config(context.Context) (any, error)               { return struct{}{}, nil }
func (h *house) Tools(context.Context) ([]control.ToolInfo, error) {
	return []control.ToolInfo{{Name: "read", Description: "Read a file", Replay: "read-only"}}, nil
}

// A session of the command line without a terminal, in a workspace of its own.
type shell struct {
	*term.App
	out, err bytes.Buffer
	root     string
}

// newShell serves h as the engine in this process, and as the files.
func newShell(t *testing.T, h *house, stdin string) *shell {
	t.Helper()
	s := &shell{root: t.TempDir()}
	if err := os.Mkdir(filepath.Join(s.root, home), 0o700); err != nil {
		t.Fatal(err)
	}
	s.App = &term.App{
		Offline: func(string, func(string, ...any)) (*control.Client, error) { return h.client(), nil },
		InProcess: func(context.Context, string) (*control.Client, func() error, error) {
			return h.client(), func() error { return nil }, nil
		},
		In: strings.NewReader(stdin), Out: &s.out, Err: &s.err,
	}
	return s
}

// do runs a command line and returns its exit code.
func (s *shell) do(args ...string) int {
	s.out.Reset()
	s.err.Reset()
	cmd := newRoot(s.App)
	cmd.SetArgs(append([]string{"--workspace", s.root}, args...))
	return s.Report(cmd.ExecuteContext(context.Background()))
}
