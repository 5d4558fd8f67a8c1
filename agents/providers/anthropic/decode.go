package anthropic

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/tidwall/gjson"

	"daycare/agents/providers"
)

// A decoder reads one stream: message_start, then for every content block start,
// deltas and stop, then message_delta and the end mark message_stop.
type decoder struct {
	x      *providers.Exchange
	out    []providers.Event
	blocks map[int64]*block // that are open; in practice one
	stop   string
	usage  providers.Usage
	model  string
}

// A block is a content block of the answer that has not ended yet.
type block struct {
	kind      string
	id        string
	arguments strings.Builder
	input     string // of a call that came whole with the start
	signature strings.Builder
}

func newDecoder(x *providers.Exchange) providers.Decoder {
	return &decoder{x: x, blocks: map[int64]*block{}}
}

// Decode reads one event; types that are not known are skipped, as the API's
// versioning asks for.
func (d *decoder) Decode(f providers.Frame) []providers.Event {
	d.out = d.out[:0]
	if !providers.Valid(f.Data) {
		return append(d.out, providers.Error{Err: d.x.Garbage(f.Data)})
	}
	v := gjson.Parse(f.Data)
	switch cmp.Or(v.Get("type").String(), f.Event) {
	case "message_start":
		d.model = v.Get("message.model").String()
		d.count(v.Get("message.usage"))
	case "content_block_start":
		d.open(v.Get("index").Int(), v.Get("content_block"))
	case "content_block_delta":
		d.delta(v.Get("index").Int(), v.Get("delta"))
	case "content_block_stop":
		d.close(v.Get("index").Int())
	case "message_delta":
		d.stop = cmp.Or(v.Get("delta.stop_reason").String(), d.stop)
		d.count(v.Get("usage"))
	case "message_stop":
		d.end()
	case "message":
		d.whole(v)
	case "error":
		d.emit(providers.Error{Err: d.x.Told(providers.ReadAnswer(0, f.Data))})
	}

	return d.out
}

// whole reads an answer in one piece: that of a batch, or of a server that does not stream.
func (d *decoder) whole(v gjson.Result) {
	d.model, d.stop = v.Get("model").String(), v.Get("stop_reason").String()
	d.count(v.Get("usage"))
	for i, b := range v.Get("content").Array() {
		d.open(int64(i), b)
		d.close(int64(i))
	}
	d.end()
}

// End is reached without message_stop only.
func (d *decoder) End() []providers.Event {
	return []providers.Event{providers.Error{Err: d.x.Ended()}}
}

func (d *decoder) emit(ev providers.Event) { d.out = append(d.out, ev) }

func (d *decoder) open(index int64, v gjson.Result) {
	b := &block{kind: v.Get("type").String(), id: v.Get("id").String()}
	if b.id == "" { // compatible servers
		b.id = "call_" + strconv.FormatInt(index, 10)
	}
	d.blocks[index] = b

	switch b.kind {
	case "text":
		d.text(v.Get("text").String())
	case "thinking":
		d.thinking(v.Get("thinking").String())
		b.signature.WriteString(v.Get("signature").String())
	case "redacted_thinking":
		b.signature.WriteString(redacted + v.Get("data").String())
	case "tool_use":
		if input := v.Get("input"); input.IsObject() && len(input.Map()) > 0 {
			b.input = input.Raw
		}
		d.emit(providers.ToolUseStart{ID: b.id, Name: v.Get("name").String()})
	}
}

func (d *decoder) delta(index int64, v gjson.Result) {
	b := d.blocks[index]
	if b == nil {
		return
	}

	switch v.Get("type").String() {
	case "text_delta":
		d.text(v.Get("text").String())
	case "thinking_delta":
		d.thinking(v.Get("thinking").String())
	case "signature_delta":
		b.signature.WriteString(v.Get("signature").String())
	case "input_json_delta":
		part := v.Get("partial_json").String()
		if b.kind == "tool_use" && part != "" {
			b.arguments.WriteString(part)
			d.emit(providers.ToolUseDelta{ID: b.id, Arguments: part})
		}
	}
}

func (d *decoder) close(index int64) {
	b := d.blocks[index]
	if b == nil {
		return
	}
	delete(d.blocks, index)

	switch b.kind {
	case "thinking", "redacted_thinking":
		if b.signature.Len() > 0 {
			d.emit(providers.ThinkingDelta{Signature: b.signature.String()})
		}
	case "tool_use":
		d.emit(providers.ToolUseStop{ID: b.id, Arguments: cmp.Or(b.arguments.String(), b.input, "{}")})
	}
}

func (d *decoder) text(s string) {
	if s != "" {
		d.emit(providers.ContentDelta{Text: s})
	}
}

func (d *decoder) thinking(s string) {
	if s != "" {
		d.emit(providers.ThinkingDelta{Text: s})
	}
}

// count takes what is there: the counts of message_delta are totals.
func (d *decoder) count(v gjson.Result) {
	set := func(to *int64, name string) {
		if n := v.Get(name); n.Type == gjson.Number {
			*to = n.Int()
		}
	}
	set(&d.usage.Input, "input_tokens")
	set(&d.usage.Output, "output_tokens")
	set(&d.usage.CacheRead, "cache_read_input_tokens")
	set(&d.usage.CacheWrite, "cache_creation_input_tokens")
}

func (d *decoder) end() {
	for _, index := range slices.Sorted(maps.Keys(d.blocks)) { // cut off by max_tokens
		d.close(index)
	}
	if d.stop == "model_context_window_exceeded" {
		d.emit(providers.Error{Err: &providers.Failure{
			Kind: providers.Overflow, Provider: d.x.Provider, Message: "the answer did not fit the model's context window",
		}})
		return
	}

	d.emit(providers.Complete{Finish: finish(d.stop), Usage: d.usage, Model: d.model})
}

// finish knows the stop reasons. stop_sequence and pause_turn belong to features
// that are not used and end the turn.
func finish(stop string) providers.Finish {
	switch stop {
	case "tool_use":
		return providers.ToolUse
	case "max_tokens":
		return providers.MaxTokens
	case "refusal":
		return providers.Refusal
	}

	return providers.EndTurn
}
