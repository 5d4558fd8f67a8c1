package inbox

import (
	"os"
	"path/filepath"
	"time"

	"daycare/engine/disk"
	"daycare/engine/message"
)

// LastMessage is when the newest message of a user was accepted, read from the
// end of the file; false: there is none. System messages do not count.
func LastMessage(dir string) (time.Time, bool) {
	f, _ := os.Open(filepath.Join(dir, FileName))
	defer f.Close()
	info, err := f.Stat() // fails for a file that was not opened, too
	if err != nil {
		return time.Time{}, false
	}

	for _, raw := range disk.Backward(f, info.Size(), &err) {
		if l, derr := decode(raw); derr == nil && l.Kind == message.Text {
			return l.At, true
		}
	}

	return time.Time{}, false
}
