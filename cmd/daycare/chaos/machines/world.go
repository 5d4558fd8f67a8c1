package machines

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"daycare/cmd/daycare/chaos/child"
	"daycare/engine/control"
	"daycare/engine/freeport"
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
	servers  []*server
	effects  string   // file with a line for each effect
	releases []func() // of the addresses of the servers

	mu   sync.Mutex
	down map[*machine]bool // users send nothing to them
}

// A process is a program that is started again and again.
type process struct {
	command []string
	env     []string
	said    string // file with what it printed
	cmd     *exec.Cmd
	exited  chan struct{}
}

// A machine is a daemon and its workspace.
type machine struct {
	process
	workspace string
	wires     []*wire
}

// A server is one of NATS.
type server struct {
	process
	store, address string
}

// newWorld starts servers and machines in a folder of their own.
func (h *harness) newWorld(name string, servers int, bug string) (*world, error) {
	w := &world{h: h, dir: filepath.Join(h.Dir, name), bug: bug, down: map[*machine]bool{}}
	w.effects = filepath.Join(w.dir, "effects")
	if err := os.MkdirAll(w.dir, 0o700); err != nil {
		return nil, err
	}
	err := w.makeServers(servers)
	if err == nil {
		err = w.startServers()
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

// address is one for a server, which comes back under it after a kill.
func (w *world) address() (string, error) {
	at, release, err := freeport.Reserve()
	if err == nil {
		w.releases = append(w.releases, release)
	}
	return at, err
}

func (w *world) makeServers(n int) error {
	var peers []string
	for range n {
		at, err := w.address()
		if err != nil {
			return err
		}
		peers = append(peers, at)
	}
	for i := range n {
		at, err := w.address()
		if err != nil {
			return err
		}
		name := fmt.Sprint("n", i)
		s := &server{store: filepath.Join(w.dir, "nats", name), address: at}
		s.command = []string{w.h.Binary, "cluster", "server", "--name", name, "--store", s.store, "--listen", at}
		if n > 1 {
			s.command = append(s.command, "--peer-listen", peers[i], "--peers", strings.Join(peers, ","))
		}
		s.said = filepath.Join(w.dir, name+".log")
		w.servers = append(w.servers, s)
	}

	return nil
}

// startServers starts those that do not run, and waits until they all do.
func (w *world) startServers() error {
	for _, s := range w.servers {
		if !s.alive() {
			if err := s.start(); err != nil {
				return err
			}
		}
	}
	for _, s := range w.servers {
		if err := s.wait("the server "+s.address, func() bool { return strings.Contains(s.log(), " ready on ") }); err != nil {
			return err
		}
	}

	return nil
}

func (w *world) makeMachine(i int) error {
	name := fmt.Sprint("m", i)
	m := &machine{workspace: filepath.Join(w.dir, name)}
	w.machines = append(w.machines, m)
	var urls []string
	for _, s := range w.servers {
		to, err := newWire(s.address)
		if err != nil {
			return err
		}
		m.wires = append(m.wires, to)
		urls = append(urls, fmt.Sprintf("%q", "nats://"+to.address()))
	}
	home := filepath.Join(m.workspace, ".daycare")
	settings := fmt.Sprintf("cluster: { servers: [ %s ], replicas: %d, name: %s }\n", strings.Join(urls, ", "), len(w.servers), name) +
		"providers: [ { id: scripted, type: scripted, options: { script: script.yaml } } ]\n" +
		"tools: { exec: { sandbox: \"off\" } }\nlog: { file: \"\" }\n"
	err := errors.Join(os.MkdirAll(home, 0o700), os.WriteFile(filepath.Join(home, "settings.yaml"), []byte(settings), 0o600),
		os.WriteFile(filepath.Join(m.workspace, "script.yaml"), []byte(fmt.Sprintf(script, w.effects)), 0o600))
	if err != nil {
		return err
	}
	m.command = []string{w.h.Binary, "--workspace", m.workspace, "--no-input", "start"}
	m.env = []string{"DAYCARE_BUG=" + w.bug}
	m.said = filepath.Join(w.dir, name+".log")

	return m.begin()
}

// begin starts the daemon and waits until it answers.
func (m *machine) begin() error {
	if err := m.start(); err != nil {
		return err
	}
	return m.wait("the daemon in "+m.workspace, func() bool {
		c, err := m.dial()
		if err == nil {
			c.Close()
		}
		return err == nil
	})
}

func (m *machine) dial() (*control.Client, error) {
	return control.Dial(filepath.Join(m.workspace, ".daycare"))
}

// hold holds the wires of a machine, or releases them.
func (m *machine) hold(held bool) {
	for _, w := range m.wires {
		w.hold(held)
	}
}

// start starts the process; what it prints goes to a file of its own.
func (p *process) start() error {
	out, err := os.Create(p.said)
	if err != nil {
		return err
	}
	defer out.Close()
	p.cmd = exec.Command(p.command[0], p.command[1:]...)
	p.cmd.Env = append([]string{"PATH=" + os.Getenv("PATH"), "HOME=" + filepath.Dir(p.said), "XDG_STATE_HOME=" + os.DevNull, "TZ=UTC"},
		p.env...)
	p.cmd.Stdout, p.cmd.Stderr = out, out
	p.cmd.SysProcAttr = child.Attributes()
	if err := p.cmd.Start(); err != nil {
		return fmt.Errorf("start %s: %w", p.command[0], err)
	}
	exited := make(chan struct{})
	p.exited = exited
	go func() {
		_ = p.cmd.Wait() // however it ends
		close(exited)
	}()

	return nil
}

func (p *process) alive() bool {
	if p.exited == nil {
		return false
	}
	select {
	case <-p.exited:
		return false
	default:
		return true
	}
}

// wait waits until the process is ready.
func (p *process) wait(what string, ready func() bool) error {
	for end := time.Now().Add(readyFor); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		if ready() {
			return nil
		}
		if !p.alive() {
			return fmt.Errorf("%s ended: %s", what, p.says())
		}
	}

	return fmt.Errorf("%s is not ready after %v: %s", what, readyFor, p.says())
}

// log is what the process printed.
func (p *process) log() string {
	data, err := os.ReadFile(p.said)
	if err != nil {
		return err.Error()
	}
	return string(data)
}

// says is the end of it.
func (p *process) says() string {
	all := p.log()
	return strings.TrimSpace(all[max(0, len(all)-2000):])
}

func (p *process) kill() {
	if p.alive() {
		_ = p.cmd.Process.Kill() // else it has just ended
		<-p.exited
	}
}

// stand suspends the process, or resumes it.
func (p *process) stand(still bool) error {
	s := syscall.SIGCONT
	if still {
		s = syscall.SIGSTOP
	}
	return p.cmd.Process.Signal(s)
}

// owner is the machine that has the newest folder of an agent that works.
func (w *world) owner() (*machine, error) {
	best, at := w.machines[0], time.Time{}
	for _, m := range w.machines {
		files, err := filepath.Glob(filepath.Join(m.workspace, ".daycare", "agents", "*", "history.jsonl"))
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
	for _, s := range w.servers {
		s.kill()
	}
	for _, m := range w.machines {
		for _, wire := range m.wires {
			wire.close()
		}
	}
	for _, release := range w.releases {
		release()
	}
}
