package address

import (
	"encoding/binary"

	"daycare/engine/beneath"
)

// stampSize is how many bytes a stamp has in the index file.
const stampSize = 4 * 8

func appendStamp(buf []byte, s beneath.Stamp) []byte {
	for _, n := range [...]uint64{uint64(s.Changed), uint64(s.Written), uint64(s.Size), s.Ino} {
		buf = binary.LittleEndian.AppendUint64(buf, n)
	}
	return buf
}

// readStamp reads what appendStamp wrote, of at least stampSize bytes.
func readStamp(data []byte) beneath.Stamp {
	n := func(i int) uint64 { return binary.LittleEndian.Uint64(data[8*i:]) }
	return beneath.Stamp{Changed: int64(n(0)), Written: int64(n(1)), Size: int64(n(2)), Ino: n(3)}
}
