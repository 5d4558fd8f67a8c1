package agents

import (
	"context"
	"testing"

	"daycare/engine/inbox"
	"daycare/engine/message"
)

// BenchmarkTurn is a message, a tool call and an answer in a new session, files included.
func BenchmarkTurn(b *testing.B) {
	bench := newBench(b, `
rules:
  - match: go
    round: 1
    reply: [ { calls: [ { name: quick, arguments: {} } ] } ]
  - tool_result: quick
    reply: [ { text: "result {{.Result}}" } ]
`, quickTool{func() string { return "ran" }})
	bench.run()
	b.ReportAllocs()

	before, _ := bench.vol.Stats()
	for b.Loop() {
		reset, err := bench.box.Accept(context.Background(), inbox.Item{Kind: message.Reset})
		if err != nil {
			b.Fatal(err)
		}
		bench.wait(reset.Item, bench.say("go"))
	}
	after, _ := bench.vol.Stats()
	b.ReportMetric(float64(after-before)/float64(b.N), "barriers/op")
}
