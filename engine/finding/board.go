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
type Board struct {
	tell   func(agent string, f Finding)
	mended func(agent, file string)

	mu    sync.Mutex
	pages map[string]page                // by file
	files map[string]map[string]struct{} // by agent, those that have a page
}

// A page is what was found in one file.
type page struct {
	agent string
	found []Finding
}

// maxPage bounds what is kept of one file.
const maxPage = 100

// NewBoard makes a Board of nothing. tell gets what is new; mended gets a file that
// had warnings or errors and has none any more. agent is whose file it is, "" for a
// file of no single agent.
func NewBoard(tell func(agent string, f Finding), mended func(agent, file string)) *Board {
	return &Board{tell: tell, mended: mended, pages: map[string]page{}, files: map[string]map[string]struct{}{}}
}

// Tell passes on what happened to files and is over.
func (b *Board) Tell(agent string, found ...Finding) {
	for _, f := range found {
		b.tell(agent, f)
	}
}

// Read says all that was found in a file. What was found at the last reading, perhaps
// in another line, is not told again.
func (b *Board) Read(agent, file string, found []Finding) {
	b.mu.Lock()
	before := b.put(agent, file, found)
	b.mu.Unlock()
	b.pass(agent, before, found)
	if slices.ContainsFunc(before, wrong) && !slices.ContainsFunc(found, wrong) {
		b.mended(agent, file)
	}
}

// Hold is Read of a file whose findings are told in another way.
func (b *Board) Hold(agent, file string, found []Finding) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.put(agent, file, found)
}

// put replaces the page of a file. The lock is held.
func (b *Board) put(agent, file string, found []Finding) (before []Finding) {
	before = b.pages[file].found
	b.set(file, page{agent, slices.Clone(found[:min(len(found), maxPage)])})
	return before
}

// set has p be the page of a file; one without findings is none. The lock is held.
func (b *Board) set(file string, p page) {
	if old, ok := b.pages[file]; ok {
		if delete(b.files[old.agent], file); len(b.files[old.agent]) == 0 {
			delete(b.files, old.agent)
		}
		delete(b.pages, file)
	}
	if len(p.found) == 0 {
		return
	}
	if b.files[p.agent] == nil {
		b.files[p.agent] = map[string]struct{}{}
	}
	b.files[p.agent][file], b.pages[file] = struct{}{}, p
}

// Forget drops what is known of the files of an agent that is gone.
func (b *Board) Forget(agent string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for file := range b.files[agent] {
		delete(b.pages, file)
	}
	delete(b.files, agent)
}

// Add says more of a file that was read before.
func (b *Board) Add(agent string, f Finding) {
	b.mu.Lock()
	before := b.pages[f.File].found
	if len(before) < maxPage && !slices.ContainsFunc(before, f.like) {
		b.set(f.File, page{agent, append(slices.Clip(before), f)})
	}
	b.mu.Unlock()
	b.pass(agent, before, []Finding{f})
}

// pass tells those of found that before has not.
func (b *Board) pass(agent string, before, found []Finding) {
	for _, f := range found {
		if !slices.ContainsFunc(before, f.like) {
			b.tell(agent, f)
		}
	}
}

func (f Finding) like(other Finding) bool { return f.ID == other.ID && f.Reason == other.Reason }

func wrong(f Finding) bool { return f.Severity != Info }

// Has reports whether something is known to be wrong with a file.
func (b *Board) Has(file string) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.ContainsFunc(b.pages[file].found, wrong)
}

// Wrong are the warnings and errors of an agent's files, by file and line; with "" those
// of files of no single agent.
func (b *Board) Wrong(agent string) []Finding {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.wrong(maps.Keys(b.files[agent]))
}

// All are the warnings and errors of all files, by file and line.
func (b *Board) All() []Finding {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.wrong(maps.Keys(b.pages))
}

// wrong are the warnings and errors of some files. The lock is held.
func (b *Board) wrong(files iter.Seq[string]) (list []Finding) {
	for file := range files {
		for _, f := range b.pages[file].found {
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
