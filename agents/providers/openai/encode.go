package openai

import (
	"slices"
	"strconv"
	"strings"

	"daycare/agents/providers"
)

var bodyEnd = []byte("]}")

// body assembles a request. All that is the same at every call of a conversation
// comes first and in a fixed order.
func (p *Provider) body(req *providers.Request) *providers.Body {
	head := providers.NewHead(req, p.Fields)
	p.settings(head, req)
	b := providers.AppendTools(head.Done(), req.Tools, `{"type":"function","function":{"name":`, "}}")
	b = append(b, `"messages":[`...)
	if req.System != "" {
		b = providers.AppendField(b, `{"role":"system","content":`, req.System)
		b = append(b, '}')
		if len(req.Messages) > 0 {
			b = append(b, ',')
		}
	}

	body := &providers.Body{}
	body.Add(b)
	model := p.Model(req)
	body.Messages(req, p.EncodingKey(model), func(m *providers.Message) []byte { return p.encode(m, model) })
	body.Add(bodyEnd)
	return body
}

// settings writes the short fields.
func (p *Provider) settings(head *providers.Head, req *providers.Request) {
	head.Field("model", string(providers.AppendString(nil, p.Model(req))))
	head.Field("stream", "true")
	head.Field("stream_options", `{"include_usage":true}`)
	if req.MaxTokens > 0 {
		head.Set(p.limit, strconv.Itoa(req.MaxTokens))
	} else if p.Service.MaxTokens > 0 {
		head.Field(p.limit, strconv.Itoa(p.Service.MaxTokens))
	}
	if req.Temperature != nil {
		head.Field("temperature", strconv.FormatFloat(*req.Temperature, 'g', -1, 64))
	}
	if req.Thinking != "" {
		head.Field("reasoning_effort", string(providers.AppendString(nil, req.Thinking)))
	}
	if p.Own && req.Session != "" {
		head.Field("prompt_cache_key", string(providers.AppendString(nil, req.Session)))
	}
}

// encode writes a message for model; one with results becomes several.
func (p *Provider) encode(m *providers.Message, model string) []byte {
	b := make([]byte, 0, m.Chars()+256)
	switch m.Role {
	case providers.Assistant:
		return p.appendAssistant(b, m, model)
	case providers.Results:
		return appendResults(b, m)
	}

	return appendUser(b, m)
}

// appendUser writes plain text where there are no images and documents: not every server takes
// a list of parts.
func appendUser(b []byte, m *providers.Message) []byte {
	b = append(b, `{"role":"user","content":`...)
	if !slices.ContainsFunc(m.Parts, isMedia) {
		b = providers.AppendString(b, text(m))
		return append(b, '}')
	}

	b = append(b, '[')
	empty := len(b)
	for _, part := range m.Parts {
		switch part := part.(type) {
		case providers.Text:
			if part.Text != "" {
				b = appendText(providers.Separate(b, empty), part.Text)
			}
		case providers.Image:
			b = appendImage(providers.Separate(b, empty), part)
		case providers.Document:
			b = appendDocument(providers.Separate(b, empty), part)
		}
	}

	return append(b, "]}"...)
}

func isMedia(p providers.Part) bool {
	switch p.(type) {
	case providers.Image, providers.Document:
		return true
	}

	return false
}

func text(m *providers.Message) string {
	var texts []string
	for _, part := range m.Parts {
		if t, ok := part.(providers.Text); ok {
			texts = append(texts, t.Text)
		}
	}

	return strings.Join(texts, "\n")
}

func (p *Provider) appendAssistant(b []byte, m *providers.Message, model string) []byte {
	var calls []providers.Call
	for _, part := range m.Parts {
		if call, ok := part.(providers.Call); ok {
			calls = append(calls, call)
		}
	}

	b = append(b, `{"role":"assistant","content":`...)
	if said := text(m); said != "" || len(calls) == 0 {
		b = providers.AppendString(b, said)
	} else {
		b = append(b, "null"...)
	}

	for i, call := range calls {
		if i == 0 {
			b = append(b, `,"tool_calls":[`...)
		} else {
			b = append(b, ',')
		}
		b = appendCall(b, call, p.signature(m, i, model))
	}

	if len(calls) > 0 {
		b = append(b, ']')
	}

	return append(b, '}')
}

func appendCall(b []byte, call providers.Call, signature string) []byte {
	b = providers.AppendField(b, `{"id":`, call.ID)
	b = providers.AppendField(b, `,"type":"function","function":{"name":`, call.Name)
	b = providers.AppendField(b, `,"arguments":`, string(call.Object()))
	b = append(b, '}')
	if signature != "" {
		b = providers.AppendField(b, `,"extra_content":{"google":{"thought_signature":`, signature)
		b = append(b, "}}"...)
	}

	return append(b, '}')
}

// google begins the Signature of a Reasoning that carries the thought_signature
// of a call: google:<place of the call in the answer>:<signature>.
const google = "google:"

func (p *Provider) signature(m *providers.Message, place int, model string) string {
	signed := m.Signed(google+strconv.Itoa(place)+":", p.ID(), model)
	if signed == "" && p.gemini && place == 0 { // a call of another model: the service's own word for that
		return "skip_thought_signature_validator"
	}

	return signed
}

// appendResults writes a tool message for every result. Images and documents go into one user
// message behind them, as a tool message holds text only.
func appendResults(b []byte, m *providers.Message) []byte {
	var withFiles []providers.Result
	for _, part := range m.Parts {
		r, ok := part.(providers.Result)
		if !ok {
			continue
		}
		b = providers.AppendField(providers.Separate(b, 0), `{"role":"tool","tool_call_id":`, r.CallID)
		b = providers.AppendField(b, `,"content":`, r.InWords())
		b = append(b, '}')
		if len(r.Images)+len(r.Documents) > 0 {
			withFiles = append(withFiles, r)
		}
	}

	if len(withFiles) == 0 {
		return b
	}
	b = append(b, `,{"role":"user","content":[`...)
	for i, r := range withFiles {
		if i > 0 {
			b = append(b, ',')
		}
		b = appendText(b, providers.Attached(r)+" in the result of "+r.Name+" ("+r.CallID+"):")
		for _, image := range r.Images {
			b = append(b, ',')
			b = appendImage(b, image)
		}

		for _, d := range r.Documents {
			b = appendDocument(append(b, ','), d)
		}
	}

	return append(b, "]}"...)
}

func appendText(b []byte, text string) []byte {
	b = providers.AppendField(b, `{"type":"text","text":`, text)
	return append(b, '}')
}

func appendImage(b []byte, image providers.Image) []byte {
	b = append(b, `{"type":"image_url","image_url":{"url":`...)
	return append(providers.AppendData(b, image.MimeType, image.Data), "}}"...)
}

func appendDocument(b []byte, d providers.Document) []byte {
	b = providers.AppendField(b, `{"type":"file","file":{"filename":`, d.Name)
	b = append(b, `,"file_data":`...)
	return append(providers.AppendData(b, d.MimeType, d.Data), "}}"...)
}
