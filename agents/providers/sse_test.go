package providers

import (
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"
)

func readAll(r io.Reader) (frames []Frame, err error) {
	s := newSSEReader(r, func() {})
	for {
		f, err := s.next()
		if err != nil {
			return frames, err
		}
		frames = append(frames, f)
	}
}

func TestSSE(t *testing.T) {
	long := strings.Repeat("x", 100_000)
	tests := []struct {
		name, in string
		want     []Frame
	}{
		{"plain", "data: a\n\ndata: b\n\n", []Frame{{"", "a"}, {"", "b"}}},
		{"names", "event: ping\ndata: {}\n\ndata: b\n\n", []Frame{{"ping", "{}"}, {"", "b"}}},
		{"name without data is dropped", "event: ping\n\ndata: b\n\n", []Frame{{"", "b"}}},
		{"crlf", "event: e\r\ndata: a\r\n\r\n", []Frame{{"e", "a"}}},
		{"several lines", "data: a\ndata:\ndata:  b\n\n", []Frame{{"", "a\n\n b"}}},
		{"comments and unknown fields", ": hi\n\nid: 3\nretry: 5\nfoo\ndata: a\n:x\n\n", []Frame{{"", "a"}}},
		{"no space", "data:a\n\n", []Frame{{"", "a"}}},
		{"empty data", "data\n\n", []Frame{{"", ""}}},
		{"byte order mark", "\xef\xbb\xbfdata: a\n\n", []Frame{{"", "a"}}},
		{"no blank line at the end", "data: a\n\ndata: [DONE]", []Frame{{"", "a"}, {"", "[DONE]"}}},
		{"long line", "data: " + long + "\n\ndata: b\n\n", []Frame{{"", long}, {"", "b"}}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			for _, r := range []io.Reader{strings.NewReader(tt.in), iotest.OneByteReader(strings.NewReader(tt.in))} {
				got, err := readAll(r)
				if !errors.Is(err, io.EOF) {
					t.Errorf("ended with %v", err)
				}
				if diff := cmp.Diff(tt.want, got); diff != "" {
					t.Errorf("(-want +got):\n%s", diff)
				}
			}
		})
	}
}

func TestSSEBroken(t *testing.T) {
	broken := io.MultiReader(strings.NewReader("data: a\n\ndata: b"), iotest.ErrReader(io.ErrUnexpectedEOF))
	got, err := readAll(broken)
	if !errors.Is(err, io.ErrUnexpectedEOF) || len(got) != 1 {
		t.Errorf("%d frames, %v; what a broken connection cut is no event", len(got), err)
	}
	endless := io.MultiReader(strings.NewReader("data: "), iotest.DataErrReader(zeros{}))
	if _, err := readAll(endless); !errors.Is(err, errLongLine) {
		t.Errorf("endless line: %v", err)
	}

	lines := io.MultiReader(strings.NewReader(strings.Repeat("data: "+strings.Repeat("x", 1<<20)+"\n", 40)))
	if _, err := readAll(lines); !errors.Is(err, errLongLine) {
		t.Errorf("endless event: %v", err)
	}
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) {
	clear(p)
	return len(p), nil
}
