package disk

import (
	"bytes"
	"hash/crc32"
	"sync"
)

// A line of a log is a JSON object whose last member is the CRC-32C of all before it, as in
// {"seq":1,"at":"2026-01-02T03:04:05.006Z",…,"crc":"9f2c11aa"}. A line without one, or with a wrong one,
// was written by hand or is damaged.
const (
	SealMark = `,"crc":"`                      // with which the seal of a line begins
	SealLen  = len(SealMark) + 8 + len(`"}`)   // of a seal, without the newline
	LineTime = "2006-01-02T15:04:05.000Z07:00" // the form of "at": RFC 3339 with milliseconds, in UTC
)

// Castagnoli is the table of CRC-32C. It is made on first use: a command that reads no log does not pay for it.
var Castagnoli = sync.OnceValue(func() *crc32.Table { return crc32.MakeTable(crc32.Castagnoli) })

// Seal completes the line that begins at start in buf and lacks its closing brace: it appends the checksum and
// the brace, without a newline.
func Seal(buf []byte, start int) []byte {
	return appendSeal(buf, crc32.Checksum(buf[start:], Castagnoli()))
}

// Sealed reports whether a line, without its newline, ends in its own checksum.
func Sealed(line []byte) bool {
	body := len(line) - SealLen
	if body < 1 {
		return false
	}
	var seal [SealLen]byte

	return bytes.Equal(line[body:], appendSeal(seal[:0], crc32.Checksum(line[:body], Castagnoli())))
}

func appendSeal(buf []byte, sum uint32) []byte {
	buf = append(buf, SealMark...)
	for shift := 28; shift >= 0; shift -= 4 {
		buf = append(buf, "0123456789abcdef"[sum>>shift&15])
	}

	return append(buf, '"', '}')
}
