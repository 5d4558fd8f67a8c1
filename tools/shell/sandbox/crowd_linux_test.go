package sandbox

import (
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

// Threads of a user are counted from the number of links of a folder, which has to be what listing every one of them
// gives. Others may come and go in between, so it is tried until the two agree.
func TestThreadsOfAUser(t *testing.T) {
	uid := uint32(os.Getuid())
	var counted, listed uint64
	for range 200 {
		counted, listed = threadsOf(uid), 0
		tasks, err := filepath.Glob("/proc/[0-9]*/task/*")
		if err != nil {
			t.Fatal(err)
		}
		for _, task := range tasks {
			var st unix.Stat_t
			if unix.Stat(task, &st) == nil && st.Uid == uid {
				listed++
			}
		}
		if counted == listed && counted > 1 {
			return
		}
	}

	t.Errorf("counted are %d threads, listed %d", counted, listed)
}
