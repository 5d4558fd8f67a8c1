package providers

import (
	"runtime"
	"strings"
	"testing"
)

// allocated is how many bytes f takes, also those that it gives back.
func allocated(f func()) int {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return int(after.TotalAlloc - before.TotalAlloc)
}

// A long thought comes in thousands of pieces, of which each is copied a few times at most.
func TestManyPiecesTakeLittleMemory(t *testing.T) {
	const n, piece = 40_000, "abcd"
	var c collector
	took := allocated(func() {
		for range n {
			c.add(ThinkingDelta{Text: piece})
		}
		c.add(ThinkingDelta{Signature: "s"})
		c.add(ThinkingDelta{Text: "open"})
	})
	if most := 100 * n * len(piece); took > most {
		t.Errorf("%d pieces take %d KB of memory, want at most %d", n, took>>10, most>>10)
	}

	r := c.response("p", &Request{}, Complete{})
	if len(r.Thinking) != 2 || r.Thinking[0].Text != strings.Repeat(piece, n) || r.Thinking[0].Signature != "s" ||
		r.Thinking[1].Text != "open" {
		t.Errorf("%d thoughts", len(r.Thinking))
	}
}

// JSON with millions of levels is no JSON; it does not end the process.
func TestDeepJSONIsNotValid(t *testing.T) {
	for _, level := range []string{"[", `{"a":`} {
		deep := strings.Repeat(level, 12<<20)
		if Valid(deep) || IsObject([]byte(deep)) {
			t.Errorf("%q, a million times, is valid", level)
		}
		if a := ReadAnswer(0, deep); a.Message == "" {
			t.Errorf("%q, a million times, is an error without a message", level)
		}
	}
}

type repeating []Event

func (r repeating) Decode(Frame) []Event { return r }
func (r repeating) End() []Event         { return []Event{Complete{}} }

// Whatever an answer consists of, one that does not end is given up.
func TestAnAnswerThatDoesNotEndIsGivenUp(t *testing.T) {
	long := strings.Repeat("x", 64<<10)
	for name, d := range map[string]repeating{
		"text":       {ContentDelta{Text: long}},
		"signatures": {ThinkingDelta{Signature: long}},
		"names":      {ToolUseStart{ID: "a", Name: long}},
		"arguments":  {ToolUseDelta{ID: "a", Arguments: long}},
		"calls":      {ToolUseStop{ID: "a", Arguments: long}},
		"nothing":    {},
	} {
		frames := 0
		var last Event
		for last = range (&Exchange{Request: &Request{}, Body: &Body{}}).events(d, func(each func(Frame) bool) error {
			for frames < 5000 && each(Frame{Data: long}) {
				frames++
			}
			return nil
		}) {
		}
		if _, failed := last.(Error); !failed {
			t.Errorf("%s: after %d MB it ended with %T", name, frames*len(long)>>20, last)
		}
	}
}
