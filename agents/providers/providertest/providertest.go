package providertest

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"daycare/agents/providers"
)

var update = flag.Bool("update", false, "write the golden files anew")

// Key is what the provider under test must use as its key: no error may show it.
const Key = "sk-canary-3f9c/ü+Q=\"x"

// Idle is what it must use as the longest silence of a stream: a busy machine can be silent for half a second.
const Idle = time.Second

// A Wire is what the suite must know of the format.
type Wire struct {
	// Error is an error body as the vendor sends it.
	Error func(kind, message string) string
	// StreamError is an error inside a stream, as frames.
	StreamError func(kind, message string) string
	// Ended reports whether a stream that is cut here, cleanly, is a whole answer.
	Ended func(prefix string) bool
	// Overflow are the answers for a context that is too long.
	Overflow []Reply
	// NoCredit are those for an account without money.
	NoCredit []Reply
	// Unmark takes cache markers out of a request; nil: none.
	Unmark func(body []byte) []byte
}

// A Reply is one HTTP answer.
type Reply struct {
	Status int
	Body   string
}

// New makes the provider under test, with Key, Idle and client as its HTTP client.
type New func(t testing.TB, baseURL string, client *http.Client) providers.Provider

// Makes returns New for providers that create makes of options, which change may alter.
func Makes[O any, P providers.Provider](create func(O) (P, error),
	options func(baseURL string, client *http.Client) O) func(change func(*O)) New {
	return func(change func(*O)) New {
		return func(t testing.TB, baseURL string, client *http.Client) providers.Provider {
			o := options(baseURL, client)
			if change != nil {
				change(&o)
			}
			p, err := create(o)
			if err != nil {
				t.Fatal(err)
			}

			return p
		}
	}
}

// Run holds a provider to the contract.
func Run(t *testing.T, provider New, wire Wire) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	s := suite{provider, wire}
	t.Run("transcripts", s.transcripts)
	t.Run("cut", s.cut)
	t.Run("refused", s.refused)
	t.Run("faults", s.faults)
	t.Run("inside the stream", s.streamErrors)
	t.Run("cancel", s.cancel)
	t.Run("prefix", s.prefix)
	t.Run("sent", s.sent)
	t.Run("many at once", s.concurrent)
}

type suite struct {
	new  New
	wire Wire
}

// client has connections of its own, with a short patience.
func client(t testing.TB) *http.Client {
	transport := providers.NewTransport(Idle)
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport}
}

// serve starts a server and the provider that talks to it.
func (s suite) serve(t testing.TB, handler http.HandlerFunc) providers.Provider {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body) // a server notices that the client left only after that
		handler(w, r)
	}))
	t.Cleanup(server.Close)

	return s.new(t, server.URL, client(t))
}

// stream writes text in pieces of n bytes, each on its own.
func stream(w http.ResponseWriter, text string, n int) {
	w.Header().Set("Content-Type", "text/event-stream; charset=utf-8")
	for len(text) > 0 {
		k := min(n, len(text))
		fmt.Fprint(w, text[:k])
		w.(http.Flusher).Flush()
		text = text[k:]
	}
}

// Collect reads a whole stream and checks its form: exactly one Complete or Error,
// at the end, and no key in any error.
func Collect(t testing.TB, ctx context.Context, p providers.Provider, req *providers.Request) []providers.Event {
	t.Helper()
	var events []providers.Event
	for ev := range p.Stream(ctx, req) {
		events = append(events, ev)
	}

	if len(events) == 0 {
		t.Fatal("the stream yielded nothing; its last event must be Complete or Error")
	}

	for i, ev := range events {
		if isLast := last(ev); isLast != (i == len(events)-1) {
			t.Fatalf("event %d of %d is %T; exactly the last one must be Complete or Error", i+1, len(events), ev)
		}
		if e, ok := ev.(providers.Error); ok && strings.Contains(fmt.Sprintf("%v %+v %#v", e.Err, e.Err, e.Err), Key) {
			t.Errorf("the key is in the error %v", e.Err)
		}
	}

	return events
}

func last(ev providers.Event) bool {
	switch ev.(type) {
	case providers.Complete, providers.Error:
		return true
	}

	return false
}

// failure is the Failure at the end of events.
func failure(t testing.TB, events []providers.Event) *providers.Failure {
	t.Helper()
	e, ok := events[len(events)-1].(providers.Error)
	if !ok {
		t.Fatalf("stream ended with %+v, want an Error", events[len(events)-1])
	}

	var f *providers.Failure
	if !errors.As(e.Err, &f) {
		t.Fatalf("the error is a %T (%v), want a *providers.Failure", e.Err, e.Err)
	}

	return f
}

func wantKind(t testing.TB, events []providers.Event, kind providers.Kind) *providers.Failure {
	t.Helper()
	f := failure(t, events)
	if f.Kind != kind {
		t.Errorf("kind %q for %v, want %q", f.Kind, f, kind)
	}

	return f
}

// Hello is the least request.
func Hello() *providers.Request {
	return &providers.Request{Messages: []*providers.Message{
		{Role: providers.User, Parts: []providers.Part{providers.Text{Text: "hello"}}},
	}}
}

// transcript reads one of the wire's own.
func transcript(t testing.TB, name string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("testdata", "transcripts", name+".sse"))
	if err != nil {
		t.Fatalf("every wire needs this transcript: %v", err)
	}

	return string(b)
}

// transcripts holds every transcript to its golden events, whatever pieces the
// network makes of it.
func (s suite) transcripts(t *testing.T) {
	files, _ := filepath.Glob(filepath.Join("testdata", "transcripts", "*.sse"))
	if len(files) < 5 {
		t.Fatalf("found %d transcripts", len(files))
	}

	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".sse")
		t.Run(name, func(t *testing.T) {
			text := transcript(t, name)
			want := s.play(t, text, len(text))
			Golden(t, filepath.Join("transcripts", name+".events"), lines(t, want))
			for _, n := range []int{1, 7} {
				if diff := cmp.Diff(string(lines(t, want)), string(lines(t, s.play(t, text, n)))); diff != "" {
					t.Errorf("in pieces of %d bytes the answer reads differently (-whole +pieces):\n%s", n, diff)
				}
			}

			crlf := strings.ReplaceAll(text, "\n", "\r\n")
			if diff := cmp.Diff(string(lines(t, want)), string(lines(t, s.play(t, crlf, 13)))); diff != "" {
				t.Errorf("with CRLF the answer reads differently (-LF +CRLF):\n%s", diff)
			}
		})
	}
}

func (s suite) play(t testing.TB, text string, n int) []providers.Event {
	t.Helper()
	p := s.serve(t, func(w http.ResponseWriter, r *http.Request) { stream(w, text, n) })
	return Collect(t, t.Context(), p, Hello())
}

// lines writes events for users, one a line.
func lines(t testing.TB, events []providers.Event) []byte {
	t.Helper()
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)

	for _, ev := range events {
		fmt.Fprintf(&b, "%s ", strings.TrimPrefix(fmt.Sprintf("%T", ev), "providers."))
		value := any(ev)
		if e, ok := ev.(providers.Error); ok {
			f := providers.Classify("", e.Err)
			value = map[string]any{"Kind": f.Kind, "Error": f.Error()}
		}
		if err := enc.Encode(value); err != nil {
			t.Fatal(err)
		}
	}

	return b.Bytes()
}

// Golden compares got with testdata/name, or writes it with -update.
func Golden(t testing.TB, name string, got []byte) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}

	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatalf("no golden file, make it with -update: %v", err)
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("%s is not what it was; if that is meant, run with -update (-want +got):\n%s", path, diff)
	}
}
