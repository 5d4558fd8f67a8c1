package sandbox

import (
	"fmt"
	"os"
	"strconv"
)

// helperWord makes the binary the helper. It is no command for people.
const helperWord = "__sandbox"

// Main is the helper: it is to be called first in main, with os.Args. ours is false
// if the process is no helper. As one it returns the exit code, or never.
func Main(args []string) (code int, ours bool) {
	if len(args) < 3 || args[1] != helperWord {
		return 0, false
	}
	switch mode, rest := args[2], args[3:]; mode {
	case "supervise":
		n, argv := command(rest)
		most, err := strconv.Atoi(n)
		if err != nil || len(argv) == 0 {
			return usage(args), true
		}
		return supervise(most, argv), true
	case "restrict":
		data, argv := command(rest)
		if len(argv) == 0 {
			return usage(args), true
		}
		return restrictAndExec(data, argv), true
	case "relay":
		return relay(rest), true
	case "probe":
		return probeInside(rest), true
	default:
		return usage(args), true
	}
}

// command takes the arguments "x -- command…" apart.
func command(args []string) (first string, argv []string) {
	if len(args) < 3 || args[1] != "--" {
		return "", nil
	}
	return args[0], args[2:]
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
