package schedule

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/bmatcuk/doublestar/v4"

	"daycare/engine/finding"
	"daycare/engine/lazyregexp"
)

// CatchUp says what becomes of slots that were missed while nothing ran.
type CatchUp string

const (
	CatchUpOne  CatchUp = "one"  // the newest runs, late; the others are missed
	CatchUpAll  CatchUp = "all"  // every slot runs, one after the other, late if need be
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
	Agent          string // agentId: whom it is for; "": the task's own agent
	CreatedBy      string // the agent that made it; "": a person did
	Source         string // what the turn had read from outside in which it was written; "": nothing
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

// ValidSlug reports whether s can be the name of a task or prompt. It is never a
// path.
func ValidSlug(s string) bool { return slugRule.MatchString(s) }

var taskKeys = []string{"taskId", "name", "description", "schedule", "every", "at", "timezone", "enabled", "agentId", "createdBy", "source",
	"catchUp", "deleteAfterRun", "model", "gate", "watch", "watchCommand"}

// DecodeTask reads a TASK.md. With a finding of severity Error the task is not in
// force. byDefault is the zone of tasks that name none. An ID that is empty or no
// id is left empty: the file gets one.
func DecodeTask(file, slug string, data []byte, byDefault *time.Location) (Task, []finding.Finding) {
	f := readFront(file, data)
	t := Task{Slug: slug, ID: f.text("taskId"), Name: f.text("name"), Description: f.text("description"),
		Timezone: f.text("timezone"), Enabled: f.flag("enabled", true), Agent: f.text("agentId"),
		CreatedBy: f.text("createdBy"), Source: f.text("source"),
		CatchUp: CatchUp(f.text("catchUp")), DeleteAfterRun: f.flag("deleteAfterRun", false), Model: f.text("model"),
		Gate: f.gate(), Watch: f.list("watch", f.keys["watch"]), WatchCommand: f.text("watchCommand"), Prompt: f.body}
	f.unknown(taskKeys...)
	if !idRule.MatchString(t.ID) {
		t.ID = ""
	}
	if t.Name == "" {
		t.Name = slug
	}
	if !f.failed() {
		f.check(&t, byDefault)
	}
	f.named(slug)
	return t, f.found
}

// check judges the values.
func (f *front) check(t *Task, byDefault *time.Location) {
	zone, err := LoadZone(t.Timezone, byDefault)
	if err != nil {
		f.bad(f.at("timezone"), "timezone", err.Error())
		zone = byDefault
	}
	timing := Timing{Cron: f.text("schedule"), Every: f.text("every"), At: f.text("at")}
	if t.When, err = NewSchedule(timing, zone); err != nil {
		f.bad(f.at("schedule", "every", "at"), "timing", err.Error())
	}
	if timing.Empty() && !t.watches() {
		f.add(nil, finding.Error, "timing", "says neither when it is due nor what to watch",
			`add one of schedule: "0 9 * * *", every: 10m, at: 2026-12-01T09:00, watch: ["notes/**"]`)
	}
	switch t.CatchUp {
	case "":
		t.CatchUp = CatchUpOne
	case CatchUpOne, CatchUpAll, CatchUpNone:
	default:
		f.bad(f.at("catchUp"), "wrong-value", fmt.Sprintf("catchUp is %q, allowed: one, all, none", t.CatchUp))
	}
	f.globs(t.Watch)
	if t.Prompt == "" {
		f.add(nil, finding.Error, "empty", "there is no text below the keys", "write what the agent shall do")
	}
}

// globs refuses patterns that cannot be matched or lead out of the workspace.
func (f *front) globs(patterns []string) {
	for _, p := range patterns {
		if !doublestar.ValidatePattern(p) || strings.HasPrefix(p, "/") || slices.Contains(strings.Split(p, "/"), "..") || p == "" {
			f.bad(f.at("watch"), "watch", fmt.Sprintf("watch: %q is not a pattern of files inside the workspace, such as notes/**/*.md", p))
		}
	}
}
