package schedule

import (
	"errors"
	"fmt"
	"os"
	"time"

	"daycare/engine/disk"
	"daycare/engine/finding"
)

// rereads are when a file that cannot be used is read again before it is called
// broken: somebody may be in the middle of saving it.
var rereads = []time.Duration{200 * time.Millisecond, 500 * time.Millisecond, time.Second}

// lookAt reads one task. A file that is broken leaves the last good version in
// force. owner maps each taskId to the folder that it belongs to.
func (s *Scheduler) lookAt(slug string, now time.Time, owner map[string]string) []finding.Finding {
	path := s.cron(slug, taskFile)
	info, err := os.Stat(path)
	if err != nil {
		delete(s.jobs, slug) // a folder without a task, or one that is being made
		return nil
	}
	j := s.jobs[slug]
	if j == nil || !same(j.file, info) || !j.bad.IsZero() {
		t, found, err := s.load(slug)
		if err == nil && t.ID == "" && finding.Join(found) == nil {
			t, found, err = s.named(slug, now)
		}
		if err != nil {
			s.o.Log.Warn("task cannot be read", "task", slug, "err", err)
			s.again = earlier(s.again, now.Add(rereads[2]))
			return nil
		}
		if j == nil {
			j = &job{}
		}
		if finding.Join(found) != nil {
			return s.broken(slug, j, now, found)
		}
		if j.task.spec() != t.spec() {
			j.begun = false
		}
		j.task, j.file, j.bad, j.found = t, info, time.Time{}, found
		s.jobs[slug] = j
	}
	if first, twice := owner[j.task.ID]; twice {
		delete(s.jobs, slug)
		return append(j.found[:len(j.found):len(j.found)], s.duplicate(slug, first))
	}
	owner[j.task.ID] = slug
	return j.found
}

func same(a, b os.FileInfo) bool {
	return a != nil && os.SameFile(a, b) && a.ModTime().Equal(b.ModTime()) && a.Size() == b.Size()
}

// named gives a task its id and reads it again.
func (s *Scheduler) named(slug string, now time.Time) (Task, []finding.Finding, error) {
	err := s.identify(slug)
	if errors.Is(err, disk.ErrChanged) {
		s.again = earlier(s.again, now.Add(rereads[0]))
	}
	if err != nil {
		return Task{}, nil, fmt.Errorf("give it an id: %w", err)
	}
	return s.load(slug)
}

// broken keeps the last good version of a task, if there is one, and reports the
// file when it stays broken.
func (s *Scheduler) broken(slug string, j *job, now time.Time, found []finding.Finding) []finding.Finding {
	if j.bad.IsZero() || j.bad.After(now) {
		j.bad = now
	}
	if j.task.Slug != "" {
		s.jobs[slug] = j
	}
	for _, pause := range rereads {
		if at := j.bad.Add(pause); at.After(now) && j.task.Slug != "" {
			s.again = earlier(s.again, at)
			return j.found
		}
	}
	j.found = found
	return found
}
