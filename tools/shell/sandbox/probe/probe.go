package probe

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"time"

	"daycare/tools/shell/sandbox"
)

// In the sandbox the helper begins here.
func init() {
	if mode, args := sandbox.Mode(os.Args); mode == sandbox.Probe {
		syscall.Exit(inside(args))
	}
}

// Choose finds the best level that works here. want is the setting: auto, or one
// level, which then must work. helper is the path of the daycare binary. With
// auto and nothing usable it returns the Plain runner, whose Why says what was
// tried; for anything else the error wraps sandbox.ErrUnusable.
func Choose(want, helper string) (*sandbox.Runner, error) {
	order := []sandbox.Level{sandbox.Bwrap, sandbox.Landlock, sandbox.Seatbelt}
	if want != "" && want != "auto" {
		order = []sandbox.Level{sandbox.Level(want)}
	}
	why := ""
	for _, l := range order {
		r, err := try(l, helper)
		if err == nil {
			return r, nil
		}
		why += fmt.Sprintf("; %s: %v", l, err)
	}

	if why != "" {
		why = why[2:]
	}
	if want != "" && want != "auto" {
		return nil, fmt.Errorf("%w: %s", sandbox.ErrUnusable, why)
	}

	r := sandbox.Plain(helper)
	r.Why = "no sandbox works here (" + why + ")"
	return r, nil
}

// try makes the runner of a level and probes it.
func try(l sandbox.Level, helper string) (*sandbox.Runner, error) {
	bwrap := ""
	if l == sandbox.Bwrap {
		path, err := exec.LookPath("bwrap")
		if err != nil {
			return nil, errors.New("bubblewrap (bwrap) is not installed")
		}
		bwrap = path
	}

	r, err := sandbox.New(l, helper, bwrap)
	if err != nil {
		return nil, err
	}
	err = probe(r)
	if err == nil || l != sandbox.Landlock {
		return r, err
	}

	alone := r.WithoutNamespaces()
	alone.Why += fmt.Sprintf(": this system lets daycare make no namespaces (%v)", err)
	return alone, probe(alone)
}

// A task is what a program in the sandbox tries to reach.
type task struct {
	Workspace string `json:"workspace"` // granted; has free/, hidden/, and work/deep/locked/ that can be read
	Outside   string `json:"outside"`   // a folder beside it, with the file secret
	PID       int    `json:"pid"`       // of the daemon
	TCP       string `json:"tcp"`       // where someone listens
	UDP       string `json:"udp"`
	Unix      string `json:"unix"`     // a socket in Outside
	Abstract  string `json:"abstract"` // Linux: a socket without a path
}

// secret is what the files hold that must not be read.
const secret = "daycare-probe-secret"

// probe runs the ways out (escapes) in the sandbox. Its error says which of them
// worked, or that nothing runs at all.
func probe(r *sandbox.Runner) error {
	dir := folder(os.TempDir())
	sweep(dir, time.Now())
	root, err := os.MkdirTemp(dir, prefix)
	if err != nil {
		return fmt.Errorf("probe sandbox: %w", err)
	}
	defer os.RemoveAll(root)
	b, err := newBait(root)
	if err != nil {
		return fmt.Errorf("probe sandbox: %w", err)
	}
	defer b.close()
	v := sandbox.View{Dir: b.task.Workspace, Home: filepath.Join(root, "home"),
		Write: []string{b.task.Workspace}, Hidden: []string{filepath.Join(b.task.Workspace, "hidden")},
		Locked: []string{filepath.Join(b.task.Workspace, "work", "deep", "locked")}}
	data, err := json.Marshal(b.task)
	if err != nil {
		return err
	}

	out, err := escaped(r, v, string(data))
	if err != nil {
		return err
	}
	if bait := b.taken(); len(bait) > 0 {
		out = append(out, bait...)
	}
	if len(out) > 0 {
		return fmt.Errorf("it does not hold: %s", strings.Join(out, ", "))
	}

	return nil
}

// folder is where probes make their folder: in temporary, the folder for temporary files, or in /tmp if the kernel
// takes no socket at a path as long as theirs would be there (104 bytes on macOS, 108 on Linux).
func folder(temporary string) string {
	if len(temporary)+len("/"+prefix+"1234567890/outside/socket") > 100 {
		return "/tmp"
	}
	return temporary
}

// The folders of probes in the folder for temporary files, and how old one is that nobody uses any more: a probe
// takes seconds.
const (
	prefix = "daycare-probe-"
	old    = time.Hour
)

// sweep removes the folders of probes that a kill ended, as far as they are this user's.
func sweep(dir string, now time.Time) {
	left, _ := filepath.Glob(filepath.Join(dir, prefix+"*")) // the pattern is a good one
	for _, path := range left {
		if info, err := os.Lstat(path); err == nil && info.IsDir() && now.Sub(info.ModTime()) > old {
			_ = os.RemoveAll(path) // that of another user stays
		}
	}
}

// escaped returns the names of the escapes that worked, of those that a task in JSON is for.
func escaped(r *sandbox.Runner, v sandbox.View, encoded string) (names []string, err error) {
	l, err := r.Itself(v, sandbox.Probe, encoded)
	if err != nil {
		return nil, err
	}
	p, err := newProcess(r, l)
	if err != nil {
		return nil, err
	}
	defer p.close()
	var stdout, stderr bytes.Buffer
	p.Stdout, p.Stderr, p.WaitDelay = &stdout, &stderr, time.Second
	if err := p.Start(); err != nil {
		return nil, err
	}

	limit := time.AfterFunc(10*time.Second, p.end)
	defer limit.Stop()
	if err := p.Wait(); err != nil {
		what, _, _ := strings.Cut(strings.TrimSpace(stderr.String()), "\n")
		if what == "" {
			what = err.Error()
		}
		return nil, errors.New(what)
	}

	if err := json.Unmarshal(stdout.Bytes(), &names); err != nil {
		return nil, fmt.Errorf("read answer of probe: %w", err)
	}

	return names, nil
}

// A process is a command in a sandbox. Where there is a supervisor all of it ends with the pipe to that:
// a bubblewrap that is killed as it begins would leave a process that waits for it for ever.
type process struct {
	*exec.Cmd
	launch sandbox.Launch
	pipe   *os.File // to the supervisor; nil: none
}

// newProcess makes a process of a launch, whose files it closes at its end.
func newProcess(r *sandbox.Runner, l sandbox.Launch) (*process, error) {
	p := &process{Cmd: exec.Command(l.Argv[0], l.Argv[1:]...), launch: l}
	p.Env, p.SysProcAttr = []string{}, &syscall.SysProcAttr{Setsid: true}
	if !r.Supervised() {
		return p, nil
	}
	first, pipe, err := os.Pipe()
	if err != nil {
		l.Close()
		return nil, err
	}

	p.launch.Files, p.pipe = append([]*os.File{first}, l.Files...), pipe
	p.ExtraFiles = p.launch.Files
	return p, nil
}

// end ends the command and all that it started.
func (p *process) end() {
	if p.pipe != nil {
		p.pipe.Close()
		return
	}
	p.Process.Kill()
}

func (p *process) close() {
	p.launch.Close()
	if p.pipe != nil {
		p.pipe.Close()
	}
}

// bait is what a program in the sandbox is tempted with.
type bait struct {
	task task
	udp  net.PacketConn
	open []io.Closer
}

func newBait(root string) (_ *bait, err error) {
	b := &bait{task: task{Workspace: filepath.Join(root, "workspace"), Outside: filepath.Join(root, "outside"), PID: os.Getpid()}}
	b.task.Unix = filepath.Join(b.task.Outside, "socket")
	if err := os.MkdirAll(filepath.Join(b.task.Workspace, "free"), 0o700); err != nil {
		return nil, err
	}

	for _, dir := range []string{filepath.Join(b.task.Workspace, "hidden"),
		filepath.Join(b.task.Workspace, "work", "deep", "locked"), b.task.Outside} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return nil, err
		}
		if err := os.WriteFile(filepath.Join(dir, "secret"), []byte(secret), 0o600); err != nil {
			return nil, err
		}
	}
	defer func() {
		if err != nil {
			b.close()
		}
	}()

	listen := func(network, address string) string {
		l, lerr := net.Listen(network, address)
		if lerr != nil {
			err = errors.Join(err, lerr)
			return ""
		}
		b.open = append(b.open, l)

		return l.Addr().String()
	}
	b.task.TCP, b.task.Unix = listen("tcp", "127.0.0.1:0"), listen("unix", b.task.Unix)
	if runtime.GOOS == "linux" {
		b.task.Abstract = listen("unix", "@daycare-probe-"+filepath.Base(root))
	}
	if err != nil {
		return nil, err
	}
	if b.udp, err = net.ListenPacket("udp", "127.0.0.1:0"); err != nil {
		return nil, err
	}

	b.open, b.task.UDP = append(b.open, b.udp), b.udp.LocalAddr().String()
	return b, nil
}

// taken reports what the sandboxed program left traces of.
func (b *bait) taken() []string {
	var got []string
	b.udp.SetReadDeadline(time.Now().Add(5 * time.Millisecond))
	if n, _, _ := b.udp.ReadFrom(make([]byte, 10)); n > 0 {
		got = append(got, "a datagram arrived")
	}
	if _, err := os.Lstat(filepath.Join(b.task.Outside, "planted")); err == nil {
		got = append(got, "a file was written outside")
	}

	return got
}

func (b *bait) close() {
	for _, c := range b.open {
		c.Close()
	}
}

// inside is the program in the sandbox. It prints the names of the escapes
// that worked.
func inside(args []string) int {
	var t task
	if len(args) != 1 || json.Unmarshal([]byte(args[0]), &t) != nil {
		return sandbox.Fail("probe", errors.New("no task"))
	}
	if err := os.WriteFile(filepath.Join(t.Workspace, "free", "works"), []byte("x"), 0o600); err != nil {
		return sandbox.Fail("write in the workspace", err)
	}

	escaped := []string{}
	for name, try := range t.escapes() {
		if try() == nil {
			escaped = append(escaped, name)
		}
	}

	slices.Sort(escaped)
	json.NewEncoder(os.Stdout).Encode(escaped)
	return 0
}

// escapes are the ways out. Each returns nil if it worked.
func (t task) escapes() map[string]func() error {
	in := func(name string) string { return filepath.Join(t.Workspace, "free", name) }
	deep := filepath.Join(t.Workspace, "work", "deep")
	hidden, outside := filepath.Join(t.Workspace, "hidden", "secret"), filepath.Join(t.Outside, "secret")
	all := map[string]func() error{
		"read beside the workspace":      func() error { return reads(outside) },
		"read what is hidden":            func() error { return reads(hidden) },
		"write beside the workspace":     func() error { return plant(filepath.Join(t.Outside, "planted")) },
		"write where it is hidden":       func() error { return plant(filepath.Join(t.Workspace, "hidden", "planted")) },
		"write what can only be read":    func() error { return plant(filepath.Join(deep, "locked", "secret")) },
		"make more of it":                func() error { return plant(filepath.Join(deep, "locked", "planted")) },
		"rename what is above it":        func() error { return os.Rename(deep, in("deep")) },
		"a file with its owner's rights": func() error { return setOwners(in("marked")) },
		"the terminal":                   func() error { return openable("/dev/tty") },
		"write to /etc":                  func() error { return plant("/etc/daycare-probe") },
		"read through a link": func() error {
			os.Symlink(outside, in("link"))
			return reads(in("link"))
		},
		"read through a second name": func() error {
			if err := os.Link(outside, in("name")); err != nil {
				return err
			}
			return reads(in("name"))
		},
		"rename what is hidden": func() error {
			if err := os.Rename(filepath.Join(t.Workspace, "hidden"), in("moved")); err != nil {
				return err
			}
			defer os.Rename(in("moved"), filepath.Join(t.Workspace, "hidden"))
			return reads(in("moved/secret"))
		},
		"signal the daemon":         func() error { return syscall.Kill(t.PID, 0) },
		"connect to a TCP port":     func() error { return dial("tcp", t.TCP) },
		"send to a UDP port":        func() error { return dial("udp", t.UDP) },
		"connect to a unix socket":  func() error { return dial("unix", t.Unix) },
		"look into the daemon":      func() error { return reads(fmt.Sprintf("/proc/%d/root%s", t.PID, outside)) },
		"look into the first":       func() error { return reads("/proc/1/root" + outside) },
		"read the daemon's secrets": func() error { return environ(t.PID) },
	}
	for name, try := range systemEscapes(t) {
		all[name] = try
	}

	return all
}

func reads(path string) error {
	data, err := os.ReadFile(path)
	if err == nil && !strings.Contains(string(data), secret) {
		err = errors.New("something else is there")
	}

	return err
}

func plant(path string) error {
	err := os.WriteFile(path, []byte(secret), 0o600)
	if err == nil && strings.HasPrefix(path, "/etc/") {
		os.Remove(path)
	}

	return err
}

// setOwners leaves a file behind that runs with the rights of its owner.
func setOwners(path string) error {
	if err := os.WriteFile(path, nil, 0o700); err != nil {
		return err
	}
	return os.Chmod(path, 0o700|fs.ModeSetuid)
}

func openable(path string) error {
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err == nil {
		f.Close()
	}

	return err
}

func environ(pid int) error {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", pid))
	if err == nil && len(data) == 0 {
		err = errors.New("nothing is there")
	}

	return err
}

// dial reports whether something could be sent; a datagram that vanished in a
// private network does not count as one that arrived, which bait.taken finds out.
func dial(network, address string) error {
	c, err := net.DialTimeout(network, address, time.Second)
	if err != nil {
		return err
	}
	defer c.Close()
	if _, err = c.Write([]byte("x")); err == nil && network == "udp" {
		return errors.New("sent; whether it arrived is seen outside")
	}

	return err
}
