package chaos

import (
	"fmt"
	"strings"
)

// faulty are the errors that an operation on the disk can fail with. short writes a part
// and then has no room.
var faulty = []string{"enospc", "eio", "erofs", "short", "emfile", "enfile", "enomem", "eacces", "eintr", "estale"}

// faultCases have the disk fail once, in each way, at the first time that each point is
// passed, in the first scenario that passes it; in all with Full. The daemon refuses, or
// gives up with its exit code and is started again; whatever it accepted holds.
func (h *planner) faultCases(s *Scenario, passed []string, tried map[string]bool) (cases []Case) {
	seen := map[string]int{}
	for _, name := range passed {
		seen[name]++
		n := seen[name]
		if !fails(name) || n > 1 || h.Length != Full && tried[name] {
			continue
		}

		tried[name] = true

		for i, fault := range faulty {
			if h.Length == Short && i%faultyParts != len(tried)%faultyParts {
				continue // two of the ten at each point, two others at the next
			}
			if h.Length == Default && i > 1 && i%2 != len(tried)%2 {
				continue // no room and an error at each point, and half of the others
			}

			percent := 0
			if fault == "short" {
				percent = 50
			}
			cases = append(cases, Case{Way: "disk fault", Scenario: s,
				Deaths: []Death{{Failpoint: fmt.Sprintf("%s@%s#%d:%d", fault, name, n, percent)}}})
		}
	}

	return cases
}

const faultyParts = 5

// fails reports whether a point is an operation on the disk: others only die.
func fails(name string) bool {
	for _, suffix := range []string{"write", "sync", "rename", "link", "unlink", "mkdir", "truncate"} {
		if strings.HasSuffix(name, suffix) {
			return true
		}
	}

	return false
}
