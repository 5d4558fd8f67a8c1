package disk

import (
	"bytes"
	"io"
	"iter"
)

// Lines yields the lines of data with their offsets, without newlines. A last
// line without newline is yielded too.
func Lines(data []byte) iter.Seq2[int64, []byte] {
	return func(yield func(int64, []byte) bool) {
		for off := 0; off < len(data); {
			line, next := data[off:], len(data)
			if i := bytes.IndexByte(line, '\n'); i >= 0 {
				line, next = line[:i], off+i+1
			}
			if !yield(int64(off), line) {
				return
			}
			off = next
		}
	}
}

// firstWindow is how much Backward reads first: most who read backward want the last few lines. It
// doubles up to tailWindow.
const firstWindow int64 = 4 << 10

// Backward yields the lines of the first size bytes of r from the last to the
// first, with their offsets. Memory use is one window plus the longest line.
// A read error ends it and is left in *err.
func Backward(r io.ReaderAt, size int64, err *error) iter.Seq2[int64, []byte] {
	return func(yield func(int64, []byte) bool) {
		var rest []byte // what is read and not yet yielded, beginning at offset at
		window := firstWindow
		at := size
		for {
			end := len(rest)
			if end > 0 && rest[end-1] == '\n' {
				end-- // the newline that closes the last line
			}
			i := bytes.LastIndexByte(rest[:end], '\n')
			if (i >= 0 || at == 0) && len(rest) > 0 {
				if !yield(at+int64(i)+1, rest[i+1:end]) {
					return
				}
				rest = rest[:i+1]
				continue
			}
			if at == 0 {
				return
			}

			n := min(at, max(window, int64(len(rest))))
			window = min(2*window, tailWindow)
			chunk := make([]byte, n, n+int64(len(rest)))
			if got, rerr := r.ReadAt(chunk, at-n); got < len(chunk) {
				if rerr == io.EOF {
					rerr = io.ErrUnexpectedEOF // it became shorter than size
				}
				*err = rerr
				return
			}

			rest = append(chunk, rest...)
			at -= n
		}
	}
}
