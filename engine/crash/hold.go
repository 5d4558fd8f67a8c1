package crash

import (
	"strings"
	"sync"
)

// steps is read-locked by every Do and Write while its operation runs, so no operation of
// one may call Do or Write itself.
var steps sync.RWMutex

// holdable reports whether a step is one that Hold makes wait. What tools write outside of
// .daycare is not: it may be on a disk that does not answer, and all would wait with it.
func holdable(name string) bool { return !strings.HasPrefix(name, "tool.file.") }

// Hold waits until no durable step in .daycare is in progress in this process, and has all others wait
// until release is called; further calls of release do nothing. Meanwhile the files are
// what a kill between two steps would leave, which is what a backup copies.
func Hold() (release func()) {
	steps.Lock()
	return sync.OnceFunc(steps.Unlock)
}
