package daemon

import (
	"bufio"
	"bytes"
	"os"
	"strconv"
	"strings"
	"syscall"
)

// dropPages gives back the pages of the program itself: a program that waits needs
// few of them. They stay in the system's cache, from where those that are used come
// back at a few microseconds a piece. Only mappings of the executable
// that cannot be written and hold nothing of this process's own are touched.
func dropPages() {
	exe, err := os.Executable()
	if err != nil {
		return
	}
	smaps, err := os.ReadFile("/proc/self/smaps")
	if err != nil {
		return
	}

	for _, m := range programMappings(smaps, exe) {
		// Not by a slice: these addresses are none of Go's memory.
		syscall.Syscall(syscall.SYS_MADVISE, m.from, m.to-m.from, syscall.MADV_DONTNEED)
	}
}

// A mapping is a range of addresses.
type mapping struct{ from, to uintptr }

// programMappings finds the mappings of the file exe that are not writable and have
// no page of their own, in the format of proc_pid_smaps(5).
func programMappings(smaps []byte, exe string) []mapping {
	var all []mapping
	var now mapping
	ours := false
	lines := bufio.NewScanner(bytes.NewReader(smaps))
	for lines.Scan() {
		fields := strings.Fields(lines.Text())
		switch {
		case len(fields) >= 5 && strings.Contains(fields[0], "-"):
			from, to, _ := strings.Cut(fields[0], "-")
			a, err1 := strconv.ParseUint(from, 16, 64)
			b, err2 := strconv.ParseUint(to, 16, 64)
			now = mapping{uintptr(a), uintptr(b)}
			ours = err1 == nil && err2 == nil && len(fields) == 6 && fields[5] == exe && fields[1][:2] == "r-"
		case ours && len(fields) == 3 && fields[0] == "Anonymous:":
			if fields[1] == "0" {
				all = append(all, now)
			}
			ours = false
		}
	}

	return all
}
