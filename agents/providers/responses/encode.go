package responses

import (
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
	// Left out, strict means true here, unlike in Chat Completions, and a schema with an optional member would be refused.
	b := providers.AppendTools(head.Done(), req.Tools, `{"type":"function","name":`, `,"strict":false}`)
	if strings.TrimSpace(req.System) != "" {
		b = append(providers.AppendField(b, `"instructions":`, req.System), ',')
	}

	b = append(b, `"input":[`...)
	body := &providers.Body{}
	body.Add(b)
	model := p.Model(req)
	body.Messages(req, p.EncodingKey(model), func(m *providers.Message) []byte { return p.encode(m, model) })
	body.Add(bodyEnd)
	return body
}

// settings writes the short fields.
func (p *Provider) settings(head *providers.Head, req *providers.Request) {
	model := p.Model(req)
	plain := plainModel.MatchString(model)
	head.Field("model", string(providers.AppendString(nil, model)))
	head.Field("stream", "true")
	head.Field("store", "false")
	if !plain {
		head.Field("include", `["reasoning.encrypted_content"]`)
	}
	if req.MaxTokens > 0 {
		head.Set("max_output_tokens", strconv.Itoa(req.MaxTokens))
	} else if p.Service.MaxTokens > 0 {
		head.Field("max_output_tokens", strconv.Itoa(p.Service.MaxTokens))
	}

	// A model that reasons answers 400 to a temperature.
	if req.Temperature != nil && (plain || !p.Own || req.Thinking == "none") {
		head.Field("temperature", strconv.FormatFloat(*req.Temperature, 'g', -1, 64))
	}
	if req.Thinking != "" {
		head.Field("reasoning", `{"effort":`+string(providers.AppendString(nil, req.Thinking))+`,"summary":"auto"}`)
	}
	if req.Session != "" {
		head.Field("prompt_cache_key", string(providers.AppendString(nil, req.Session)))
	}
}

// encode writes a message for model as one item or several.
func (p *Provider) encode(m *providers.Message, model string) []byte {
	b := make([]byte, 0, m.Chars()+256)
	switch m.Role {
	case providers.Assistant:
		return p.appendAnswer(b, m, model)
	case providers.Results:
		return appendResults(b, m)
	}

	b = append(b, `{"type":"message","role":"user","content":[`...)
	empty := len(b)
	for _, part := range m.Parts {
		switch part := part.(type) {
		case providers.Text:
			if part.Text != "" {
				b = appendText(providers.Separate(b, empty), "input_text", part.Text)
			}
		case providers.Image:
			b = appendImage(providers.Separate(b, empty), part)
		case providers.Document:
			b = appendDocument(providers.Separate(b, empty), part)
		}
	}

	if len(b) == empty { // the API refuses a message without content
		b = appendText(b, "input_text", "(no text)")
	}

	return append(b, "]}"...)
}

// phaseMark begins the Signature of a Reasoning that carries the phase of the
// answer's text (commentary, final_answer), which the service wants back.
const phaseMark = "phase:"

// appendAnswer writes the model's reasoning, what it said, and its calls. Items go
// without ids: with store: false the service knows none of them.
func (p *Provider) appendAnswer(b []byte, m *providers.Message, model string) []byte {
	empty, phase := len(b), ""
	for _, part := range m.Parts {
		switch part := part.(type) {
		case providers.Reasoning:
			if part.Signature == "" || !part.Of(p.ID(), model) {
				continue
			}
			if s, ok := strings.CutPrefix(part.Signature, phaseMark); ok {
				phase = s
				continue
			}
			b = appendReasoning(providers.Separate(b, empty), part)
		case providers.Text:
			// The phase comes first, like all reasoning.
			if part.Text != "" {
				b = appendSaid(providers.Separate(b, empty), part.Text, phase)
			}
		case providers.Call:
			b = appendCall(providers.Separate(b, empty), part)
		}
	}

	if len(b) == empty {
		b = appendSaid(b, "(no text)", "")
	}

	return b
}

func appendReasoning(b []byte, r providers.Reasoning) []byte {
	b = append(b, `{"type":"reasoning","summary":[`...)
	if r.Text != "" {
		b = appendText(b, "summary_text", r.Text)
	}
	b = providers.AppendField(b, `],"encrypted_content":`, r.Signature)

	return append(b, '}')
}

func appendSaid(b []byte, text, phase string) []byte {
	b = append(b, `{"type":"message","role":"assistant",`...)
	if phase != "" {
		b = append(providers.AppendField(b, `"phase":`, phase), ',')
	}
	b = append(b, `"content":[`...)
	b = appendText(b, "output_text", text)

	return append(b, "]}"...)
}

func appendCall(b []byte, call providers.Call) []byte {
	b = providers.AppendField(b, `{"type":"function_call","call_id":`, call.ID)
	b = providers.AppendField(b, `,"name":`, call.Name)
	b = providers.AppendField(b, `,"arguments":`, string(call.Object()))

	return append(b, '}')
}

// appendResults writes an item for every result. Files go into one user message
// behind them: not every server takes them inside an output.
func appendResults(b []byte, m *providers.Message) []byte {
	var files []providers.Result
	empty := len(b)
	for _, part := range m.Parts {
		r, ok := part.(providers.Result)
		if !ok {
			continue
		}
		b = providers.AppendField(providers.Separate(b, empty), `{"type":"function_call_output","call_id":`, r.CallID)
		b = providers.AppendField(b, `,"output":`, r.InWords())
		b = append(b, '}')
		if len(r.Images)+len(r.Documents) > 0 {
			files = append(files, r)
		}
	}

	if len(files) == 0 {
		return b
	}
	b = append(b, `,{"type":"message","role":"user","content":[`...)
	for i, r := range files {
		if i > 0 {
			b = append(b, ',')
		}
		b = appendText(b, "input_text", providers.Attached(r)+" in the result of "+r.Name+" ("+r.CallID+"):")
		for _, image := range r.Images {
			b = appendImage(append(b, ','), image)
		}

		for _, d := range r.Documents {
			b = appendDocument(append(b, ','), d)
		}
	}

	return append(b, "]}"...)
}

func appendText(b []byte, kind, text string) []byte {
	b = append(b, `{"type":"`...)
	b = append(b, kind...)
	b = providers.AppendField(b, `","text":`, text)
	return append(b, '}')
}

func appendImage(b []byte, image providers.Image) []byte {
	b = append(b, `{"type":"input_image","image_url":`...)
	return append(providers.AppendData(b, image.MimeType, image.Data), '}')
}

func appendDocument(b []byte, d providers.Document) []byte {
	b = providers.AppendField(b, `{"type":"input_file","filename":`, d.Name)
	b = append(b, `,"file_data":`...)
	return append(providers.AppendData(b, d.MimeType, d.Data), '}')
}
