package openai

import (
	"daycare/engine/control"
	"daycare/engine/event"
)

// responseBegin is how ids of responses begin; the agent and the item follow.
const responseBegin = "resp_"

// A responseForm writes an answer as a response.
type responseForm struct {
	*answer
	number int // of the next event
}

type response struct {
	ID         string       `json:"id"`
	Object     string       `json:"object"`
	CreatedAt  int64        `json:"created_at"`
	Status     string       `json:"status"`
	Error      *responseErr `json:"error"`
	Incomplete *incomplete  `json:"incomplete_details"`
	Model      string       `json:"model"`
	Output     []output     `json:"output"`
	Usage      *usage       `json:"usage"`
	asked
	Daycare *own `json:"daycare,omitempty"`
}

// asked are members that say what was asked for, as far as an agent heeds it.
type asked struct {
	Instructions *string        `json:"instructions"`
	Previous     *string        `json:"previous_response_id"`
	Parallel     bool           `json:"parallel_tool_calls"`
	ToolChoice   string         `json:"tool_choice"`
	Tools        []struct{}     `json:"tools"`
	Metadata     map[string]any `json:"metadata"`
}

type responseErr struct {
	Code    string `json:"code"`
	Message string `json:"message"`
}

type incomplete struct {
	Reason string `json:"reason"`
}

type output struct {
	Type    string       `json:"type"` // message
	ID      string       `json:"id"`
	Status  string       `json:"status"`
	Role    string       `json:"role"`
	Content []outputPart `json:"content"`
}

type outputPart struct {
	Type        string     `json:"type"` // output_text
	Text        string     `json:"text"`
	Annotations []struct{} `json:"annotations"`
}

type usage struct {
	Input        int64 `json:"input_tokens"`
	InputDetails struct {
		Cached int64 `json:"cached_tokens"`
	} `json:"input_tokens_details"`
	Output        int64 `json:"output_tokens"`
	OutputDetails struct {
		Reasoning int64 `json:"reasoning_tokens"`
	} `json:"output_tokens_details"`
	Total int64 `json:"total_tokens"`
}

func (f *responseForm) response(status string) response {
	r := response{ID: responseBegin + f.receipt.Agent + "_" + f.receipt.Item, Object: "response", CreatedAt: f.at.Unix(),
		Status: status, Model: f.request.model, Output: []output{},
		asked: asked{Parallel: true, ToolChoice: "auto", Tools: []struct{}{}, Metadata: map[string]any{}}}
	if f.request.instructions != "" {
		r.Instructions = &f.request.instructions
	}
	if f.request.previous != "" {
		r.Previous = &f.request.previous
	}

	return r
}

func (f *responseForm) message(status string, parts ...outputPart) output {
	if parts == nil {
		parts = []outputPart{}
	}
	return output{Type: "message", ID: "msg_" + f.receipt.Item, Status: status, Role: "assistant", Content: parts}
}

func text(s string) outputPart {
	return outputPart{Type: "output_text", Text: s, Annotations: []struct{}{}}
}

// tell writes one event with its number and members.
func (f *responseForm) tell(name string, members map[string]any) error {
	members["type"], members["sequence_number"] = name, f.number
	f.number++
	return f.event(name, members)
}

func (f *responseForm) begin() error {
	for _, one := range []struct {
		name    string
		members map[string]any
	}{
		{"response.created", map[string]any{"response": f.response("in_progress")}},
		{"response.in_progress", map[string]any{"response": f.response("in_progress")}},
		{"response.output_item.added", map[string]any{"output_index": 0, "item": f.message("in_progress")}},
		{"response.content_part.added", f.at0(map[string]any{"part": text("")})},
	} {
		if err := f.tell(one.name, one.members); err != nil {
			return err
		}
	}

	return nil
}

// at0 adds where the one part of the one message is.
func (f *responseForm) at0(members map[string]any) map[string]any {
	members["item_id"], members["output_index"], members["content_index"] = "msg_"+f.receipt.Item, 0, 0
	return members
}

func (f *responseForm) say(s string) error {
	return f.tell("response.output_text.delta", f.at0(map[string]any{"delta": s, "logprobs": []any{}}))
}

func (f *responseForm) end(o event.Outcome) error {
	said := f.sent.String()
	full := f.full(o, said)
	for _, one := range []struct {
		name    string
		members map[string]any
	}{
		{"response.output_text.done", f.at0(map[string]any{"text": said, "logprobs": []any{}})},
		{"response.content_part.done", f.at0(map[string]any{"part": text(said)})},
		{"response.output_item.done", map[string]any{"output_index": 0, "item": full.Output[0]}},
		{"response." + full.Status, map[string]any{"response": full}},
	} {
		if err := f.tell(one.name, one.members); err != nil {
			return err
		}
	}

	return nil
}

func (f *responseForm) fail(e control.ForeignError) error {
	r := f.response("failed")
	r.Error = &responseErr{"server_error", e.Message}
	return f.tell("response.failed", map[string]any{"response": r})
}

func (f *responseForm) whole(o event.Outcome) any { return f.full(o, o.Text) }

// full is the response at its end.
func (f *responseForm) full(o event.Outcome, said string) response {
	status := "completed"
	if finishReason(o) == "length" {
		status = "incomplete"
	}
	r, mine := f.response(status), f.own(o)
	if status == "incomplete" {
		r.Incomplete = &incomplete{"max_output_tokens"}
	}
	r.Output = []output{f.message(status, text(said))}
	u := &usage{Input: o.Work.Input, Output: o.Work.Output, Total: o.Work.Input + o.Work.Output}
	u.InputDetails.Cached, u.OutputDetails.Reasoning = o.Work.CacheRead, o.Work.Reasoning
	r.Usage, r.Daycare = u, &mine

	return r
}
