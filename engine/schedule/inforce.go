package schedule

import (
	"os"
	"slices"
	"time"

	"daycare/engine/finding"
)

// active is which version of each task is active: what everybody may look at who
// must not wait while the loop reads and writes files. It is never changed.
type active map[string]Task // by slug

// show says which tasks are active now. loop is held.
func (k *known) show() {
	a := make(active, len(k.jobs))
	for slug, j := range k.jobs {
		a[slug] = j.task
	}
	k.tasks.Store(&a)
}

// FilesOf is the folder in which a task's own agent works; "" for other agents.
func (k *known) FilesOf(agent string) string {
	for slug, t := range *k.tasks.Load() {
		if t.ID == agent && t.Agent == "" {
			return k.files().cron(slug, filesDir)
		}
	}

	return ""
}

// Tasks lists all tasks by name, each as it is active: where a file is broken, the
// version before continues, if this process has read it.
func (k *known) Tasks() ([]Entry, []finding.Finding, error) {
	all, found, err := k.Store.Tasks()
	for i := range all {
		k.inForce(&all[i])
	}

	return all, found, err
}

// Task is one task by its name, as it is active.
func (k *known) Task(slug string) (Entry, error) {
	e, err := k.Store.Task(slug)
	if err == nil {
		k.inForce(&e)
	}

	return e, err
}

// inForce corrects what a file says by what the loop knows.
func (k *known) inForce(e *Entry) {
	tasks := *k.tasks.Load()
	t, known := tasks[e.Slug]
	switch {
	case known && finding.Join(e.Found) != nil:
		e.Task, e.Next = t, nil
		if lines, err := readTail(k.files().cron(e.Slug, runsFile)); err == nil && e.Enabled { // else Found has it
			e.coming(fold(lines, k.Now()), k.Now())
		}
	case !known:
		for slug, other := range tasks {
			if e.ID != "" && other.ID == e.ID && exists(k.files().cron(slug, taskFile)) { // else it was renamed
				e.Found, e.Next = append(e.Found, k.files().duplicate(e.Slug, slug)), nil
			}
		}
	}
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// duplicate is what is wrong with a task that has the taskId of another.
func (f folder) duplicate(slug, of string) finding.Finding {
	return finding.Finding{ID: "schedule-duplicate", Severity: finding.Error, File: f.cron(slug, taskFile),
		Reason: "has the same taskId as " + of + ", so it does not run", Remedy: "remove the line taskId; the task then gets a new one"}
}

// originals orders names so that of two folders with one taskId the copy comes last:
// what runs already comes first, then what was saved longer ago.
func (k *known) originals(names []string) []string {
	age := map[string]time.Time{}
	for _, slug := range names {
		if info, err := os.Stat(k.files().cron(slug, taskFile)); err == nil && k.jobs[slug] == nil {
			age[slug] = info.ModTime()
		}
	}
	names = slices.Clone(names)
	slices.SortStableFunc(names, func(a, b string) int { return age[a].Compare(age[b]) })
	return names
}
