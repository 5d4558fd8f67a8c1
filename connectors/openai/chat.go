package openai

import (
	"daycare/engine/control"
	"daycare/engine/event"
)

// A chatForm writes an answer as a chat completion.
type chatForm struct{ *answer }

type chatUsage struct {
	Prompt        int64 `json:"prompt_tokens"`
	Completion    int64 `json:"completion_tokens"`
	Total         int64 `json:"total_tokens"`
	PromptDetails struct {
		Cached int64 `json:"cached_tokens"`
	} `json:"prompt_tokens_details"`
	CompletionDetails struct {
		Reasoning int64 `json:"reasoning_tokens"`
	} `json:"completion_tokens_details"`
}

// usageOf is what the record of the turn says: all its calls of the model together.
func usageOf(o event.Outcome) *chatUsage {
	u := &chatUsage{Prompt: o.Work.Input, Completion: o.Work.Output, Total: o.Work.Input + o.Work.Output}
	u.PromptDetails.Cached, u.CompletionDetails.Reasoning = o.Work.CacheRead, o.Work.Reasoning
	return u
}

type completion struct {
	ID      string     `json:"id"`
	Object  string     `json:"object"`
	Created int64      `json:"created"`
	Model   string     `json:"model"`
	Choices []choice   `json:"choices"`
	Usage   *chatUsage `json:"usage,omitempty"`
	Daycare *own       `json:"daycare,omitempty"`
}

type choice struct {
	Index   int     `json:"index"`
	Message *speech `json:"message,omitempty"`
	Delta   *delta  `json:"delta,omitempty"`
	Finish  *string `json:"finish_reason"`
}

type speech struct {
	Role    string  `json:"role"`
	Content string  `json:"content"`
	Refusal *string `json:"refusal"`
}

type delta struct {
	Role    string  `json:"role,omitempty"`
	Content *string `json:"content,omitempty"`
}

func (f *chatForm) completion(object string, choices ...choice) completion {
	return completion{ID: "chatcmpl-" + f.receipt.Item, Object: object, Created: f.at.Unix(), Model: f.request.model, Choices: choices}
}

const chunk = "chat.completion.chunk"

func (f *chatForm) begin() error {
	none := ""
	return f.event("", f.completion(chunk, choice{Delta: &delta{Role: "assistant", Content: &none}}))
}

func (f *chatForm) say(text string) error {
	return f.event("", f.completion(chunk, choice{Delta: &delta{Content: &text}}))
}

func (f *chatForm) end(o event.Outcome) error {
	reason, mine := finishReason(o), f.own(o)
	last := f.completion(chunk, choice{Delta: &delta{}, Finish: &reason})
	last.Daycare = &mine
	if err := f.event("", last); err != nil {
		return err
	}
	if f.request.usage {
		u := f.completion(chunk)
		u.Choices, u.Usage = []choice{}, usageOf(o)
		if err := f.event("", u); err != nil {
			return err
		}
	}

	return f.write("", "[DONE]")
}

func (f *chatForm) fail(e control.ForeignError) error {
	return f.event("", map[string]control.ForeignError{"error": e})
}

func (f *chatForm) whole(o event.Outcome) any {
	reason, mine := finishReason(o), f.own(o)
	c := f.completion("chat.completion", choice{Message: &speech{Role: "assistant", Content: o.Text}, Finish: &reason})
	c.Usage, c.Daycare = usageOf(o), &mine

	return c
}
