//go:build !linux

package sandbox

import (
	"errors"
	"fmt"
	"os"
)

// supervised: without Linux' means a supervisor could not find its orphans.
const supervised = false

var errLinux = fmt.Errorf("%w: it needs Linux", ErrUnusable)

func landlockABI() (int, error) { return 0, errors.New("it needs Linux") }

func machineMemory() int64 { return 0 }

func supervise(bounds, shape, []string) int { return Fail("supervise", errLinux) }

func enterView([]string) int { return Fail("view", errLinux) }

func restrictAndExec([]string) int { return Fail("restrict", errLinux) }

func (*task) file() (*os.File, error) { return nil, errLinux }

func startRelay() int { return Fail("relay", errLinux) }

func bounded() []Hold {
	return []Hold{{"processes", false, "nothing bounds them"}, {"memory", false, "nothing bounds it"}}
}
