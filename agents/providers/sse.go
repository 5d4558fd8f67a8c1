package providers

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"sync"
)

// maxLine bounds one line of a stream: the arguments of a tool call that some
// servers send whole, with a file in it.
const maxLine = 32 << 20

var errLongLine = fmt.Errorf("line of the stream is longer than %d MiB", maxLine>>20)

// A Frame is one server-sent event.
type Frame struct {
	Event string // "" where the stream names none
	Data  string // lines joined by newline
}

// sseReader reads a text/event-stream as the HTML standard has it, but for a lone
// CR as line end, which no vendor sends. Comments and unknown fields are skipped.
// seen is called for every line: also a comment is a sign of life. go-sse v0.11.0 would do
// most of it, but looks at an event from its beginning again whenever more of it comes:
// 8 MB took 32 s instead of 0.07 s.
type sseReader struct {
	r    *bufio.Reader
	seen func()
	line []byte // grows for lines longer than the reader's buffer
	data []byte // of the event that is read
	bom  bool   // the start of the stream was looked at
}

func newSSEReader(r io.Reader, seen func()) *sseReader {
	buf := streamBuffers.Get().(*bufio.Reader)
	buf.Reset(r)
	return &sseReader{r: buf, seen: seen}
}

// streamBuffers are those of streams that have ended.
var streamBuffers = sync.Pool{New: func() any { return bufio.NewReaderSize(nil, 16<<10) }}

// close gives the buffer back. Nothing is read afterwards.
func (s *sseReader) close() {
	s.r.Reset(nil)
	streamBuffers.Put(s.r)
	s.r = nil
}

// next returns the next event that has data, or io.EOF at a clean end. What is
// complete but for the blank line after it counts there: some servers leave the
// last one out.
func (s *sseReader) next() (Frame, error) {
	var f Frame
	data, has := s.data[:0], false
	defer func() { s.data = data }()
	for {
		line, err := s.readLine()
		if err != nil && !(errors.Is(err, io.EOF) && has) {
			return Frame{}, err
		}
		if err != nil || len(line) == 0 {
			if has {
				f.Data = string(data)
				return f, nil
			}
			f.Event = ""
			continue
		}

		name, value, _ := bytes.Cut(line, []byte(":"))
		value = bytes.TrimPrefix(value, []byte(" "))
		switch string(name) {
		case "event":
			f.Event = string(value)
		case "data":
			if has {
				data = append(data, '\n')
			}
			if data = append(data, value...); len(data) > maxLine {
				return Frame{}, errLongLine
			}
			has = true
		}
	}
}

// readLine returns a line without its end; it is valid until the next call. A
// last line without an end is returned like any other, io.EOF comes after it.
func (s *sseReader) readLine() ([]byte, error) {
	s.line = s.line[:0]
	for {
		part, err := s.r.ReadSlice('\n')
		if err == nil && len(s.line) == 0 {
			s.line = append(s.line, part...)
			break
		}

		s.line = append(s.line, part...)
		if err == nil || errors.Is(err, io.EOF) && len(s.line) > 0 {
			break
		}
		if !errors.Is(err, bufio.ErrBufferFull) {
			return nil, err
		}
		if len(s.line) > maxLine {
			return nil, errLongLine
		}
	}

	s.seen()
	line := s.line
	if !s.bom {
		s.bom = true
		line = bytes.TrimPrefix(line, []byte("\xef\xbb\xbf"))
	}

	line = bytes.TrimSuffix(line, []byte("\n"))
	return bytes.TrimSuffix(line, []byte("\r")), nil
}
