package crash

import (
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// Names lists every failpoint compiled in, in the order of a message's way.
// A harness holds the points it reached against this list.
func Names() []string { return slices.Clone(names) }

var names = []string{
	"home.dirsync", "probe.dirsync",
	"post.write", "post.sync", "post.rename", "post.dirsync",
	"letter.link", "letter.rename", "letter.dirsync", "letter.unlink",
	"refused.write", "refused.sync", "refused.rename", "refused.dirsync", "mkdir.dirsync", "settle.dirsync",
	"ignore.write", "ignore.rename",
	"settings.write", "settings.sync", "settings.rename", "settings.dirsync", "auth.write", "auth.sync", "auth.rename", "auth.dirsync",
	"tokens.write", "tokens.sync", "tokens.rename", "tokens.dirsync", "tokens.used.write", "tokens.used.rename",
	"pairing.write", "pairing.sync", "pairing.rename", "pairing.dirsync",
	"mcp.write", "mcp.sync", "mcp.rename", "mcp.dirsync",
	"a2a.write", "a2a.sync", "a2a.rename", "a2a.dirsync",
	"shared.write", "shared.sync", "shared.rename", "shared.dirsync",
	"folder.mkdir", "folder.sync", "folder.rename", "folder.dirsync",
	"handles.write", "handles.sync", "handles.rename", "handles.dirsync",
	"descriptor.write", "descriptor.sync", "descriptor.rename",
	"descriptor.kept.write", "descriptor.kept.rename", "agents.index.write", "agents.index.rename",
	"inbox.write", "inbox.sync", "inbox.accepted",
	"inbox.rotate.write", "inbox.rotate.sync", "inbox.rotate.rename", "inbox.rotate.dirsync",
	"turn.taken", "turn.called", "tool.before", "tool.after",
	"history.write", "history.sync", "turn.answered", "turn.closed",
	"history.rotate.write", "history.rotate.sync", "history.rotate.link", "history.rotate.rename",
	"history.rotate.dirsync", "history.rotate.unlink",
	"draft.write", "draft.rename",
	"send.before", "send.after", "told.write", "told.sync", "told.rename", "told.dirsync",
	"tool.file.write", "tool.file.sync", "tool.file.rename", "tool.file.dirsync",
	"memory.write", "memory.sync", "memory.rename", "memory.dirsync",
	"state.write", "state.sync", "state.rename", "state.dirsync", "state.kept.write", "state.kept.rename",
	"sessions.write", "sessions.sync",
	"task.write", "task.sync", "task.rename", "task.dirsync", "task.due", "task.fired", "task.ended", "runs.write", "runs.sync",
	"runs.rotate.write", "runs.rotate.sync", "runs.rotate.link", "runs.rotate.rename", "runs.rotate.dirsync",
	"permission.write", "permission.sync", "permission.rename", "permission.dirsync", "permission.unlink",
	"folders.write", "folders.sync", "folders.rename", "folders.dirsync",
	"unseen.write", "unseen.sync", "unseen.rename", "unseen.dirsync", "unseen.unlink",
	"permissions.write", "permissions.sync",
	"blob.write", "blob.sync", "blob.rename", "blob.dirsync",
	"files.content.write", "files.content.sync", "files.content.rename", "files.content.dirsync",
	"files.reference.write", "files.reference.sync", "files.reference.rename", "files.reference.dirsync",
	"edit.write", "edit.sync", "edit.rename", "edit.dirsync",
	"fork.write", "fork.sync", "fork.rename", "fork.dirsync", "import.sync", "import.dirsync",
	"machine.write", "machine.sync", "machine.rename", "machine.dirsync", "machine.unlink",
	"movein.write", "movein.sync", "movein.rename", "movein.dirsync",
	"claim.write", "claim.sync", "claim.rename", "claim.dirsync", "claim.unlink",
	"trash.rename", "trash.dirsync",
	"hints.write", "hints.rename", "usage.write", "usage.rename",
	"raises.write", "raises.sync", "raises.rename", "raises.dirsync",
	"waiting.write", "waiting.sync", "waiting.rename", "waiting.dirsync", "state.link",
	"ledger.write", "ledger.sync", "ledger.rotate.write", "ledger.rotate.sync", "ledger.rotate.rename", "ledger.rotate.dirsync",
	"changes.write", "changes.sync", "changes.rename", "changes.dirsync", "changes.unlink", "changes.copied.sync",
	"written.write", "written.sync",
	"membership.write", "membership.sync", "membership.rename", "membership.dirsync",
	"commons.write", "commons.sync", "commons.rename", "commons.dirsync", "commons.unlink",
	"export.write", "export.sync", "export.rename", "export.dirsync", "export.unlink",
	"repair.write", "repair.sync", "repair.rename", "repair.dirsync",
	"changes.file.write", "changes.file.sync", "changes.file.rename", "changes.file.dirsync",
	"batch.write", "batch.sync", "lab.cassette.write", "lab.cassette.sync", "lab.cassette.rename", "lab.cassette.dirsync",
	"models.write", "models.sync", "models.rename", "models.dirsync", "models.unlink",
	"doctor.aside.write", "doctor.aside.sync", "doctor.aside.rename", "doctor.aside.dirsync",
	"doctor.lines.write", "doctor.lines.sync", "doctor.lines.rename", "doctor.lines.dirsync",
	"torn.write", "torn.sync", "torn.dirsync", "torn.truncate",
	"log.dirsync", "log.rewrite",
}

type plan struct {
	mu     sync.Mutex
	armed  []arming
	passed map[string]int
	total  int
	hits   []string // points that met what is armed for them
	trace  *os.File

	meanwhile map[string]func(k int) // by point
}

// planned is what is armed; nil: nothing.
var planned atomic.Pointer[plan]

// current is what is armed now; nil means that nothing is.
func current() *plan {
	readEnvironment()
	return planned.Load()
}

func newPlan(spec string) (*plan, error) {
	p := &plan{passed: map[string]int{}}
	for _, clause := range strings.Split(spec, ";") {
		if clause == "" {
			continue
		}
		a, err := parse(clause)
		if err != nil {
			return nil, err
		}
		p.armed = append(p.armed, a)
	}

	return p, nil
}

// readEnvironment arms what the environment says, once.
var readEnvironment = sync.OnceFunc(func() {
	spec, trace := os.Getenv("DAYCARE_FAILPOINT"), os.Getenv("DAYCARE_FAILPOINT_TRACE")
	if spec == "" && trace == "" {
		return
	}
	p, err := newPlan(spec)
	if err != nil {
		fmt.Fprintf(os.Stderr, "daycare: DAYCARE_FAILPOINT: %v\n", err)
		os.Exit(2)
	}
	if trace != "" {
		f, err := os.OpenFile(trace, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
		if err != nil {
			fmt.Fprintf(os.Stderr, "daycare: DAYCARE_FAILPOINT_TRACE: %v\n", err)
			os.Exit(2)
		}
		p.trace = f
	}
	planned.Store(p)
})

// A Test is a *testing.T.
type Test interface {
	Helper()
	Cleanup(func())
	Fatalf(format string, args ...any)
	Setenv(key, value string)
}

// Alone ends a test that runs beside others, before it changes something for all of them.
func Alone(t Test) { t.Setenv("ALONE", "1") }

// Arm arms failpoints in this process until the test ends, in place of what is armed.
// spec is as in DAYCARE_FAILPOINT. met returns the points that were hit so far. It is for
// tests that do not run beside others.
func Arm(t Test, spec string) (met func() []string) {
	t.Helper()
	Alone(t)
	before := current()
	p, err := newPlan(spec)
	if err != nil {
		t.Fatalf("arm a failpoint: %v", err)
	}
	planned.Store(p)
	t.Cleanup(func() { planned.Store(before) })
	return func() []string {
		p.mu.Lock()
		defer p.mu.Unlock()
		return slices.Clone(p.hits)
	}
}

// Meanwhile has do called at each passing of a point in this process, before its operation, with
// how often it was passed since: what another program does at that moment. It ends with the
// test. What Arm armed before stays armed, its counts begin anew. It is for tests that do not
// run beside others.
func Meanwhile(t Test, point string, do func(k int)) {
	t.Helper()
	Alone(t)
	before := current()
	p := &plan{passed: map[string]int{}, meanwhile: map[string]func(int){point: do}}
	if before != nil {
		p.armed = before.armed
	}
	planned.Store(p)
	t.Cleanup(func() { planned.Store(before) })
}

// pass counts one passing of a point and returns what is armed for it. What lets the
// operation be done (a slow disk, a clock that jumps) happens here.
func (p *plan) pass(name string) (arming, bool) {
	if !slices.Contains(names, name) {
		panic("crash: point " + name + " is not in the list of names")
	}
	p.mu.Lock()
	p.passed[name]++
	p.total++
	if p.trace != nil {
		fmt.Fprintln(p.trace, name)
	}
	hit, found, slow := arming{}, false, false
	for _, a := range p.armed {
		switch {
		case !a.matches(name, p.passed[name], p.total):
		case a.action == "slow":
			slow = strings.HasSuffix(name, "sync")
		case a.action == "clock":
			shift(a.jump)
		case !found:
			hit, found = a, true
			p.hits = append(p.hits, name)
		}
	}
	do, k := p.meanwhile[name], p.passed[name]
	p.mu.Unlock()
	if do != nil {
		do(k)
	}
	if slow {
		time.Sleep(slowSync)
	}

	return hit, found
}

// slowSync is how long each sync of a slow disk takes.
const slowSync = time.Second

// Open opens the file of a step that syncs it. A process that is out of descriptors, or of
// memory, does not come to the sync: then it is Open that passes the point and fails.
func Open(name string, open func() (*os.File, error)) (*os.File, error) {
	p := current()
	if p == nil || !p.unopened(name) {
		return open()
	}
	a, _ := p.pass(name)
	return nil, &fs.PathError{Op: "open", Path: name, Err: faults[a.action]}
}

// unopened reports whether the next passing of a point is to fail before it has a file.
func (p *plan) unopened(name string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.ContainsFunc(p.armed, func(a arming) bool {
		return slices.Contains(unopened, a.action) && a.matches(name, p.passed[name]+1, p.total+1)
	})
}

// Point is a place between two durable steps.
func Point(name string) {
	p := current()
	if p == nil {
		return
	}
	if a, hit := p.pass(name); hit && deadly(a.action) {
		a.die()
	}
}

// Do runs one operation that happens whole or not at all.
func Do(name string, op func() error) error {
	if holdable(name) {
		steps.RLock()
		defer steps.RUnlock()
	}
	p := current()
	if p == nil {
		return op()
	}
	a, hit := p.pass(name)
	if !hit {
		return op()
	}
	if a.percent == 100 {
		if err := op(); err != nil {
			return err
		}
	}
	if deadly(a.action) {
		a.die()
	}

	return faults[a.action]
}

// Write runs one write of p, of which a crash or a fault may leave only the
// first part in the file. It returns how many bytes were written.
func Write(name string, p []byte, write func([]byte) (int, error)) (int, error) {
	if holdable(name) {
		steps.RLock()
		defer steps.RUnlock()
	}
	pl := current()
	if pl == nil {
		return write(p)
	}
	a, hit := pl.pass(name)
	if !hit {
		return write(p)
	}
	n, err := 0, error(nil)
	if keep := len(p) * a.percent / 100; keep > 0 {
		if n, err = write(p[:keep]); err != nil {
			return n, err
		}
	}
	if deadly(a.action) {
		a.die()
	}

	return n, faults[a.action]
}

// stalled is how long a disk hangs before the process dies of it.
const stalled = 50 * time.Millisecond

// die ends the process as kill -9 from outside would: no deferred call, no
// flush. It does not return.
func (a arming) die() {
	if a.action == "stall" {
		time.Sleep(stalled)
	}
	syscall.Kill(os.Getpid(), syscall.SIGKILL)
	select {}
}
