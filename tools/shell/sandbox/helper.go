package sandbox

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"syscall"
)

// Self is the binary that runs, as a helper that is executed: on Linux whatever was put
// at its path since, "" where the system does not tell.
func Self() string {
	if runtime.GOOS == "linux" {
		return "/proc/self/exe"
	}
	path, err := os.Executable()
	if err != nil {
		return ""
	}
	if real, err := filepath.EvalSymlinks(path); err == nil {
		return real
	}

	return path
}

// bounds are what one command may have at once.
type bounds struct {
	processes int
	memory    int64 // bytes
}

// helperWord makes the binary the helper. It is not a command for users.
const helperWord = "__sandbox"

// A helper's work begins as soon as this package is initialised, before the libraries that only the daemon needs: each
// command starts two or three helpers. So this package imports neither net nor os/exec, which are initialised after most
// of them, and leaves what needs these to packages probe and relay. It ends at once: with the race detector os.Exit
// sleeps a second.
func init() {
	switch mode, args := Mode(os.Args); mode {
	case "", Probe, Relay:
	default:
		syscall.Exit(helper(mode, args))
	}
}

// The modes of a helper that begin later, in the packages of these names.
const (
	Probe = "probe" // tries the ways out
	Relay = "relay" // passes connections on
)

// Mode is what a process with this command line is to do as helper; "" for any other process.
func Mode(line []string) (mode string, args []string) {
	if len(line) < 3 || line[1] != helperWord {
		return "", nil
	}
	return line[2], line[3:]
}

// helper does the helper's work. It returns the exit code, or never.
func helper(mode string, args []string) (code int) {
	switch mode {
	case "supervise":
		if len(args) < 5 || args[3] != "--" {
			return usage()
		}
		var numbers [3]int64
		for i := range numbers {
			var err error
			if numbers[i], err = strconv.ParseInt(args[i], 10, 64); err != nil {
				return usage()
			}
		}
		return supervise(bounds{int(numbers[0]), numbers[1]}, shape(numbers[2]), args[4:])
	case "view", "restrict":
		if len(args) < 2 || args[0] != "--" {
			return usage()
		}
		if mode == "view" {
			return enterView(args[1:])
		}
		return restrictAndExec(args[1:])
	case "start-relay":
		return startRelay()
	default:
		return usage()
	}
}

func usage() int {
	fmt.Fprintf(os.Stderr, "daycare: %s is how the shell tool calls itself; the arguments make no sense\n", helperWord)
	return Failed
}

// Failed is the exit code of a helper that could not do its work: the command was
// not run. It is the one that shells use for "found, but not executable".
const Failed = 126

// Fail says why a helper could not do its work, and returns Failed.
func Fail(what string, err error) int {
	fmt.Fprintf(os.Stderr, "daycare: the sandbox could not be made, so the command was not run: %s: %v\n", what, err)
	return Failed
}
