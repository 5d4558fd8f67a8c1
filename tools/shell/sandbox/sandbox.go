// Package sandbox runs a command so that it can touch what an agent was granted
// and nothing else, whatever the command is. tools/shell uses it for exec.
//
// # Levels
//
//	bwrap     Linux, bubblewrap: a view of the file system in which only the grants
//	          exist, own process ids, no network; Landlock and a system call
//	          filter inside.
//	landlock  Linux, the kernel's Landlock and a system call filter alone: paths
//	          that were not granted cannot be opened, no sockets can be made.
//	seatbelt  macOS, sandbox-exec with a profile of the grants.
//	none      nothing holds the command but its process group.
//
// Choose tries them in this order. A level counts only if a program run in it
// failed at every one of a dozen ways out (see probe.go), so a kernel or container
// that allows less than its version promises is noticed before it matters.
//
// # The helper
//
// On Linux the daycare binary runs itself again as a helper (Main): as supervisor,
// the parent of the command, which ends everything below it when the command ends,
// when it is told to, and when the daemon dies; and inside the sandbox, to
// restrict itself and then become the command. Restrictions of Landlock and
// seccomp cannot be taken back, so they are never applied to the daemon.
//
//	daemon ─ supervisor ─ bwrap ─ restrict → command
//	                            └ relay (with View.Proxy: from loopback to the socket)
package sandbox

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
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
// where it can be told: more than are counted as too many processes, so that a
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
	Locked []string `json:"locked,omitempty"` // can be read, not changed or replaced, beneath Write
	Shown  []string `json:"shown,omitempty"`  // can be read beneath Hidden
	Own    []string `json:"own,omitempty"`    // can be changed beneath Hidden
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
	// Why says in half a sentence what was found, for people.
	Why string

	helper string // the daycare binary
	bwrap  string // path of bubblewrap
}

// Plain is the runner without a sandbox. On Linux its commands still have a
// supervisor.
func Plain(helper string) *Runner {
	return &Runner{Level: None, Why: "commands run without a sandbox", helper: helper}
}

// Choose finds the best level that works here. want is the setting: auto, or one
// level, which then must work. helper is the path of the daycare binary. With
// auto and nothing usable it returns the Plain runner, whose Why says what was
// tried; for anything else the error wraps ErrUnusable.
func Choose(want, helper string) (*Runner, error) {
	order := []Level{Bwrap, Landlock, Seatbelt}
	if want != "" && want != "auto" {
		order = []Level{Level(want)}
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
		return nil, fmt.Errorf("%w: %s", ErrUnusable, why)
	}
	r := Plain(helper)
	r.Why = "no sandbox works here (" + why + ")"
	return r, nil
}

// try makes the runner of a level and probes it.
func try(l Level, helper string) (*Runner, error) {
	r := &Runner{Level: l, helper: helper}
	switch l {
	case Bwrap:
		path, err := exec.LookPath("bwrap")
		if err != nil {
			return nil, errors.New("bubblewrap (bwrap) is not installed")
		}
		r.bwrap, r.Why = path, "bubblewrap at "+path
		return r, r.probe()
	case Landlock:
		abi, err := landlockABI()
		if err != nil {
			return nil, err
		}
		r.Why = fmt.Sprintf("Landlock of the kernel, version %d", abi)
		return r, r.probe()
	case Seatbelt:
		if _, err := os.Stat(sandboxExec); err != nil {
			return nil, errors.New("there is no " + sandboxExec + " here")
		}
		r.Why = "Seatbelt (sandbox-exec)"
		return r, r.probe()
	}
	return nil, fmt.Errorf("there is no sandbox %q; allowed: auto, bwrap, landlock, seatbelt, off", l)
}

// Wrap is the command line that runs argv with env in the view, and the
// environment to start it with. That is not env: what reads it first runs outside
// of the sandbox, and some variables (LD_PRELOAD) make programs run other code.
func (r *Runner) Wrap(v View, argv, env []string) (line, outer []string, err error) {
	line, err = r.inside(v, argv, env)
	if err != nil {
		return nil, nil, err
	}
	if r.Level != Bwrap && r.Level != Landlock {
		outer = env
	}
	if r.Supervised() {
		line = append([]string{r.helper, helperWord, "supervise", strconv.Itoa(MaxProcesses), "--"}, line...)
	}
	return line, outer, nil
}

// Supervised reports whether the command gets a supervisor: then file 3 is a pipe
// whose other end the caller keeps, and closing that ends everything.
func (r *Runner) Supervised() bool { return supervised && r.helper != "" }

func (r *Runner) inside(v View, argv, env []string) ([]string, error) {
	switch r.Level {
	case None:
		return argv, nil
	case Bwrap:
		inner, err := r.restrict(restriction{View: v, Env: env, Inside: true, Helper: helperInside}, helperInside, argv)
		if err != nil {
			return nil, err
		}
		args, err := r.bwrapArgs(v)
		return append(append(args, "--"), inner...), err
	case Landlock:
		return r.restrict(restriction{View: v, Env: env}, r.helper, argv)
	case Seatbelt:
		return append([]string{sandboxExec, "-p", seatbeltProfile(v)}, argv...), nil
	}
	return nil, fmt.Errorf("%w: level %q", ErrUnusable, r.Level)
}

// A restriction is what the helper is to apply to itself.
type restriction struct {
	View   View     `json:"view"`
	Env    []string `json:"env"`
	Inside bool     `json:"inside,omitempty"` // of a view of mounts, where paths need not be told apart
	Helper string   `json:"helper,omitempty"` // the daycare binary, inside
}

func (r *Runner) restrict(to restriction, helper string, argv []string) ([]string, error) {
	data, err := json.Marshal(to)
	if err != nil {
		return nil, fmt.Errorf("encode restriction: %w", err)
	}
	return append([]string{helper, helperWord, "restrict", string(data), "--"}, argv...), nil
}

// Proxied reports whether commands can be given the network of a View's Proxy.
func (r *Runner) Proxied() bool { return r.Level == Bwrap }

// proxyAddress is where commands find the proxy, on their own loopback.
const proxyAddress = "127.0.0.1:3128"

// Environment is what a command is told of its home, its temporary files and its
// way to the network.
func (r *Runner) Environment(v View) []string {
	switch r.Level {
	case Bwrap:
		env := []string{"HOME=" + v.Home, "TMPDIR=/tmp"}
		if v.Proxy != "" {
			for _, name := range []string{"http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"} {
				env = append(env, name+"=http://"+proxyAddress)
			}
		}
		return env
	case Landlock, Seatbelt:
		return []string{"HOME=" + v.Home, "TMPDIR=" + v.tmp()}
	default:
		return nil
	}
}
