package schedule

import (
	"os"
	"slices"
	"time"

	"daycare/engine/finding"
)

// Tasks lists all tasks by name, each as it is in force: where a file is broken, the
// version before goes on, if this process has read it.
func (s *Scheduler) Tasks() ([]Entry, []finding.Finding, error) {
	all, found, err := s.Store.Tasks()
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range all {
		s.inForce(&all[i])
	}
	return all, found, err
}

// Task is one task by its name, as it is in force.
func (s *Scheduler) Task(slug string) (Entry, error) {
	e, err := s.Store.Task(slug)
	s.mu.Lock()
	defer s.mu.Unlock()
	if err == nil {
		s.inForce(&e)
	}
	return e, err
}

// inForce corrects what a file says by what the loop knows. mu is held.
func (s *Scheduler) inForce(e *Entry) {
	j := s.jobs[e.Slug]
	switch {
	case j != nil && finding.Join(e.Found) != nil:
		e.Task, e.Next = j.task, nil
		if e.Enabled {
			e.coming(j.st, s.Now())
		}
	case j == nil:
		for slug, other := range s.jobs {
			if e.ID != "" && other.task.ID == e.ID && exists(s.cron(slug, taskFile)) { // else it was renamed
				e.Found, e.Next = append(e.Found, s.duplicate(e.Slug, slug)), nil
			}
		}
	}
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// duplicate is what is wrong with a task that has the taskId of another.
func (s *Scheduler) duplicate(slug, of string) finding.Finding {
	return finding.Finding{ID: "schedule-duplicate", Severity: finding.Error, File: s.cron(slug, taskFile),
		Reason: "has the taskId of " + of + ", so it does not run", Remedy: "take the line taskId out; the task then gets one of its own"}
}

// originals orders names so that of two folders with one taskId the copy comes last:
// what runs already comes first, then what was saved longer ago.
func (s *Scheduler) originals(names []string) []string {
	age := map[string]time.Time{}
	for _, slug := range names {
		if info, err := os.Stat(s.cron(slug, taskFile)); err == nil && s.jobs[slug] == nil {
			age[slug] = info.ModTime()
		}
	}
	names = slices.Clone(names)
	slices.SortStableFunc(names, func(a, b string) int { return age[a].Compare(age[b]) })
	return names
}
