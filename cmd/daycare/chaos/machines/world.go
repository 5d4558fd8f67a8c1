package machines

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"daycare/engine/control"
	"daycare/engine/fault"
	"daycare/engine/workspace"
)

const (
	// machinesInAll is how many there are.
	machinesInAll = 3
	// readyFor bounds how long a process takes until it answers, on a machine that is busy.
	readyFor = 2 * time.Minute
)

// script is the model: a message that says "act" has a call with an effect outside. One that says "think" takes longer to
// answer than the next one takes to come: its agent is awake, on one machine, while another has something for it.
const script = `
rules:
  - tool_result: "*"
    reply: [ { delay: 50ms, text: "did it" } ]
  - match: '^(?<key>\S+) act'
    reply: [ { delay: 50ms, calls: [ { name: exec, arguments: { command: "echo {{.Name.key}} >> %s" } } ] } ]
  - match: '^\S+ think'
    reply: [ { delay: 800ms, text: "thought" } ]
  - reply: [ { delay: 50ms, text: "heard" } ]
`

// A world is machines and servers.
type world struct {
	h        *harness
	dir      string
	bug      string
	machines []*machine
	servers  *Servers
	effects  string // file with a line for each effect

	mu   sync.Mutex
	down map[*machine]bool // users send nothing to them
}

// A machine is a daemon and its workspace.
type machine struct {
	process
	workspace string
	wires     []*wire
}

// newWorld starts servers and machines in a folder of their own.
func (h *harness) newWorld(name string, servers int, bug string) (*world, error) {
	w := &world{h: h, dir: filepath.Join(h.Dir, name), bug: bug, down: map[*machine]bool{}}
	w.effects = filepath.Join(w.dir, "effects")
	if err := os.MkdirAll(w.dir, 0o700); err != nil {
		return nil, err
	}
	var err error
	if w.servers, err = NewServers(h.Binary, w.dir, servers); err == nil {
		err = w.servers.Start()
	}
	for i := range machinesInAll {
		if err == nil {
			err = w.makeMachine(i)
		}
	}
	if err != nil {
		w.end()
		return nil, err
	}

	return w, nil
}

func (w *world) makeMachine(i int) error {
	name := fmt.Sprint("m", i)
	m := &machine{workspace: filepath.Join(w.dir, name)}
	w.machines = append(w.machines, m)
	var urls []string
	for _, s := range w.servers.list {
		to, err := newWire(s.address)
		if err != nil {
			return err
		}
		m.wires = append(m.wires, to)
		urls = append(urls, fmt.Sprintf("%q", "nats://"+to.address()))
	}
	home := workspace.At(m.workspace).Data
	settings := fmt.Sprintf("cluster: { servers: [ %s ], replicas: %d, name: %s }\n", strings.Join(urls, ", "), len(w.servers.list), name) +
		"providers: [ { id: scripted, type: scripted, options: { script: script.yaml } } ]\n" +
		"tools: { exec: { sandbox: \"off\" } }\nlog: { file: \"\" }\n"
	err := errors.Join(os.MkdirAll(home, 0o700), os.WriteFile(filepath.Join(home, "settings.yaml"), []byte(settings), 0o600),
		os.WriteFile(filepath.Join(m.workspace, "script.yaml"), []byte(fmt.Sprintf(script, w.effects)), 0o600))
	if err != nil {
		return err
	}
	m.command = []string{w.h.first(), "--workspace", m.workspace, "--no-input", "start"}
	m.env = []string{"DAYCARE_BUG=" + w.bug}
	m.said = filepath.Join(w.dir, name+".log")

	return m.begin()
}

// begin starts the daemon and waits until it answers. One that ends because the servers did not answer in time is started
// again, as service managers do.
func (m *machine) begin() error {
	for tries := 3; ; tries-- {
		if err := m.start(); err != nil {
			return err
		}
		err := m.wait("the daemon in "+m.workspace, func() bool {
			c, err := m.dial()
			if err == nil {
				c.Close()
			}
			return err == nil
		})
		if err == nil || tries == 1 || m.alive() || !strings.Contains(m.log(), fault.ReplicaAway.Text) {
			return err
		}
	}
}

func (m *machine) dial() (*control.Client, error) {
	return control.Dial(workspace.At(m.workspace).Data)
}

// hold holds the wires of a machine, or releases them.
func (m *machine) hold(held bool) {
	for _, w := range m.wires {
		w.hold(held)
	}
}

// cut loses what the wires of a machine carry, and lets through what comes after.
func (m *machine) cut() {
	for _, w := range m.wires {
		w.drop()
	}
}

// owner is the machine that has the newest folder of an agent that works.
func (w *world) owner() (*machine, error) {
	best, at := w.machines[0], time.Time{}
	for _, m := range w.machines {
		files, err := filepath.Glob(filepath.Join(workspace.At(m.workspace).Data, "agents", "*", "history.jsonl"))
		if err != nil {
			return nil, err
		}
		for _, file := range files {
			info, err := os.Stat(file)
			if err != nil && !errors.Is(err, fs.ErrNotExist) {
				return nil, err
			}
			if err == nil && info.ModTime().After(at) {
				best, at = m, info.ModTime()
			}
		}
	}

	return best, nil
}

// avoid keeps users from sending to a machine, or lets them again.
func (w *world) avoid(m *machine, down bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.down[m] = down
}

// client connects to a machine that runs, the nth of them or one after it.
func (w *world) client(n int) (*control.Client, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for i := range w.machines {
		if m := w.machines[(n+i)%len(w.machines)]; !w.down[m] {
			return m.dial()
		}
	}

	return nil, errors.New("no machine runs")
}

// end ends all that runs.
func (w *world) end() {
	for _, m := range w.machines {
		m.kill()
	}
	for _, m := range w.machines {
		for _, wire := range m.wires {
			wire.close()
		}
	}
	w.servers.End()
}
