package main

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/tidwall/gjson"

	"daycare/engine/lazyregexp"
)

// A strictVendor is a model's service with a window, in one of the wire formats. It takes
// requests apart as the real one does, refuses what that would refuse, counts tokens
// in its own way, and remembers nothing but what a request says.
type strictVendor struct {
	wire   string // anthropic, openai, gemini
	window int    // tokens

	mu        sync.Mutex
	bodies    [][]byte // of all requests, if kept
	keep      bool
	sizes     []int // tokens of each request in the conversation
	turns     []int // the turn that it belongs to
	images    []int // pictures in it
	refused   int
	summaries int
	invalid   []string
}

// wireMessage is one message as every wire has it.
type wireMessage struct {
	role           string // user, model
	texts          []string
	calls, results []string // ids
	images         int
}

const (
	vendorChars = 3.2 // per token
	vendorImage = 1500
)

// question and number are what the user of the test says; a memory is what a
// summary keeps.
var (
	longNumber   = lazyregexp.New(`this is turn (\d+)`)
	longFact     = lazyregexp.New(`the code of turn \d+ is [a-z]+\d+`)
	longQuestion = lazyregexp.New(`what is the code of turn (\d+)\?`)
	callID       = lazyregexp.New(`^[a-zA-Z0-9_-]{1,64}$`)
)

func (v *strictVendor) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil || !gjson.ValidBytes(body) {
		http.Error(w, "no JSON", http.StatusBadRequest)
		return
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.keep {
		v.bodies = append(v.bodies, body)
	}

	system, tools, talk, why := v.read(gjson.ParseBytes(body))
	if why == "" {
		why = unpaired(talk)
	}
	if why != "" {
		v.invalid = append(v.invalid, why)
		w.WriteHeader(http.StatusBadRequest)
		fmt.Fprintf(w, `{"error":{"type":"invalid_request_error","code":"invalid","message":%q}}`, why)
		return
	}

	size := vendorTokens(system, tools, talk)
	if size > v.window {
		v.refused++
		w.WriteHeader(http.StatusBadRequest)
		fmt.Fprintf(w, `{"type":"error","error":{"type":"invalid_request_error","code":"context_length_exceeded","message":"prompt is `+
			`too long: %d tokens > %d maximum"}}`, size, v.window)
		return
	}

	text, call := v.answer(system, talk, size)
	w.Header().Set("Content-Type", "text/event-stream")
	v.write(w, text, call, size)
}

func vendorTokens(system string, tools int, talk []wireMessage) int {
	chars, images := len(system)+tools, 0
	for _, m := range talk {
		for _, t := range m.texts {
			chars += len(t)
		}
		images += m.images
	}

	return int(float64(chars)/vendorChars) + images*vendorImage
}

// unpaired checks what all vendors want of calls: each has its result directly after
// it, and no result is without a call.
func unpaired(talk []wireMessage) string {
	seen := map[string]bool{}
	for i, m := range talk {
		var results []string
		if i+1 < len(talk) {
			results = talk[i+1].results
		}

		switch {
		case i == 0 && m.role != "user":
			return "the first message is not the user's"
		case len(m.texts)+len(m.calls)+len(m.results)+m.images == 0:
			return fmt.Sprintf("message %d has no content", i)
		case !slices.Equal(m.calls, results):
			return fmt.Sprintf("message %d has the calls %v, the next one results of %v", i, m.calls, results)
		case i == len(talk)-1 && m.role == "model":
			return "the last message is the model's"
		}

		for _, id := range m.calls {
			if seen[id] || !callID.MatchString(id) {
				return fmt.Sprintf("the id %q of a call is there twice, or is none", id)
			}
			seen[id] = true
		}
	}

	if len(talk) > 0 && len(talk[0].results) > 0 {
		return "results without calls"
	}
	return ""
}

// answer decides what the model says: a summary that keeps the facts, what it is
// asked for, or one call in each turn before it is done.
func (v *strictVendor) answer(system string, talk []wireMessage, size int) (text string, call bool) {
	all := ""
	for _, m := range talk {
		all += strings.Join(m.texts, "\n") + "\n"
	}
	if strings.HasPrefix(system, "You write the memory") {
		v.summaries++
		var facts []string
		for _, m := range longFact.FindAllStringSubmatch(all, -1) {
			facts = append(facts, m[0])
		}
		kept := slices.Compact(slices.Sorted(slices.Values(facts)))
		return "## Goal\nx\n## Constraints\n- " + strings.Join(kept, "\n- ") +
			"\n## Progress\nnone\n## Decisions\nnone\n## Open work\nnone\n## Files\nnone\n## Next step\nnone", false
	}

	turns := longNumber.FindAllStringSubmatch(all, -1)
	turn, images := 0, 0
	if len(turns) > 0 {
		fmt.Sscan(turns[len(turns)-1][1], &turn)
	}
	for _, m := range talk {
		images += m.images
	}

	v.sizes, v.turns, v.images = append(v.sizes, size), append(v.turns, turn), append(v.images, images)
	last := talk[len(talk)-1]
	asked := strings.Join(last.texts, "\n")
	if q := longQuestion.FindStringSubmatch(asked); q != nil {
		if f := regexp.MustCompile(`the code of turn ` + q[1] + ` is [a-z]+\d+`).FindString(all); f != "" {
			return f, false
		}
		return "I do not know.", false
	}

	return "Done.", len(last.results) == 0 && longNumber.MatchString(asked)
}

// read takes a request apart; why says what the vendor would refuse.
func (v *strictVendor) read(b gjson.Result) (system string, tools int, talk []wireMessage, why string) {
	switch v.wire {
	case "anthropic":
		return readAnthropic(b)
	case "openai":
		return readOpenAI(b)
	}
	return readGemini(b)
}

func isBase64(s string) bool {
	_, err := base64.StdEncoding.DecodeString(s)
	return err == nil && s != ""
}

func readAnthropic(b gjson.Result) (system string, tools int, talk []wireMessage, why string) {
	if b.Get("max_tokens").Int() <= 0 || b.Get("model").String() == "" {
		return "", 0, nil, "max_tokens or model is missing"
	}
	if n := bytes.Count([]byte(b.Raw), []byte(`"cache_control":`)); n > 4 {
		return "", 0, nil, fmt.Sprintf("%d cache markers", n)
	}

	for _, s := range b.Get("system").Array() {
		system += s.Get("text").String()
	}
	tools = len(b.Get("tools").Raw)

	for _, m := range b.Get("messages").Array() {
		x := wireMessage{role: map[string]string{"user": "user", "assistant": "model"}[m.Get("role").String()]}
		for i, part := range m.Get("content").Array() {
			if why = x.anthropic(i, part); why != "" {
				return
			}
		}
		if last := len(talk) - 1; last >= 0 && talk[last].role == x.role { // the service joins them
			x.results = append(talk[last].results, x.results...)
			x.texts, x.images = append(talk[last].texts, x.texts...), x.images+talk[last].images
			talk = talk[:last]
		}
		talk = append(talk, x)
	}
	return
}

func (x *wireMessage) anthropic(i int, part gjson.Result) (why string) {
	switch part.Get("type").String() {
	case "text":
		x.texts = append(x.texts, part.Get("text").String())
		if strings.TrimSpace(part.Get("text").String()) == "" {
			return "an empty text block"
		}
	case "image":
		x.images++
		if !isBase64(part.Get("source.data").String()) || !strings.HasPrefix(part.Get("source.media_type").String(), "image/") {
			return "an image that is none"
		}
	case "tool_use":
		x.calls = append(x.calls, part.Get("id").String())
		x.texts = append(x.texts, part.Get("input").Raw)
		if !part.Get("input").IsObject() {
			return "the input of a call is no object"
		}
	case "tool_result":
		if i > 0 && len(x.results) < i {
			return "a result comes after something else"
		}
		x.results = append(x.results, part.Get("tool_use_id").String())

		for j, inner := range part.Get("content").Array() {
			if inner.Type == gjson.String {
				x.texts = append(x.texts, inner.String())
			} else if why := (*wireMessage).anthropic(x, len(x.results)+j, inner); why != "" {
				return why
			}
		}
	default:
		return "a block of the type " + part.Get("type").String()
	}

	return ""
}

func readOpenAI(b gjson.Result) (system string, tools int, talk []wireMessage, why string) {
	tools = len(b.Get("tools").Raw)
	for _, m := range b.Get("messages").Array() {
		x := wireMessage{role: "user"}
		content := m.Get("content")
		switch role := m.Get("role").String(); role {
		case "system", "developer":
			system += content.String()
			continue
		case "assistant":
			x.role = "model"
			for _, c := range m.Get("tool_calls").Array() {
				x.calls = append(x.calls, c.Get("id").String())
				if x.texts = append(x.texts, c.Get("function.arguments").String()); !gjson.Valid(c.Get("function.arguments").String()) {
					return system, tools, talk, "arguments are no JSON"
				}
			}
		case "tool":
			x.results = []string{m.Get("tool_call_id").String()}
		case "user":
		default:
			return system, tools, talk, "a message of the role " + role
		}

		if content.IsArray() {
			for _, part := range content.Array() {
				url, ok := strings.CutPrefix(part.Get("image_url.url").String(), "data:image/png;base64,")
				if ok && isBase64(url) {
					x.images++
				}
				x.texts = append(x.texts, part.Get("text").String())
			}
		} else if content.String() != "" {
			x.texts = append(x.texts, content.String())
		}

		last := len(talk) - 1
		if last >= 0 && len(x.results) > 0 && len(talk[last].results) > 0 { // results of one answer
			talk[last].results, talk[last].texts = append(talk[last].results, x.results...), append(talk[last].texts, x.texts...)
			continue
		}
		talk = append(talk, x)
	}
	return
}

func readGemini(b gjson.Result) (system string, tools int, talk []wireMessage, why string) {
	system, tools = b.Get("systemInstruction.parts.0.text").String(), len(b.Get("tools").Raw)
	for _, m := range b.Get("contents").Array() {
		x := wireMessage{role: m.Get("role").String()}
		if x.role != "user" && x.role != "model" {
			return system, tools, talk, "a message of the role " + x.role
		}

		for _, part := range m.Get("parts").Array() {
			switch {
			case part.Get("text").Exists():
				x.texts = append(x.texts, part.Get("text").String())
			case part.Get("inlineData").Exists():
				if x.images++; !isBase64(part.Get("inlineData.data").String()) {
					return system, tools, talk, "an image that is none"
				}
			case part.Get("functionCall").Exists():
				x.calls = append(x.calls, part.Get("functionCall.id").String())
				if x.texts = append(x.texts, part.Get("functionCall.args").Raw); !part.Get("functionCall.args").IsObject() {
					return system, tools, talk, "args are no object"
				}
			case part.Get("functionResponse").Exists():
				x.results = append(x.results, part.Get("functionResponse.id").String())
				if x.texts = append(x.texts, part.Get("functionResponse.response").Raw); !part.Get("functionResponse.response").IsObject() {
					return system, tools, talk, "a response that is no object"
				}
			default:
				return system, tools, talk, "a part with nothing in it"
			}
		}

		talk = append(talk, x)
	}
	return
}

// write streams the answer. The call is one of read: a long text, or a picture.
func (v *strictVendor) write(w io.Writer, text string, call bool, size int) {
	path := "long.txt"
	if n := len(v.sizes); n%5 == 0 {
		path = "picture.png"
	}
	id := fmt.Sprintf("call_%s_%d", v.wire, len(v.sizes)+1000*v.summaries)
	args, _ := json.Marshal(map[string]string{"path": path})
	quoted, _ := json.Marshal(string(args))
	words, _ := json.Marshal(text)
	switch v.wire {
	case "anthropic":
		fmt.Fprintf(w, `data: {"type":"message_start","message":{"id":"m","type":"message","role":"assistant","model":"m","content":[],`+
			`"usage":{"input_tokens":%d,"output_tokens":1}}}`+"\n\n", size)
		reason := "end_turn"
		if call {
			reason = "tool_use"
			fmt.Fprintf(w, `data: {"type":"content_block_start","index":0,"content_block":{"type":"tool_use","id":%q,"name":"read",`+
				`"input":{}}}`+"\n\n", id)
			fmt.Fprintf(w, `data: {"type":"content_block_delta","index":0,"delta":{"type":"input_json_delta","partial_json":%s}}`+
				"\n\n", quoted)
		} else {
			fmt.Fprint(w, `data: {"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}`+"\n\n")
			fmt.Fprintf(w, `data: {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":%s}}`+"\n\n", words)
		}
		fmt.Fprint(w, `data: {"type":"content_block_stop","index":0}`+"\n\n")
		fmt.Fprintf(w, `data: {"type":"message_delta","delta":{"stop_reason":%q},"usage":{"output_tokens":20}}`+"\n\n"+
			`data: {"type":"message_stop"}`+"\n\n", reason)
	case "openai":
		delta, reason := fmt.Sprintf(`{"role":"assistant","content":%s}`, words), "stop"
		if call {
			reason = "tool_calls"
			delta = fmt.Sprintf(`{"role":"assistant","tool_calls":[{"index":0,"id":%q,"type":"function","function":{"name":"read",`+
				`"arguments":%s}}]}`, id, quoted)
		}
		fmt.Fprintf(w, `data: {"id":"c","object":"chat.completion.chunk","model":"m","choices":[{"index":0,"delta":%s,`+
			`"finish_reason":null}]}`+"\n\n", delta)
		fmt.Fprintf(w, `data: {"id":"c","object":"chat.completion.chunk","model":"m","choices":[{"index":0,"delta":{},`+
			`"finish_reason":%q}]}`+"\n\n", reason)
		fmt.Fprintf(w, `data: {"id":"c","object":"chat.completion.chunk","model":"m","choices":[],"usage":{"prompt_tokens":%d,`+
			`"completion_tokens":20,"total_tokens":%d}}`+"\n\ndata: [DONE]\n\n", size, size+20)
	default:
		part := fmt.Sprintf(`{"text":%s}`, words)
		if call {
			part = fmt.Sprintf(`{"functionCall":{"id":%q,"name":"read","args":%s}}`, id, args)
		}
		fmt.Fprintf(w, `data: {"candidates":[{"content":{"parts":[%s],"role":"model"},"finishReason":"STOP","index":0}],`+
			`"usageMetadata":{"promptTokenCount":%d,"candidatesTokenCount":20,"totalTokenCount":%d},"modelVersion":"m","responseId":"r"}`+
			"\n\n", part, size, size+20)
	}
}
