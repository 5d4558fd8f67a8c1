package schedule

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"time"

	"daycare/engine/beneath"
	"daycare/engine/cuid"
	"daycare/engine/finding"
)

const (
	taskFile   = "TASK.md"
	memoryFile = "MEMORY.md"
	runsFile   = "runs.jsonl"
	filesDir   = "files" // where the task works
)

// An Entry is a task, with its next and last runs as computed from its ledger.
type Entry struct {
	Task
	Next    []time.Time // at most three
	Last    *Run
	Running bool
	Found   []finding.Finding // with one of severity Error the file is not active
}

// Tasks lists all tasks by name. A finding is about something in the folder that is not a task;
// problems of a task's own files are in its entry.
func (s *Store) Tasks() ([]Entry, []finding.Finding, error) {
	names, found, err := slugs(s.files().cron(), "")
	if err != nil {
		return nil, nil, err
	}
	var all []Entry
	for _, slug := range names {
		if e, err := s.Task(slug); err == nil { // else it is not a task
			all = append(all, e)
		}
	}

	return all, found, nil
}

// Task returns one task by its name. A file of it that cannot be read is a finding.
func (s *Store) Task(slug string) (Entry, error) {
	t, found, err := s.load(slug)
	if err != nil {
		return Entry{}, err
	}
	e := Entry{Task: t, Found: found}
	now := s.Now()
	lines, err := readTail(s.files().cron(slug, runsFile))
	if err != nil {
		e.Found = append(e.Found, unreadable(s.files().cron(slug, runsFile), err))
		return e, nil
	}
	st := fold(lines, now)
	if runs := runsOf(lines); len(runs) > 0 {
		e.Last = &runs[len(runs)-1]
	}
	e.Running = st.open != nil
	if !t.Enabled || finding.Join(found) != nil {
		return e, nil
	}
	e.coming(st, now)
	return e, nil
}

// coming finds the next times, by what the task's ledger says.
func (e *Entry) coming(st state, now time.Time) {
	if st.spec != specHash(e.spec()) {
		st.anchor, st.done = now.Truncate(time.Second), nil
	}
	for at, ok := st.next(e.When, now); ok && len(e.Next) < 3; at, ok = st.next(e.When, at) {
		e.Next = append(e.Next, at)
	}
}

// load reads a task. A file that is there and cannot be read is a finding.
func (s *Store) load(slug string) (Task, []finding.Finding, error) {
	if !ValidSlug(slug) {
		return Task{}, nil, fmt.Errorf("%w: %q", ErrName, slug)
	}
	path := s.files().cron(slug, taskFile)
	data, err := read(path)
	if errors.Is(err, ErrNotFound) {
		return Task{}, nil, err
	}
	if err != nil {
		return Task{Slug: slug, Name: slug}, []finding.Finding{unreadable(path, err)}, nil
	}
	t, found := DecodeTask(path, slug, data, s.Zone())
	return t, found, nil
}

// A Change is what to write into a task's file; a nil member stays unchanged.
type Change struct {
	Name, Description, Prompt *string
	Timing                    *Timing
	Timezone                  *string
	Enabled                   *bool
	Agent                     *string
	CreatedBy                 *string
	Source                    *string
	CatchUp                   *CatchUp
	DeleteAfterRun            *bool
	Model                     *string
	GateCommand               *string // "" removes the gate
	Watch                     *[]string
	WatchCommand              *string
}

// keys are the lines of a change.
func (c Change) keys() []key {
	var all []key
	text := func(name string, v *string) {
		if v != nil {
			value := ""
			if *v != "" {
				value = quote(*v)
			}
			all = append(all, key{name, value})
		}
	}
	text("name", c.Name)
	text("description", c.Description)
	if c.Timing != nil {
		text("schedule", &c.Timing.Cron)
		text("every", &c.Timing.Every)
		text("at", &c.Timing.At)
	}
	text("timezone", c.Timezone)
	if c.Enabled != nil {
		all = append(all, key{"enabled", fmt.Sprint(*c.Enabled)})
	}
	text("agentId", c.Agent)
	text("createdBy", c.CreatedBy)
	text("source", c.Source)
	text("catchUp", (*string)(c.CatchUp))
	if c.DeleteAfterRun != nil {
		all = append(all, key{"deleteAfterRun", fmt.Sprint(*c.DeleteAfterRun)})
	}
	text("model", c.Model)
	if c.GateCommand != nil {
		k := key{Name: "gate"}
		if *c.GateCommand != "" {
			k.Value = "{ command: " + jsonText(*c.GateCommand) + " }"
		}
		all = append(all, k)
	}
	if c.Watch != nil {
		k := key{Name: "watch"}
		if len(*c.Watch) > 0 {
			k.Value = quoteList(*c.Watch)
		}
		all = append(all, k)
	}
	text("watchCommand", c.WatchCommand)
	return all
}

// apply changes a file, and refuses what would not be active.
func (s *Store) apply(slug string, data []byte, c Change) ([]byte, error) {
	data = withKeys(data, c.keys()...)
	if c.Prompt != nil {
		data = withBody(data, *c.Prompt)
	}
	_, found := DecodeTask(taskFile, slug, data, s.Zone())
	return data, finding.Join(found)
}

// Create creates a task. id is its taskId, so that a repeated call returns the task that the first
// one created; "": a new one. If the error contains findings, they say what is wrong.
func (s *Store) Create(id string, c Change) (Entry, error) {
	if id == "" {
		id = cuid.New()
	} else if e, ok, err := s.byID(id); err != nil || ok {
		if ok { // perhaps by a process that died before it was durable
			err = errors.Join(err, s.files().made(e.Slug))
		}
		return e, err
	}
	title := ""
	if c.Name != nil {
		title = *c.Name
	}
	if title == "" && c.Prompt != nil {
		title = strings.Join(collect(firstWords(*c.Prompt, 4)), " ")
		c.Name = &title
	}
	slug := freeSlug(s.files().cron(), "", title)
	data, err := s.apply(slug, first(nil, key{"taskId", id}), c)
	if err != nil {
		return Entry{}, err
	}
	if err := s.files().publish(s.files().cron(slug, taskFile), data, nil); err != nil {
		return Entry{}, err
	}
	if err := s.files().made(slug); err != nil {
		return Entry{}, err
	}
	s.changed()
	return s.Task(slug)
}

func firstWords(text string, n int) func(func(string) bool) {
	return func(yield func(string) bool) {
		for i, w := range strings.Fields(text) {
			if i == n || !yield(w) {
				return
			}
		}
	}
}

func (s *Store) byID(id string) (Entry, bool, error) {
	all, _, err := s.Tasks()
	for _, e := range all {
		if e.ID == id {
			return e, true, nil
		}
	}

	return Entry{}, false, err
}

// Update changes a task's file, except comments and unknown keys.
func (s *Store) Update(slug string, c Change) (Entry, error) {
	if !ValidSlug(slug) {
		return Entry{}, fmt.Errorf("%w: %q", ErrName, slug)
	}
	err := s.files().edit(s.files().cron(slug, taskFile), func(data []byte) ([]byte, error) { return s.apply(slug, data, c) })
	if err != nil {
		return Entry{}, err
	}
	s.changed()
	return s.Task(slug)
}

// Remove moves a task's folder to the trash and returns its new path.
func (s *Store) Remove(slug string) (string, error) {
	if !ValidSlug(slug) {
		return "", fmt.Errorf("%w: %q", ErrName, slug)
	}
	to, err := s.files().trash(s.files().cron(slug), slug)
	if err == nil {
		s.changed()
	}

	return to, err
}

// Source returns the text of a task's file.
func (s *Store) Source(slug string) (string, error) {
	if !ValidSlug(slug) {
		return "", fmt.Errorf("%w: %q", ErrName, slug)
	}
	data, err := read(s.files().cron(slug, taskFile))
	return string(data), err
}

// Memory returns the notes that a task keeps for its next run; "" if there are none.
func (s *Store) Memory(slug string) (string, error) {
	if err := s.known(slug); err != nil {
		return "", err
	}
	data, _, err := beneath.Own(s.files().cron(slug, memoryFile), 4*maxFile)
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}

	return string(data), err
}

// known reports a name that no task has as an error.
func (s *Store) known(slug string) error {
	switch {
	case !ValidSlug(slug):
		return fmt.Errorf("%w: %q", ErrName, slug)
	case !exists(s.files().cron(slug, taskFile)):
		return fmt.Errorf("%w: %s", ErrNotFound, slug)
	}

	return nil
}

// SetMemory replaces the notes that a task keeps for its next run.
func (s *Store) SetMemory(slug, text string) error {
	if err := s.known(slug); err != nil {
		return err
	}
	path := s.files().cron(slug, memoryFile)
	base, _, err := beneath.Own(path, 4*maxFile)
	if errors.Is(err, fs.ErrNotExist) {
		base, err = nil, nil
	}
	if err != nil {
		return err
	}

	return s.files().publish(path, []byte(strings.TrimRight(text, "\n")+"\n"), base)
}
