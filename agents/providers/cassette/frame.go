package cassette

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"strings"

	"daycare/agents/providers"
)

// A frame is a request as a tape has it.
type frame struct {
	system   string
	tools    []tool
	messages []said
	options  options
}

// options are what a request says beside the conversation.
type options struct {
	Model       string   `json:"model,omitempty"`
	MaxTokens   int      `json:"maxTokens,omitempty"`
	Temperature *float64 `json:"temperature,omitempty"`
	Thinking    string   `json:"thinking,omitempty"`
}

// A tool is the definition of one.
type tool struct {
	Name        string          `json:"name"`
	Description string          `json:"description"`
	Schema      json.RawMessage `json:"schema,omitempty"`
}

// said is a message: its parts as text, so that two of them can be compared by whoever reads.
type said struct {
	Role string `json:"role"`
	Text string `json:"text"`
}

// newFrame is a request as v has it.
func newFrame(req *providers.Request, v *view) frame {
	f := frame{system: v.text(req.System), options: options{Model: req.Model, MaxTokens: req.MaxTokens,
		Temperature: req.Temperature, Thinking: req.Thinking}}
	for _, t := range req.Tools {
		f.tools = append(f.tools, tool{t.Name, v.text(t.Description), compact(t.Schema)})
	}

	for _, m := range req.Messages {
		var parts []string
		for _, p := range m.Parts {
			parts = append(parts, part(p, v)...)
		}
		f.messages = append(f.messages, said{string(m.Role), strings.Join(parts, "\n")})
	}

	return f
}

// compact is JSON without blanks between its values, as it is in a line.
func compact(schema json.RawMessage) json.RawMessage {
	var b bytes.Buffer
	if json.Compact(&b, schema) != nil {
		return nil
	}

	return b.Bytes()
}

// part is one part of a message, a line or more.
func part(p providers.Part, v *view) []string {
	switch p := p.(type) {
	case providers.Text:
		return []string{"text: " + v.text(p.Text)}
	case providers.Reasoning:
		return []string{"reasoning: " + v.text(p.Text)}
	case providers.Call:
		return []string{"call: " + v.text(p.ID) + " " + p.Name + " " + v.text(string(p.Arguments))}
	case providers.Image:
		return []string{image(p)}
	case providers.Document:
		return []string{document(p)}
	case providers.Result:
		word := "result: "
		if p.IsError {
			word = "error: "
		}
		lines := []string{word + v.text(p.CallID) + " " + p.Name + " " + v.text(p.Text)}
		for _, i := range p.Images {
			lines = append(lines, "  "+image(i))
		}
		for _, d := range p.Documents {
			lines = append(lines, "  "+document(d))
		}

		return lines
	}

	return []string{fmt.Sprintf("%T", p)}
}

func image(i providers.Image) string { return "image: " + i.MimeType + " " + digest(i.Data) }

func document(d providers.Document) string {
	return "document: " + d.Name + " " + d.MimeType + " " + digest(d.Data)
}

func digest(data []byte) string {
	return fmt.Sprintf("%d bytes, sha256 %x", len(data), sha256.Sum256(data))
}

// key is the same for two requests that a tape does not tell apart.
func (f frame) key() string {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	_ = enc.Encode(f.system) // strings and numbers: nothing of it can fail
	_ = enc.Encode(f.tools)
	_ = enc.Encode(f.messages)
	_ = enc.Encode(f.options)
	sum := sha256.Sum256(b.Bytes())

	return string(sum[:])
}
