package follow

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"sync/atomic"
	"testing"
	"time"
)

// What is written between the end of a file and its being replaced is read too: nobody who
// follows a log over its rotations misses a line.
func TestNoLineIsMissedWhenAFileIsReplaced(t *testing.T) {
	const files, each = 100, 3
	path := filepath.Join(t.TempDir(), "log")
	var read atomic.Int64
	go func() {
		for n := range files {
			f, err := os.Create(path)
			if err != nil {
				t.Error(err)
				return
			}

			for i := range each {
				fmt.Fprintln(f, n*each+i)
				for read.Load() <= int64(n*each) { // until the reader has this file open
					time.Sleep(10 * time.Microsecond)
				}
			}

			f.Close()
			if n < files-1 {
				if err := os.Rename(path, path+".1"); err != nil {
					t.Error(err)
					return
				}
			}
		}
	}()

	f := Open(path)
	defer f.Close()
	for end := time.Now().Add(30 * time.Second); read.Load() < files*each; {
		if err := f.Read(func(line []byte) error {
			if n, err := strconv.ParseInt(string(line), 10, 64); err != nil || n != read.Load() {
				return fmt.Errorf("line %q came after %d lines", line, read.Load())
			}
			read.Add(1)
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		if time.Now().After(end) {
			t.Fatalf("only %d of %d lines came", read.Load(), files*each)
		}
	}
}
