package gemini

import (
	"cmp"
	"encoding/base64"
	"strconv"
	"strings"

	"daycare/agents/providers"
	"daycare/engine/lazyregexp"
)

var bodyEnd = []byte("]}")

// body assembles a request. All that is the same at every call of a conversation
// comes first and in a fixed order.
func (p *Provider) body(req *providers.Request) *providers.Body {
	head := providers.NewHead(req, p.Fields)
	if settings := p.settings(req); settings != "" {
		head.Field("generationConfig", settings)
	}
	b := head.Done()
	if len(b) == 2 { // nothing but the brace and a comma
		b = b[:1]
	}

	b = appendTools(b, req.Tools)
	if strings.TrimSpace(req.System) != "" {
		b = append(b, `"systemInstruction":{"parts":[`...)
		b = append(appendText(b, req.System, ""), "]},"...)
	}

	b = append(b, `"contents":[`...)

	body := &providers.Body{}
	body.Add(b)
	model := p.Model(req)
	body.Messages(req, p.EncodingKey(model), func(m *providers.Message) []byte { return p.encode(m, model) })
	body.Add(bodyEnd)
	return body
}

// generation2 matches the models that know no thinking levels and ask for no
// signatures: a closed list, as every later one does.
var generation2 = lazyregexp.New(`gemini-[12][.-]`)

// budgets are tokens of thinking.
var budgets = map[string]int{"low": 2048, "medium": 8192, "high": 24576}

// settings is the generationConfig, "" for none.
func (p *Provider) settings(req *providers.Request) string {
	var fields []string
	if limit := cmp.Or(req.MaxTokens, p.Service.MaxTokens); limit > 0 {
		fields = append(fields, `"maxOutputTokens":`+strconv.Itoa(limit))
	}
	if req.Temperature != nil {
		fields = append(fields, `"temperature":`+strconv.FormatFloat(*req.Temperature, 'g', -1, 64))
	}

	switch {
	case req.Thinking == "":
	case generation2.MatchString(p.Model(req)):
		budget := cmp.Or(budgets[req.Thinking], budgets["high"])
		fields = append(fields, `"thinkingConfig":{"thinkingBudget":`+strconv.Itoa(budget)+`,"includeThoughts":true}`)
	default:
		level := string(providers.AppendString(nil, req.Thinking))
		fields = append(fields, `"thinkingConfig":{"thinkingLevel":`+level+`,"includeThoughts":true}`)
	}

	if len(fields) == 0 {
		return ""
	}

	return "{" + strings.Join(fields, ",") + "}"
}

func appendTools(b []byte, tools []providers.Tool) []byte {
	if len(tools) == 0 {
		return b
	}
	b = append(b, `"tools":[{"functionDeclarations":[`...)
	for i, t := range tools {
		if i > 0 {
			b = append(b, ',')
		}
		b = providers.AppendField(b, `{"name":`, t.Name)
		b = providers.AppendField(b, `,"description":`, t.Description)
		if len(t.Schema) > 0 {
			b = append(b, `,"parametersJsonSchema":`...)
			b = append(b, t.Schema...)
		}

		b = append(b, '}')
	}

	return append(b, "]}],"...)
}

// encode writes a message for model; one with results that have files becomes
// two.
func (p *Provider) encode(m *providers.Message, model string) []byte {
	b := make([]byte, 0, m.Chars()+256)
	switch m.Role {
	case providers.Assistant:
		b = append(b, `{"role":"model","parts":[`...)
		return append(p.appendAnswer(b, m, model), "]}"...)
	case providers.Results:
		return appendResults(b, m)
	}

	b = append(b, `{"role":"user","parts":[`...)
	empty := len(b)
	for _, part := range m.Parts {
		switch part := part.(type) {
		case providers.Text:
			if part.Text != "" {
				b = appendText(providers.Separate(b, empty), part.Text, "")
			}
		case providers.Image:
			b = appendInline(providers.Separate(b, empty), part.MimeType, part.Data)
		case providers.Document:
			b = appendInline(providers.Separate(b, empty), part.MimeType, part.Data)
		}
	}

	if len(b) == empty { // the API refuses a message without parts
		b = appendText(b, "(no text)", "")
	}

	return append(b, "]}"...)
}

func (p *Provider) appendAnswer(b []byte, m *providers.Message, model string) []byte {
	empty, calls := len(b), 0
	sign := m.Signed(textMark, p.ID(), model)
	for _, part := range m.Parts {
		switch part := part.(type) {
		case providers.Text:
			if part.Text != "" {
				b = appendText(providers.Separate(b, empty), part.Text, sign)
				sign = ""
			}
		case providers.Call:
			signature := m.Signed(callMark+strconv.Itoa(calls)+":", p.ID(), model)
			if signature == "" && calls == 0 && !generation2.MatchString(model) { // later models want one
				signature = unsigned
			}
			b = appendCall(providers.Separate(b, empty), part, signature)
			calls++
		}
	}

	if len(b) == empty || sign != "" {
		b = appendText(providers.Separate(b, empty), "", sign)
	}

	return b
}

// Marks in front of the Signature of a Reasoning: of which part it is.
const (
	callMark = "call:"
	textMark = "text:"
	// unsigned stands for the signature of a call that another model made: the
	// service's own word for that.
	unsigned = "skip_thought_signature_validator"
)

func appendText(b []byte, text, signature string) []byte {
	b = providers.AppendField(b, `{"text":`, text)
	return appendSignature(b, signature)
}

func appendSignature(b []byte, signature string) []byte {
	if signature != "" {
		b = providers.AppendField(b, `,"thoughtSignature":`, signature)
	}
	return append(b, '}')
}

func appendCall(b []byte, call providers.Call, signature string) []byte {
	b = providers.AppendField(b, `{"functionCall":{"id":`, call.ID)
	b = providers.AppendField(b, `,"name":`, call.Name)
	b = append(b, `,"args":`...)
	b = append(b, call.Object()...)

	return appendSignature(append(b, '}'), signature)
}

// appendResults writes all results as one message, and files in a second one
// behind it: not every model takes them inside a result.
func appendResults(b []byte, m *providers.Message) []byte {
	b = append(b, `{"role":"user","parts":[`...)
	empty := len(b)
	var files []providers.Result
	for _, part := range m.Parts {
		r, ok := part.(providers.Result)
		if !ok {
			continue
		}
		b = appendResult(providers.Separate(b, empty), r)
		if len(r.Images)+len(r.Documents) > 0 {
			files = append(files, r)
		}
	}

	b = append(b, "]}"...)
	if len(files) == 0 {
		return b
	}
	b = append(b, `,{"role":"user","parts":[`...)
	for i, r := range files {
		if i > 0 {
			b = append(b, ',')
		}
		b = appendText(b, providers.Attached(r)+" in the result of "+r.Name+" ("+r.CallID+"):", "")
		for _, image := range r.Images {
			b = appendInline(append(b, ','), image.MimeType, image.Data)
		}

		for _, d := range r.Documents {
			b = appendInline(append(b, ','), d.MimeType, d.Data)
		}
	}

	return append(b, "]}"...)
}

func appendResult(b []byte, r providers.Result) []byte {
	field := `"output":`
	if r.IsError {
		field = `"error":`
	}

	b = providers.AppendField(b, `{"functionResponse":{"id":`, r.CallID)
	b = providers.AppendField(b, `,"name":`, r.Name)
	b = append(b, `,"response":{`...)
	b = providers.AppendField(b, field, r.Output())

	return append(b, "}}}"...)
}

// appendInline writes a picture or a document.
func appendInline(b []byte, kind string, data []byte) []byte {
	b = providers.AppendField(b, `{"inlineData":{"mimeType":`, kind)
	b = append(b, `,"data":"`...)
	b = base64.StdEncoding.AppendEncode(b, data)
	return append(b, `"}}`...)
}
