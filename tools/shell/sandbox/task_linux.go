package sandbox

import (
	"encoding/json"
	"fmt"
	"io"
	"os"

	"golang.org/x/sys/unix"
)

// file is the task in a file that has no name and that only its processes can read.
func (t *task) file() (*os.File, error) {
	data, err := json.Marshal(t)
	if err != nil {
		return nil, fmt.Errorf("encode task: %w", err)
	}
	fd, err := unix.MemfdCreate("daycare-task", unix.MFD_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("make task: %w", err)
	}

	f := os.NewFile(uintptr(fd), "task")
	if _, err := f.Write(data); err != nil {
		f.Close()
		return nil, fmt.Errorf("write task: %w", err)
	}

	return f, nil
}

// readTask reads the task of this helper. It leaves the file's position, which
// processes share, as it is.
func readTask() (*task, error) {
	var st unix.Stat_t
	if err := unix.Fstat(taskFile, &st); err != nil {
		return nil, fmt.Errorf("file %d: %w", taskFile, err)
	}
	data := make([]byte, st.Size)
	for at := 0; at < len(data); {
		n, err := unix.Pread(taskFile, data[at:], int64(at))
		if err != nil {
			return nil, err
		}
		if n == 0 {
			return nil, io.ErrUnexpectedEOF
		}
		at += n
	}

	t := new(task)
	return t, json.Unmarshal(data, t)
}
