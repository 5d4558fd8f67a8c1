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
// command starts two or three helpers. It ends at once: with the race detector os.Exit sleeps a second.
func init() {
	if code, ours := helper(os.Args); ours {
		syscall.Exit(code)
	}
}

// helper does the helper's work. ours is false if the process is not a helper. As one it returns
// the exit code, or never.
func helper(args []string) (code int, ours bool) {
	if len(args) < 3 || args[1] != helperWord {
		return 0, false
	}
	switch mode, rest := args[2], args[3:]; mode {
	case "supervise":
		if len(rest) < 5 || rest[3] != "--" {
			return usage(args), true
		}
		var numbers [3]int64
		for i := range numbers {
			var err error
			if numbers[i], err = strconv.ParseInt(rest[i], 10, 64); err != nil {
				return usage(args), true
			}
		}
		return supervise(bounds{int(numbers[0]), numbers[1]}, shape(numbers[2]), rest[4:]), true
	case "view", "restrict":
		if len(rest) < 2 || rest[0] != "--" {
			return usage(args), true
		}
		if mode == "view" {
			return enterView(rest[1:]), true
		}
		return restrictAndExec(rest[1:]), true
	case "relay":
		return relay(rest), true
	case "probe":
		return probeInside(rest), true
	default:
		return usage(args), true
	}
}

func usage(args []string) int {
	fmt.Fprintf(os.Stderr, "daycare: %s is how the shell tool calls itself; the arguments make no sense\n", args[1])
	return failed
}

// failed is the exit code of a helper that could not do its work: the command was
// not run. It is the one that shells use for "found, but not executable".
const failed = 126

func fail(what string, err error) int {
	fmt.Fprintf(os.Stderr, "daycare: the sandbox could not be made, so the command was not run: %s: %v\n", what, err)
	return failed
}
