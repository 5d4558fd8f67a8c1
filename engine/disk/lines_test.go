package disk

import (
	"bytes"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

type at struct {
	Off  int64
	Line string
}

func forward(data []byte) (all []at) {
	for off, line := range Lines(data) {
		all = append(all, at{off, string(line)})
	}
	return all
}

func backward(t rapid.TB, data []byte) (all []at) {
	var err error
	for off, line := range Backward(bytes.NewReader(data), int64(len(data)), &err) {
		all = append(all, at{off, string(line)})
	}
	if err != nil {
		t.Fatal(err)
	}
	slices.Reverse(all)

	return all
}

func TestLines(t *testing.T) {
	for in, want := range map[string][]at{
		"":         nil,
		"a":        {{0, "a"}},
		"a\n":      {{0, "a"}},
		"\n":       {{0, ""}},
		"\n\nb":    {{0, ""}, {1, ""}, {2, "b"}},
		"a\n\nb\n": {{0, "a"}, {2, ""}, {3, "b"}},
	} {
		if d := cmp.Diff(want, forward([]byte(in))); d != "" {
			t.Errorf("Lines(%q) (-want +got):\n%s", in, d)
		}
		if d := cmp.Diff(want, backward(t, []byte(in))); d != "" {
			t.Errorf("Backward(%q) (-want +got):\n%s", in, d)
		}
	}
}

func TestBackwardIsLinesReversed(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		lengths := rapid.SliceOfN(rapid.OneOf(rapid.IntRange(0, 9), rapid.IntRange(tailWindow-2, tailWindow+2),
			rapid.IntRange(0, 3*tailWindow)), 0, 6).Draw(t, "lengths")
		var data []byte
		for i, n := range lengths {
			data = append(data, strings.Repeat(string(rune('a'+i)), n)...)
			data = append(data, '\n')
		}

		if len(data) > 0 && rapid.Bool().Draw(t, "no last newline") {
			data = data[:len(data)-1]
		}
		if d := cmp.Diff(forward(data), backward(t, data)); d != "" {
			t.Fatalf("(-forward +backward):\n%s", d)
		}
	})
}

func TestBackwardStops(t *testing.T) {
	var err error
	for range Backward(strings.NewReader("a\nb\nc\n"), 6, &err) {
		break
	}
	if err != nil {
		t.Error(err)
	}

	for range Backward(strings.NewReader("a\n"), 100, &err) {
		t.Error("a line of a file that is shorter than it should be")
	}
	if !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("file became shorter: %v", err)
	}
}
