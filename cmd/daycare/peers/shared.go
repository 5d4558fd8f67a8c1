package peers

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"path"
	"strings"
	"sync/atomic"
	"time"

	"daycare/engine/apitoken"
	"daycare/engine/cluster"
	"daycare/engine/control"
	"daycare/engine/disk"
	"daycare/engine/event"
	"daycare/engine/message"
	"daycare/engine/permission"
)

// What belongs to all machines is on each of them: tasks and heartbeat items with their ledgers,
// memory, skills, sub-agents, slash commands, the texts of prompts, requests for permission, raised
// limits, and how far connectors have received. Settings, secrets, hooks and logs are a machine's own.

// tops are the folders and files in .daycare that belong to all machines.
var tops = []string{"cron", "heartbeat", "memory", "skills", "subagents", "commands", "permissions", "connectors", "usage",
	"SOUL.md", "USER.md", "AGENTS.md"}

// raisesFile has the limits that were raised once.
const raisesFile = "usage/raises.json"

// Shared says which files of a .daycare belong to all machines.
func Shared() *cluster.Shared {
	return &cluster.Shared{Tops: tops, Covers: covers,
		Ledger: func(name string) bool { return path.Base(name) == "runs.jsonl" },
		Once:   func(name string) bool { return strings.HasPrefix(name, "permissions/") }} // named by their tokens
}

// covers leaves out what is in those folders and is a machine's own.
func covers(name string) bool {
	parts := strings.Split(name, "/")
	switch parts[0] {
	case "cron":
		return len(parts) < 4 || parts[2] != "files" // the task works there
	case "permissions":
		_, ok := permission.TokenOf(name)
		return ok && strings.HasSuffix(name, ".json")
	case "usage":
		return name == raisesFile
	case "connectors":
		return len(parts) < 2 || parts[1] != "terminal"
	}

	return true
}

// shared are the files that belong to all machines, and what follows here from a change elsewhere.
func (p Place) shared() *cluster.Shared {
	s := Shared()
	s.Changed = func(name string) {
		if name == raisesFile && p.Raised != nil {
			p.Raised()
		}
		token, ok := request(name)
		if !ok {
			return
		}
		q, fresh, err := permission.Others{Queue: p.Asks}.Met(token)
		if err != nil {
			p.Log.Warn("a request for permission from another machine cannot be read", "file", name, "err", err)
		}
		if fresh {
			p.tell(event.PermissionRequested, q, event.Asked{Token: token, Tag: q.Request.Tag, Reason: q.Request.Reason,
				Request: q.Request.Detail.String()})
		}
	}
	s.Leaving = func(name string) {
		token, ok := request(name)
		if !ok {
			return
		}
		if q, ok := (permission.Others{Queue: p.Asks}).Parted(token); ok {
			p.tell(event.PermissionDecided, q, event.Asked{Token: token, Tag: q.Request.Tag, By: "another machine"})
		}
	}

	return s
}

func (p Place) tell(what event.Type, q permission.Pending, body event.Asked) {
	p.Events.Emit(event.Event{Type: what, Agent: q.Agent, Body: body})
}

// request is the token of a request for permission by the name of its file.
func request(name string) (token string, ok bool) {
	dir, file := path.Split(name)
	if dir != "permissions/" {
		return "", false
	}

	return permission.TokenOf(file)
}

// Once returns what tells the value that a key was first given on any machine in the last minutes, or
// nil if this one works alone.
func (m *Machines) Once() func(ctx context.Context, key, value string) (first string, err error) {
	if m == nil {
		return nil
	}
	return m.node.Once
}

// clocks is the lease of the machine that fires tasks and the heartbeat.
const clocks = "clocks"

// Clocks has the clocks run on one machine at a time: led is called when it is this one, and when it
// is not any more.
type Clocks struct {
	*Machines
	leads atomic.Bool
}

// Leads reports whether this machine fires what is due.
func (c *Clocks) Leads() bool { return c.Machines == nil || c.leads.Load() }

// Run waits until this machine fires what is due, and for that to end, until ctx ends.
func (c *Clocks) Run(ctx context.Context, led func()) error {
	if c.Machines == nil {
		<-ctx.Done()
		return nil
	}
	_ = c.node.Lead(ctx, clocks, func(ctx context.Context) error { // it ends with ctx alone
		c.leads.Store(true)
		led()
		<-ctx.Done()
		c.leads.Store(false)
		led()

		return ctx.Err()
	})

	return nil
}

// elsewhereFor bounds how long another machine takes to begin a run.
const elsewhereFor = 10 * time.Second

// Elsewhere begins a run of a task on the machine that fires them, or of the heartbeat ("").
func (c *Clocks) Elsewhere(slug string) (slot time.Time, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), elsewhereFor)
	defer cancel()
	node, err := c.node.Leading(ctx, clocks)
	if err != nil {
		return slot, err
	}
	if node == "" || node == c.node.Boot() {
		return slot, fmt.Errorf("%w: no machine fires tasks at this moment", disk.ErrAway)
	}
	to := "/v1/heartbeats/run"
	if slug != "" {
		to = "/v1/cron/" + url.PathEscape(slug) + "/run"
	}
	var answer struct {
		Slot  time.Time         `json:"slot"`
		Error *control.APIError `json:"error"`
	}
	if _, err := order(ctx, c.Machines, node, to, struct{}{}, &answer); err != nil {
		return slot, err
	}
	if answer.Error != nil {
		return slot, answer.Error
	}

	return answer.Slot, nil
}

// order has another machine do something in the name of this one, and decodes its answer.
func order(ctx context.Context, m *Machines, node, path string, what, answer any) (status int, err error) {
	caller, err := json.Marshal(control.Caller{Local: true, Rights: apitoken.Everything}) // who asked here was let
	if err != nil {
		return 0, err
	}
	body, err := json.Marshal(what)
	if err != nil {
		return 0, err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://daycare"+path, bytes.NewReader(body))
	if err != nil {
		return 0, err
	}
	resp, err := m.node.Ask(node, caller, req)
	if err != nil {
		return 0, err
	}
	defer resp.Body.Close() // all of it is read, or it failed
	if resp.StatusCode == http.StatusMisdirectedRequest {
		return resp.StatusCode, &message.Elsewhere{Node: node}
	}
	if err := json.NewDecoder(resp.Body).Decode(answer); err != nil {
		return resp.StatusCode, fmt.Errorf("answer of machine %s: %w", node, err)
	}

	return resp.StatusCode, nil
}
