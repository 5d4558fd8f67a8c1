// Package early answers `daycare version` and `daycare --help` before most other packages are initialised.
//
// Go initialises packages in the order of their import paths, each as soon as what it imports is
// ready. This one imports next to nothing, so it comes before all libraries, whose tables
// and expressions take most of the time of a start. What it does not know is answered as
// usual, by the tree of commands.
package early

import (
	_ "embed"
	"os"

	"daycare/cmd/daycare/fit"
	"daycare/cmd/daycare/version"
)

// Help is what `daycare --help` prints. A test compares it with the tree of commands.
//
//go:embed help.txt
var Help string

func init() {
	answer := Answer(os.Args)
	if answer == "" {
		return
	}
	// If it cannot be written, the command tries again and reports it.
	if _, err := os.Stdout.WriteString(answer); err == nil {
		os.Exit(0)
	}
}

// Answer returns what the command line args, with the program's name first, prints; "" if
// this package does not answer it.
func Answer(args []string) string {
	if len(args) != 2 {
		return ""
	}
	switch args[1] {
	case "version", "--version", "-v":
		return version.This().String() + "\n"
	case "help", "--help", "-h":
		return fit.Help(Help, fit.Width(os.Stdout))
	}

	return ""
}
