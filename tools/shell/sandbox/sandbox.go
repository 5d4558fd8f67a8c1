package sandbox

import (
	"errors"
	"fmt"
	"os"
	"strconv"

	"daycare/engine/beneath"
)

// A Level says what holds a command.
type Level string

const (
	None     Level = "none"
	Bwrap    Level = "bwrap"
	Landlock Level = "landlock"
	Seatbelt Level = "seatbelt"
)

// MaxProcesses is how many processes one command may have at once.
const MaxProcesses = 512

// MaxThreads is how many threads, processes counted, the kernel gives one command
// where they can be distinguished: more than are counted as too many processes, so that a
// program of many threads works and what multiplies is noticed.
const MaxThreads = 4 * MaxProcesses

// A View is what a command may see and change, in absolute paths. The system's
// programs and libraries can always be read.
type View struct {
	Dir    string   `json:"dir"`            // where it starts
	Home   string   `json:"home"`           // its home and place for temporary files, writable
	Read   []string `json:"read,omitempty"` // folders and files
	Write  []string `json:"write,omitempty"`
	Hidden []string `json:"hidden,omitempty"` // out of reach, also where Read or Write name them; need not exist
	// Found are out of reach like Hidden, as long as they exist: files that come and go,
	// such as sockets. A command can make them where they are gone.
	Found  []string `json:"found,omitempty"`
	Locked []string `json:"locked,omitempty"` // can be read, not changed or replaced, beneath Write
	Shown  []string `json:"shown,omitempty"`  // can be read beneath Hidden and Found
	Own    []string `json:"own,omitempty"`    // can be changed beneath Hidden and Found
	// Pinned says which folder or file a path of Read or Write must be. Such a path has
	// no symbolic link in it. Where something else is found the command is not run.
	Pinned map[string]beneath.ID `json:"pinned,omitempty"`
	// Proxy is the unix socket of an HTTP proxy, the only way to a network; "": no
	// network. Where Proxied is false it must be "".
	Proxy string `json:"proxy,omitempty"`
}

// ErrUnusable: a level does not work on this system.
var ErrUnusable = errors.New("no usable sandbox")

// A Runner runs commands at one level.
type Runner struct {
	Level Level
	// Why says in half a sentence what was found, for users.
	Why string
	// Memory is how many bytes one command may use; 0: three quarters of the machine's.
	Memory int64

	helper string // the daycare binary
	bwrap  string // path of bubblewrap
	spaces bool   // Landlock: the helper makes namespaces and mounts by itself
	abi    int    // Landlock: its version
}

// Plain is the runner without a sandbox. On Linux its commands still have a
// supervisor.
func Plain(helper string) *Runner {
	return &Runner{Level: None, Why: "commands run without a sandbox", helper: helper}
}

// New makes the runner of a level, as far as that can be told without running anything: package probe tries it. helper is
// the path of the daycare binary, bwrap that of bubblewrap, for its level.
func New(l Level, helper, bwrap string) (*Runner, error) {
	r := &Runner{Level: l, helper: helper}
	switch l {
	case Bwrap:
		r.bwrap, r.Why = bwrap, "bubblewrap at "+bwrap
		return r, nil
	case Landlock:
		abi, err := landlockABI()
		if err != nil {
			return nil, err
		}
		r.abi, r.spaces, r.Why = abi, true, fmt.Sprintf("Landlock of the kernel, version %d, in namespaces of daycare's own", abi)
		return r, nil
	case Seatbelt:
		if _, err := os.Stat(sandboxExec); err != nil {
			return nil, errors.New("there is no " + sandboxExec + " here")
		}
		r.Why = "Seatbelt (sandbox-exec)"
		return r, nil
	}

	return nil, fmt.Errorf("there is no sandbox %q; allowed: auto, bwrap, landlock, seatbelt, off", l)
}

// WithoutNamespaces returns the runner as it is where the system allows no user
// namespaces: at the level landlock the kernel then refuses paths and nothing else.
func (r *Runner) WithoutNamespaces() *Runner {
	alone := *r
	alone.spaces, alone.Why = false, fmt.Sprintf("Landlock of the kernel, version %d, alone", r.abi)
	return &alone
}

// HasView reports whether a command sees a file system, processes and a network of its
// own. Without, a folder with something hidden in it takes no new entries.
func (r *Runner) HasView() bool { return r.Level == Bwrap || r.spaces }

// A Launch is how to start a command in a view.
type Launch struct {
	Argv []string
	// Env is the environment of the process that is started. It is not the one of the
	// command: what reads it first runs outside of the sandbox, and some variables
	// (LD_PRELOAD) make programs run other code.
	Env []string
	// Files are the open files of the process from number 4 on; number 3 is the pipe of
	// Supervised. The caller closes them when the process runs.
	Files []*os.File
}

// Close closes the files.
func (l Launch) Close() {
	for _, f := range l.Files {
		f.Close()
	}
}

// Wrap returns how to run argv with env in the view.
func (r *Runner) Wrap(v View, argv, env []string) (Launch, error) { return r.wrap(v, argv, env, false) }

// Itself returns how to run the helper in the view, in one of its modes: see Mode.
func (r *Runner) Itself(v View, mode string, args ...string) (Launch, error) {
	path := selfFile
	if r.shape() == bare { // nothing opens it for the command
		path, v.Read = r.helper, append(v.Read, r.helper)
	}

	return r.wrap(v, append([]string{path, helperWord, mode}, args...), []string{"PATH=" + os.Getenv("PATH")}, true)
}

// wrap is Wrap; with self the command may run the helper again.
func (r *Runner) wrap(v View, argv, env []string, self bool) (Launch, error) {
	line, t, err := r.inside(v, argv, env)
	if err != nil {
		return Launch{}, err
	}
	l := Launch{Argv: line, Env: env}
	if t != nil {
		t.Self = self
		// By a file, not by arguments: every user of the machine can read those.
		f, err := t.file()
		if err != nil {
			return Launch{}, err
		}
		l.Files, l.Env = []*os.File{f}, nil
	}
	if r.Supervised() {
		l.Argv = r.supervising(line)
	}

	return l, nil
}

// supervising is the command line of the supervisor of another one.
func (r *Runner) supervising(line []string) []string {
	return append([]string{r.helper, helperWord, "supervise", strconv.Itoa(MaxProcesses),
		strconv.FormatInt(r.memory(), 10), r.shape().String(), "--"}, line...)
}

// Outside is the program beside the helper that runs outside of the sandbox to make it;
// "": none.
func (r *Runner) Outside() string { return r.bwrap }

// memory is the bound of one command, so that it cannot make the machine end the daemon.
func (r *Runner) memory() int64 {
	if r.Memory > 0 {
		return r.Memory
	}
	return machineMemory() / 4 * 3
}

// Supervised reports whether the command gets a supervisor: then file 3 is a pipe
// whose other end the caller keeps, and closing that ends everything.
func (r *Runner) Supervised() bool { return supervised && r.helper != "" }

// A shape says which processes are between the supervisor and the command.
type shape int

const (
	bare     shape = iota // none, and it needs no task
	single                // the helper, which becomes the command
	ownSpace              // the first process of the namespaces that the supervisor made
	bwrapped              // bubblewrap, and the first process of its namespaces
)

func (s shape) String() string { return strconv.Itoa(int(s)) }

func (r *Runner) shape() shape {
	switch {
	case r.Level == Bwrap:
		return bwrapped
	case r.Level == Landlock && r.spaces:
		return ownSpace
	case r.Level == Landlock:
		return single
	}

	return bare
}

// inside returns the command line at the runner's level, and the task for the helper
// in it; nil: there is no helper in it.
func (r *Runner) inside(v View, argv, env []string) ([]string, *task, error) {
	restrict := append([]string{helperWord, "restrict", "--"}, argv...)
	switch shape := r.shape(); shape {
	case bwrapped, ownSpace:
		p, err := v.plan()
		if err != nil {
			return nil, nil, err
		}
		t := &task{View: v, Env: env, Inside: true, Plan: p}
		if shape == bwrapped {
			return append(append(r.bwrapArgs(p, v.Dir), "--", selfFile), restrict...), t, nil
		}
		restrict[1] = "view"
		return append([]string{r.helper}, restrict...), t, nil
	case single:
		return append([]string{r.helper}, restrict...), &task{View: v, Env: env}, nil
	}

	switch r.Level {
	case None:
		return argv, nil, nil
	case Seatbelt:
		return append([]string{sandboxExec, "-p", seatbeltProfile(v)}, argv...), nil, nil
	}

	return nil, nil, fmt.Errorf("%w: level %q", ErrUnusable, r.Level)
}

// A task is what the helper applies to itself before it becomes the command.
type task struct {
	View   View     `json:"view"`
	Env    []string `json:"env"`
	Inside bool     `json:"inside,omitempty"` // in a view of mounts, where paths need not be distinguished
	Plan   *plan    `json:"plan,omitempty"`   // of that view
	Self   bool     `json:"self,omitempty"`   // the command is the helper again (the probe)
}

// Files of the processes below the supervisor.
const (
	selfNumber = 3
	selfFile   = "/proc/self/fd/3" // the daycare binary that runs, whatever is at its path now
	taskFile   = 4
)

// Proxied reports whether commands can be given the network of a View's Proxy.
func (r *Runner) Proxied() bool { return r.HasView() }

// proxyPort is where commands find the proxy, on their own loopback.
const proxyPort = 3128

// Environment returns the variables for a command's home, temporary files and
// way to the network.
func (r *Runner) Environment(v View) []string {
	switch {
	case r.Proxied():
		env := []string{"HOME=" + v.Home, "TMPDIR=/tmp"}
		if v.Proxy != "" {
			address := fmt.Sprintf("http://127.0.0.1:%d", proxyPort)
			for _, name := range []string{"http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"} {
				env = append(env, name+"="+address)
			}
		}
		return env
	case r.Level == Landlock || r.Level == Seatbelt:
		return []string{"HOME=" + v.Home, "TMPDIR=" + v.tmp()}
	default:
		return nil
	}
}
