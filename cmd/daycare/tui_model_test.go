//go:build !race

package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"daycare/engine/lazyregexp"
)

// A speaker is a service that speaks chat completions as vendors do, and streams as
// long as the test wants: what has to be seen while agents stream is seen however
// slow the machine is.
//
//	stream …           words, then dots until the test lets it end
//	run it             asks for a command, and tells what it printed
//	tell AGENT TEXT    writes to another agent
//	anything else      is repeated
type speaker struct {
	url string

	mu    sync.Mutex
	gates map[string]chan struct{} // by the message that was answered
}

func newSpeaker(t *testing.T) *speaker {
	s := &speaker{gates: map[string]chan struct{}{}}
	server := httptest.NewServer(s)
	s.url = server.URL
	t.Cleanup(server.Close)
	return s
}

func (s *speaker) gate(text string) chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.gates[text] == nil {
		s.gates[text] = make(chan struct{})
	}
	return s.gates[text]
}

// finish lets the stream that answers a message end.
func (s *speaker) finish(text string) { close(s.gate(text)) }

var (
	wrapped = lazyregexp.New(`(?s).*<(?:system_)?message[^>]*>(.*?)</(?:system_)?message>`)
	telling = lazyregexp.New(`^tell (\S+) (.+)$`)
)

// A spoken is the part of a message that the service looks at.
type spoken struct {
	Role    string          `json:"role"`
	Content json.RawMessage `json:"content"` // a text, or parts
}

func (s *speaker) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var req struct{ Messages []spoken }
	if err := json.NewDecoder(r.Body).Decode(&req); err != nil || len(req.Messages) == 0 {
		http.Error(w, `{"error":{"message":"no messages"}}`, http.StatusBadRequest)
		return
	}
	last := req.Messages[len(req.Messages)-1]
	text := string(last.Content)
	if json.Unmarshal(last.Content, &text) != nil {
		var parts []struct{ Text string }
		_ = json.Unmarshal(last.Content, &parts)
		text = parts[len(parts)-1].Text
	}
	if m := wrapped.FindStringSubmatch(text); m != nil {
		text = m[1]
	}

	w.Header().Set("Content-Type", "text/event-stream")
	a := &speech{w: w, r: r}
	to := telling.FindStringSubmatch(text)
	switch {
	case last.Role == "tool" && strings.Contains(text, "made-by-approval"):
		a.say("It printed: " + strings.TrimSpace(text))
	case last.Role == "tool":
		a.say("I have asked.")
	case strings.HasPrefix(text, "stream"):
		a.stream(s.gate(text))
	case text == "run it", strings.HasPrefix(text, "Allowed once"):
		a.call("exec", `{"command":"echo made-by-approval"}`)
	case to != nil:
		a.call("send_agent_message", fmt.Sprintf(`{"agentId":%q,"text":%q}`, to[1], to[2]))
	default:
		a.say("You said: " + text)
	}
}

// A speech is one answer on its way.
type speech struct {
	w http.ResponseWriter
	r *http.Request
}

func (a *speech) chunk(delta, finish string) {
	fmt.Fprintf(a.w, "data: {\"id\":\"x\",\"model\":\"demo\",\"choices\":[{\"index\":0,\"delta\":%s,\"finish_reason\":%s}]}\n\n",
		delta, finish)
	a.w.(http.Flusher).Flush()
}

func (a *speech) text(text string) { a.chunk(fmt.Sprintf(`{"content":%q}`, text), "null") }

func (a *speech) end(reason string) {
	a.chunk("{}", fmt.Sprintf("%q", reason))
	fmt.Fprint(a.w, "data: {\"id\":\"x\",\"choices\":[],\"usage\":{\"prompt_tokens\":900,\"completion_tokens\":20}}\n\ndata: [DONE]\n\n")
}

func (a *speech) say(text string) {
	a.text(text)
	a.end("stop")
}

func (a *speech) call(name, arguments string) {
	a.chunk(fmt.Sprintf(`{"tool_calls":[{"index":0,"id":"call_%d","type":"function","function":{"name":%q,"arguments":%q}}]}`,
		time.Now().UnixNano(), name, arguments), "null")
	a.end("tool_calls")
}

func (a *speech) stream(gate <-chan struct{}) {
	for word := range strings.FieldsSeq("alpha beta gamma delta epsilon zeta eta theta") {
		a.text(word + " ")
	}
	beat := time.NewTicker(50 * time.Millisecond)
	defer beat.Stop()

	for n := 1; ; n++ {
		select {
		case <-gate:
			a.say("End of the stream.")
			return
		case <-a.r.Context().Done():
			return
		case <-beat.C:
			if n%20 == 0 { // a pause without an end, but not silence
				a.text(". ")
			}
		}
	}
}
