package transcript

import (
	"encoding/json"
	"strings"
	"time"
)

// A record is one line of history with the members that are shown here. What a
// newer version adds is ignored.
type record struct {
	Type string `json:"type"`
	position
	Text string `json:"text"` // user_message, assistant_message, summary, note
	messageRecord
	answerRecord
	resultRecord
	turnRecord
	requestRecord
	To    int64 `json:"to"`    // rewind
	Final bool  `json:"final"` // delivery
}

// A position says which part of the history a record is.
type position struct {
	Seq  int64     `json:"seq"`
	At   time.Time `json:"at"`
	Turn string    `json:"turn"`
	Item string    `json:"item"`
}

// What only records of these types have.
type (
	messageRecord struct { // user_message
		Origin string `json:"origin"`
		Silent bool   `json:"silent"`
		Files  []file `json:"files"` // also of tool_result
	}
	answerRecord struct { // assistant_message
		Thinking  []thought `json:"thinking"`
		ToolCalls []call    `json:"toolCalls"`
		Finish    string    `json:"finish"`
		Model     string    `json:"model"`
		Tokens    tokens    `json:"tokens"`
	}
	resultRecord struct { // tool_result
		Call   string `json:"toolCallId"`
		Name   string `json:"name"` // also of mark
		Status string `json:"status"`
		Output output `json:"output"`
		MS     int64  `json:"ms"`
	}
	turnRecord struct { // turn_begin, turn_end, reset
		Attempt int    `json:"attempt"`
		Reason  string `json:"reason"`
		Error   string `json:"error"` // also of delivery
		Message string `json:"message"`
	}
	requestRecord struct { // permission
		Event   string `json:"event"`
		Token   string `json:"token"`
		Tag     string `json:"tag"`
		By      string `json:"by"`
		Request string `json:"request"`
	}
)

type (
	file struct {
		Name     string `json:"name"`
		MimeType string `json:"mimeType"`
		Size     int64  `json:"size"`
		Path     string `json:"path"`
	}
	thought struct {
		Text string `json:"text"`
	}
	call struct {
		ID        string          `json:"id"`
		Name      string          `json:"name"`
		Arguments json.RawMessage `json:"arguments"`
	}
	tokens struct {
		Input      int64 `json:"input"`
		Output     int64 `json:"output"`
		CacheRead  int64 `json:"cacheRead"`
		CacheWrite int64 `json:"cacheWrite"`
	}
	output struct {
		Text   string `json:"text"`
		Blocks []struct {
			Type string `json:"type"`
			Text string `json:"text"`
		} `json:"blocks"`
	}
)

// context is how much of the model's window the call had in it.
func (t tokens) context() int64 { return t.Input + t.CacheRead + t.CacheWrite + t.Output }

// diff is the change that a tool reports, "" if it made none.
func (o output) diff() string {
	for _, b := range o.Blocks {
		if b.Type == "diff" {
			return b.Text
		}
	}

	return ""
}

// UnmarshalJSON accepts both the number of a rewind and the address of a delivery: they share a name.
func (r *record) UnmarshalJSON(data []byte) error {
	type plain record
	aux := struct {
		*plain
		To json.RawMessage `json:"to"`
	}{plain: (*plain)(r)}
	if err := json.Unmarshal(data, &aux); err != nil {
		return err
	}
	_ = json.Unmarshal(aux.To, &r.To)
	return nil
}

// mainArguments are what a call is about, in the words of common tools.
var mainArguments = []string{"command", "path", "file", "file_path", "pattern", "query", "url",
	"permission", "name", "task", "prompt", "text"}

// Subject is what a call is about: the most telling of its arguments.
func Subject(arguments json.RawMessage) string {
	var args map[string]any
	if json.Unmarshal(arguments, &args) != nil {
		return ""
	}
	for _, key := range mainArguments {
		if s, ok := args[key].(string); ok && s != "" {
			return s
		}
	}
	var rest []string
	for _, v := range args {
		if s, ok := v.(string); ok {
			rest = append(rest, s)
		}
	}
	if len(rest) == 1 {
		return strings.TrimSpace(rest[0])
	}

	return ""
}
