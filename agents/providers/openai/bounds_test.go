package openai

import (
	"fmt"
	"runtime"
	"strconv"
	"testing"

	"daycare/agents/providers"
)

// Some servers name the tool with each piece of its arguments: what came before is not read again then.
func TestManyPiecesOfACallTakeLittleMemory(t *testing.T) {
	const n, piece = 20_000, `say \"hi\" {`
	d := newDecoder(&providers.Exchange{})
	frame := func(piece string) []providers.Event {
		return d.Decode(providers.Frame{Data: fmt.Sprintf(`{"choices":[{"delta":{"tool_calls":[{"index":0,"id":"a",`+
			`"function":{"name":"write","arguments":%s}}]}}]}`, strconv.Quote(piece))})
	}

	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	frame(`{"text":"`)
	for range n {
		frame(piece)
	}
	frame(`"}`)
	runtime.ReadMemStats(&after)

	if took, most := int(after.TotalAlloc-before.TotalAlloc), 500*n*len(piece); took > most {
		t.Errorf("%d pieces take %d MB of memory, want at most %d", n, took>>20, most>>20)
	}
	if calls := d.(*decoder).calls.list; len(calls) != 1 || !providers.IsObject([]byte(calls[0].arguments.String())) {
		t.Errorf("%d calls", len(calls))
	}
	frame(`{"text":"another"}`)
	if calls := d.(*decoder).calls.list; len(calls) != 2 {
		t.Errorf("%d calls after another one", len(calls))
	}
}
