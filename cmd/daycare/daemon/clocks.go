package daemon

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"daycare/connectors/clock"
	"daycare/engine/address"
	"daycare/engine/crash"
	"daycare/engine/disk"
	"daycare/engine/event"
	"daycare/engine/message"
	"daycare/engine/permission"
	"daycare/engine/record"
	"daycare/engine/schedule"
	"daycare/engine/watch"
)

// newSchedule builds the clocks of a workspace. Nothing fires before Run. commands
// runs gates; nil: no gate opens.
func (r *Daemon) newSchedule(commands schedule.GateFunc) *schedule.Scheduler {
	local := sync.OnceValue(machineZone)
	vol := r.vol
	if vol == nil { // nothing runs: whoever changes a task is an editor like any other
		vol = disk.NewVolume(r.at.Data)
	}

	store := &schedule.Store{Root: r.at.Data, Volume: vol, Now: crash.Now,
		Zone: func() *time.Location {
			z, err := schedule.LoadZone(r.settings.Current().Cron.Timezone, local())
			if err != nil {
				return local()
			}
			return z
		},
		Every: func() time.Duration { return r.settings.Current().Heartbeat.Every },
		Hours: func() schedule.Hours {
			h, err := schedule.ParseHours(r.settings.Current().Heartbeat.ActiveHours)
			if err != nil {
				r.log.Warn("heartbeat.activeHours is not used", "err", err)
			}
			return h
		},
	}
	c := clock.New(clockAgents{r}, func(ctx context.Context, in message.Incoming) (message.Receipt, error) {
		return r.system.Deliver(ctx, in)
	},
		func(ctx context.Context, agent, item string) (clock.End, error) {
			o, err := r.system.Await(ctx, agent, item)
			return clock.End{Reason: o.Reason, Text: o.Text, Error: o.Error, Source: message.Relayed(agent, o.Untrusted)}, err
		}, r.log)
	watches := &watches{watcher: r.watcher}
	s := schedule.New(schedule.Options{Store: store, Target: c.Target, Due: c.Due, Say: c.Say, Gate: commands,
		Workspace: r.at.Dir, Leads: r.fires.Leads, Elsewhere: r.fires.Elsewhere, OnRun: r.tellRun, Findings: r.readTasks,
		Folders: watches.set, Log: r.log})
	watches.changed = s.Changed

	return s
}

// machineZone is the zone of this machine under its own name, so that what is said
// names it.
func machineZone() *time.Location {
	if z, err := time.LoadLocation(zone()); err == nil {
		return z
	}
	return time.Local
}

// tellRun makes events of what the clocks do.
func (r *Daemon) tellRun(f schedule.Firing, run schedule.Run) {
	kind := event.CronFired
	words := []string{string(f.Kind), f.Slug, cmp.Or(string(run.Outcome), "fired")}
	switch run.Outcome {
	case schedule.Skipped, schedule.Missed:
		kind = event.CronSkipped
	case schedule.Failed:
		r.log.Warn("scheduled run failed", "kind", f.Kind, "task", f.Slug, "slot", run.Slot, "reason", run.Reason)
	}

	agent := cmp.Or(f.Agent, f.TaskID)
	if f.Kind == schedule.Heartbeat {
		agent, _ = r.index.Lookup(address.Descriptor{Type: address.Heartbeat})
	}
	r.events.Emit(event.Event{Type: kind, Agent: agent,
		Body: event.Reason{Reason: joined(": ", joined(" ", words...), run.Reason)}})
}

// joined joins the words that are not empty.
func joined(sep string, words ...string) string {
	return strings.Join(slices.DeleteFunc(words, func(w string) bool { return w == "" }), sep)
}

// watches keeps the watches on the folders of tasks.
type watches struct {
	watcher *watch.Watcher
	changed func(slugs ...string)
	now     map[string]bool
}

func (w *watches) set(dirs []string) {
	now := map[string]bool{}
	for _, dir := range dirs {
		if now[dir] = true; !w.now[dir] {
			w.watcher.Add(dir, watch.Options{Ignore: ledgers}, w.hear)
		}
	}

	for dir := range w.now {
		if !now[dir] {
			w.watcher.Remove(dir)
		}
	}

	w.now = now
}

// hear passes a hint on: what happened in the folder of a task concerns that task.
func (w *watches) hear(h watch.Hint) {
	if filepath.Base(filepath.Dir(h.Dir)) == "cron" && !h.Overflow {
		w.changed(filepath.Base(h.Dir))
		return
	}
	w.changed()
}

// ledgers are what the clocks write themselves, beside hidden names.
func ledgers(name string) bool { return watch.Hidden(name) || name == "runs.jsonl" || name == "runs" }

// clockAgents is the engine as the clocks want it.
type clockAgents struct{ *Daemon }

// Cron makes the agent of a task: it works in the task's own folder.
func (r clockAgents) Cron(ctx context.Context, t clock.Task) (string, error) {
	d := address.Descriptor{Type: address.Cron, ID: t.ID, Name: t.Name, CreatedBy: t.Maker}
	if _, ok := r.index.Lookup(d); !ok {
		if _, err := r.system.Create(ctx, d); err != nil {
			return "", fmt.Errorf("make the task's agent: %w", err)
		}
	}

	return t.ID, r.furnish(t)
}

// furnish gives an agent its folder and model, if it has not got them already.
func (r clockAgents) furnish(t clock.Task) error {
	release, err := r.system.Hold(t.ID)
	if errors.As(err, new(*message.Elsewhere)) || errors.Is(err, disk.ErrFenced) {
		return nil // it is awake on another machine, and has them
	}
	if err != nil {
		return err
	}
	defer release()

	dir := filepath.Join(r.at.Data, "agents", t.ID)
	state, _, err := record.CurrentState(r.vol, dir)
	if err != nil {
		return fmt.Errorf("read state of the task's agent: %w", err)
	}

	// A user may have given it another folder; only the default is replaced, and the folder that it
	// has on a machine whose workspace is elsewhere.
	now := state.Permissions.WorkingDir
	moved := now == r.at.Dir || now != t.Dir && strings.HasSuffix(now, strings.TrimPrefix(t.Dir, r.at.Dir))
	if !moved && (t.Model == "" || state.Provider.Model == t.Model) {
		return nil
	}

	return record.UpdateState(r.vol, dir, func(s *record.State) {
		if moved {
			s.Permissions.WorkingDir = t.Dir
		}
		if t.Model != "" {
			s.Provider.Model = t.Model
		}
	})
}

// Heartbeat makes the agent of the heartbeat.
func (r clockAgents) Heartbeat(ctx context.Context) (string, error) {
	d := address.Descriptor{Type: address.Heartbeat}
	if id, ok := r.index.Lookup(d); ok {
		return id, nil
	}
	a, err := r.system.Create(ctx, d)

	return a.ID, err
}

// Find is the id of an agent.
func (r clockAgents) Find(ref string) (string, error) { return r.index.Resolve(ref) }

// Busy reports whether an agent has work.
func (r clockAgents) Busy(id string) bool {
	a, err := r.system.Agent(context.Background(), id)
	return err == nil && (a.Queued > 0 || a.State != event.Idle)
}

// Foreground is the agent that a user wrote to last.
func (r clockAgents) Foreground() (string, bool) { return r.system.Foreground() }

// clockRights compares what agents may do with what the agents of the clocks may.
type clockRights struct{ *Daemon }

// Maker is who answers for what an agent schedules: the agent that speaks with its
// person; "": the house.
func (r clockRights) Maker(agent string) string {
	root := r.family.Root(agent)
	if root.Descriptor.Type != address.User {
		return ""
	}

	return root.ID
}

// Knows reports whether an agent may know of what another one made, "" being the house:
// the agents of owners and of the house know all of that.
func (r clockRights) Knows(agent, maker string) bool {
	if r.family.OfHouse(agent) || (authority{r.Daemon}).owns(r.family.Root(agent).Descriptor) {
		return true
	}
	id, err := r.index.Resolve(maker) // the task of an agent may name it by its handle
	return maker != "" && err == nil && r.family.Reads(agent, id)
}

// Task compares with the agent of a task. The folder that a task's agent has for itself
// is nobody else's to have.
func (r clockRights) Task(agent, task string) ([]string, error) {
	return r.missing(agent, address.Descriptor{Type: address.Cron, ID: task}, func(own, theirs *permission.Set) {
		if task == "" || theirs.WorkingDir == r.clocks.FilesOf(task) {
			theirs.WorkingDir = own.WorkingDir
		}
	})
}

// Heartbeat compares with the agent of the heartbeat.
func (r clockRights) Heartbeat(agent string) ([]string, error) {
	return r.missing(agent, address.Descriptor{Type: address.Heartbeat}, func(_, _ *permission.Set) {})
}

// missing is what the agent of a descriptor, made or to be made, may do beyond agent.
// What was allowed for one exact request is left out: it is nothing that a prompt could
// turn to another use.
func (r clockRights) missing(agent string, other address.Descriptor, adjust func(own, theirs *permission.Set)) ([]string, error) {
	own, err := r.family.Grants(context.Background(), agent)
	if err != nil {
		return nil, err
	}
	theirs, err := r.rightsOf(other)
	if err != nil {
		return nil, err
	}

	theirs.Grants = nil
	adjust(&own, &theirs)
	var missing []string
	for _, access := range theirs.Rights() {
		if !own.Allows(access) {
			missing = append(missing, access.Tag())
		}
	}

	return missing, nil
}

// rightsOf is what an agent may do, or will when it is made.
func (r clockRights) rightsOf(d address.Descriptor) (permission.Set, error) {
	if id, ok := r.index.Lookup(d); ok {
		return r.family.Grants(context.Background(), id)
	}
	data, err := factory{r.Daemon}.newState(d)
	if err != nil {
		return permission.Set{}, err
	}

	state, _ := record.ParseState("state.json", data)

	return state.Permissions.Resolved(r.at), nil
}
