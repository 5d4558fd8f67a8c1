package providers

import (
	"cmp"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// sayAll is a wire that says what stands in each frame.
type sayAll struct{ as func(string) Event }

func (s sayAll) Decode(f Frame) []Event { return []Event{s.as(f.Data)} }
func (sayAll) End() []Event             { return []Event{Complete{Finish: EndTurn}} }

// A server of this machine that does not run is told from a network that fails.
func TestNothingListens(t *testing.T) {
	server := httptest.NewServer(http.NotFoundHandler())
	address := server.URL
	server.Close()
	x := &Exchange{Provider: "local", Client: &http.Client{Transport: NewTransport(0)}, URL: address + "/v1/chat/completions",
		Header: http.Header{}, Body: &Body{}, Request: &Request{}}
	for ev := range x.Events(t.Context(), sayAll{}) {
		e, ok := ev.(Error)
		want := "local: nothing listens at " + strings.TrimPrefix(address, "http://") + " (connection refused)"
		if !ok || Classify("local", e.Err).Kind != Down || e.Err.Error() != want {
			t.Errorf("%T %v, want %q", ev, ev, want)
		}
	}
}

// A request without a key is not sent, and the failure says how to give one.
func TestNoKey(t *testing.T) {
	for env, want := range map[string]string{
		"CLAUDE_KEY": "The key for claude is missing. Set CLAUDE_KEY and restart daycare, or: daycare auth set claude",
		"":           "The key for claude is missing. Set it with: daycare auth set claude",
	} {
		r, err := NewRemote("w", Service{ID: "claude", KeyEnv: env}, "https://api.example.com", "")
		if err != nil {
			t.Fatal(err)
		}
		told := 0
		for ev := range r.Stream(t.Context(), &Request{}, func() Outgoing { t.Error("a request was made"); return Outgoing{} }) {
			told++
			e, ok := ev.(Error)
			if !ok || Classify("claude", e.Err).Kind != NoKey || e.Err.Error() != want {
				t.Errorf("%T %v, want %q", ev, ev, want)
			}
		}
		if told != 1 {
			t.Errorf("%d events, want the failure alone", told)
		}
	}
}

// A model that streams forever is given up, whatever it streams, and not asked
// again: it would do the same.
func TestEndlessAnswer(t *testing.T) {
	piece := strings.Repeat("word ", 20_000)
	for name, as := range map[string]func(string) Event{
		"text":      func(s string) Event { return ContentDelta{Text: s} },
		"thinking":  func(s string) Event { return ThinkingDelta{Text: s} },
		"arguments": func(s string) Event { return ToolUseDelta{ID: "c", Arguments: s} },
	} {
		t.Run(name, func(t *testing.T) {
			gone := make(chan struct{})
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				defer close(gone)
				w.Header().Set("Content-Type", "text/event-stream")
				for r.Context().Err() == nil {
					if _, err := fmt.Fprintf(w, "data: %s\n\n", piece); err != nil {
						return
					}
				}
			}))
			defer server.Close()
			x := &Exchange{Provider: "p", Client: server.Client(), URL: server.URL, Header: http.Header{},
				Body: &Body{}, Request: &Request{}}
			size, last := 0, Event(nil)
			for ev := range x.Events(t.Context(), sayAll{as}) {
				last = ev
				size += len(piece)
			}
			e, ok := last.(Error)
			if !ok || Classify("p", e.Err).Kind != Rejected || !strings.Contains(e.Err.Error(), "did not end") {
				t.Errorf("ended with %T %v, want the failure that says that it does not end", last, last)
			}
			if size > maxAnswer+2*len(piece) {
				t.Errorf("%d bytes were taken, limit %d", size, maxAnswer)
			}
			<-gone // the connection was closed
		})
	}
}

// What a server that names no model answers counts for the model that was asked.
func TestAnAnswerWithoutAModel(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		fmt.Fprint(w, "data: x\n\n")
	}))
	defer server.Close()
	for _, named := range []string{"", "exact-2026"} {
		x := &Exchange{Provider: "local", Client: server.Client(), URL: server.URL, Header: http.Header{}, Body: &Body{},
			Request: &Request{}, Model: "asked"}
		var got Complete
		for ev := range x.Events(t.Context(), sayAll{func(string) Event { return Complete{Finish: EndTurn, Model: named} }}) {
			got, _ = ev.(Complete)
		}
		if want := cmp.Or(named, "asked"); got.Model != want || got.Asked != "asked" {
			t.Errorf("the server says %q: model %q, asked %q", named, got.Model, got.Asked)
		}
	}
}
