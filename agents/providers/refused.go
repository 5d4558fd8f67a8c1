package providers

import (
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/tidwall/gjson"

	"daycare/engine/lazyregexp"
)

// maxMessage is how much of a service's message is kept, in bytes.
const maxMessage = 400

// An Answer is an error as a service reports it, with a status or inside a stream.
type Answer struct {
	Status  int // 0 inside a stream
	Type    string
	Code    string
	Message string
	Wait    time.Duration // until the next try makes sense, as Google says it; 0: not said
}

// ReadAnswer reads an error body of any of the known shapes:
//
//	{"type":"error","error":{"type":"overloaded_error","message":"…"}}   Anthropic
//	{"error":{"message":"…","type":"…","code":"…"}}                      OpenAI and most others
//	[{"error":{"code":429,"message":"…","status":"…"}}]                  Gemini
//	{"error":"…"}  {"message":"…"}  {"detail":"…"}                       Ollama, vLLM, gateways
//
// An HTML page, as gateways send it, is reduced to its title.
func ReadAnswer(status int, body string) Answer {
	a := Answer{Status: status}
	v := gjson.Parse(body)
	if !Valid(body) {
		a.Message = pageTitle(body)
		return a
	}
	if v.IsArray() {
		v = v.Get("0")
	}

	e := v.Get("error")
	if !e.IsObject() {
		a.Message = firstString(e, v.Get("message"), v.Get("detail"))
		a.Type = v.Get("type").String()
		return a
	}

	a.Type = firstString(e.Get("type"), e.Get("status"))
	a.Code = e.Get("code").String()
	a.Wait, _ = time.ParseDuration(e.Get(`details.#(@type%"*RetryInfo").retryDelay`).String())

	// OpenRouter wraps the error of the service behind it.
	a.Message = firstString(e.Get("message"), e.Get("metadata.raw"))
	if raw := e.Get("metadata.raw").String(); raw != "" && raw != a.Message {
		a.Message += ": " + raw
	}

	return a
}

func firstString(vs ...gjson.Result) string {
	for _, v := range vs {
		if s := v.String(); s != "" {
			return s
		}
	}

	return ""
}

var title = lazyregexp.New(`(?is)<title[^>]*>(.*?)</title>`)

func pageTitle(body string) string {
	if m := title.FindStringSubmatch(body); m != nil {
		return "a web page: " + strings.TrimSpace(m[1])
	}
	if strings.HasPrefix(strings.TrimSpace(body), "<") {
		return "a web page"
	}

	return body
}

// Kind says what the answer means. Inside a stream (no status) a fault of the
// service is a stream that broke.
func (a Answer) Kind() Kind {
	text := strings.ToLower(a.Type + " " + a.Code + " " + a.Message)
	status := a.Status
	if n, err := strconv.Atoi(a.Code); err == nil && status == 0 {
		status = n
	}

	switch {
	case containsAny(text, noCredit), containsAny(text, badKey):
		return Auth
	case status == http.StatusTooManyRequests && strings.Contains(text, "request too large"):
		return Overflow // more in one request than a whole minute's allowance
	case status == 429 || status == 503 || status == 529:
		return Busy
	case status == 401 || status == 402 || status == 403:
		return Auth
	case status == http.StatusRequestEntityTooLarge || containsAny(text, tooLong):
		return Overflow
	case a.Status != 0:
		return Rejected
	case containsAny(text, busyWords):
		return Busy
	case containsAny(text, authWords):
		return Auth
	case status >= 500 || containsAny(text, brokenWords):
		return Broken
	}

	return Rejected
}

// Words of the vendors' errors, lower case. The lists only grow: a text that is
// not known is Rejected, which stops at once and shows the message.
var (
	noCredit = []string{"insufficient_quota", "credit balance is too low", "billing_error"}
	badKey   = []string{"api key not valid", "api_key_invalid"} // Gemini says 400
	tooLong  = []string{
		"prompt is too long", "exceed context limit", "request_too_large", // Anthropic
		"context_length_exceeded", "maximum context length", // OpenAI, vLLM, OpenRouter
		"exceed_context_size", "exceeds the available context size", // llama.cpp
		"reduce the length of the messages",                          // Groq
		"input token count", "context window", "too large for model", // Gemini, others
		"input is too long", "context length",
	}
	busyWords   = []string{"overloaded", "rate_limit", "rate limit", "resource_exhausted", "unavailable"}
	authWords   = []string{"authentication_error", "permission_error", "invalid_api_key", "permission_denied"}
	brokenWords = []string{"api_error", "server_error", "timeout", "internal"}
)

func containsAny(s string, words []string) bool {
	for _, w := range words {
		if strings.Contains(s, w) {
			return true
		}
	}

	return false
}

// short makes one line of at most maxMessage bytes.
func short(s string) string {
	s = strings.Join(strings.Fields(s), " ")
	if len(s) > maxMessage {
		s = strings.ToValidUTF8(s[:maxMessage], "") + "…"
	}

	return s
}

// retryAfter reads what the service asked for, in any of the three spellings.
func retryAfter(h http.Header, now time.Time) time.Duration {
	if ms, err := strconv.ParseFloat(h.Get("Retry-After-Ms"), 64); err == nil && ms > 0 {
		return seconds(ms / 1000)
	}
	v := h.Get("Retry-After")
	if s, err := strconv.ParseFloat(v, 64); err == nil && s > 0 {
		return seconds(s)
	}
	if at, err := http.ParseTime(v); err == nil && at.After(now) {
		return at.Sub(now)
	}

	return 0
}

// seconds bounds s to a day, against overflow.
func seconds(s float64) time.Duration {
	return time.Duration(min(s, 86400) * float64(time.Second))
}
