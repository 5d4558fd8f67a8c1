package anthropic

import (
	"cmp"
	"encoding/base64"
	"slices"
	"strconv"
	"strings"

	"daycare/agents/providers"
)

// mark is a cache breakpoint. It goes before the brace that closes the last block
// of a message; every encoded message ends with blockEnd, so it can be put into
// the kept bytes without encoding anything.
const (
	mark     = `,"cache_control":{"type":"ephemeral"}`
	blockEnd = "}]}"
)

var (
	markedEnd = []byte(mark + blockEnd)
	comma     = []byte{','}
	bodyEnd   = []byte("]}")
)

// redacted begins the Signature of a Reasoning that stands for a redacted block.
const redacted = "redacted:"

// body assembles a request. All that is the same at every call of a conversation
// comes first and in a fixed order.
func (p *Provider) body(req *providers.Request) *providers.Body {
	head := providers.NewHead(req, p.Fields)
	p.settings(head, req)
	b := appendTools(head.Done(), req.Tools)
	b = appendSystem(b, req.System)
	b = append(b, `"messages":[`...)

	body := &providers.Body{}
	body.Add(b)
	model := p.Model(req)
	key := p.EncodingKey(model)
	encode := func(m *providers.Message) []byte { return p.encode(m, model) }
	last := len(req.Messages) - 1
	previous := previousLast(req.Messages)
	begun := body.Begin(req, previous, key, encode) // what is before the markers
	body.Grow(3*(len(req.Messages)-begun) + 1)
	for i, m := range req.Messages {
		if i < begun {
			continue
		}
		if i > begun {
			body.Add(comma)
		}
		enc := m.Encoded(key, encode)
		if (i == last || i == previous) && m.Role != providers.Assistant {
			body.Add(enc[:len(enc)-len(blockEnd)])
			body.Add(markedEnd)
			continue
		}

		body.Add(enc)
	}

	body.Add(bodyEnd)
	return body
}

// previousLast is the message that was the last one at the previous call: the one
// before the newest answer. The cache was written up to there; without a marker
// the service looks back 20 blocks only, which a round of many calls exceeds.
func previousLast(messages []*providers.Message) int {
	for i := len(messages) - 1; i > 0; i-- {
		if messages[i].Role == providers.Assistant {
			return i - 1
		}
	}

	return -1
}

// settings writes the short fields.
func (p *Provider) settings(head *providers.Head, req *providers.Request) {
	model := p.Model(req)
	limit := cmp.Or(req.MaxTokens, p.Service.MaxTokens)
	var thinking, output string
	switch {
	case req.Thinking == "" && bound(model):
		thinking = `{"type":"adaptive",` + dropBound + `}` // as it is without a word
	case req.Thinking == "":
	case budgetOnly.MatchString(model) && p.calledBlindly(req.Messages, model):
	case budgetOnly.MatchString(model):
		budget := cmp.Or(budgets[req.Thinking], budgets["high"])
		if limit <= budget { // the budget is part of the limit
			limit += budget
		}
		thinking = `{"type":"enabled","budget_tokens":` + strconv.Itoa(budget) + `}`
	default:
		thinking = `{"type":"adaptive","display":"summarized"}`
		if bound(model) {
			thinking = `{"type":"adaptive","display":"summarized",` + dropBound + `}`
		}
		output = `{"effort":` + string(providers.AppendString(nil, req.Thinking)) + `}`
	}

	head.Field("model", string(providers.AppendString(nil, model)))
	head.Field("max_tokens", strconv.Itoa(limit))
	head.Field("stream", "true")
	if thinking != "" {
		head.Field("thinking", thinking)
	} else if req.Temperature != nil && tempered(model) {
		head.Field("temperature", strconv.FormatFloat(*req.Temperature, 'g', -1, 64))
	}
	if output != "" {
		head.Field("output_config", output)
	}
}

// calledBlindly reports whether the newest answer called tools without thinking of
// this model in front, because another one gave it. The models that are told a
// budget then refuse to think until the next answer: "a final assistant message
// must start with a thinking block".
func (p *Provider) calledBlindly(messages []*providers.Message, model string) bool {
	for _, m := range slices.Backward(messages) {
		if m.Role != providers.Assistant {
			continue
		}
		called := false
		for _, part := range m.Parts {
			switch part := part.(type) {
			case providers.Reasoning:
				if part.Signature != "" && part.Of(p.ID(), model) {
					return false
				}
			case providers.Call:
				called = true
			}
		}
		return called
	}

	return false
}

func appendTools(b []byte, tools []providers.Tool) []byte {
	if len(tools) == 0 {
		return b
	}
	b = append(b, `"tools":[`...)
	for i, t := range tools {
		if i > 0 {
			b = append(b, ',')
		}
		b = providers.AppendField(b, `{"name":`, t.Name)
		b = providers.AppendField(b, `,"description":`, t.Description)
		b = append(b, `,"input_schema":`...)
		if len(t.Schema) == 0 {
			b = append(b, `{"type":"object"}`...)
		}

		b = append(b, t.Schema...)
		if i == len(tools)-1 {
			b = append(b, mark...)
		}
		b = append(b, '}')
	}

	return append(b, "],"...)
}

func appendSystem(b []byte, system string) []byte {
	if strings.TrimSpace(system) == "" {
		return b
	}
	b = providers.AppendField(b, `"system":[{"type":"text","text":`, system)
	b = append(b, mark...)

	return append(b, "}],"...)
}

// encode writes a message. Results go as a user message; the service joins it with
// a user message that follows.
func (p *Provider) encode(m *providers.Message, model string) []byte {
	b := append(make([]byte, 0, m.Chars()+256), `{"role":"user","content":[`...)
	if m.Role == providers.Assistant {
		b = append(b[:0], `{"role":"assistant","content":[`...)
	}
	empty := len(b)
	for _, part := range m.Parts {
		before := len(b)
		if before > empty {
			b = append(b, ',')
		}
		start := len(b)
		if b = p.appendPart(b, part, model); len(b) == start {
			b = b[:before]
		}
	}

	if len(b) == empty { // the API refuses a message without content
		b = appendText(b, "(no text)")
	}

	return append(b, "]}"...)
}

// appendPart writes one block, or nothing where the API would refuse it.
func (p *Provider) appendPart(b []byte, part providers.Part, model string) []byte {
	switch part := part.(type) {
	case providers.Text:
		if strings.TrimSpace(part.Text) == "" {
			return b
		}
		return appendText(b, part.Text)
	case providers.Reasoning:
		return p.appendReasoning(b, part, model)
	case providers.Call:
		b = providers.AppendField(b, `{"type":"tool_use","id":`, part.ID)
		b = providers.AppendField(b, `,"name":`, part.Name)
		b = append(b, `,"input":`...)
		b = append(b, part.Object()...)
		return append(b, '}')
	case providers.Result:
		return appendResult(b, part)
	case providers.Image:
		return appendImage(b, part)
	case providers.Document:
		return appendDocument(b, part)
	}

	return b
}

func appendText(b []byte, text string) []byte {
	b = providers.AppendField(b, `{"type":"text","text":`, text)
	return append(b, '}')
}

func (p *Provider) appendReasoning(b []byte, r providers.Reasoning, model string) []byte {
	if r.Signature == "" || !r.Of(p.ID(), model) {
		return b
	}
	if data, ok := strings.CutPrefix(r.Signature, redacted); ok {
		b = providers.AppendField(b, `{"type":"redacted_thinking","data":`, data)
		return append(b, '}')
	}

	b = providers.AppendField(b, `{"type":"thinking","thinking":`, r.Text)
	b = providers.AppendField(b, `,"signature":`, r.Signature)
	return append(b, '}')
}

func appendResult(b []byte, r providers.Result) []byte {
	b = providers.AppendField(b, `{"type":"tool_result","tool_use_id":`, r.CallID)
	b = append(b, `,"content":[`...)
	b = appendText(b, r.Output())
	for _, image := range r.Images {
		b = append(b, ',')
		b = appendImage(b, image)
	}

	for _, d := range r.Documents {
		b = appendDocument(append(b, ','), d)
	}

	b = append(b, ']')
	if r.IsError {
		b = append(b, `,"is_error":true`...)
	}

	return append(b, '}')
}

func appendImage(b []byte, image providers.Image) []byte {
	b = providers.AppendField(b, `{"type":"image","source":{"type":"base64","media_type":`, image.MimeType)
	b = append(b, `,"data":"`...)
	b = base64.StdEncoding.AppendEncode(b, image.Data)
	return append(b, `"}}`...)
}

func appendDocument(b []byte, d providers.Document) []byte {
	b = providers.AppendField(b, `{"type":"document","title":`, d.Name)
	b = providers.AppendField(b, `,"source":{"type":"base64","media_type":`, d.MimeType)
	b = append(b, `,"data":"`...)
	b = base64.StdEncoding.AppendEncode(b, d.Data)

	return append(b, `"}}`...)
}
