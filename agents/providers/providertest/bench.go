package providertest

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"testing"

	"daycare/agents/providers"
)

// BenchmarkBody measures what a call costs before anything is sent: assembling the
// request of a conversation whose older messages were sent before, with one new
// answer and one new result, and reading it once as the transport does.
// "ns/KB" is per KB of context; it must stay at or below 2,000.
func BenchmarkBody(b *testing.B, body func(*providers.Request) *providers.Body) {
	for _, n := range []int{10, 500, 5000} {
		b.Run(fmt.Sprintf("messages=%d", n), func(b *testing.B) {
			req := Long(n)
			req.Answered, req.Kept = n-2, &providers.Kept{}
			size := body(req).Len()
			buf := make([]byte, 64<<10)
			b.ReportAllocs()

			for b.Loop() {
				req.Messages = append(req.Messages[:n-2:n-2], turn(n-2), turn(n-1))
				r := body(req).Reader()
				for {
					if _, err := r.Read(buf); err == io.EOF {
						break
					}
				}
			}

			perOp := float64(b.Elapsed().Nanoseconds()) / float64(b.N)
			b.ReportMetric(perOp/(float64(size)/1024), "ns/KB")
			b.ReportMetric(float64(size)/1024, "KB")
		})
	}
}

// Long is a conversation of n messages, about 1 KB each, with a system prompt of
// 8 KB and twenty tools.
func Long(n int) *providers.Request {
	req := &providers.Request{System: strings.Repeat("Rule: be \"kind\" and brief.\n", 300)}
	for i := range 20 {
		req.Tools = append(req.Tools, providers.Tool{
			Name: fmt.Sprintf("tool_%d", i), Description: strings.Repeat("Does a thing. ", 10),
			Schema: json.RawMessage(`{"type":"object","properties":{"path":{"type":"string","description":"Where."}}}`),
		})
	}

	for i := range n {
		req.Messages = append(req.Messages, turn(i))
	}

	return req
}

// The texts are made once: only sending them is measured.
var (
	said      = strings.Repeat("I look at the next file.\n", 20)
	arguments = json.RawMessage(`{"path":"` + strings.Repeat("dir/", 100) + `"}`)
	result    = strings.Repeat("\tline of \"code\" {\n", 55)
)

func turn(i int) *providers.Message {
	if i%2 == 0 {
		return &providers.Message{Role: providers.Assistant, Parts: []providers.Part{
			providers.Text{Text: said},
			providers.Call{ID: "call1", Name: "tool_1", Arguments: arguments},
		}}
	}

	return &providers.Message{Role: providers.Results, Parts: []providers.Part{
		providers.Result{CallID: "call1", Name: "tool_1", Text: result},
	}}
}
