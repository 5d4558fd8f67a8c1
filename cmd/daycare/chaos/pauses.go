package chaos

import (
	"context"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"daycare/cmd/daycare/chaos/child"
)

// pause stops the process now and then (SIGSTOP), as a laptop that is closed does, and
// while it does, someone starts a second daemon in its workspace. alone has no other one
// start from then on: once the first is asked to stop, a second may well take its place,
// before the first has ended. end ends the pauses, with the process running.
func (p *play) pause(ctx context.Context, d *daemon) (alone, end func()) {
	ctx, cancel := context.WithCancel(ctx)
	var wg sync.WaitGroup
	var mu sync.Mutex // held while a second one is there
	stops := false
	wg.Go(func() {
		for {
			runs, stands := p.Pauses()
			if !sleep(ctx, runs) {
				return
			}
			up := p.user.reachable()
			_ = d.cmd.Process.Signal(syscall.SIGSTOP)
			mu.Lock()
			if up && !stops {
				p.intrude(ctx)
			}
			mu.Unlock()

			sleep(ctx, stands)
			_ = d.cmd.Process.Signal(syscall.SIGCONT)
		}
	})

	alone = func() {
		mu.Lock()
		defer mu.Unlock()
		stops = true
	}
	return alone, func() {
		cancel()
		wg.Wait()
	}
}

// sleep reports whether nothing ended it.
func sleep(ctx context.Context, d time.Duration) bool {
	select {
	case <-time.After(d):
		return true
	case <-ctx.Done():
		return false
	}
}

// intrude starts a second daemon: it must go away soon, and say why.
func (p *play) intrude(parent context.Context) {
	ctx, cancel := context.WithTimeout(parent, patience/2)
	defer cancel()
	l := launch{dir: p.dir, bug: p.Bug, secret: p.h.secret}
	cmd := exec.CommandContext(ctx, p.h.Binary, "--workspace", filepath.Dir(p.root), "--no-input", "start")
	cmd.Env, cmd.SysProcAttr = l.environment(filepath.Join(p.dir, "trace-intruder")), child.Attributes()
	out, err := cmd.CombinedOutput()
	switch {
	case parent.Err() != nil:
	case ctx.Err() != nil:
		p.result.violate("two daemons: a second one did not end within %s and said %.200q", patience/2, out)
	case err == nil || !strings.Contains(string(out), "already"):
		p.result.violate("two daemons: a second one ended with %v and said %.200q", err, out)
	}
}
