//go:build !race

package openai

import (
	"fmt"
	"strconv"
	"testing"
	"time"

	"daycare/agents/providers"
)

// Some servers name the tool with each piece of its arguments: what came before is not read again then.
func TestManyPiecesOfACallTakeLittleTime(t *testing.T) {
	const n, piece = 200_000, `say \"hi\" {`
	d := newDecoder(&providers.Exchange{})
	frame := func(piece string) []providers.Event {
		return d.Decode(providers.Frame{Data: fmt.Sprintf(`{"choices":[{"delta":{"tool_calls":[{"index":0,"id":"a",`+
			`"function":{"name":"write","arguments":%s}}]}}]}`, strconv.Quote(piece))})
	}

	began := time.Now()
	frame(`{"text":"`)
	for range n {
		frame(piece)
	}
	frame(`"}`)
	if took := time.Since(began); took > time.Minute {
		t.Errorf("%d pieces took %s", n, took)
	}

	if calls := d.(*decoder).calls.list; len(calls) != 1 || !providers.IsObject([]byte(calls[0].arguments.String())) {
		t.Errorf("%d calls", len(calls))
	}
	frame(`{"text":"another"}`)
	if calls := d.(*decoder).calls.list; len(calls) != 2 {
		t.Errorf("%d calls after another one", len(calls))
	}
}
