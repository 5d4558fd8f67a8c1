package schedule

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"daycare/engine/finding"
	"daycare/engine/form"
	"daycare/engine/lazyregexp"
)

// CatchUp says what happens to slots that were missed while daycare did not run.
type CatchUp string

const (
	CatchUpOne  CatchUp = "one"  // the newest runs, late; the others are missed
	CatchUpAll  CatchUp = "all"  // every slot runs, one after the other, late if necessary
	CatchUpNone CatchUp = "none" // they are missed
)

// A Task is one TASK.md.
type Task struct {
	Slug           string
	ID             string // taskId: the id of the task's own agent
	Name           string
	Description    string
	When           Schedule
	Timezone       string // as written; "": the default
	Enabled        bool
	Agent          string // agentId: id of the agent that it is for; "": the task's own agent
	CreatedBy      string // id of the agent that created it; "": a user did
	Source         string // what the turn that wrote it had read from outside; "": nothing
	CatchUp        CatchUp
	DeleteAfterRun bool
	Model          string
	Gate           *Gate
	Watch          []string // globs, relative to the workspace
	WatchCommand   string
	Prompt         string
}

// watches reports a task that runs only when something changed.
func (t Task) watches() bool { return len(t.Watch) > 0 || t.WatchCommand != "" }

// What a spec says beside the schedule.
const (
	watchMark    = "; on change of "
	disabledMark = "; disabled"
)

// watched is what a spec says that is watched.
func watched(spec string) string {
	_, what, _ := strings.Cut(strings.TrimSuffix(spec, disabledMark), watchMark)
	return what
}

// spec tells two versions of a file apart where it matters for what is due.
func (t Task) spec() string {
	s := t.When.text()
	if t.watches() {
		s += watchMark + strings.Join(append(slices.Clone(t.Watch), t.WatchCommand), " ")
	}
	if !t.Enabled {
		s += disabledMark
	}

	return s
}

var (
	slugRule = lazyregexp.New(`^[a-z0-9][a-z0-9-]{0,63}$`)
	idRule   = lazyregexp.New(`^[a-z0-9]{24,32}$`)
)

// ValidSlug reports whether s can be the name of a task or heartbeat item. A valid name is never a
// path.
func ValidSlug(s string) bool { return slugRule.MatchString(s) }

// DecodeTask reads a TASK.md. With a finding of severity Error the task is not active. byDefault is
// the time zone of tasks that name none. If the id is missing or invalid, ID is "": the file then
// gets one.
func DecodeTask(file, slug string, data []byte, byDefault *time.Location) (Task, []finding.Finding) {
	f := kind.Front(file, data)
	k := taskKeys{Enabled: true}
	f.Read(&k)
	t := Task{Slug: slug, ID: k.TaskID, Name: cmp.Or(k.Name, slug), Description: k.Description, Timezone: k.Timezone,
		Enabled: k.Enabled, Agent: k.AgentID, CreatedBy: k.CreatedBy, Source: k.Source, CatchUp: cmp.Or(k.CatchUp, CatchUpOne),
		DeleteAfterRun: k.DeleteAfterRun, Model: k.Model, Gate: k.gate(), Watch: k.Watch, WatchCommand: k.WatchCommand, Prompt: f.Body}
	if !idRule.MatchString(t.ID) {
		t.ID = ""
	}
	if !f.Failed() {
		t.check(f, k.Timing, byDefault)
	}

	checkName(f, slug)
	return t, f.Found
}

// check finds what is wrong between values that are right one by one.
func (t *Task) check(f *form.File, timing Timing, byDefault *time.Location) {
	zone, err := LoadZone(t.Timezone, byDefault)
	if err != nil {
		f.Tell(finding.Error, "timezone", "timezone", err.Error(), "")
		zone = byDefault
	}
	if t.When, err = NewSchedule(timing, zone); err != nil {
		keys := []string{"schedule", "every", "at"}
		f.Tell(finding.Error, "timing", keys[max(slices.IndexFunc(keys, f.Has), 0)], err.Error(), "")
	}
	if timing.Empty() && !t.watches() {
		f.Tell(finding.Error, "timing", "", "has neither a time nor anything to watch",
			`add one of schedule: "0 9 * * *", every: 10m, at: 2026-12-01T09:00, watch: ["notes/**"]`)
	}

	checkWatch(f, t.Watch)
	if t.Prompt == "" {
		f.Tell(finding.Error, "empty", "", "the text below the keys is missing", "write what the agent does")
	}
}
