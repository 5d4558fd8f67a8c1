package address

import (
	"encoding/binary"
	"io/fs"
	"syscall"
	"time"

	"daycare/engine/beneath"
)

// A stamp tells whether a file was written or replaced since. Whatever changes a file changes
// one of its members: no program can set changed.
type stamp struct {
	changed, written int64 // ns since 1970
	size             int64
	ino              uint64 // two saves may come within one tick of the file system's clock
}

// tick is longer than any file system takes from one time to the next: two writes within it
// may leave one stamp.
const tick = 100 * time.Millisecond

func stampOf(info fs.FileInfo) stamp {
	s := stamp{changed: beneath.ChangedAt(info).UnixNano(), written: info.ModTime().UnixNano(), size: info.Size()}
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		s.ino = st.Ino
	}
	return s
}

// lasts reports whether a file that looks so at a time must look different after another write.
func (s stamp) lasts(looked time.Time) bool { return looked.UnixNano()-s.changed > int64(tick) }

// stampSize is how many bytes a stamp has in the index file.
const stampSize = 4 * 8

func (s stamp) append(buf []byte) []byte {
	for _, n := range [...]uint64{uint64(s.changed), uint64(s.written), uint64(s.size), s.ino} {
		buf = binary.LittleEndian.AppendUint64(buf, n)
	}
	return buf
}

// readStamp reads what append wrote, of at least stampSize bytes.
func readStamp(data []byte) stamp {
	n := func(i int) uint64 { return binary.LittleEndian.Uint64(data[8*i:]) }
	return stamp{int64(n(0)), int64(n(1)), int64(n(2)), n(3)}
}
