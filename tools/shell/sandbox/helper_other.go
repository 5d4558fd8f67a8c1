//go:build !linux

package sandbox

import (
	"errors"
	"fmt"
)

// supervised: without Linux' means a supervisor could not find its orphans.
const supervised = false

var errLinux = fmt.Errorf("%w: it needs Linux", ErrUnusable)

func landlockABI() (int, error) { return 0, errors.New("it needs Linux") }

// Uncounted says why nothing bounds how many processes a command has.
func Uncounted() string { return "only Linux can be told how many processes a command may have" }

func supervise(int, []string) int { return fail("supervise", errLinux) }

func restrictAndExec(string, []string) int { return fail("restrict", errLinux) }

func relay([]string) int { return fail("relay", errLinux) }

func systemEscapes(probeTask) map[string]func() error { return nil }
