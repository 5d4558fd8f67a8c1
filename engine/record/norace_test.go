//go:build !race

package record

import (
	"bytes"
	"fmt"
	"testing"
)

// What starts no goroutine: the race detector has nothing to find there and makes it take
// ten times as long. .ci/run runs these tests without it.

// TestEveryOffset damages a history at every 29th byte of its last 3 KiB and at every
// 2311th before: a cut, a flipped bit, a zeroed sector.
func TestEveryOffset(t *testing.T) {
	data := damaged(t, 64<<10)
	step, near := 2311, 29
	if testing.Short() {
		step, near = 9001, 197
	}

	for at := 0; at < len(data); {
		check(t, fmt.Sprint("cut at ", at), data[:at], survivors(data, at, len(data)), at == 0 || data[at-1] == '\n' || data[at] == '\n')

		flipped := bytes.Clone(data)
		flipped[at] ^= 0x40
		check(t, fmt.Sprint("flip at ", at), flipped, joinedSurvivors(data, at, at+1), false)

		zeroed := bytes.Clone(data)
		end := min(at+512, len(data))
		clear(zeroed[at:end])
		check(t, fmt.Sprint("zeroed at ", at), zeroed, joinedSurvivors(data, at, end), false)

		if at < len(data)-3<<10 {
			at += step
		} else {
			at += near
		}
	}
}

// joinedSurvivors leaves out the line behind a newline that was damaged too: the
// two became one.
func joinedSurvivors(data []byte, from, to int) []string {
	if bytes.IndexByte(data[from:to], '\n') >= 0 {
		to++
	}
	return survivors(data, from, to)
}
