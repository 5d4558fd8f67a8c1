package peers

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"

	"daycare/engine/disk"
	"daycare/engine/schedule"
)

// The machine that fires a task asks the machine that has the task's agent to run its gate: what the agent may do, what it was
// allowed once, and the folders and devices that it works with are known there alone.

// gatesPath, with the id of an agent behind it, is where a machine is asked to run the gate of an agent that it has. It is no
// path of the API: what clients ask for there is not led to other machines, so only machines can ask.
const gatesPath = "/gates/"

// A gateCall is a gate for another machine. Dir is as paths are stored: workspaces may be at different places.
type gateCall struct {
	Dir  string        `json:"dir"`
	Gate schedule.Gate `json:"gate"`
}

// A gateAnswer is how it ended.
type gateAnswer struct {
	Output schedule.Output `json:"output"`
	Error  string          `json:"error,omitempty"`
	Away   bool            `json:"away,omitempty"` // it was not run
}

// Gates returns what runs gates with run on the machine that has the agent. An agent that no machine has is kept on this one
// until its gate has ended. Errors: disk.ErrAway where the machine of the agent does not answer.
func (c *Clocks) Gates(run schedule.GateFunc) schedule.GateFunc {
	m := c.Machines
	if m == nil {
		return run
	}
	m.gate = run
	return func(ctx context.Context, agent, dir string, g schedule.Gate) (out schedule.Output, err error) {
		err = m.system.AtOwner(ctx, agent, func() error {
			out, err = run(ctx, agent, dir, g)
			return err
		}, func(node string) error {
			out, err = gates{m}.there(ctx, node, agent, gateCall{m.Workspace.Store(dir), g})
			return err
		})
		return out, err
	}
}

// gates are those of agents that are awake on another machine than the one that fires.
type gates struct{ *Machines }

// there has another machine run a gate.
func (m gates) there(ctx context.Context, node, agent string, c gateCall) (schedule.Output, error) {
	var a gateAnswer
	status, err := order(ctx, m.Machines, node, gatesPath+agent, c, &a)
	switch {
	case ctx.Err() != nil:
		return a.Output, ctx.Err()
	case err != nil:
		return a.Output, err
	case status != http.StatusOK: // a version that does not know of gates
		return a.Output, fmt.Errorf("%w: machine %s runs no gates for others: %d", disk.ErrAway, m.nameOf(node), status)
	case a.Away:
		return a.Output, fmt.Errorf("%w: machine %s: %s", disk.ErrAway, m.nameOf(node), a.Error)
	case a.Error != "":
		return a.Output, errors.New(a.Error)
	}

	return a.Output, nil
}

// here runs a gate for another machine. Its agent is kept here until it has ended.
func (m gates) here(req *http.Request) (*http.Response, error) {
	var c gateCall
	if err := json.NewDecoder(req.Body).Decode(&c); err != nil {
		return nil, err
	}
	dir := m.Workspace.Resolve(c.Dir)
	var a gateAnswer
	err := m.ownFolder(dir)
	if err == nil {
		a.Output, err = m.gate(req.Context(), strings.TrimPrefix(req.URL.Path, gatesPath), dir, c.Gate)
	}
	switch {
	case hasMoved(err):
		return &http.Response{StatusCode: http.StatusMisdirectedRequest, Header: http.Header{}, Body: http.NoBody}, nil
	case err != nil:
		a.Error, a.Away = err.Error(), errors.Is(err, disk.ErrAway)
	}
	data, err := json.Marshal(a)
	if err != nil {
		return nil, err
	}

	return &http.Response{StatusCode: http.StatusOK, Header: http.Header{}, Body: io.NopCloser(bytes.NewReader(data))}, nil
}

// ownFolder makes the folder of a task, which each machine has for itself.
func (m gates) ownFolder(dir string) error {
	if m.Workspace.Store(dir) == dir || !strings.HasPrefix(m.Workspace.Store(dir), ".daycare/cron/") {
		return nil
	}
	return m.Volume.MkdirAll(dir)
}
