package finding

import (
	"cmp"
	"iter"
	"maps"
	"slices"
	"strings"
	"sync"
)

// Problems holds what is wrong with the files of a workspace now. Each reader of a file
// sets what it found there, every time it reads it; Problems reports what is new, and
// which file is valid again. It is safe for concurrent use.
type Problems struct {
	report func(agent string, f Finding)
	fixed  func(agent, file string)

	mu      sync.Mutex
	byFile  map[string]fileFindings        // by file
	byAgent map[string]map[string]struct{} // by agent, the files that have findings
}

// fileFindings are the findings of one file.
type fileFindings struct {
	agent string
	found []Finding
}

// maxPerFile limits the findings that are kept of one file.
const maxPerFile = 100

// NewProblems returns an empty list of problems. report is called with each new finding,
// fixed with a file whose last warning or error is gone. agent is the owner of the file;
// it is empty for files that agents share.
func NewProblems(report func(agent string, f Finding), fixed func(agent, file string)) *Problems {
	return &Problems{report: report, fixed: fixed, byFile: map[string]fileFindings{}, byAgent: map[string]map[string]struct{}{}}
}

// Report reports findings without keeping them: events that happened to a file and are over.
func (p *Problems) Report(agent string, found ...Finding) {
	for _, f := range found {
		p.report(agent, f)
	}
}

// Set replaces the findings of a file. Findings of the previous reading, even if their
// line moved, are not reported again.
func (p *Problems) Set(agent, file string, found []Finding) {
	p.mu.Lock()
	before := p.put(agent, file, found)
	p.mu.Unlock()
	p.reportNew(agent, before, found)
	if slices.ContainsFunc(before, wrong) && !slices.ContainsFunc(found, wrong) {
		p.fixed(agent, file)
	}
}

// SetQuietly is Set without reports, for findings that are reported in another way.
func (p *Problems) SetQuietly(agent, file string, found []Finding) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.put(agent, file, found)
}

// put replaces the findings of a file and returns the previous ones. Call it with mu held.
func (p *Problems) put(agent, file string, found []Finding) (before []Finding) {
	before = p.byFile[file].found
	p.set(file, fileFindings{agent, slices.Clone(found[:min(len(found), maxPerFile)])})
	return before
}

// set stores the findings of a file, or removes the file if now has no findings. Call it with mu held.
func (p *Problems) set(file string, now fileFindings) {
	if old, ok := p.byFile[file]; ok {
		if delete(p.byAgent[old.agent], file); len(p.byAgent[old.agent]) == 0 {
			delete(p.byAgent, old.agent)
		}
		delete(p.byFile, file)
	}
	if len(now.found) == 0 {
		return
	}
	if p.byAgent[now.agent] == nil {
		p.byAgent[now.agent] = map[string]struct{}{}
	}

	p.byAgent[now.agent][file], p.byFile[file] = struct{}{}, now
}

// Forget removes the findings of all files of an agent that was deleted.
func (p *Problems) Forget(agent string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for file := range p.byAgent[agent] {
		delete(p.byFile, file)
	}
	delete(p.byAgent, agent)
}

// Add adds a finding to a file that was set before.
func (p *Problems) Add(agent string, f Finding) {
	p.mu.Lock()
	before := p.byFile[f.File].found
	if len(before) < maxPerFile && !slices.ContainsFunc(before, f.like) {
		p.set(f.File, fileFindings{agent, append(slices.Clip(before), f)})
	}
	p.mu.Unlock()
	p.reportNew(agent, before, []Finding{f})
}

// reportNew reports those of found that are not in before.
func (p *Problems) reportNew(agent string, before, found []Finding) {
	for _, f := range found {
		if !slices.ContainsFunc(before, f.like) {
			p.report(agent, f)
		}
	}
}

func (f Finding) like(other Finding) bool { return f.ID == other.ID && f.Reason == other.Reason }

func wrong(f Finding) bool { return f.Severity != Info }

// Has reports whether a file has a warning or an error.
func (p *Problems) Has(file string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.ContainsFunc(p.byFile[file].found, wrong)
}

// Of returns the warnings and errors of an agent's files, ordered by file and line. With an
// empty agent it returns those of the files that agents share.
func (p *Problems) Of(agent string) []Finding {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.wrong(maps.Keys(p.byAgent[agent]))
}

// All returns the warnings and errors of all files, ordered by file and line.
func (p *Problems) All() []Finding {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.wrong(maps.Keys(p.byFile))
}

// wrong returns the warnings and errors of some files. Call it with mu held.
func (p *Problems) wrong(files iter.Seq[string]) (list []Finding) {
	for file := range files {
		for _, f := range p.byFile[file].found {
			if wrong(f) {
				list = append(list, f)
			}
		}
	}

	slices.SortFunc(list, func(x, y Finding) int {
		return cmp.Or(strings.Compare(x.File, y.File), cmp.Compare(x.Line, y.Line), cmp.Compare(x.Column, y.Column),
			strings.Compare(x.Reason, y.Reason))
	})

	return list
}
