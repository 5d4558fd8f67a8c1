package movein

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"

	"daycare/engine/disk"
)

const maxTalk = 64 << 20 // bytes of a conversation

// lines reads a file of one JSON object a line. A mistake in it refuses the whole file, but for
// a last line that is incomplete: the other program was writing it.
func lines[T any](h *home, what, rel string) (all []T, torn, ok bool) {
	data, ok := h.read(what, rel, maxTalk)
	if !ok {
		return nil, false, false
	}

	for off, line := range disk.Lines(data) {
		if len(bytes.TrimSpace(line)) == 0 {
			continue
		}
		var v T
		err := json.Unmarshal(line, &v)
		var syntax *json.SyntaxError
		switch {
		case err == nil:
			all = append(all, v)
		case errors.As(err, &syntax) && int(off)+len(line) == len(data):
			return all, true, true
		default:
			h.skip(what, rel, "%s", jsonError(rel, data, int(off), err))
			return nil, false, false
		}
	}

	return all, false, true
}

// words is a text that is written as a string or as a list of parts, of which those of type
// text are taken. left is how many are not.
type words struct {
	text string
	left int
}

// UnmarshalJSON reads either.
func (w *words) UnmarshalJSON(data []byte) error {
	if len(data) == 0 || data[0] != '[' {
		var text *string
		err := json.Unmarshal(data, &text)
		if text != nil {
			w.text = *text
		}
		return err
	}

	var parts []struct {
		Type string `json:"type"`
		Text string `json:"text"`
	}
	if err := json.Unmarshal(data, &parts); err != nil {
		return err
	}

	var texts []string
	for _, p := range parts {
		switch {
		case p.Type == "text" && strings.TrimSpace(p.Text) != "":
			texts = append(texts, p.Text)
		case p.Type != "text" && p.Type != "thinking":
			w.left++
		}
	}

	w.text = strings.Join(texts, "\n\n")
	return nil
}
