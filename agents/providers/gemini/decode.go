package gemini

import (
	"cmp"
	"strconv"
	"strings"

	"github.com/tidwall/gjson"

	"daycare/agents/providers"
)

// A decoder reads one stream of responses. There is no end mark: a finishReason
// and then a clean end of the connection is a whole answer, and a prompt that was
// blocked has none of either.
type decoder struct {
	x          *providers.Exchange
	out        []providers.Event
	calls      map[string]bool // ids
	signatures []string        // with their marks
	finish     string
	usage      providers.Usage
	model      string
}

func newDecoder(x *providers.Exchange) providers.Decoder {
	return &decoder{x: x, calls: map[string]bool{}}
}

// Decode reads one response; a server that does not stream sends them all as a
// list.
func (d *decoder) Decode(f providers.Frame) []providers.Event {
	d.out = d.out[:0]
	data := strings.TrimSpace(f.Data)
	v := gjson.Parse(data)
	if !providers.Valid(data) || !v.IsObject() && !v.IsArray() {
		return append(d.out, providers.Error{Err: d.x.Garbage(data)})
	}
	if v.IsArray() {
		for _, one := range v.Array() {
			d.response(one)
		}
		return d.out
	}

	d.response(v)
	return d.out
}

// End says what the stream was.
func (d *decoder) End() []providers.Event {
	d.out = d.out[:0]
	if d.finish == "" {
		return append(d.out, providers.Error{Err: d.x.Ended()})
	}
	for _, s := range d.signatures {
		d.emit(providers.ThinkingDelta{Signature: s})
	}

	finish, failure := d.reason()
	if failure != nil {
		return []providers.Event{providers.Error{Err: failure}}
	}
	d.emit(providers.Complete{Finish: finish, Usage: d.usage, Model: d.model})

	return d.out
}

func (d *decoder) emit(ev providers.Event) { d.out = append(d.out, ev) }

func (d *decoder) response(v gjson.Result) {
	if v.Get("error").IsObject() {
		d.emit(providers.Error{Err: d.x.Told(providers.ReadAnswer(0, v.Raw))})
		return
	}
	d.model = cmp.Or(v.Get("modelVersion").String(), d.model)
	if u := v.Get("usageMetadata"); u.IsObject() {
		d.usage = usage(u)
	}

	candidate := v.Get("candidates.0")
	for _, part := range candidate.Get("content.parts").Array() {
		d.part(part)
	}
	d.finish = cmp.Or(candidate.Get("finishReason").String(), d.finish)
	if v.Get("promptFeedback.blockReason").String() != "" && !candidate.Exists() {
		d.finish = blocked
	}
}

// blocked stands for the finish reason that a blocked prompt does not have.
const blocked = "PROMPT_BLOCKED"

// part reads a piece of the answer. Calls come whole; a signature stands at the
// part that it is of, or in a part without text behind it.
func (d *decoder) part(v gjson.Result) {
	signature := v.Get("thoughtSignature").String()
	switch call, text := v.Get("functionCall"), v.Get("text").String(); {
	case call.IsObject():
		if signature != "" {
			d.signatures = append(d.signatures, callMark+strconv.Itoa(len(d.calls))+":"+signature)
		}
		d.call(call)
	case v.Get("thought").Bool():
		if text != "" {
			d.emit(providers.ThinkingDelta{Text: text})
		}
	default:
		if signature != "" {
			d.signatures = append(d.signatures, textMark+signature)
		}
		if text != "" {
			d.emit(providers.ContentDelta{Text: text})
		}
	}
}

func (d *decoder) call(v gjson.Result) {
	id := v.Get("id").String()
	if id == "" || d.calls[id] { // older models give none
		id = "call_" + strconv.Itoa(len(d.calls))
	}
	d.calls[id] = true
	arguments := cmp.Or(v.Get("args").Raw, "{}")
	d.emit(providers.ToolUseStart{ID: id, Name: v.Get("name").String()})
	d.emit(providers.ToolUseDelta{ID: id, Arguments: arguments})
	d.emit(providers.ToolUseStop{ID: id, Arguments: arguments})
}

// reason knows the finish reasons. Those of a call that the model got wrong are
// worth another try; with calls the service says STOP.
func (d *decoder) reason() (providers.Finish, *providers.Failure) {
	switch d.finish {
	case "MAX_TOKENS":
		return providers.MaxTokens, nil
	case "SAFETY", "RECITATION", "LANGUAGE", "BLOCKLIST", "PROHIBITED_CONTENT", "SPII", "IMAGE_SAFETY", blocked:
		return providers.Refusal, nil
	case "MALFORMED_FUNCTION_CALL", "UNEXPECTED_TOOL_CALL", "TOO_MANY_TOOL_CALLS", "MALFORMED_RESPONSE":
		return "", &providers.Failure{Kind: providers.Broken, Provider: d.x.Provider, Message: "the model's answer broke off: " + d.finish}
	case "MISSING_THOUGHT_SIGNATURE":
		return "", &providers.Failure{Kind: providers.Rejected, Provider: d.x.Provider, Message: "the model misses the signature of a call"}
	}

	if len(d.calls) > 0 {
		return providers.ToolUse, nil
	}

	return providers.EndTurn, nil
}

// usage takes the cached tokens out of the prompt, which contains them here, and
// counts thinking as the output that it is billed as.
func usage(v gjson.Result) providers.Usage {
	u := providers.Usage{
		Output:    v.Get("candidatesTokenCount").Int() + v.Get("thoughtsTokenCount").Int(),
		CacheRead: v.Get("cachedContentTokenCount").Int(),
		Reasoning: v.Get("thoughtsTokenCount").Int(),
	}
	u.Input = max(0, v.Get("promptTokenCount").Int()+v.Get("toolUsePromptTokenCount").Int()-u.CacheRead)

	return u
}
