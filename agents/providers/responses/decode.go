package responses

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/tidwall/gjson"

	"daycare/agents/providers"
)

// A decoder reads one stream of events: response.created, then for every item of
// the answer output_item.added, deltas and output_item.done, and at the end one of
// response.completed, incomplete and failed. There is no [DONE]; gateways that send
// it mean nothing by it.
type decoder struct {
	x       *providers.Exchange
	out     []providers.Event
	items   map[int64]*item // that are open, by output_index
	ids     map[string]bool // of the calls that were reported
	said    bool            // some of the answer's text was reported
	refused bool            // in words
	model   string
}

// An item is one of the answer: a message, a call, a piece of reasoning.
type item struct {
	kind      string
	id        string // of a call: unique in the answer
	arguments strings.Builder
	streamed  bool // its text came in deltas
	summaries int  // summary parts that began
}

func newDecoder(x *providers.Exchange) providers.Decoder {
	return &decoder{x: x, items: map[int64]*item{}, ids: map[string]bool{}}
}

// Decode reads one event; types that are not known are skipped. An answer in one
// piece, from a server that does not stream, is a response object.
func (d *decoder) Decode(f providers.Frame) []providers.Event {
	d.out = d.out[:0]
	data := strings.TrimSpace(f.Data)
	if data == "[DONE]" {
		return nil
	}

	v := gjson.Parse(data)
	if !providers.Valid(data) || !v.IsObject() {
		return append(d.out, providers.Error{Err: d.x.Garbage(data)})
	}

	index := v.Get("output_index").Int()
	switch cmp.Or(v.Get("type").String(), f.Event) {
	case "response.created", "response.in_progress", "response.queued":
		d.model = cmp.Or(v.Get("response.model").String(), d.model)
	case "response.output_item.added":
		d.open(index, v.Get("item"))
	case "response.output_item.done":
		d.close(index, v.Get("item"))
	case "response.output_text.delta":
		d.text(d.at(index, "message"), v.Get("delta").String())
	case "response.refusal.delta":
		d.refused = true
		d.text(d.at(index, "message"), v.Get("delta").String())
	case "response.reasoning_summary_part.added":
		d.summary(index)
	case "response.reasoning_summary_text.delta", "response.reasoning_text.delta":
		d.thinking(index, v.Get("delta").String())
	case "response.function_call_arguments.delta":
		d.arguments(index, v.Get("delta").String())
	case "response.completed", "response.incomplete":
		d.end(v.Get("response"))
	case "response.failed":
		d.fail(v.Get("response.error"))
	case "error":
		d.fail(v)
	default:
		if v.Get("object").String() == "response" {
			d.whole(v)
		} else if v.Get("error").IsObject() {
			d.fail(v)
		}
	}

	return d.out
}

// End is reached without one of the events that end an answer.
func (d *decoder) End() []providers.Event {
	return []providers.Event{providers.Error{Err: d.x.Ended()}}
}

func (d *decoder) emit(ev providers.Event) { d.out = append(d.out, ev) }

// whole reads an answer in one piece.
func (d *decoder) whole(v gjson.Result) {
	for i, one := range v.Get("output").Array() {
		d.open(int64(i), one)
		d.close(int64(i), one)
	}
	if v.Get("status").String() == "failed" {
		d.fail(v.Get("error"))
		return
	}
	d.end(v)
}

func (d *decoder) open(index int64, v gjson.Result) {
	one := &item{kind: v.Get("type").String()}
	d.items[index] = one
	if one.kind != "function_call" {
		return
	}

	one.id = cmp.Or(v.Get("call_id").String(), v.Get("id").String(), "call_"+strconv.FormatInt(index, 10))
	if d.ids[one.id] {
		one.id += "_" + strconv.FormatInt(index, 10)
	}
	d.ids[one.id] = true
	d.emit(providers.ToolUseStart{ID: one.id, Name: v.Get("name").String()})
}

// at is the open item of an index; some servers do not announce theirs.
func (d *decoder) at(index int64, kind string) *item {
	one := d.items[index]
	if one == nil {
		one = &item{kind: kind}
		d.items[index] = one
	}

	return one
}

func (d *decoder) text(one *item, s string) {
	if s == "" {
		return
	}
	if !one.streamed && d.said { // commentary, then the answer: two messages
		s = "\n\n" + s
	}
	one.streamed, d.said = true, true
	d.emit(providers.ContentDelta{Text: s})
}

func (d *decoder) thinking(index int64, s string) {
	if s != "" {
		d.at(index, "reasoning").streamed = true
		d.emit(providers.ThinkingDelta{Text: s})
	}
}

// summary begins a further paragraph of what the model thought.
func (d *decoder) summary(index int64) {
	one := d.at(index, "reasoning")
	if one.summaries++; one.summaries > 1 && one.streamed {
		d.emit(providers.ThinkingDelta{Text: "\n\n"})
	}
}

func (d *decoder) arguments(index int64, s string) {
	if one := d.items[index]; one != nil && one.id != "" && s != "" {
		one.arguments.WriteString(s)
		d.emit(providers.ToolUseDelta{ID: one.id, Arguments: s})
	}
}

// close ends an item. v is the whole of it, which counts where it did not come in
// pieces.
func (d *decoder) close(index int64, v gjson.Result) {
	if d.items[index] == nil {
		d.open(index, v)
	}
	one := d.items[index]
	delete(d.items, index)

	switch one.kind {
	case "message":
		d.closeMessage(one, v)
	case "reasoning":
		if !one.streamed {
			d.wholeThought(v)
		}
		if s := v.Get("encrypted_content").String(); s != "" {
			d.emit(providers.ThinkingDelta{Signature: s})
		}
	case "function_call":
		arguments := v.Get("arguments").String()
		if one.arguments.Len() == 0 && arguments != "" {
			d.emit(providers.ToolUseDelta{ID: one.id, Arguments: arguments})
		}
		arguments = cmp.Or(arguments, one.arguments.String())
		if strings.TrimSpace(arguments) == "" {
			arguments = "{}"
		}
		d.emit(providers.ToolUseStop{ID: one.id, Arguments: arguments})
	}
}

func (d *decoder) closeMessage(one *item, v gjson.Result) {
	var whole strings.Builder
	for _, part := range v.Get("content").Array() {
		refusal := part.Get("refusal").String()
		d.refused = d.refused || refusal != ""
		whole.WriteString(cmp.Or(part.Get("text").String(), refusal))
	}

	if !one.streamed {
		d.text(one, whole.String())
	}
	if phase := v.Get("phase").String(); phase != "" {
		d.emit(providers.ThinkingDelta{Signature: phaseMark + phase})
	}
}

// wholeThought tells reasoning that did not come in pieces.
func (d *decoder) wholeThought(v gjson.Result) {
	var texts []string
	for _, path := range []string{"summary", "content"} {
		for _, part := range v.Get(path).Array() {
			if s := part.Get("text").String(); s != "" {
				texts = append(texts, s)
			}
		}
		if len(texts) > 0 {
			d.emit(providers.ThinkingDelta{Text: strings.Join(texts, "\n\n")})
			return
		}
	}
}

// fail ends the stream with the service's error, in any of its shapes: inside a
// response, alone, or below `error`.
func (d *decoder) fail(v gjson.Result) {
	if e := v.Get("error"); e.IsObject() {
		v = e
	}
	kind, code := v.Get("type").String(), v.Get("code").String()
	if kind == "error" { // the event's own type
		kind = ""
	}

	d.emit(providers.Error{Err: d.x.Told(providers.Answer{
		Type: kind, Code: code, Message: cmp.Or(v.Get("message").String(), code, "the service says that it failed, and not why"),
	})})
}

// end closes what is open, which an answer cut off by its limit leaves behind.
func (d *decoder) end(v gjson.Result) {
	for _, index := range slices.Sorted(maps.Keys(d.items)) {
		d.close(index, gjson.Result{})
	}
	incomplete := v.Get("incomplete_details.reason").String()
	if incomplete == "" && v.Get("status").String() == "incomplete" { // compatible servers
		incomplete = "max_output_tokens"
	}

	d.emit(providers.Complete{
		Finish: d.finish(incomplete),
		Usage:  usage(v.Get("usage")),
		Model:  cmp.Or(v.Get("model").String(), d.model),
	})
}

// finish knows why an answer is incomplete; a complete one has no reason.
func (d *decoder) finish(incomplete string) providers.Finish {
	switch {
	case incomplete == "max_output_tokens" || incomplete == "max_tokens":
		return providers.MaxTokens
	case incomplete == "content_filter" || d.refused:
		return providers.Refusal
	case len(d.ids) > 0:
		return providers.ToolUse
	}

	return providers.EndTurn
}

// usage takes the cached tokens out of the prompt, which contains them here.
// Reasoning is part of the output.
func usage(v gjson.Result) providers.Usage {
	u := providers.Usage{
		Output:     v.Get("output_tokens").Int(),
		CacheRead:  v.Get("input_tokens_details.cached_tokens").Int(),
		CacheWrite: v.Get("input_tokens_details.cache_write_tokens").Int(),
		Reasoning:  v.Get("output_tokens_details.reasoning_tokens").Int(),
	}
	u.Input = max(0, v.Get("input_tokens").Int()-u.CacheRead-u.CacheWrite)

	return u
}
