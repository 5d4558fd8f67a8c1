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
	b := appendTools(head.Done(), req.Tools)
	if strings.TrimSpace(req.System) != "" {
		b = append(b, `"instructions":`...)
		b = append(providers.AppendString(b, req.System), ',')
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

func appendTools(b []byte, tools []providers.Tool) []byte {
	if len(tools) == 0 {
		return b
	}
	b = append(b, `"tools":[`...)
	for i, t := range tools {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(b, `{"type":"function","name":`...)
		b = providers.AppendString(b, t.Name)
		b = append(b, `,"description":`...)
		b = providers.AppendString(b, t.Description)
		b = append(b, `,"parameters":`...)
		if len(t.Schema) == 0 {
			b = append(b, `{"type":"object","properties":{}}`...)
		}

		b = append(b, t.Schema...)
		// Left out it means true here, unlike in Chat Completions, and a schema with
		// an optional member would be refused.
		b = append(b, `,"strict":false}`...)
	}

	return append(b, "],"...)
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
				b = appendText(separate(b, empty), "input_text", part.Text)
			}
		case providers.Image:
			b = appendImage(separate(b, empty), part)
		case providers.Document:
			b = appendDocument(separate(b, empty), part)
		}
	}

	if len(b) == empty { // the API refuses a message without content
		b = appendText(b, "input_text", "(no text)")
	}
	return append(b, "]}"...)
}

// separate puts a comma behind what stands after empty.
func separate(b []byte, empty int) []byte {
	if len(b) > empty {
		return append(b, ',')
	}
	return b
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
			b = appendReasoning(separate(b, empty), part)
		case providers.Text:
			// The phase comes first, like all reasoning.
			if part.Text != "" {
				b = appendSaid(separate(b, empty), part.Text, phase)
			}
		case providers.Call:
			b = appendCall(separate(b, empty), part)
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
	b = append(b, `],"encrypted_content":`...)
	b = providers.AppendString(b, r.Signature)

	return append(b, '}')
}

func appendSaid(b []byte, text, phase string) []byte {
	b = append(b, `{"type":"message","role":"assistant",`...)
	if phase != "" {
		b = append(b, `"phase":`...)
		b = append(providers.AppendString(b, phase), ',')
	}
	b = append(b, `"content":[`...)
	b = appendText(b, "output_text", text)

	return append(b, "]}"...)
}

func appendCall(b []byte, call providers.Call) []byte {
	arguments := string(call.Arguments)
	if !providers.IsObject(call.Arguments) { // the result told the model
		arguments = "{}"
	}
	b = append(b, `{"type":"function_call","call_id":`...)
	b = providers.AppendString(b, call.ID)
	b = append(b, `,"name":`...)
	b = providers.AppendString(b, call.Name)
	b = append(b, `,"arguments":`...)
	b = providers.AppendString(b, arguments)

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
		b = append(separate(b, empty), `{"type":"function_call_output","call_id":`...)
		b = providers.AppendString(b, r.CallID)
		b = append(b, `,"output":`...)
		b = providers.AppendString(b, r.InWords())
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
	b = append(b, `","text":`...)
	b = providers.AppendString(b, text)
	return append(b, '}')
}

func appendImage(b []byte, image providers.Image) []byte {
	b = append(b, `{"type":"input_image","image_url":`...)
	return append(providers.AppendData(b, image.MimeType, image.Data), '}')
}

func appendDocument(b []byte, d providers.Document) []byte {
	b = append(b, `{"type":"input_file","filename":`...)
	b = providers.AppendString(b, d.Name)
	b = append(b, `,"file_data":`...)
	return append(providers.AppendData(b, d.MimeType, d.Data), '}')
}
