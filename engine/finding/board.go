package finding

import (
	"cmp"
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
	pages map[string]page // by file
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
	return &Board{tell: tell, mended: mended, pages: map[string]page{}}
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
	if b.pages[file] = (page{agent, slices.Clone(found[:min(len(found), maxPage)])}); len(found) == 0 {
		delete(b.pages, file)
	}
	return before
}

// Forget drops what is known of the files of an agent that is gone.
func (b *Board) Forget(agent string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	maps.DeleteFunc(b.pages, func(_ string, p page) bool { return p.agent == agent })
}

// Add says more of a file that was read before.
func (b *Board) Add(agent string, f Finding) {
	b.mu.Lock()
	before := b.pages[f.File].found
	if len(before) < maxPage && !slices.ContainsFunc(before, f.like) {
		b.pages[f.File] = page{agent, append(slices.Clip(before), f)}
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
	return b.pick(func(p page) bool { return p.agent == agent })
}

// All are the warnings and errors of all files, by file and line.
func (b *Board) All() []Finding { return b.pick(func(page) bool { return true }) }

func (b *Board) pick(of func(page) bool) (list []Finding) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for p := range maps.Values(b.pages) {
		if of(p) {
			list = append(list, slices.DeleteFunc(slices.Clone(p.found), func(f Finding) bool { return !wrong(f) })...)
		}
	}
	slices.SortFunc(list, func(x, y Finding) int {
		return cmp.Or(strings.Compare(x.File, y.File), cmp.Compare(x.Line, y.Line), cmp.Compare(x.Column, y.Column),
			strings.Compare(x.Reason, y.Reason))
	})
	return list
}
