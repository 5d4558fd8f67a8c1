package commandtest

import (
	"bytes"
	"encoding/json"
	"strings"
	"sync"
	"testing"
	"time"

	"daycare/engine/control"
	"daycare/engine/event"
	"daycare/engine/message"
	"daycare/engine/record"
)

// Server is a backend of one agent whose turns are functions. It is served by the
// real handler, so the commands are tested against the real API.
type Server struct {
	Known []event.Agent   // to be changed before the first command
	Open  []event.Ask     // requests that wait; see Ask
	Items []event.Waiting // in the inbox
	Stops chan struct{}   // receives for each Stop

	events *event.Stream
	turn   func(h *Server, in message.Incoming) event.Outcome

	mu       sync.Mutex
	said     said
	outcomes map[string]chan event.Outcome
	got      []message.Incoming
	decided  []string
	wg       sync.WaitGroup
}

// said is what the agent said: its records, and the answer that is being streamed.
type said struct {
	lines []json.RawMessage
	draft event.Draft
}

// NewHouse is a house whose agent takes each message with turn; nil never ends one.
func NewHouse(t *testing.T, turn func(h *Server, in message.Incoming) event.Outcome) *Server {
	h := &Server{events: event.NewStream("boot"), turn: turn,
		outcomes: map[string]chan event.Outcome{}, Stops: make(chan struct{}, 4),
		Known: []event.Agent{{ID: Agent0, Handle: "0/", Name: "me", Type: "user", State: event.Idle, Model: "scripted"}}}
	t.Cleanup(h.wg.Wait)
	return h
}

// Agent0 is the id of the agent.
const Agent0 = "aaaaaaaaaaaaaaaaaaaaaaaa"

// Client speaks to the house through the real API.
func (h *Server) Client() *control.Client { return h.ClientWith(func(*control.Backend) {}) }

// ClientWith is Client with parts of the API that the house does not serve.
func (h *Server) ClientWith(add func(*control.Backend)) *control.Client {
	b := control.Backend{Agents: agents{h}, Permissions: permissions{h}, Daemon: daemon{h}, Events: h.events}
	add(&b)
	return control.NewClient(control.Local(control.Handler(b, control.Options{})))
}

// Begin starts a turn that works on an item.
func (h *Server) Begin(turn string, in message.Incoming) {
	h.Emit(event.TurnStarted, turn, event.Started{Items: []string{in.ID}, Attempt: 1})
}

// Emit sends an event of the agent.
func (h *Server) Emit(t event.Type, turn string, b event.Body) {
	h.events.Emit(event.Event{Type: t, Agent: Agent0, Turn: turn, Body: b})
}

// State sets how the agent is.
func (h *Server) State(s event.State) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.Known[0].State = s
}

// Record adds a line to the agent's history.
func (h *Server) Record(r record.Record) {
	h.mu.Lock()
	defer h.mu.Unlock()
	line := record.Encode(&record.Entry{Seq: int64(len(h.said.lines) + 1), At: time.Unix(1700000000, 0), Rec: r})
	h.said.lines = append(h.said.lines, bytes.TrimSpace(line))
}

// Stream sets the answer that is being streamed.
func (h *Server) Stream(d event.Draft) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.said.draft = d
}

// Ask leaves the agent with one request that waits for an answer.
func (h *Server) Ask(a event.Ask) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.Open = []event.Ask{a}
	h.Known[0].State = event.WaitingPermission
}

// Received is what was sent.
func (h *Server) Received() []message.Incoming {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.got
}

// Decided lists the answers that were given: the token, a space, the decision.
func (h *Server) Decided() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return strings.Join(h.decided, ",")
}
