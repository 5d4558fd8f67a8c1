package providertest

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"daycare/agents/providers"
)

// Conversation is a request with one of everything that can be in one. id is the
// provider that its own reasoning comes from.
func Conversation(id string) *providers.Request {
	user := func(parts ...providers.Part) *providers.Message {
		return &providers.Message{Role: providers.User, Parts: parts}
	}
	image := providers.Image{MimeType: "image/png", Data: []byte("\x89PNG\r\n\x1a\n")}
	return &providers.Request{
		System: "You are <helpful> & \"terse\".\n\tUnicode: ü 世界 👩‍🚀.",
		Tools: []providers.Tool{
			{Name: "read", Description: "Reads a file.",
				Schema: json.RawMessage(`{"type":"object","properties":{"path":{"type":"string"}},"required":["path"]}`)},
			{Name: "list_agents", Description: "Lists the agents."},
		},
		Session: "session-1",
		Messages: []*providers.Message{
			user(providers.Text{Text: "What is in these?"}, image,
				providers.Document{Name: "plan \"b\".pdf", MimeType: "application/pdf", Data: []byte("%PDF-1.7")}),
			{Role: providers.Assistant, Parts: []providers.Part{
				providers.Reasoning{Text: "Own thinking.", Signature: "c2lnbmF0dXJl", Provider: id},
				providers.Reasoning{Text: "Own, without signature.", Provider: id},
				providers.Reasoning{Text: "Of another provider.", Signature: "Zm9yZWlnbg==", Provider: "another"},
				providers.Text{Text: "I read both."},
				providers.Call{ID: "call1", Name: "read", Arguments: json.RawMessage(`{"path": "a.txt"}`)},
				providers.Call{ID: "call2", Name: "read", Arguments: json.RawMessage(`"{\"path\": \"b.tx"`)},
			}},
			{Role: providers.Results, Parts: []providers.Part{
				providers.Result{CallID: "call1", Name: "read", Text: "a picture", Images: []providers.Image{image}},
				providers.Result{CallID: "call2", Name: "read", Text: "the arguments are not JSON", IsError: true},
			}},
			user(providers.Text{Text: "Hurry up."}, providers.Text{Text: "Please."}),
			{Role: providers.Assistant, Parts: []providers.Part{
				providers.Text{Text: ""},
				providers.Call{ID: "call3", Name: "list_agents", Arguments: json.RawMessage(`{}`)},
			}},
			{Role: providers.Results, Parts: []providers.Part{providers.Result{CallID: "call3", Name: "list_agents", Text: "",
				Documents: []providers.Document{{Name: "a.pdf", MimeType: "application/pdf", Data: []byte("%PDF-1.7"), Text: "hello"}}}}},
			{Role: providers.Assistant, Parts: []providers.Part{providers.Reasoning{Text: "Only foreign.",
				Signature: "eA==", Provider: "another"}}},
			user(providers.Text{Text: "Again."}),
			{Role: providers.Assistant, Parts: []providers.Part{
				providers.Call{ID: "call4", Name: "read", Arguments: json.RawMessage(`{"path":"c.png"}`)},
				providers.Call{ID: "call5", Name: "read", Arguments: json.RawMessage(`{"path":"d.png"}`)},
			}},
			{Role: providers.Results, Parts: []providers.Part{
				providers.Result{CallID: "call4", Name: "read", Text: "a picture", Images: []providers.Image{image}},
				providers.Result{CallID: "call5", Name: "read", Text: "another", Images: []providers.Image{image}},
			}},
			{Role: providers.Assistant, Parts: []providers.Part{
				providers.Call{ID: "call6", Name: "read", Arguments: json.RawMessage(`{"path":"e.txt"}`)},
			}},
			{Role: providers.Results, Parts: []providers.Part{providers.Result{CallID: "call6", Name: "read", Text: "only words"}}},
			user(providers.Text{Text: "not UTF-8: \xff\xfe, control: \x00\x1f"}),
		},
	}
}

// A Sent is a request as a server got it.
type Sent struct {
	Path   string
	Header http.Header
	Body   []byte
}

// Capture returns what provider sends for req.
func Capture(t testing.TB, provider New, req *providers.Request) Sent {
	t.Helper()
	var sent Sent
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil || int64(len(body)) != r.ContentLength {
			t.Errorf("read %d bytes of a body of Content-Length %d: %v", len(body), r.ContentLength, err)
		}
		sent = Sent{r.URL.Path, r.Header, body}
		w.WriteHeader(http.StatusTeapot)
	}))
	defer server.Close()
	Collect(t, t.Context(), provider(t, server.URL, client(t)), req)
	if !json.Valid(sent.Body) {
		t.Fatalf("the body is not JSON:\n%s", sent.Body)
	}

	return sent
}

// GoldenRequest compares what provider sends for req with testdata/requests/name.
func GoldenRequest(t *testing.T, name string, provider New, req *providers.Request) {
	t.Helper()
	sent := Capture(t, provider, req)
	var b bytes.Buffer
	b.WriteString("POST " + sent.Path + "\n")

	for _, header := range []string{"Accept", "Anthropic-Beta", "Anthropic-Version", "Authorization", "Content-Type",
		"X-Api-Key", "X-Goog-Api-Key", "X-Title"} {
		if v := sent.Header.Get(header); v != "" {
			b.WriteString(header + ": " + strings.ReplaceAll(v, Key, "KEY") + "\n")
		}
	}

	b.WriteString("\n")
	if err := json.Indent(&b, sent.Body, "", "  "); err != nil {
		t.Fatal(err)
	}
	b.WriteString("\n")
	Golden(t, "requests/"+name, b.Bytes())
}

// A Case is one request and the options of the provider that sends it.
type Case[O any] struct {
	Name   string                   // of the golden file
	Change func(*O)                 // nil: the options of the suite
	Edit   func(*providers.Request) // of a request with one message; nil: Conversation, with all details
}

// GoldenRequests compares what is sent in each case with testdata/requests.
func GoldenRequests[O any](t *testing.T, wire string, with func(change func(*O)) New, cases []Case[O]) {
	for _, c := range cases {
		t.Run(c.Name, func(t *testing.T) {
			req := Conversation(wire)
			if c.Edit != nil {
				req.Messages, req.Tools, req.System = Hello().Messages, nil, ""
				c.Edit(req)
			}
			GoldenRequest(t, c.Name, with(c.Change), req)
		})
	}
}

// NoKey: a provider without a key says so and sends nothing.
func NoKey(t *testing.T, p providers.Provider, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	wantKind(t, Collect(t, t.Context(), p, Hello()), providers.NoKey)
}

// sent: an answer says which bytes it answers, and the same bytes can be made again without sending
// them, whatever the provider is wrapped in.
func (s suite) sent(t *testing.T) {
	var body []byte
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ = io.ReadAll(r.Body)
		stream(w, transcript(t, "text"), 64)
	}))
	defer server.Close()
	blind := func(string) providers.Sight { return providers.Sight{} }
	p := providers.Limit(providers.See(s.new(t, server.URL, client(t)), blind), 1)
	req := Conversation(p.ID())
	events := Collect(t, t.Context(), p, req)
	want := fmt.Sprintf("%x", sha256.Sum256(body))
	if end, ok := events[len(events)-1].(providers.Complete); !ok || end.Sent != want {
		t.Errorf("the stream ends with %+v, want Sent %s", events[len(events)-1], want)
	}

	server.Close()
	made, err := providers.Rehearse(t.Context(), p, Conversation(p.ID()))
	if err != nil || !bytes.Equal(made.Bytes(), body) {
		t.Errorf("made again: %v\n%s\nsent:\n%s", err, made.Bytes(), body)
	}
}

// prefix: what a turn sent is, but for cache markers and the closing brackets, the
// beginning of what the next one sends, also when it is made of what was kept of the one before. The vendors' caches
// depend on it.
func (s suite) prefix(t *testing.T) {
	kept := &providers.Kept{}
	full := Conversation("")
	full.Messages = append(full.Messages, Conversation("").Messages...)
	var previous []byte
	for n := range len(full.Messages) + 1 {
		req := *full
		req.Messages = full.Messages[:n]
		body := Capture(t, s.new, &req).Body
		req.Answered, req.Kept = max(0, n-1), kept
		if again := Capture(t, s.new, &req).Body; !bytes.Equal(again, body) {
			t.Fatalf("request %d of what was kept is\n%s\nwant\n%s", n, again, body)
		}
		if s.wire.Unmark != nil {
			body = s.wire.Unmark(body)
		}
		if !bytes.HasPrefix(body, previous) {
			t.Fatalf("request %d does not begin with request %d:\n%s\n%s", n, n-1, previous, body)
		}

		previous = bytes.TrimSuffix(body, []byte("]}"))
		if len(previous) == len(body) {
			t.Fatalf("the messages are not the last field: …%s", body[max(0, len(body)-80):])
		}
	}
}
