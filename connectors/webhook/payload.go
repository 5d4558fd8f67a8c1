package webhook

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"mime"
	"strconv"
	"strings"
	"text/template"

	"daycare/engine/inbox"
)

// render makes the text for the agent from a body: the template over the payload
// if the hook has one; else a JSON payload's own "text" or all of it in one line;
// else the text as it came.
func render(t *template.Template, mediaType string, body []byte) (string, error) {
	var data any = object{"text": strings.ToValidUTF8(string(body), "\uFFFD")}
	if mediaType != "text/plain" {
		var err error
		if data, err = decode(body); err != nil {
			return "", errNotJSON
		}
	}
	if t != nil {
		out := &bounded{}
		if err := t.Execute(out, data); errors.Is(err, inbox.ErrTooLarge) {
			return "", inbox.ErrTooLarge
		} else if err != nil {
			return "", fmt.Errorf("%w: %w", errTemplate, err)
		}
		return out.String(), nil
	}
	if o, ok := data.(object); ok {
		if text, ok := o["text"].(string); ok {
			return text, nil
		}
	}

	var line bytes.Buffer
	_ = json.Compact(&line, body) // it was decoded before

	return line.String(), nil
}

var (
	errNotJSON  = errors.New("the body is not JSON")
	errTemplate = errors.New("the hook's template does not fit this payload")
	errMedia    = errors.New("want Content-Type application/json or text/plain, without Content-Encoding")
)

// mediaType is text/plain or application/json, whatever spelling it came in.
func mediaType(contentType, encoding string) (string, error) {
	name, _, err := mime.ParseMediaType(contentType)
	switch {
	case err != nil || encoding != "" && encoding != "identity":
	case name == "text/plain":
		return name, nil
	case name == "application/json" || strings.HasPrefix(name, "application/") && strings.HasSuffix(name, "+json"):
		return "application/json", nil
	}

	return "", errMedia
}

// Payloads are decoded into these types, because of what a template prints: a
// number as it was written, a part of the payload as JSON, a missing one as "".
type (
	object map[string]any
	list   []any
)

func (o object) String() string { return compact(o) }
func (l list) String() string   { return compact(l) }

func compact(v any) string {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	_ = e.Encode(v) // what was decoded from JSON always can be

	return strings.TrimSuffix(b.String(), "\n")
}

func decode(body []byte) (any, error) {
	if !json.Valid(body) { // the decoder would stop after the first value
		return nil, errNotJSON
	}
	d := json.NewDecoder(bytes.NewReader(body))
	d.UseNumber()
	var v any
	_ = d.Decode(&v) // it is valid

	return native(v), nil
}

// native makes of a decoded value what templates can compare and print.
func native(v any) any {
	switch v := v.(type) {
	case map[string]any:
		o := make(object, len(v))
		for key, member := range v {
			o[key] = native(member)
		}
		return o
	case []any:
		l := make(list, len(v))
		for i, member := range v {
			l[i] = native(member)
		}
		return l
	case json.Number:
		if i, err := v.Int64(); err == nil {
			return i
		}
		if f, _ := v.Float64(); strconv.FormatFloat(f, 'g', -1, 64) == v.String() {
			return f
		}
		return v
	default:
		return v
	}
}
