package chaos

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"

	"daycare/engine/crash"
	"daycare/engine/workspace"
)

var caseNumber atomic.Int64

// newPlay makes the folder of a case:
//
//	DIR/workspace/.daycare  what the daemon has
//	DIR/mirror              what of it is durable, where power is cut
//	DIR/world.jsonl effects the outside world
//	DIR/script.yaml         the model
func (h *harness) newPlay(ctx context.Context, c Case) (*play, error) {
	begin, err := h.made.of(ctx, c.Scenario)
	if err != nil {
		return nil, err
	}

	return h.stage(ctx, c, begin)
}

// stage makes the folder of a case that begins with a copy of a template; nil: with nothing.
func (h *harness) stage(ctx context.Context, c Case, begin *template) (*play, error) {
	id := fmt.Sprintf("case-%05d", caseNumber.Add(1))
	p := &play{Case: c, h: h, ground: ground{dir: filepath.Join(h.dir, id)}, result: newResult(c)}
	p.result.Dir = p.dir
	work := filepath.Join(p.dir, "workspace")
	if c.Root != "" {
		work = c.Root
	}

	p.root = workspace.At(work).Data
	for _, dir := range []string{p.dir, work} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return nil, err
		}
	}

	if begin == nil {
		err := errors.Join(os.MkdirAll(p.root, 0o700), os.WriteFile(filepath.Join(work, "README.md"), []byte("# Read me\n"), 0o600))
		if err != nil {
			return nil, err
		}
	} else if err := errors.Join(copyWorkspace(begin.dir, work), lend(begin.ballast, p.root)); err != nil {
		return nil, err
	} else {
		p.known = begin.lines
	}

	world, err := newWorld(p.dir, id, c.Scenario.Chat)
	if err != nil {
		return nil, err
	}
	world.broken, world.stalls = p.broken(), h.stalls
	world.platform = platform{hangs: c.Scenario.Hangs, hangsUntil: c.Scenario.HangsUntil, refuse: c.Scenario.Refuse}
	if c.Scenario.Fails {
		world.platform.fails = unreliable()
	}
	if c.Scenario.Asks { // a sandbox shows what is written in the workspace, and nothing else
		world.effects = filepath.Join(work, "effects")
	}

	address, err := h.ports.take(ctx)
	if err == nil && c.Scenario.Chat != "" {
		p.listen, err = h.ports.take(ctx)
	}
	if err != nil {
		return nil, err
	}
	p.user = newUser(world, p.root, "http://"+address, h.secret)
	p.check = &checker{play: p}
	p.address = address
	if err := errors.Join(p.writeScript(), p.writeSettings()); err != nil {
		return nil, err
	}

	h.shared.add(world)
	return p, p.ready()
}

// unreliable is a platform of which a third of the calls fail, every other one after it took the answer. One answer fails
// mostFails times at most: daycare waits twice as long after each, and who waits for the last answer of a soak waits as long.
func unreliable() func(out string) (fails, took bool) {
	const mostFails = 3
	failed := map[string]int{}
	return func(out string) (fails, took bool) {
		n := rand.IntN(6)
		if n > 1 || failed[out] == mostFails {
			return false, false
		}
		failed[out]++
		return true, n == 0
	}
}

// ready does what comes before the first start.
func (p *play) ready() error {
	if p.cuts() {
		p.mirror = filepath.Join(p.dir, "mirror")
		if err := seed(p.root, p.mirror); err != nil {
			return err
		}
		p.user.mirror = crash.OpenMirror(p.mirror)
	}
	if p.Scenario.Prepare != nil {
		if err := p.Scenario.Prepare(p.user); err != nil {
			return err
		}
	}

	switch {
	case p.mirror != "" && p.Scenario.Prepare != nil:
		return seed(p.root, p.mirror)
	case p.Root != "":
		return syncTree(filepath.Dir(p.Root))
	}

	return nil
}

// syncTree makes a folder and all in it durable: a cut that comes at once must find
// the workspace that the case begins with.
func syncTree(root string) error {
	return filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.IsDir() && !d.Type().IsRegular() {
			return err
		}
		f, err := os.Open(path)
		if err != nil {
			return err
		}

		return errors.Join(f.Sync(), f.Close())
	})
}

func (c *Case) cuts() bool {
	if c.Mirrored {
		return true
	}
	for _, d := range c.Deaths {
		if d.Cut != "" {
			return true
		}
	}

	return false
}

func (p *play) script() string { return filepath.Join(p.dir, "script.yaml") }

// writeScript writes what the model does.
func (p *play) writeScript() error {
	return os.WriteFile(p.script(), []byte(scriptFor(p.user.effects)), 0o600)
}

// writeSettings writes settings.yaml. Each life has callbacks of its own: what a process
// sent right before it died may arrive when the next one lives.
func (p *play) writeSettings() error {
	var b strings.Builder
	fmt.Fprintf(&b, "providers:\n  - { id: chaos, type: scripted, options: { script: %q } }\n", p.script())
	fmt.Fprintf(&b, "connectors:\n  - id: hooks\n    type: webhook\n    listen: %s\n    hooks:\n", p.address)
	for _, hook := range p.Scenario.hooks() {
		fmt.Fprintf(&b, "      - { id: %s, secretEnv: %s, callback: \"http://%s/%s/%s/%d\" }\n", hook, secretEnv,
			p.h.shared.address, p.user.id, hook, p.life)
	}

	if p.user.chat != nil {
		fmt.Fprintf(&b, "  - { %s }\n", p.user.chat.Settings(p.listen))
	}
	if p.Scenario.Asks {
		b.WriteString("permissions: { defaults: { exec: ask } }\n")
	} else {
		b.WriteString("tools: { exec: { sandbox: \"off\" } }\n")
	}

	b.WriteString("log: { file: \"\" }\n")
	p.user.settings.Lock()
	defer p.user.settings.Unlock()
	path := filepath.Join(p.root, "settings.yaml")
	return errors.Join(os.WriteFile(path, []byte(b.String()), 0o600), p.user.settled(path))
}

// copyWorkspace copies a workspace; the agents in the copy work in the copy.
func copyWorkspace(from, to string) error {
	if err := os.CopyFS(to, os.DirFS(from)); err != nil {
		return err
	}
	states, err := filepath.Glob(filepath.Join(workspace.At(to).Data, "agents", "*", "state.json"))
	if err != nil {
		return err
	}

	for _, path := range states {
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		if err := os.WriteFile(path, bytes.ReplaceAll(data, []byte(from), []byte(to)), 0o600); err != nil {
			return err
		}
	}

	return nil
}

// templates are the folders that scenarios begin with, each made once.
type templates struct {
	h    *harness
	mu   sync.Mutex
	made map[string]*template
}

type template struct {
	once sync.Once
	dir  string
	// ballast is the space that it kept back for a full disk, as a file. Nobody writes to
	// it, it is only removed, so all cases can have the same one: to make one in memory
	// takes a tenth of what a start does.
	ballast string
	lines   map[string]line // of its histories and inboxes, by their text
	err     error
}

// of is what the cases of a scenario begin with; nil: nothing.
func (t *templates) of(ctx context.Context, s *Scenario) (*template, error) {
	if len(s.Before) == 0 {
		return nil, nil
	}
	t.mu.Lock()
	if t.made == nil {
		t.made = map[string]*template{}
	}

	one := t.made[s.Name]
	if one == nil {
		one = &template{}
		t.made[s.Name] = one
	}

	t.mu.Unlock()
	one.once.Do(func() { one.err = t.make(ctx, s, one) })

	return one, one.err
}

// make plays what comes before a scenario, in peace.
func (t *templates) make(ctx context.Context, s *Scenario, one *template) error {
	quiet := &Scenario{Name: s.Name, Steps: s.Before, Settings: Settings{Hooks: s.Hooks, Asks: s.Asks}}
	p, err := t.h.stage(ctx, Case{Way: "before", Scenario: quiet}, nil)
	if err != nil {
		return err
	}
	defer t.h.shared.remove(p.user.world)
	limited, cancel := context.WithTimeoutCause(ctx, patience, errStuck)
	defer cancel()
	if err := p.lives(limited); err != nil {
		return err
	}
	if len(p.result.Violations) > 0 {
		return fmt.Errorf("even in peace: %s (%s)", strings.Join(p.result.Violations, "; "), p.dir)
	}

	one.dir, one.ballast = filepath.Dir(p.root), filepath.Join(p.dir, "ballast")
	if err := errors.Join(os.Rename(filepath.Join(p.root, ballastName), one.ballast), tidy(one.dir)); err != nil {
		return err
	}
	if s.Age != nil {
		if err := s.Age(p.root); err != nil {
			return err
		}
	}

	one.lines, err = linesOf(p.root)
	return err
}

// remove removes them, when no more cases are played.
func (t *templates) remove() (err error) {
	for _, one := range t.made {
		if one.err == nil {
			err = errors.Join(err, os.RemoveAll(filepath.Dir(one.dir)))
		}
	}

	return err
}

// lend gives a workspace a ballast.
func lend(ballast, root string) error {
	return os.Link(ballast, filepath.Join(root, ballastName))
}

// tidy removes what cannot be copied or need not be.
func tidy(workspace string) error {
	return filepath.WalkDir(workspace, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if ephemeral(d.Name()) || d.Type()&fs.ModeSocket != 0 {
			return os.Remove(path)
		}

		return nil
	})
}
