package chaos

import (
	"fmt"
	"os"
	"strings"
)

// usage is what a process has of memory, descriptors and threads.
func usage(pid int) (o sample, err error) {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return o, err
	}

	for line := range strings.Lines(string(status)) {
		name, value, _ := strings.Cut(line, ":")
		switch name {
		case "VmRSS":
			_, err = fmt.Sscan(value, &o.rss)
		case "Threads":
			_, err = fmt.Sscan(value, &o.threads)
		}

		if err != nil {
			return o, fmt.Errorf("read status of process %d: %w", pid, err)
		}
	}

	open, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", pid))
	o.open = len(open)
	return o, err
}
