package mcp

import (
	"os"
	"sync"
	"time"

	"daycare/engine/finding"
)

// pages are the catalogue of one server, in its file and in memory.
type pages struct {
	dir, id string
	write   func(path string, data []byte) error
	read    func(path string, found []finding.Finding)

	mu    sync.Mutex
	stamp stamp
	now   *Catalogue // nil: there is none yet
	bad   bool       // its file cannot be read
}

// A stamp is which file it was.
type stamp struct {
	at   time.Time
	size int64
}

func stampOf(path string) stamp {
	info, err := os.Stat(path)
	if err != nil {
		return stamp{}
	}

	return stamp{info.ModTime(), info.Size()}
}

// look reads the file again if it changed, and reports whether it did.
func (p *pages) look() (changed bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.reread()
}

// reread is look; mu is held.
func (p *pages) reread() (changed bool) {
	path := Path(p.dir, p.id)
	now := stampOf(path)
	if now == p.stamp {
		return false
	}
	c, err := ReadCatalogue(p.dir, p.id)
	p.stamp, p.bad = now, err != nil
	if err != nil {
		c = nil
		p.read(path, []finding.Finding{{ID: "mcp-file", Severity: finding.Error, File: path, Reason: err.Error(), Remedy: kind.Remedy}})
	}
	changed = p.now != c && !p.now.equal(c)
	p.now = c
	p.report()
	return changed
}

// current is the catalogue; known reports whether there is one.
func (p *pages) current() (c *Catalogue, known bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.reread()
	if p.bad {
		return &Catalogue{}, true // its owner was told; nothing is pinned anew meanwhile
	}

	return p.now, p.now != nil
}

// saw keeps the list that a server gave, and reports whether agents have other tools by it.
func (p *pages) saw(list []Definition, prompts []Prompt) (changed bool, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.reread()
	if p.bad || p.write == nil {
		return false, nil
	}
	next := p.now.seen(list, prompts)
	if next.equal(p.now) {
		return false, nil
	}
	data, err := next.encode()
	if err == nil {
		err = p.write(Path(p.dir, p.id), data)
	}
	if err != nil {
		return false, err
	}
	p.now, p.stamp = next, stampOf(Path(p.dir, p.id))
	p.report()
	return true, nil
}

// report tells what is wrong with the tools; mu is held.
func (p *pages) report() {
	path := Path(p.dir, p.id)
	if p.now != nil {
		p.read(path, p.now.findings(path, p.id))
	} else if !p.bad {
		p.read(path, nil)
	}
}
