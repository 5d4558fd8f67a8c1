package a2a

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"sync"
	"time"

	sdk "github.com/a2aproject/a2a-go/v2/a2a"

	"daycare/engine/message"
	"daycare/tools"
)

const (
	maxPending = 200                // tasks that are waited for
	givenUp    = 7 * 24 * time.Hour // how long they are
	getTime    = 30 * time.Second   // for one question
	leastPause = 2 * time.Second    // between questions about one task, which grows with its age
	mostPause  = 5 * time.Minute
)

// A pending is a task that has not ended, as a2a.json keeps it.
type pending struct {
	Call    string           `json:"call"`
	Agent   string           `json:"agent"` // that gave it
	Remote  string           `json:"remote"`
	Task    sdk.TaskID       `json:"task"`
	Context string           `json:"context,omitempty"`
	Since   time.Time        `json:"since"`
	Hops    int              `json:"hops,omitempty"`
	Route   *message.Address `json:"route,omitempty"`
	// Said: the agent knows that the task waits for an authorization.
	Said bool `json:"said,omitempty"`
}

// settle makes a result of what a remote agent answered to a message, after a moment if its task
// has not ended.
func (d *Desk) settle(ctx context.Context, c *line, r Remote, call tools.Call, answer sdk.SendMessageResult) tools.Result {
	task, ok := answer.(*sdk.Task)
	if m, is := answer.(*sdk.Message); is {
		task = &sdk.Task{ContextID: m.ContextID, Status: sdk.TaskStatus{State: sdk.TaskStateCompleted},
			Artifacts: []*sdk.Artifact{{Parts: m.Parts}}}
		return result(r, task)
	}
	if !ok || task.ID == "" || len(task.ID) > maxKey {
		return tools.Errorf("the remote agent %s gave no answer that can be used\n%s", r.ID, unclear)
	}

	until := time.Now().Add(d.o.Soon)
	for pause := 200 * time.Millisecond; open(task.Status.State) && time.Now().Before(until); pause = min(2*pause, leastPause) {
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			until = time.Time{}
			continue
		}
		limited, cancel := context.WithTimeout(ctx, getTime)
		if now, err := c.GetTask(limited, &sdk.GetTaskRequest{ID: task.ID}); err == nil {
			task = now
		}
		cancel()
	}
	if !open(task.Status.State) {
		return result(r, task)
	}

	p := pending{Call: call.ID, Agent: call.Agent, Remote: r.ID, Task: task.ID, Context: task.ContextID, Since: time.Now().UTC(),
		Hops: call.Hops}
	if call.Route != (message.Address{}) {
		p.Route = &call.Route
	}
	if err := d.keep(p); err != nil {
		return tools.Errorf("the remote agent %s works on the task, but its end cannot be waited for: %v", r.ID, err)
	}
	d.fresh <- p
	res := result(r, task)
	res.Text += "\n\nIts answer will come as a message. Go on with something else, or end your turn."

	return res
}

// open reports whether a task goes on by itself.
func open(s sdk.TaskState) bool { return !s.Terminal() && s != sdk.TaskStateInputRequired }

// Run waits for the ends of tasks until ctx ends, also of those that an earlier process began.
func (d *Desk) Run(ctx context.Context) error {
	var all sync.WaitGroup
	defer all.Wait()
	kept, err := d.load()
	if err != nil {
		d.o.Log.Warn("tasks of remote agents are not waited for", "err", err)
	}
	for _, p := range kept {
		all.Go(func() { d.watch(ctx, p) })
	}

	for {
		select {
		case p := <-d.fresh:
			all.Go(func() { d.watch(ctx, p) })
		case <-ctx.Done():
			return nil
		}
	}
}

// watch asks for a task until it has ended and its agent has been told.
func (d *Desk) watch(ctx context.Context, p pending) {
	for {
		age := time.Since(p.Since)
		select {
		case <-time.After(min(max(age/10, leastPause), mostPause)):
		case <-ctx.Done():
			return
		}
		text, source, ended := d.look(ctx, &p)
		if text == "" {
			continue
		}
		in := message.Incoming{Agent: p.Agent, Kind: message.System, Origin: "system", Text: text, Source: source, Route: p.Route,
			Hops: p.Hops, Dedupe: fmt.Sprintf("a2a:%s:%v", p.Call, ended)}
		switch _, err := d.o.Post(ctx, in); {
		case ctx.Err() != nil:
			return
		case err != nil && !errors.Is(err, message.ErrUnknownAgent):
			d.o.Log.Warn("the end of a remote task cannot be delivered; trying again", "agent", p.Agent, "err", err)
			continue
		}
		if ended {
			d.forget(p.Call)
			return
		}
		p.Said = true
		if err := d.keep(p); err != nil {
			d.o.Log.Warn("a remote task cannot be kept", "agent", p.Agent, "err", err)
		}
	}
}

// look asks for a task: what there is to say, "" for nothing, whose words these are, and whether
// that was the last of it.
func (d *Desk) look(ctx context.Context, p *pending) (text, source string, ended bool) {
	r, ok := d.remote(p.Remote)
	late := time.Since(p.Since) > givenUp
	if !ok {
		return fmt.Sprintf("The task %s of the remote agent %s is not waited for any more: the agent is not in the settings.",
			key(string(p.Task)), p.Remote), "", true
	}
	limited, cancel := context.WithTimeout(ctx, getTime)
	defer cancel()
	c, err := d.connect(limited, r)
	var task *sdk.Task
	if err == nil {
		task, err = c.GetTask(limited, &sdk.GetTaskRequest{ID: p.Task})
	}

	switch {
	case errors.Is(err, sdk.ErrTaskNotFound):
		return fmt.Sprintf("The remote agent %s does not know the task %s any more. What became of it is unknown.",
			r.ID, key(string(p.Task))), "", true
	case late:
		return fmt.Sprintf("The remote agent %s has not finished the task %s within %d days; it is not waited for any more.", r.ID,
			key(string(p.Task)), int(givenUp.Hours()/24)), "", true
	case err != nil:
		return "", "", false
	case task.Status.State == sdk.TaskStateAuthRequired && !p.Said, !open(task.Status.State):
		return describe(r, task), r.right().SourceOf(), !open(task.Status.State)
	}

	return "", "", false
}

func (d *Desk) load() (map[string]pending, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.read()
}

func (d *Desk) read() (map[string]pending, error) {
	all := map[string]pending{}
	data, err := d.o.Load()
	if errors.Is(err, fs.ErrNotExist) {
		return all, nil
	}
	if err == nil {
		err = json.Unmarshal(data, &all)
	}
	if err != nil {
		return nil, fmt.Errorf("read a2a.json: %w", err)
	}

	return all, nil
}

// keep makes a task durable.
func (d *Desk) keep(p pending) error {
	return d.change(func(all map[string]pending) error {
		if all[p.Call] = p; len(all) > maxPending {
			return fmt.Errorf("%d tasks are waited for already", maxPending)
		}
		return nil
	})
}

// forget removes a task. What cannot be removed now is told once more, and delivered once.
func (d *Desk) forget(call string) {
	if err := d.change(func(all map[string]pending) error { delete(all, call); return nil }); err != nil {
		d.o.Log.Warn("a remote task that has ended is still kept", "err", err)
	}
}

func (d *Desk) change(f func(all map[string]pending) error) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	all, err := d.read()
	if err != nil {
		return err
	}
	before := len(all)
	if err := f(all); err != nil {
		return err
	}
	if len(all) == 0 && before == 0 {
		return nil
	}
	data, err := json.MarshalIndent(all, "", "  ")
	if err != nil {
		return fmt.Errorf("encode a2a.json: %w", err)
	}

	return d.o.Save(append(data, '\n'))
}
