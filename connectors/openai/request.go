package openai

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"mime"
	"net/http"
	"slices"
	"strings"
	"unicode"

	"daycare/engine/control"
)

// A request is what a client asked for, whichever form it has.
type request struct {
	model        string
	stream       bool
	usage        bool     // say the usage at the end of a stream
	instructions string   // of the client: its system and developer messages
	rules        []string // those messages, until all are read
	turns        []turn   // the conversation, oldest first
	conversation string   // the client's key of it; ""
	previous     string   // id of the response that it continues from; ""
	key          string   // Idempotency-Key; ""
	ignored      []string
}

// A turn is one message of a conversation as the client has it.
type turn struct {
	role  string // user, assistant or tool
	text  string
	files []control.File
}

// bad is a request with a member that cannot be used.
func bad(field, format string, args ...any) error {
	return &control.Invalid{Field: field, Reason: fmt.Sprintf(format, args...)}
}

// members are those of a body, by name; used takes one out.
type members map[string]json.RawMessage

func readMembers(body []byte) (members, error) {
	var m members
	if err := json.Unmarshal(body, &m); err != nil || m == nil {
		return nil, bad("", "the body is not a JSON object")
	}
	maps.DeleteFunc(m, func(_ string, v json.RawMessage) bool { return string(v) == "null" })
	return m, nil
}

// used decodes a member into v and takes it out; false: it is not there.
func (m members) used(name string, v any) (bool, error) {
	data, ok := m[name]
	delete(m, name)
	if !ok {
		return false, nil
	}
	if err := json.Unmarshal(data, v); err != nil {
		return true, bad(name, "has a value of the wrong type: %.100s", data)
	}

	return true, nil
}

// common reads what both forms have.
func (m members) common(h http.Header, r *request) error {
	if ok, err := m.used("model", &r.model); err != nil {
		return err
	} else if !ok || r.model == "" {
		return bad("model", "is missing; GET /v1/models lists the agents")
	}
	if _, err := m.used("stream", &r.stream); err != nil {
		return err
	}
	var user string
	if _, err := m.used("user", &user); err != nil {
		return err
	}

	switch {
	case h.Get("X-Daycare-Conversation") != "":
		r.conversation = "chat:" + h.Get("X-Daycare-Conversation")
	case h.Get("X-OpenWebUI-Chat-Id") != "":
		r.conversation = "chat:" + h.Get("X-OpenWebUI-Chat-Id")
	case r.conversation == "" && user != "":
		r.conversation = "user:" + user
	}
	r.key = h.Get("Idempotency-Key")
	if len(r.conversation) > maxKey || len(r.key) > maxKey {
		return bad("", "the key of a conversation or request has more than %d bytes", maxKey)
	}

	return nil
}

// maxKey bounds the keys that clients choose, in bytes.
const maxKey = 255

// end completes a request all of whose messages were read, and notes which members nothing was done with.
func (m members) end(r *request) {
	if len(r.rules) > 0 {
		r.instructions = strings.TrimSpace(r.instructions + strings.Join(r.rules, ""))
	}
	r.ignored = slices.Sorted(maps.Keys(m))
}

// readChat reads the body of POST /v1/chat/completions.
func readChat(body []byte, h http.Header) (r request, err error) {
	m, err := readMembers(body)
	if err == nil {
		err = m.common(h, &r)
	}
	if err != nil {
		return r, err
	}

	var n int
	if ok, err := m.used("n", &n); err != nil || ok && n != 1 {
		return r, bad("n", "an agent gives one answer; leave it out or set it to 1")
	}
	var options struct {
		Usage bool `json:"include_usage"`
	}
	if _, err := m.used("stream_options", &options); err != nil {
		return r, err
	}
	r.usage = options.Usage

	list, ok := m["messages"]
	delete(m, "messages")
	if !ok {
		return r, bad("messages", "is missing")
	}
	err = each(list, func(i int, msg chatMessage) error {
		field := fmt.Sprintf("messages[%d]", i)
		text, files, err := content(msg.Content, field+".content")
		if err != nil {
			return err
		}
		if len(msg.ToolCalls) > 0 {
			text = strings.TrimSpace(text + "\n[calls tools: " + string(msg.ToolCalls) + "]")
		}
		return r.add(msg.Role, text, files, field)
	})
	if errors.Is(err, errNoList) {
		err = bad("messages", "has a value of the wrong type: %.100s", list)
	}
	m.end(&r)

	return r, err
}

// errNoList is the error of each for something else than a list of such values.
var errNoList = errors.New("no list")

// each calls do for each value of a list, until one returns an error. Only one is decoded at a time: all of them, if they are empty
// objects, would take a hundred times the memory of the list.
func each[T any](list json.RawMessage, do func(i int, v T) error) error {
	dec := json.NewDecoder(bytes.NewReader(list))
	if begin, err := dec.Token(); err != nil || begin != json.Delim('[') {
		return errNoList
	}

	for i := 0; dec.More(); i++ {
		var v T
		if dec.Decode(&v) != nil {
			return errNoList
		}
		if err := do(i, v); err != nil {
			return err
		}
	}

	return nil
}

type chatMessage struct {
	Role      string          `json:"role"`
	Content   json.RawMessage `json:"content"`
	ToolCalls json.RawMessage `json:"tool_calls"`
}

// add puts a message into the conversation.
func (r *request) add(role, text string, files []control.File, field string) error {
	switch role {
	case "system", "developer":
		if text = strings.TrimRightFunc(text, unicode.IsSpace); text != "" {
			r.rules = append(r.rules, "\n\n", text)
		}
		return nil
	case "function":
		role = "tool"
	case "user", "assistant", "tool":
	default:
		return bad(field+".role", "found %q, allowed: system, developer, user, assistant, tool", role)
	}
	if strings.TrimSpace(text) != "" || len(files) > 0 {
		r.turns = append(r.turns, turn{role, strings.TrimSpace(text), files})
	}

	return nil
}

// readResponses reads the body of POST /v1/responses.
func readResponses(body []byte, h http.Header) (r request, err error) {
	m, err := readMembers(body)
	if err != nil {
		return r, err
	}
	if r.conversation, err = m.conversation(); err == nil {
		err = m.common(h, &r)
	}
	if err == nil {
		_, err = m.used("previous_response_id", &r.previous)
	}
	if err == nil {
		_, err = m.used("instructions", &r.instructions)
	}
	if err != nil {
		return r, err
	}

	input, ok := m["input"]
	delete(m, "input")
	if !ok {
		return r, bad("input", "is missing")
	}
	var text string
	if json.Unmarshal(input, &text) == nil {
		err = r.add("user", text, nil, "input")
	} else {
		err = r.items(input)
	}
	m.end(&r)

	return r, err
}

// conversation is the member of that name: an id, or an object with one.
func (m members) conversation() (string, error) {
	data, ok := m["conversation"]
	delete(m, "conversation")
	if !ok {
		return "", nil
	}
	var in struct{ ID string }
	if json.Unmarshal(data, &in.ID) != nil && json.Unmarshal(data, &in) != nil || in.ID == "" {
		return "", bad("conversation", "found %.100s, allowed: an id, or an object with one", data)
	}

	return "chat:" + in.ID, nil
}

// items reads a list of input items.
func (r *request) items(input []byte) error {
	err := each(input, func(i int, raw json.RawMessage) error {
		var item struct {
			Type    string          `json:"type"`
			Role    string          `json:"role"`
			Content json.RawMessage `json:"content"`
		}
		if json.Unmarshal(raw, &item) != nil {
			return errNoList
		}

		field := fmt.Sprintf("input[%d]", i)
		switch item.Type {
		case "", "message":
		case "reasoning", "item_reference": // the agent has its own
			return nil
		default: // calls of tools and their results: to know, not to execute
			return r.add("tool", "["+item.Type+": "+string(raw)+"]", nil, field)
		}
		text, files, err := content(item.Content, field+".content")
		if err != nil {
			return err
		}
		return r.add(item.Role, text, files, field)
	})
	if errors.Is(err, errNoList) {
		return bad("input", "is neither a text nor a list of items")
	}

	return err
}

// A part is a piece of a message's content, in either form.
type part struct {
	Type    string          `json:"type"`
	Text    string          `json:"text"`
	Refusal string          `json:"refusal"`
	Image   json.RawMessage `json:"image_url"` // {url}, or the url
	Audio   struct {
		Data   string `json:"data"`
		Format string `json:"format"`
	} `json:"input_audio"`
	File *fileRef `json:"file"`
	fileRef
}

type fileRef struct {
	Name string `json:"filename"`
	Data string `json:"file_data"`
	URL  string `json:"file_url"`
	ID   string `json:"file_id"`
}

// content reads the content of a message: a text, or parts.
func content(data json.RawMessage, field string) (text string, files []control.File, err error) {
	if len(data) == 0 || string(data) == "null" || json.Unmarshal(data, &text) == nil {
		return text, nil, nil
	}
	var texts []string
	err = each(data, func(i int, p part) error {
		said, file, err := p.read(fmt.Sprintf("%s[%d]", field, i), len(files)+1)
		if said != "" {
			texts = append(texts, said)
		}
		if file != nil {
			files = append(files, *file)
		}
		return err
	})
	if errors.Is(err, errNoList) {
		err = bad(field, "is neither a text nor a list of parts")
	}
	if err != nil {
		return "", nil, err
	}

	return strings.Join(texts, "\n"), files, nil
}

// read is the text of a part, or the file in it; n numbers the files of a message.
func (p part) read(field string, n int) (text string, file *control.File, err error) {
	switch p.Type {
	case "text", "input_text", "output_text", "summary_text":
		return p.Text, nil, nil
	case "refusal":
		return p.Refusal, nil, nil
	case "image_url", "input_image":
		var url string
		var in struct{ URL string }
		if json.Unmarshal(p.Image, &url) != nil && json.Unmarshal(p.Image, &in) == nil {
			url = in.URL
		}
		return attached(url, fmt.Sprintf("image%d", n), "image", field)
	case "input_audio":
		data, err := base64.StdEncoding.DecodeString(p.Audio.Data)
		if err != nil {
			return "", nil, bad(field, "the audio is not base64")
		}
		return "", &control.File{Name: fmt.Sprintf("audio%d.%s", n, suffix(p.Audio.Format)), Data: data}, nil
	case "file", "input_file":
		f := p.fileRef
		if p.File != nil {
			f = *p.File
		}
		if f.ID != "" {
			return "", nil, bad(field, "files are not stored here: send file_data instead of file_id")
		}
		if f.Data == "" {
			return attached(f.URL, "", "file", field)
		}
		name := f.Name
		if name == "" {
			name = fmt.Sprintf("file%d", n)
		}
		return attached(f.Data, name, "file", field)
	}

	return "", nil, bad(field+".type", "found %q, allowed: text, image_url, input_audio, file", p.Type)
}

// attached makes a file of a data URL. Another address stays text: whether to read it is for the
// agent and its permissions.
func attached(address, name, what, field string) (string, *control.File, error) {
	rest, ok := strings.CutPrefix(address, "data:")
	switch {
	case address == "":
		return "", nil, bad(field, "has no data URL")
	case !ok && (strings.HasPrefix(address, "http://") || strings.HasPrefix(address, "https://")):
		return fmt.Sprintf("[%s: %s]", what, address), nil, nil
	case !ok && what == "file": // some clients send the base64 alone
		rest = "application/octet-stream;base64," + address
	case !ok:
		return "", nil, bad(field, "found %.40q, allowed: a data URL, or an http or https address", address)
	}

	head, encoded, ok := strings.Cut(rest, ",")
	kind, isBase64 := strings.CutSuffix(head, ";base64")
	if !ok || !isBase64 {
		return "", nil, bad(field, "the data URL is not base64")
	}
	data, err := base64.StdEncoding.DecodeString(string(bytes.Join(bytes.Fields([]byte(encoded)), nil)))
	if err != nil || len(data) == 0 {
		return "", nil, bad(field, "the data URL is not base64")
	}
	if kind, _, err := mime.ParseMediaType(kind); err == nil && !strings.Contains(name, ".") {
		if _, sub, ok := strings.Cut(kind, "/"); ok {
			name += "." + suffix(sub)
		}
	}

	return "", &control.File{Name: name, Data: data}, nil
}

// suffix is what a format can be at the end of a file's name.
func suffix(format string) string {
	clean := strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' {
			return r
		}
		return -1
	}, strings.ToLower(format))
	if clean == "" || len(clean) > 8 {
		return "bin"
	}

	return clean
}
