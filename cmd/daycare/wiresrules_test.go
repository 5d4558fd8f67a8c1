package main

import (
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/tidwall/gjson"

	"daycare/engine/lazyregexp"
)

// The rules of each platform for a conversation, as its documentation states them:
// what breaks one is answered with 400. They know nothing of how daycare encodes.

// A ruling collects what is wrong with a request.
type ruling struct{ wrong []string }

func (r *ruling) check(ok bool, format string, args ...any) {
	if !ok {
		r.wrong = append(r.wrong, fmt.Sprintf(format, args...))
	}
}

var wireID = lazyregexp.New(`^[a-zA-Z0-9_-]{1,40}$`)

// signed is what a fake service signs its thinking with: only the model that made
// a signature may get it back.
func signed(model string) string { return "signed-by-" + model }

// anthropicRules: the Messages API (Messages, Tool use, Thinking, Preserved thinking).
func anthropicRules(h http.Header, body gjson.Result) []string {
	var r ruling
	model := body.Get("model").String()
	r.check(body.Get("max_tokens").Int() > 0, "max_tokens is missing")
	r.check(!body.Get("temperature").Exists(), "%s takes no temperature", model)
	r.check(!body.Get("thinking.block_binding").Exists() || strings.Contains(h.Get("Anthropic-Beta"), "thinking-binding-controls-"),
		"block_binding without its beta header")
	r.check(strings.Count(body.Raw, `"cache_control"`) <= 4, "more than four cache markers")
	var calls, open []string
	last := ""
	for i, m := range body.Get("messages").Array() {
		role := m.Get("role").String()
		at := fmt.Sprintf("messages.%d", i)
		r.check(i > 0 || role == "user", "%s: the first message is the %s's", at, role)
		r.check(role != "assistant" || last != "assistant", "%s: two answers in a row", at)
		var results, made []string
		for j, b := range m.Get("content").Array() {
			kind := b.Get("type").String()
			switch kind {
			case "text":
				r.check(strings.TrimSpace(b.Get("text").String()) != "", "%s: a blank text", at)
			case "thinking":
				r.check(role == "assistant" && b.Get("signature").String() == signed(model),
					"%s: thinking with signature %q for %s", at, b.Get("signature"), model)
				r.check(j == 0 || m.Get(fmt.Sprintf("content.%d.type", j-1)).String() == "thinking", "%s: thinking is not in front", at)
			case "tool_use":
				id := b.Get("id").String()
				r.check(role == "assistant" && wireID.MatchString(id) && !slices.Contains(calls, id), "%s: call %q", at, id)
				r.check(b.Get("input").IsObject(), "%s: the input of %s is no object", at, id)
				calls, made = append(calls, id), append(made, id)
			case "tool_result":
				r.check(role == "user" && len(results) == j, "%s: a result behind something else", at)
				results = append(results, b.Get("tool_use_id").String())
			default:
				r.check(kind == "image", "%s: content of type %q", at, kind)
			}
		}

		if len(made) > 0 && body.Get("thinking.type").String() == "enabled" && i+3 >= len(body.Get("messages").Array()) {
			r.check(m.Get("content.0.type").String() == "thinking",
				"%s: with thinking enabled the final answer must start with a thinking block", at)
		}
		r.check(len(m.Get("content").Array()) > 0, "%s: no content", at)
		r.check(slices.Equal(results, open), "%s: results of %v, open are %v", at, results, open)
		open, last = made, role
	}

	r.check(last == "user", "the last message is an answer")
	return r.wrong
}

// chatRules: Chat Completions.
func chatRules(_ http.Header, body gjson.Result) []string {
	var r ruling
	var calls, open []string
	last := ""
	for i, m := range body.Get("messages").Array() {
		role := m.Get("role").String()
		at := fmt.Sprintf("messages.%d", i)
		r.check(role != "system" || i == 0, "%s: a system message inside", at)
		r.check(role == "tool" || len(open) == 0, "%s: the calls %v have no results", at, open)
		r.check(!m.Get("reasoning_content").Exists() && !m.Get("thinking").Exists(), "%s: reasoning, which the format does not take", at)

		switch role {
		case "assistant":
			made := m.Get("tool_calls").Array()
			r.check(len(made) > 0 || m.Get("content").Type == gjson.String, "%s: no content and no calls", at)
			for _, c := range made {
				id := c.Get("id").String()
				r.check(wireID.MatchString(id) && !slices.Contains(calls, id), "%s: call %q", at, id)
				arguments := c.Get("function.arguments")
				r.check(arguments.Type == gjson.String && gjson.Valid(arguments.Str) &&
					gjson.Parse(arguments.Str).IsObject(), "%s: arguments of %s", at, id)
				calls, open = append(calls, id), append(open, id)
			}
		case "tool":
			at := slices.Index(open, m.Get("tool_call_id").String())
			r.check(at >= 0, "messages.%d: a result of %s, open are %v", i, m.Get("tool_call_id"), open)
			if at >= 0 {
				open = slices.Delete(open, at, at+1)
			}
		}

		last = role
	}

	r.check(last == "user" || last == "tool", "the last message is the %s's", last)
	return r.wrong
}

// responsesRules: OpenAI's Responses with store: false.
func responsesRules(_ http.Header, body gjson.Result) []string {
	var r ruling
	model := body.Get("model").String()
	r.check(body.Get("store").Raw == "false", "store is not false")
	r.check(strings.Contains(body.Get("include").Raw, "reasoning.encrypted_content"), "encrypted reasoning is not asked for")
	r.check(!body.Get("temperature").Exists(), "%s takes no temperature", model)
	var calls, open []string
	items := body.Get("input").Array()
	for i, m := range items {
		at := fmt.Sprintf("input.%d", i)
		r.check(!m.Get("id").Exists(), "%s: an id of an item that the service did not keep", at)
		kind := m.Get("type").String()
		if kind == "message" && m.Get("role").String() == "user" || kind == "reasoning" {
			r.check(len(open) == 0, "%s: the calls %v have no outputs", at, open)
		}

		switch kind {
		case "message":
			want := map[string][]string{"user": {"input_text", "input_image", "input_file"},
				"assistant": {"output_text", "refusal"}}[m.Get("role").String()]
			r.check(len(m.Get("content").Array()) > 0, "%s: no content", at)
			for _, c := range m.Get("content").Array() {
				r.check(slices.Contains(want, c.Get("type").String()), "%s: content of type %s by %s", at, c.Get("type"), m.Get("role"))
			}
		case "reasoning":
			r.check(m.Get("encrypted_content").String() == signed(model) && m.Get("summary").IsArray(),
				"%s: reasoning %q for %s", at, m.Get("encrypted_content"), model)
			r.check(i+1 < len(items) && (items[i+1].Get("role").String() == "assistant" ||
				slices.Contains([]string{"reasoning", "function_call"}, items[i+1].Get("type").String())),
				"%s: reasoning without its following item", at)
		case "function_call":
			id := m.Get("call_id").String()
			r.check(wireID.MatchString(id) && !slices.Contains(calls, id), "%s: call %q", at, id)
			r.check(gjson.Valid(m.Get("arguments").Str) && gjson.Parse(m.Get("arguments").Str).IsObject(), "%s: arguments of %s", at, id)
			calls, open = append(calls, id), append(open, id)
		case "function_call_output":
			at := slices.Index(open, m.Get("call_id").String())
			r.check(at >= 0, "input.%d: an output of %s, open are %v", i, m.Get("call_id"), open)
			if at >= 0 {
				open = slices.Delete(open, at, at+1)
			}
		default:
			r.check(false, "%s: type %q", at, kind)
		}
	}

	r.check(len(open) == 0, "the calls %v have no outputs", open)
	return r.wrong
}

// geminiRules: generateContent; since generation 3 it validates signatures.
func geminiRules(path string, body gjson.Result) []string {
	var r ruling
	_, model, _ := strings.Cut(path, "/models/")
	model, _, _ = strings.Cut(model, ":")
	open, last := 0, ""
	for i, c := range body.Get("contents").Array() {
		role := c.Get("role").String()
		at := fmt.Sprintf("contents.%d", i)
		r.check(role == "user" || role == "model", "%s: role %q", at, role)
		r.check(i > 0 || role == "user", "%s: the first content is the model's", at)
		r.check(role == "user" || last == "user", "%s: a call must follow a user's turn or the results", at)
		r.check(len(c.Get("parts").Array()) > 0, "%s: no parts", at)
		made, results := 0, 0
		for j, p := range c.Get("parts").Array() {
			signature := p.Get("thoughtSignature").String()
			r.check(signature == "" || signature == signed(model) || signature == "skip_thought_signature_validator",
				"%s.%d: signature %q for %s", at, j, signature, model)
			if p.Get("functionCall").Exists() {
				r.check(made > 0 || signature != "" || strings.HasPrefix(model, "gemini-2"),
					"%s.%d: the first call has no signature", at, j)
				r.check(p.Get("functionCall.args").IsObject(), "%s.%d: args", at, j)
				made++
			}
			if p.Get("functionResponse").Exists() {
				r.check(p.Get("functionResponse.response").IsObject() && p.Get("functionResponse.name").String() != "",
					"%s.%d: response", at, j)
				results++
			}
		}

		r.check(results == open, "%s: %d results for %d calls", at, results, open)
		open, last = made, role
	}

	r.check(last == "user", "the last content is the model's")
	return r.wrong
}
