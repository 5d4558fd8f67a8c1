package cluster

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"daycare/engine/cluster/clustertest"
	"daycare/engine/disk"
	"daycare/engine/message"
)

// behind is a store whose answers may be as old as those of a follower that is behind, and
// that loses answers to messages which it has appended.
type behind struct {
	store
	draw func() bool // the next answer is bad
	old  map[string][]logged
}

func (b *behind) last(ctx context.Context, unit string) (logged, error) {
	if seen := b.old[unit]; len(seen) > 0 && b.draw() {
		return seen[rand.IntN(len(seen))], nil
	}
	l, err := b.store.last(ctx, unit)
	if err == nil {
		b.old[unit] = append(b.old[unit], l)
	}
	return l, err
}

func (b *behind) read(ctx context.Context, unit string) ([]logged, error) {
	log, err := b.store.read(ctx, unit)
	if err == nil && len(log) > 0 && b.draw() {
		log = log[:rand.IntN(len(log))]
	}
	return log, err
}

func (b *behind) publish(ctx context.Context, unit string, expect uint64, m logged) (uint64, error) {
	seq, err := b.store.publish(ctx, unit, expect, m)
	if err == nil && b.draw() {
		return 0, errors.New("no answer")
	}
	return seq, err
}

// A player is a machine of the model test, with the log of the one agent, if it is open.
type player struct {
	*host
	log *disk.Log
}

// lives: machines claim, write, give up and die in any order, believe each other dead when they are
// not, are answered by servers that are behind, and get no answers. Whoever owns the agent has
// every line that was acknowledged, in order and once; besides those, only lines whose writer
// got an error, each once.
func lives(t *testing.T) {
	t.Helper()
	s := clustertest.Serve(t, clustertest.Store(t), 0)
	var machines []*player
	for range 3 {
		machines = append(machines, &player{host: newHost(t, s)})
	}
	run := 0
	rapid.Check(t, func(r *rapid.T) {
		run++
		m := &model{t: r, agent: fmt.Sprintf("agent%d", run), machines: machines, maybe: map[string]bool{}}
		m.prepare()
		defer m.end()
		r.Repeat(map[string]func(*rapid.T){
			"write":   m.write,
			"release": m.release,
			"edit":    m.edit,
			"crash":   m.crash,
		})
		m.finally()
	})
}

// A model is one agent's life.
type model struct {
	t        *rapid.T
	agent    string
	machines []*player
	lines    int
	acked    []string
	maybe    map[string]bool // lines whose writer got an error
}

// prepare makes the world of a run bad.
func (m *model) prepare() {
	bad := rapid.IntRange(0, 30).Draw(m.t, "bad answers, percent")
	for _, p := range m.machines {
		real := p.store
		if b, ok := real.(*behind); ok {
			real = b.store
		}
		p.store = &behind{store: real, draw: func() bool { return rand.IntN(100) < bad }, old: map[string][]logged{}}
		p.links.dead = func(string) bool { return rand.IntN(3) == 0 } // any guess
		p.make(m.agent)
	}
}

func (m *model) pick(t *rapid.T) *player {
	return m.machines[rapid.IntRange(0, len(m.machines)-1).Draw(t, "machine")]
}

// owns has a machine own the agent, and checks what it finds; false: another one does.
func (m *model) owns(p *player) bool {
	if p.log != nil {
		return true
	}
	err := p.Acquire(m.agent)
	switch {
	case errors.As(err, new(*message.Elsewhere)), errors.Is(err, disk.ErrFenced), errors.Is(err, disk.ErrAway):
		p.drop(m.agent)
		return false
	case err != nil:
		m.t.Fatalf("acquire: %v", err)
	}

	m.check(p.lines(m.agent, "history.jsonl"))
	l, _, err := p.vol.OpenLog(p.path(m.agent, "history.jsonl"), disk.LogOptions{Name: "history"})
	if err != nil {
		m.t.Fatal(err)
	}
	p.log = l

	return true
}

// drop closes the files of an agent that is not owned any more.
func (p *player) drop(agent string) {
	if p.log != nil {
		p.log.Close()
		p.log = nil
	}
	p.Release(agent, false)
}

func (m *model) write(t *rapid.T) {
	p := m.pick(t)
	if !m.owns(p) {
		return
	}
	m.lines++
	line := fmt.Sprint("line", m.lines)
	err := write(p.log, line)
	switch {
	case err == nil:
		m.acked = append(m.acked, line)
	case errors.Is(err, disk.ErrFenced):
		m.maybe[line] = true
		p.drop(m.agent)
	default:
		m.t.Fatalf("write: %v", err)
	}
}

func (m *model) release(t *rapid.T) {
	if p := m.pick(t); p.log != nil {
		p.drop(m.agent)
	}
}

// edit has a user put a line in front of a history that nobody has open.
func (m *model) edit(t *rapid.T) {
	p := m.pick(t)
	if p.log == nil || m.machinesWith() != 1 {
		return
	}
	if err := p.vol.WriteFile("state", p.path(m.agent, "state.json"), []byte(fmt.Sprint(len(m.acked)))); err != nil {
		p.drop(m.agent)
	}
}

func (m *model) machinesWith() (n int) {
	for _, p := range m.machines {
		if p.log != nil {
			n++
		}
	}
	return n
}

// crash has a machine forget all it knows of the agent.
func (m *model) crash(t *rapid.T) {
	p := m.pick(t)
	if p.log != nil {
		p.log.Close()
		p.log = nil
	}
	p.units.mu.Lock()
	delete(p.owned, m.agent)
	p.units.mu.Unlock()
}

// check compares what an owner found with what was acknowledged.
func (m *model) check(got []string) {
	rest := m.acked
	seen := map[string]bool{}
	for _, line := range got {
		switch {
		case seen[line]:
			m.t.Fatalf("%s is there twice: %q", line, got)
		case len(rest) > 0 && line == rest[0]:
			rest = rest[1:]
		case !m.maybe[line]:
			m.t.Fatalf("%s is there, which nobody wrote there: %q, acknowledged %q", line, got, m.acked)
		}
		seen[line] = true
	}
	if len(rest) > 0 {
		m.t.Fatalf("%q is lost: %q, acknowledged %q", rest, got, m.acked)
	}
}

// finally has every machine own the agent once.
func (m *model) finally() {
	for _, p := range m.machines {
		p.drop(m.agent)
	}
	for _, p := range m.machines {
		p.links.dead = func(string) bool { return true }
		for end := time.Now().Add(30 * time.Second); !m.owns(p); time.Sleep(time.Millisecond) {
			if time.Now().After(end) {
				m.t.Fatal("the agent is not acquired at the end")
			}
		}
		p.drop(m.agent)
	}
}

func (m *model) end() {
	for _, p := range m.machines {
		if p.log != nil {
			p.log.Close()
			p.log = nil
		}
	}
}

// What is written for a message is read again, and nothing else is.
func FuzzDecode(f *testing.F) {
	f.Add(encode([]segment{{Op: opClaim}, content(opPut, "state.json", 0, []byte("{}")),
		content(opAppend, "inbox.jsonl", 7, []byte("x\n"))}))
	f.Add([]byte(`{"op":"append","n":-1}` + "\n"))
	f.Add([]byte(`{"op":"put","f":"../x","n":1}` + "\nx"))
	f.Fuzz(func(t *testing.T, body []byte) {
		list, err := decode(body)
		if err != nil {
			if !errors.Is(err, errVersion) && !errors.Is(err, errDamaged) {
				t.Errorf("%v is neither", err)
			}
			return
		}
		again, err := decode(encode(list))
		if err != nil || !slices.EqualFunc(list, again, func(a, b segment) bool {
			return a.Op == b.Op && a.File == b.File && a.At == b.At && a.N == b.N && string(a.data) == string(b.data)
		}) {
			t.Errorf("%q is read as %v, and written again as %v (%v)", body, list, again, err)
		}
	})
}
