package prompt

import (
	"strings"

	"daycare/agents/providers"
	"daycare/engine/record"
)

// Parts is what a context is made of, in tokens: characters / 4, a picture as its
// placeholder.
type Parts struct {
	System   int `json:"system"`
	Tools    int `json:"tools"`
	Summary  int `json:"summary"`  // of what was before
	Messages int `json:"messages"` // of users and agents
	Answers  int `json:"answers"`  // of the model, with its thinking
	Calls    int `json:"calls"`    // of tools, with their arguments
	Results  int `json:"results"`  // of tools
	Memory   int `json:"memory"`   // results of the memory tools, which are not in Results
}

// Total is all of it.
func (p Parts) Total() int {
	return p.System + p.Tools + p.Summary + p.Messages + p.Answers + p.Calls + p.Results + p.Memory
}

// Measure tells what the context of an agent is made of, whose system prompt is sys.
// Tools is left to the caller.
func Measure(ctx *record.Context, sys string) Parts {
	p := Parts{System: chars(sys)}
	b := NewBuilder(Sources{})
	b.restart(ctx)
	b.flush()
	for _, m := range b.messages {
		p.Summary += messageChars(m)
	}

	summary := p.Summary
	for _, e := range ctx.Entries {
		b.add(e)
	}
	b.flush()
	for _, m := range b.messages {
		p.add(m)
	}

	p.Messages = max(0, p.Messages-summary) // the summary is the first message
	for _, n := range []*int{&p.System, &p.Summary, &p.Messages, &p.Answers, &p.Calls, &p.Results, &p.Memory} {
		*n /= 4
	}

	return p
}

func (p *Parts) add(m *providers.Message) {
	for _, part := range m.Parts {
		n := messageChars(&providers.Message{Parts: []providers.Part{part}})
		switch part := part.(type) {
		case providers.Call:
			p.Calls += n
		case providers.Result:
			if strings.HasPrefix(part.Name, "memory_") {
				p.Memory += n
			} else {
				p.Results += n
			}
		default:
			if m.Role == providers.Assistant {
				p.Answers += n
			} else {
				p.Messages += n
			}
		}
	}
}
