package prompt

import (
	"bytes"
	"encoding/json"
	"strings"

	"daycare/agents/providers"
	"daycare/engine/record"
)

// What the model reads of a call that did not end well. The first words are what
// the system prompt speaks of.
const (
	interruptedText = "interrupted: daycare stopped while this call ran. It may have taken effect; check before you call again."
	canceledText    = "Cancelled: the turn was stopped before this call ended."
	deniedText      = "Permission denied."
	timeoutText     = "Timed out: the call was ended."
	errorText       = "The call failed."
	emptyText       = "(no output)"
)

// resultText is what the model reads of a tool result with that status, and
// whether it is an error. The tool's own words are kept; where they do not say
// what happened, that goes first.
func resultText(status record.Status, text string) (_ string, isError bool) {
	text = clean(text)
	var head string
	switch status {
	case record.StatusOK, "":
		if strings.TrimSpace(text) == "" {
			return emptyText, false
		}
		return text, false
	case record.StatusError:
		if strings.TrimSpace(text) == "" {
			return errorText, true
		}
		return text, true
	case record.StatusCanceled:
		head = canceledText
	case record.StatusInterrupted:
		head = interruptedText
	case record.StatusDenied:
		head = deniedText
	case record.StatusTimeout:
		head = timeoutText
	default: // written by a newer daycare or by a hand
		head = "The call ended with the status " + string(status) + "."
	}

	return under(head, text), true
}

// under puts text below head, unless text already begins with head's first word
// and so says it itself.
func under(head, text string) string {
	word, _, _ := strings.Cut(head, " ")
	word = strings.ToLower(strings.Trim(word, ":."))
	switch {
	case strings.TrimSpace(text) == "", strings.EqualFold(strings.Trim(text, " .\n"), word):
		return head
	case strings.HasPrefix(strings.ToLower(text), word):
		return text
	default:
		return head + "\n" + text
	}
}

// missing is the result of a call that has none.
func missing(call record.ToolCall, canceled bool) providers.Result {
	text := interruptedText
	if canceled {
		text = canceledText
	}

	return providers.Result{CallID: call.ID, Name: call.Name, Text: text, IsError: true}
}

// arguments makes a call's arguments the JSON object that every wire wants. What
// the model wrote and what the file gives back later must be the same bytes, so
// white space is taken out, as it is when the record is written.
func arguments(raw json.RawMessage) json.RawMessage {
	raw = bytes.TrimSpace([]byte(clean(string(raw))))
	if len(raw) == 0 {
		return json.RawMessage(`{}`)
	}
	var b bytes.Buffer
	if json.Compact(&b, raw) != nil {
		return wrapped(string(raw))
	}

	switch compact := b.Bytes(); {
	case compact[0] == '{':
		return compact
	case compact[0] == '"': // broken JSON, kept as a string
		var text string
		if err := json.Unmarshal(compact, &text); err == nil && text != "" {
			return wrapped(text)
		}
		return json.RawMessage(`{}`)
	case string(compact) == "null":
		return json.RawMessage(`{}`)
	default:
		return wrapped(string(compact))
	}
}

// wrapped keeps text that is no object readable for the model that wrote it.
func wrapped(text string) json.RawMessage {
	data, err := json.Marshal(map[string]string{"not_an_object": text})
	if err != nil {
		panic("prompt: a map of strings cannot be encoded: " + err.Error())
	}

	return data
}
