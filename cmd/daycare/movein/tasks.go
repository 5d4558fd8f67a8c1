package movein

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
	"time"

	"daycare/engine/address"
	"daycare/engine/finding"
	"daycare/engine/schedule"
)

const (
	maxJobs  = 4 << 20 // bytes of a file of jobs
	maxTasks = 1_000
)

// A task is a scheduled task. Its id is made of that of the job, so that the same job is known
// again, however its task was changed since.
type task struct {
	id      string
	change  schedule.Change
	enabled bool // it is at home
}

func (t task) look(w *here) spot {
	all, _, err := w.tasks.Tasks()
	if err != nil {
		return spot{why: err.Error()}
	}

	for _, e := range all {
		if e.ID == t.id {
			return spot{to: path.Join("cron", e.Slug), there: true}
		}
	}

	slug := schedule.Slug(*t.change.Name)
	for n := 1; n <= maxBeside; n++ {
		to := path.Join("cron", numbered(slug, n))
		if w.planned[to] == nil && !w.has(to) {
			if why := t.wrong(w); why != "" {
				return spot{why: why}
			}
			return spot{to: to}
		}
	}

	return spot{why: "too many tasks have this name"}
}

// wrong is why the task cannot run here; "": it can.
func (t task) wrong(w *here) string {
	zone := w.tasks.Zone()
	if t.change.Timezone != nil {
		var err error
		if zone, err = schedule.LoadZone(*t.change.Timezone, zone); err != nil {
			return err.Error()
		}
	}

	s, err := schedule.NewSchedule(*t.change.Timing, zone)
	if err != nil {
		return "daycare does not support this schedule: " + err.Error()
	}
	if _, ok := s.Next(w.now, w.now); !ok && s.Once() {
		return "its time has passed"
	}

	return ""
}

func (t task) place(w *here, _ spot) error {
	on := w.enable && t.enabled
	t.change.Enabled = &on
	_, err := w.tasks.Create(t.id, t.change)
	return err
}

// idOf is the id here of a thing that has an id in another program. The same thing has the same
// id in each import.
func idOf(kind, id string) string { return address.ChildID("import:"+kind, id) }

// A job is an entry of cron/jobs.json, as OpenClaw and picoclaw write it. What is said in
// several ways has been so in one version or another.
type job struct {
	ID             string          `json:"id"`
	JobID          string          `json:"jobId"`
	Name           string          `json:"name"`
	Description    string          `json:"description"`
	Enabled        *bool           `json:"enabled"`
	DeleteAfterRun *bool           `json:"deleteAfterRun"`
	Schedule       when            `json:"schedule"`
	Payload        payload         `json:"payload"`
	Delivery       json.RawMessage `json:"delivery"`
}

type when struct {
	Kind    string `json:"kind"` // at, every, cron
	At      string `json:"at"`
	AtMS    *int64 `json:"atMs"`
	EveryMS *int64 `json:"everyMs"`
	Expr    string `json:"expr"`
	TZ      string `json:"tz"`
}

type payload struct {
	Kind    string `json:"kind"` // systemEvent, agentTurn, agent_turn
	Text    string `json:"text"`
	Message string `json:"message"`
	Command string `json:"command"`
	Model   string `json:"model"`
	Deliver bool   `json:"deliver"`
}

// speaks reports a job that is a message to an agent, not a command.
func (p payload) speaks() bool {
	return p.Command == "" && slices.Contains([]string{"systemEvent", "agentTurn", "agent_turn"}, p.Kind)
}

// jobs takes the jobs of a file as tasks.
func (h *home) jobs(kind, rel string) {
	data, ok := h.read("task", rel, maxJobs)
	if !ok {
		return
	}
	var file struct {
		Jobs []json.RawMessage `json:"jobs"`
	}
	if err := json.Unmarshal(data, &file); err != nil {
		h.skip("task", rel, "%s", jsonError(rel, data, 0, err))
		return
	}

	if n := len(file.Jobs); n > maxTasks {
		h.skip("task", rel, "there are %d jobs; only the first %d are imported", n, maxTasks)
		file.Jobs = file.Jobs[:maxTasks]
	}

	at := 0
	for n, raw := range file.Jobs {
		at += bytes.Index(data[at:], raw) // jobs may be alike
		begin := at
		at += len(raw)
		var j job
		if err := json.Unmarshal(raw, &j); err != nil {
			h.skip("task", fmt.Sprintf("%s: job %d", rel, n+1), "%s", jsonError(rel, data, begin, err))
			continue
		}

		h.job(kind, rel, n, j)
	}
}

// job takes one job.
func (h *home) job(kind, rel string, n int, j job) {
	text := strings.TrimSpace(j.Payload.Text + j.Payload.Message)
	name := strings.TrimSpace(j.Name)
	if name == "" {
		name = strings.Join(strings.Fields(text)[:min(4, len(strings.Fields(text)))], " ")
	}

	id, from := j.ID+j.JobID, rel+": "+name
	if j.ID != "" {
		id = j.ID
	}

	timing, zone, err := j.Schedule.timing()
	switch {
	case !j.Payload.speaks():
		h.skip("task", from, "it has no message to an agent (%s)", orKind(j.Payload))
		return
	case text == "":
		h.skip("task", fmt.Sprintf("%s: job %d", rel, n+1), "it has no text")
		return
	case id == "":
		h.skip("task", from, "it has no id")
		return
	case err != nil:
		h.skip("task", from, "%v", err)
		return
	}

	t := task{id: idOf(kind, "job/"+id), enabled: j.Enabled == nil || *j.Enabled,
		change: schedule.Change{Name: &name, Prompt: &text, Timing: &timing, DeleteAfterRun: j.DeleteAfterRun}}
	if zone != "" {
		t.change.Timezone = &zone
	}
	if j.Description != "" {
		t.change.Description = &j.Description
	}

	h.add(item{what: "task", from: from, put: t, note: j.left()})
}

// left says what of a job is not taken.
func (j job) left() string {
	var notes []string
	if len(j.Delivery) > 0 && string(j.Delivery) != "null" || j.Payload.Deliver {
		notes = append(notes, "its answers go to its own agent (to change that: daycare cron edit --agent)")
	}
	if j.Payload.Model != "" {
		notes = append(notes, "with the model of the settings")
	}

	return strings.Join(notes, "; ")
}

func orKind(p payload) string {
	if p.Command != "" {
		return "a command"
	}
	return fmt.Sprintf("kind %q", p.Kind)
}

// timing is when a job is due.
func (s when) timing() (t schedule.Timing, zone string, err error) {
	switch s.Kind {
	case "cron":
		t.Cron, zone = strings.TrimSpace(s.Expr), s.TZ
	case "every":
		if s.EveryMS == nil || *s.EveryMS <= 0 || *s.EveryMS > schedule.MaxEvery.Milliseconds() {
			return t, "", errors.New("its interval is missing or too long")
		}
		t.Every = span(time.Duration(*s.EveryMS) * time.Millisecond)
	case "at":
		at := time.Time{}
		if s.AtMS != nil {
			at = time.UnixMilli(*s.AtMS)
		}

		for _, layout := range []string{time.RFC3339, "2006-01-02T15:04:05", "2006-01-02T15:04", "2006-01-02"} {
			if parsed, err := time.Parse(layout, s.At); err == nil {
				at = parsed // without a zone it is UTC
				break
			}
		}

		if at.IsZero() {
			return t, "", fmt.Errorf("its time %q is not a date and time", s.At)
		}
		t.At = at.UTC().Format(time.RFC3339)
	default:
		err = fmt.Errorf("daycare does not support schedules of kind %q", s.Kind)
	}

	if err == nil && t.Empty() {
		err = errors.New("it has no schedule")
	}

	return t, zone, err
}

// span is a time span without the parts that are nothing: 90m, not 1h30m0s.
func span(d time.Duration) string {
	switch {
	case d%time.Hour == 0:
		return fmt.Sprintf("%dh", d/time.Hour)
	case d%time.Minute == 0:
		return fmt.Sprintf("%dm", d/time.Minute)
	}

	return d.String()
}

// jsonError says what is wrong in a part of a file of JSON that begins at an offset, and where.
func jsonError(rel string, data []byte, begin int, err error) string {
	at := int64(len(data) - begin)
	var syntax *json.SyntaxError
	var kind *json.UnmarshalTypeError
	switch {
	case errors.As(err, &syntax):
		at = syntax.Offset - 1
		if strings.Contains(err.Error(), "unexpected end") {
			at, err = syntax.Offset, errors.New("the file is incomplete")
		}
	case errors.As(err, &kind):
		at = kind.Offset
		err = fmt.Errorf("%s is a JSON %s, which does not fit", orFile(kind.Field), kind.Value)
	}

	line, column := finding.Position(data, int64(max(begin, 0))+at)
	return fmt.Sprintf("%s:%d:%d: %v", rel, line, column, err)
}

func orFile(field string) string {
	if field == "" {
		return "it"
	}
	return field
}
