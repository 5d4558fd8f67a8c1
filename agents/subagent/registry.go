package subagent

import (
	"cmp"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"daycare/engine/beneath"
	"daycare/engine/finding"
	"daycare/engine/watch"
)

//go:embed builtin/*.md
var builtin embed.FS

// A Registry is the active definitions: those built in and those in a folder.
// Every use looks at the folder again, so an edit counts at once. A file that
// cannot be used is reported; its last good version stays active.
type Registry struct {
	dir      string
	reserved func(tool string) bool
	report   func(path string, found []finding.Finding)

	mu      sync.Mutex
	files   map[string]file // by name in the folder
	list    []Definition    // by name; never changed once made
	version int
	quiet   *watch.Quiet // nil: nothing tells that the folder is as it was
	mark    watch.Mark   // before the last look; zero: only a look tells
}

// A file is one file of the folder as it was read last.
type file struct {
	at    time.Time
	size  int64
	good  *Definition // nil: it never was usable
	found []finding.Finding
}

// maxDefinition bounds a file, in bytes: it is part of a prompt.
const maxDefinition = 1 << 20

// settled is the age of a save after which a broken file is broken: before it an editor
// that writes in pieces may not be done, and the file is read again in a moment.
const settled = 2 * time.Second

var rereads = [...]time.Duration{200 * time.Millisecond, 300 * time.Millisecond, 500 * time.Millisecond}

// NewRegistry makes a Registry of the folder dir, which need not exist. Nothing is read before the first use. reserved
// reports the names that no definition can have or use as a tool, because agents
// have tools of that name that are not for sub-agents, or that its own would hide;
// report takes all that is wrong with a file, when files were read again.
func NewRegistry(dir string, reserved func(tool string) bool, report func(path string, found []finding.Finding)) *Registry {
	return &Registry{dir: dir, reserved: reserved, report: report, files: map[string]file{}}
}

// base are the definitions that are built in, by name.
var base = sync.OnceValue(func() map[string]Definition {
	all := map[string]Definition{}
	entries, err := builtin.ReadDir("builtin")
	if err != nil {
		panic("sub-agents: what is built in cannot be listed: " + err.Error())
	}

	for _, e := range entries {
		file := path.Join("builtin", e.Name())
		data, err := builtin.ReadFile(file)
		d, f := load(file, data)
		if err := errors.Join(err, finding.Join(f.Found)); err != nil {
			panic(fmt.Sprintf("sub-agents: %s cannot be used: %v", file, err))
		}
		all[d.Name] = d
	}

	return all
})

// Trust leaves out a look at the folder while q knows that nothing in it changed.
func (r *Registry) Trust(q *watch.Quiet) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.quiet, r.mark = q, watch.Mark{}
}

// List is the active definitions, by name. version changes when they do.
func (r *Registry) List() (list []Definition, version int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.list != nil && r.quiet.Still(r.mark, watch.Place{Dir: r.dir}) {
		return r.list, r.version
	}
	r.mark = r.quiet.Mark()
	if r.look() || r.list == nil {
		r.list = r.merge()
		r.version++
	}

	return r.list, r.version
}

// Get is one definition by its name.
func (r *Registry) Get(name string) (Definition, bool) {
	list, _ := r.List()
	for _, d := range list {
		if d.Name == name {
			return d, true
		}
	}

	return Definition{}, false
}

// look reads what changed in the folder.
func (r *Registry) look() (changed bool) {
	entries, err := os.ReadDir(r.dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		r.mark = watch.Mark{}
		return false // what was read stays active
	}
	present := map[string]bool{}
	for _, e := range entries {
		if e.IsDir() || !strings.HasSuffix(e.Name(), ".md") || strings.HasPrefix(e.Name(), ".") {
			continue
		}
		info, err := os.Stat(filepath.Join(r.dir, e.Name()))
		if err != nil || !e.Type().IsRegular() || beneath.Links(info) > 1 {
			r.mark = watch.Mark{} // it changes elsewhere
		}
		if err != nil || !info.Mode().IsRegular() {
			continue
		}

		present[e.Name()] = true
		known, ok := r.files[e.Name()]
		if ok && known.at.Equal(info.ModTime()) && known.size == info.Size() {
			continue
		}

		r.files[e.Name()] = r.read(e.Name(), file{at: info.ModTime(), size: info.Size(), good: known.good})
		changed = true
	}

	for name := range r.files {
		if !present[name] {
			delete(r.files, name)
			r.report(filepath.Join(r.dir, name), nil)
			changed = true
		}
	}

	return changed
}

// read parses a file; one that is no good keeps what it was before.
func (r *Registry) read(name string, f file) file {
	path := filepath.Join(r.dir, name)
	var d Definition
	var found []finding.Finding
	for try := 0; ; try++ {
		data, _, err := beneath.Own(path, maxDefinition)
		if err != nil {
			f.found = []finding.Finding{{ID: "subagent-unreadable", Severity: finding.Error, File: path,
				Reason: beneath.Reason(err).Error()}}
			return f
		}

		d, found = Parse(path, data)
		d.File = path
		found = append(found, r.allowed(d, path)...)
		if finding.Join(found) == nil || try == len(rereads) || time.Since(f.at) > settled {
			break
		}

		time.Sleep(rereads[try])
		if info, err := os.Stat(path); err == nil {
			f.at, f.size = info.ModTime(), info.Size()
		}
	}

	if finding.Join(found) == nil {
		f.good = &d
	}
	for i := range found {
		if f.good != nil && found[i].Severity == finding.Error {
			found[i].Remedy = "correct the file; until then the previous version stays active"
		}
	}

	f.found = found
	return f
}

// allowed judges the names in a definition.
func (r *Registry) allowed(d Definition, path string) (found []finding.Finding) {
	wrong := func(format string, args ...any) {
		found = append(found, finding.Finding{ID: "subagent-invalid", Severity: finding.Error, File: path, Line: 1,
			Reason: fmt.Sprintf(format, args...)})
	}
	if _, ours := base()[d.Name]; !ours && r.reserved(d.Name) {
		wrong("a tool already has the name %q", d.Name)
	}

	for _, tool := range d.Tools {
		if _, ours := base()[tool]; ours || Forbidden(tool) || tool == d.Name {
			wrong("tools: %q is not available to sub-agents", tool)
		}
	}

	return found
}

// forbidden are tools that no sub-agent has, beside sub-agents themselves.
var forbidden = []string{"message", "send_file", "set_reaction", "spawn", "start_background_agent",
	"create_permanent_agent", "agent_stop", "subagents", "add_cron", "ask_remote_agent"}

// Forbidden reports a tool that no sub-agent may have: it would start others, speak
// to users past its parent, schedule a task, or get an answer when it has ended.
func Forbidden(tool string) bool {
	return slices.Contains(forbidden, tool) || strings.HasPrefix(tool, "cron_") || strings.HasPrefix(tool, "heartbeat_")
}

// merge lays the files over what is built in.
func (r *Registry) merge() []Definition {
	all := maps.Clone(base())
	names := make([]string, 0, len(r.files))
	for name := range r.files {
		names = append(names, name)
	}

	slices.Sort(names)
	for _, name := range names {
		good, found := r.files[name].good, r.files[name].found
		if good != nil {
			if other := all[good.Name]; other.File != "" {
				found = append(slices.Clip(found),
					finding.Finding{ID: "subagent-duplicate", Severity: finding.Error, File: good.File, Line: 1,
						Reason: fmt.Sprintf("%[2]s already has the name %[1]q", good.Name, other.File), Remedy: "rename one of the two"})
			} else {
				all[good.Name] = *good
			}
		}

		r.report(filepath.Join(r.dir, name), found)
	}

	list := make([]Definition, 0, len(all))
	for _, d := range all {
		list = append(list, d)
	}
	slices.SortFunc(list, func(a, b Definition) int { return cmp.Compare(a.Name, b.Name) })

	return list
}
