package schedule

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"sync"
	"time"

	"daycare/engine/disk"
	"daycare/engine/finding"
)

// rereads are when a file that cannot be used is read again before it is called
// broken: someone may be in the middle of saving it.
var rereads = []time.Duration{200 * time.Millisecond, 500 * time.Millisecond, time.Second}

// stale is what to look at again.
type stale struct {
	mu    sync.Mutex
	all   bool
	slugs map[string]bool
}

// add says that tasks may have changed; without names anything.
func (s *stale) add(slugs ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.all = s.all || len(slugs) == 0
	for _, slug := range slugs {
		if s.slugs == nil {
			s.slugs = map[string]bool{}
		}
		s.slugs[slug] = true
	}
}

// any reports whether something may have changed.
func (s *stale) any() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.all || len(s.slugs) > 0
}

func (s *stale) take() (slugs []string, all bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	slugs, all = slices.Sorted(maps.Keys(s.slugs)), s.all
	s.slugs, s.all = nil, false
	return slugs, all
}

// seen is what the last look at all files found, and looks at single tasks since.
type seen struct {
	names     []string                     // of tasks, the original of two before its copy
	strays    []finding.Finding            // what is ignored in cron/
	tasks     map[string][]finding.Finding // by name
	heartbeat []finding.Finding
	folders   []string
	told      []finding.Finding
	looked    bool
}

// look reads the folders again: what is new, changed, renamed, broken or gone.
func (k *known) look(now time.Time) {
	names, strays, err := k.list()
	if err != nil {
		k.o.Log.Warn("cannot list tasks", "err", err)
		k.again = now.Add(longest)
		return
	}
	there := map[string]bool{}
	for _, slug := range names {
		there[slug] = true
	}
	maps.DeleteFunc(k.jobs, func(slug string, _ *job) bool { return !there[slug] })
	k.seen.names, k.seen.strays = k.originals(names), strays
	k.seen.tasks = map[string][]finding.Finding{}
	owner := map[string]string{}
	for _, slug := range k.seen.names {
		k.seen.tasks[slug] = k.lookAt(slug, now, owner)
	}
	k.seen.heartbeat = k.lookAtBeat()
	k.show()
	k.seen.report(k.o.Findings)
}

// list lists the folders of tasks. Those and the folders they are in are watched before they are read, so that no change is missed.
func (k *known) list() (names []string, strays []finding.Finding, err error) {
	for {
		if names, strays, err = slugs(k.files().cron(), ""); err != nil {
			return nil, nil, err
		}
		folders := []string{k.files().cron(), k.files().heart()}
		for _, slug := range names {
			folders = append(folders, k.files().cron(slug))
		}
		if k.o.Folders == nil || slices.Equal(folders, k.seen.folders) {
			return names, strays, nil
		}
		k.seen.folders = folders
		k.o.Folders(folders)
	}
}

// lookAtSome reads some tasks again. false: what it found concerns others too (a task came
// or went, or has another id), so all are to be looked at.
func (k *known) lookAtSome(slugs []string, now time.Time) bool {
	for _, slug := range slugs {
		j := k.jobs[slug]
		if j == nil {
			return false
		}
		id := j.task.ID
		k.seen.tasks[slug] = k.lookAt(slug, now, map[string]string{})
		if k.jobs[slug] == nil || k.jobs[slug].task.ID != id {
			return false
		}
	}
	k.show()
	k.seen.report(k.o.Findings)
	return true
}

// tell reports what is wrong with files, if that has changed.
func (n *seen) report(report func([]finding.Finding)) {
	found := slices.Clone(n.strays)
	for _, slug := range n.names {
		found = append(found, n.tasks[slug]...)
	}
	found = append(found, n.heartbeat...)
	if !n.looked || !slices.Equal(found, n.told) {
		n.looked, n.told = true, found
		report(found)
	}
}

// lookAt reads one task. A file that is broken leaves the last good version in
// force. owner maps each taskId to the folder that it belongs to.
func (k *known) lookAt(slug string, now time.Time, owner map[string]string) []finding.Finding {
	path := k.files().cron(slug, taskFile)
	info, err := os.Stat(path)
	if err != nil {
		delete(k.jobs, slug) // a folder without a task, or one that is being made
		return nil
	}
	j := k.jobs[slug]
	if j == nil || !same(j.file, info) || !j.bad.IsZero() {
		t, found, err := k.load(slug)
		if err == nil && t.ID == "" && finding.Join(found) == nil {
			t, found, err = k.named(slug, now)
		}
		if err != nil {
			k.o.Log.Warn("cannot read task", "task", slug, "err", err)
			k.again = earlier(k.again, now.Add(rereads[2]))
			return nil
		}
		if j == nil {
			j = &job{}
		}
		if finding.Join(found) != nil {
			if found[0].ID == unread { // for a reason that may pass and leave the file as it is
				k.again = earlier(k.again, now.Add(longest))
			}
			return k.broken(slug, j, now, found)
		}
		if j.task.spec() != t.spec() {
			j.begun = false
		}
		j.task, j.file, j.bad, j.found, j.reckoned = t, info, time.Time{}, found, false
		k.jobs[slug] = j
	}
	if first, twice := owner[j.task.ID]; twice {
		delete(k.jobs, slug)
		return append(j.found[:len(j.found):len(j.found)], k.files().duplicate(slug, first))
	}
	owner[j.task.ID] = slug
	return j.found
}

func same(a, b os.FileInfo) bool {
	return a != nil && os.SameFile(a, b) && a.ModTime().Equal(b.ModTime()) && a.Size() == b.Size()
}

// named gives a task its id and reads it again.
func (k *known) named(slug string, now time.Time) (Task, []finding.Finding, error) {
	err := k.files().identify(slug)
	if errors.Is(err, disk.ErrChanged) {
		k.again = earlier(k.again, now.Add(rereads[0]))
	}
	if err != nil {
		return Task{}, nil, fmt.Errorf("give it an id: %w", err)
	}

	return k.load(slug)
}

// broken keeps the last good version of a task, if there is one, and reports the
// file when it stays broken.
func (k *known) broken(slug string, j *job, now time.Time, found []finding.Finding) []finding.Finding {
	if j.bad.IsZero() || j.bad.After(now) {
		j.bad = now
	}
	for _, pause := range rereads {
		if at := j.bad.Add(pause); at.After(now) && j.task.Slug != "" {
			k.again = earlier(k.again, at)
			return j.found
		}
	}
	j.found = found
	return found
}
