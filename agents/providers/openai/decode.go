package openai

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/tidwall/gjson"

	"daycare/agents/providers"
)

// A decoder reads one stream of chunks. The end mark is `data: [DONE]`; some
// servers leave it out, so a finish_reason and then a clean end of the connection
// count as well. Neither is an answer that broke.
type decoder struct {
	x          *providers.Exchange
	out        []providers.Event
	calls      calls
	signatures map[int]string // Gemini's, by place of the call
	finish     string
	refused    bool // in words
	usage      providers.Usage
	model      string
}

func newDecoder(x *providers.Exchange) providers.Decoder {
	return &decoder{x: x, signatures: map[int]string{}}
}

// Decode reads one chunk. An answer in one piece, from a server that does not
// stream, has `message` where a chunk has `delta`.
func (d *decoder) Decode(f providers.Frame) []providers.Event {
	d.out = d.out[:0]
	data := strings.TrimSpace(f.Data)
	if data == "[DONE]" {
		d.end()
		return d.out
	}

	v := gjson.Parse(data)
	if !providers.Valid(data) || !v.IsObject() {
		return append(d.out, providers.Error{Err: d.x.Garbage(data)})
	}
	choice := v.Get("choices.0")
	if a, ok := told(f, v, choice); ok {
		return append(d.out, providers.Error{Err: d.x.Told(a)})
	}

	d.model = cmp.Or(v.Get("model").String(), d.model)
	delta := choice.Get("delta")
	if !delta.Exists() {
		delta = choice.Get("message")
	}

	d.delta(delta)
	d.finish = cmp.Or(strings.ToLower(choice.Get("finish_reason").String()), d.finish)

	for _, path := range []string{"usage", "x_groq.usage"} {
		if u := v.Get(path); u.IsObject() {
			d.usage = usage(u)
		}
	}

	return d.out
}

// told finds the error that a service sends inside a stream.
func told(f providers.Frame, chunk, choice gjson.Result) (providers.Answer, bool) {
	e := chunk.Get("error")
	switch {
	case e.Exists() && e.Type != gjson.Null || f.Event == "error":
		return providers.ReadAnswer(0, chunk.Raw), true
	case choice.Get("error").IsObject(): // OpenRouter
		return providers.ReadAnswer(0, choice.Raw), true
	case choice.Get("finish_reason").String() == "error":
		return providers.Answer{Type: "server_error", Message: "the service ended the answer with an error"}, true
	}

	return providers.Answer{}, false
}

// End is reached without [DONE].
func (d *decoder) End() []providers.Event {
	d.out = d.out[:0]
	if d.finish == "" {
		return append(d.out, providers.Error{Err: d.x.Ended()})
	}
	d.end()

	return d.out
}

func (d *decoder) emit(ev providers.Event) { d.out = append(d.out, ev) }

func (d *decoder) delta(v gjson.Result) {
	for _, name := range []string{"reasoning_content", "reasoning"} {
		if s := v.Get(name); s.Type == gjson.String && s.Str != "" {
			d.emit(providers.ThinkingDelta{Text: s.Str})
			break // some servers send it under both names
		}
	}

	d.content(v.Get("content"))
	if s := v.Get("refusal"); s.Type == gjson.String && s.Str != "" {
		d.refused = true
		d.content(s)
	}

	for _, part := range v.Get("tool_calls").Array() {
		place := d.calls.add(part, d.emit)
		if s := part.Get("extra_content.google.thought_signature").String(); s != "" {
			d.signatures[place] = s
		}
	}
}

// content is a string, or a list of parts as Mistral has it.
func (d *decoder) content(v gjson.Result) {
	switch {
	case v.Type == gjson.String && v.Str != "":
		d.emit(providers.ContentDelta{Text: v.Str})
	case v.IsArray():
		for _, part := range v.Array() {
			if s := part.Get("text"); s.Type == gjson.String && s.Str != "" {
				d.emit(providers.ContentDelta{Text: s.Str})
			}
		}
	}
}

func (d *decoder) end() {
	d.calls.stop(d.emit)
	for _, place := range slices.Sorted(maps.Keys(d.signatures)) {
		d.emit(providers.ThinkingDelta{Signature: fmt.Sprintf("%s%d:%s", google, place, d.signatures[place])})
	}
	d.emit(providers.Complete{Finish: d.reason(), Usage: d.usage, Model: d.model})
}

// reason knows the finish reasons. With calls some servers say stop.
func (d *decoder) reason() providers.Finish {
	switch {
	case d.finish == "length" || d.finish == "max_tokens":
		return providers.MaxTokens
	case d.finish == "content_filter" || d.refused:
		return providers.Refusal
	case len(d.calls.list) > 0:
		return providers.ToolUse
	}

	return providers.EndTurn
}

// usage takes the cached tokens out of the prompt, which contains them here.
func usage(v gjson.Result) providers.Usage {
	u := providers.Usage{
		Output:     v.Get("completion_tokens").Int(),
		CacheRead:  v.Get("prompt_tokens_details.cached_tokens").Int(),
		CacheWrite: v.Get("prompt_tokens_details.cache_write_tokens").Int(), // OpenRouter
		Reasoning:  v.Get("completion_tokens_details.reasoning_tokens").Int(),
	}
	if u.CacheRead == 0 {
		u.CacheRead = v.Get("prompt_cache_hit_tokens").Int() // DeepSeek
	}

	u.Input = max(0, v.Get("prompt_tokens").Int()-u.CacheRead-u.CacheWrite)

	return u
}
