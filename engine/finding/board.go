package finding

import (
	"cmp"
	"iter"
	"maps"
	"slices"
	"strings"
	"sync"
)

// A Board is what is wrong with files now. Whoever reads a file says what was found
// in it, each time; the Board passes on what was not told yet, and which file is good
// again. It may be used from any goroutine.
type Problems struct {
	report func(agent string, f Finding)
	fixed  func(agent, file string)

	mu      sync.Mutex
	byFile  map[string]fileFindings        // by file
	byAgent map[string]map[string]struct{} // by agent, those that have a page
}

// A page is what was found in one file.
type fileFindings struct {
	agent string
	found []Finding
}

// maxPage bounds what is kept of one file.
const maxPerFile = 100

// NewProblems makes a Board of nothing. tell gets what is new; mended gets a file that
// had warnings or errors and has none any more. agent is whose file it is, "" for a
// file of no single agent.
func NewProblems(tell func(agent string, f Finding), mended func(agent, file string)) *Problems {
	return &Problems{report: tell, fixed: mended, byFile: map[string]fileFindings{}, byAgent: map[string]map[string]struct{}{}}
}

// Tell passes on what happened to files and is over.
func (b *Problems) Report(agent string, found ...Finding) {
	for _, f := range found {
		b.report(agent, f)
	}
}

// Read says all that was found in a file. What was found at the last reading, perhaps
// in another line, is not told again.
func (b *Problems) Set(agent, file string, found []Finding) {
	b.mu.Lock()
	before := b.put(agent, file, found)
	b.mu.Unlock()
	b.reportNew(agent, before, found)
	if slices.ContainsFunc(before, wrong) && !slices.ContainsFunc(found, wrong) {
		b.fixed(agent, file)
	}
}

// Hold is Read of a file whose findings are told in another way.
func (b *Problems) SetQuietly(agent, file string, found []Finding) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.put(agent, file, found)
}

// put replaces the page of a file. The lock is held.
func (b *Problems) put(agent, file string, found []Finding) (before []Finding) {
	before = b.byFile[file].found
	b.set(file, fileFindings{agent, slices.Clone(found[:min(len(found), maxPerFile)])})
	return before
}

// set has p be the page of a file; one without findings is none. The lock is held.
func (b *Problems) set(file string, p fileFindings) {
	if old, ok := b.byFile[file]; ok {
		if delete(b.byAgent[old.agent], file); len(b.byAgent[old.agent]) == 0 {
			delete(b.byAgent, old.agent)
		}
		delete(b.byFile, file)
	}
	if len(p.found) == 0 {
		return
	}
	if b.byAgent[p.agent] == nil {
		b.byAgent[p.agent] = map[string]struct{}{}
	}
	b.byAgent[p.agent][file], b.byFile[file] = struct{}{}, p
}

// Forget drops what is known of the files of an agent that is gone.
func (b *Problems) Forget(agent string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for file := range b.byAgent[agent] {
		delete(b.byFile, file)
	}
	delete(b.byAgent, agent)
}

// Add says more of a file that was read before.
func (b *Problems) Add(agent string, f Finding) {
	b.mu.Lock()
	before := b.byFile[f.File].found
	if len(before) < maxPerFile && !slices.ContainsFunc(before, f.like) {
		b.set(f.File, fileFindings{agent, append(slices.Clip(before), f)})
	}
	b.mu.Unlock()
	b.reportNew(agent, before, []Finding{f})
}

// pass tells those of found that before has not.
func (b *Problems) reportNew(agent string, before, found []Finding) {
	for _, f := range found {
		if !slices.ContainsFunc(before, f.like) {
			b.report(agent, f)
		}
	}
}

func (f Finding) like(other Finding) bool { return f.ID == other.ID && f.Reason == other.Reason }

func wrong(f Finding) bool { return f.Severity != Info }

// Has reports whether something is known to be wrong with a file.
func (b *Problems) Has(file string) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.ContainsFunc(b.byFile[file].found, wrong)
}

// Wrong are the warnings and errors of an agent's files, by file and line; with "" those
// of files of no single agent.
func (b *Problems) Of(agent string) []Finding {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.wrong(maps.Keys(b.byAgent[agent]))
}

// All are the warnings and errors of all files, by file and line.
func (b *Problems) All() []Finding {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.wrong(maps.Keys(b.byFile))
}

// wrong are the warnings and errors of some files. The lock is held.
func (b *Problems) wrong(files iter.Seq[string]) (list []Finding) {
	for file := range files {
		for _, f := range b.byFile[file].found {
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
