//go:build otel

package tracing

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	common "go.opentelemetry.io/proto/otlp/common/v1"
	spans "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"

	"daycare/agents"
	"daycare/agents/providers"
	"daycare/engine/event"
)

// A receiver is a receiver of OTLP over HTTP, with the official messages of the protocol.
type receiver struct {
	*httptest.Server
	mu     sync.Mutex
	got    []*spans.Span
	about  []*common.KeyValue
	header http.Header
	path   string
}

func newReceiver(t *testing.T) *receiver {
	r := &receiver{}
	r.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		body, err := io.ReadAll(req.Body)
		var in collector.ExportTraceServiceRequest
		if err != nil || proto.Unmarshal(body, &in) != nil {
			t.Errorf("what arrived is no OTLP: %v", err)
		}
		r.mu.Lock()
		defer r.mu.Unlock()
		r.header, r.path = req.Header, req.URL.Path
		for _, of := range in.ResourceSpans {
			r.about = of.Resource.Attributes
			for _, s := range of.ScopeSpans {
				r.got = append(r.got, s.Spans...)
			}
		}
		out, _ := proto.Marshal(&collector.ExportTraceServiceResponse{}) // it is empty
		w.Header().Set("Content-Type", "application/x-protobuf")
		_, _ = w.Write(out)
	}))
	t.Cleanup(r.Close)
	return r
}

// span is the one with a name.
func (r *receiver) span(t *testing.T, name string) *spans.Span {
	t.Helper()
	i := slices.IndexFunc(r.got, func(s *spans.Span) bool { return s.Name == name })
	if i < 0 {
		t.Fatalf("no span %q among %v", name, r.got)
	}
	return r.got[i]
}

func value(list []*common.KeyValue, key string) any {
	for _, kv := range list {
		if kv.Key == key {
			switch v := kv.Value.Value.(type) {
			case *common.AnyValue_StringValue:
				return v.StringValue
			case *common.AnyValue_IntValue:
				return v.IntValue
			}
			return kv.Value.String()
		}
	}
	return nil
}

// A model answers, or fails.
type model struct {
	answer *providers.Response
	err    error
}

func (m model) Call(context.Context, *providers.Request, func(providers.Event)) (*providers.Response, error) {
	return m.answer, m.err
}

// A turn is a trace: its span, and in it the calls of models and tools and the delivery. What was
// said is in none of them.
func TestATurnIsATrace(t *testing.T) {
	r := newReceiver(t)
	s := event.NewStream("boot")
	tracer, err := New(t.Context(), Options{Endpoint: r.URL, Headers: map[string]string{"Authorization": "Bearer mine"},
		Version: "9", Events: s, Name: func(string) string { return "Ann" }, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- tracer.Run(ctx) }()

	at := time.Now().Add(-time.Minute).Truncate(time.Second)
	emit := func(after time.Duration, typ event.Type, b event.Body) {
		s.Emit(event.Event{Type: typ, At: at.Add(after), Agent: "a", Turn: "t", Body: b})
	}
	emit(0, event.TurnStarted, event.Started{Items: []string{"i"}, Attempt: 1, Model: "m"})
	call := func(m model) {
		_, _ = tracer.Model("a", m).Call(t.Context(), nil, nil)
	}
	call(model{answer: &providers.Response{Text: "a secret", Provider: "anthropic", Model: "m-1", Asked: "m", Finish: providers.EndTurn,
		Usage: providers.Usage{Input: 10, Output: 5, CacheRead: 3}}})
	call(model{err: errors.New("a secret")})
	emit(time.Second, event.ToolStarted, event.Tool{Call: "c", Name: "read", Arguments: []byte(`{"path":"a secret"}`)})
	emit(2*time.Second, event.ToolFinished, event.Tool{Call: "c", Name: "read", Status: "error", Output: "a secret"})
	emit(3*time.Second, event.TurnFinished, event.Finished{Reason: "done", Text: "a secret"})
	s.Emit(event.Event{Type: event.OutboxSent, At: at.Add(5 * time.Second), Agent: "a",
		Body: event.Sent{Out: "o", Connector: "telegram", Parts: 1}})
	cancel()
	if err := <-done; err != nil {
		t.Fatal(err)
	}

	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.got) != 5 || r.path != "/v1/traces" || r.header.Get("Authorization") != "Bearer mine" ||
		value(r.about, "service.name") != "daycare" {
		t.Errorf("%d spans at %s, %v", len(r.got), r.path, r.about)
	}
	turn := r.span(t, "invoke_agent Ann")
	took := func(s *spans.Span) time.Duration { return time.Duration(s.EndTimeUnixNano - s.StartTimeUnixNano) }
	if took(turn) != 3*time.Second || value(turn.Attributes, "gen_ai.agent.id") != "a" ||
		value(turn.Attributes, "gen_ai.operation.name") != "invoke_agent" || len(turn.ParentSpanId) != 0 {
		t.Errorf("%v", turn)
	}
	for name, want := range map[string]map[string]any{
		"chat m": {"gen_ai.provider.name": "anthropic", "gen_ai.response.model": "m-1", "gen_ai.usage.input_tokens": int64(13),
			"gen_ai.usage.output_tokens": int64(5)},
		"chat":              {"error.type": "model_error"},
		"execute_tool read": {"gen_ai.tool.name": "read", "gen_ai.tool.call.id": "c", "error.type": "error"},
		"send telegram":     {"messaging.destination.name": "telegram", "messaging.message.id": "o"},
	} {
		got := r.span(t, name)
		if string(got.ParentSpanId) != string(turn.SpanId) || string(got.TraceId) != string(turn.TraceId) {
			t.Errorf("%s is not in the turn", name)
		}
		for key, should := range want {
			if value(got.Attributes, key) != should {
				t.Errorf("%s: %s is %v, want %v", name, key, value(got.Attributes, key), should)
			}
		}
	}
	if took(r.span(t, "execute_tool read")) != time.Second || took(r.span(t, "send telegram")) != 2*time.Second {
		t.Errorf("%v", r.got)
	}
	for _, s := range r.got {
		if strings.Contains(s.String(), "secret") {
			t.Errorf("what was said is in %v", s)
		}
	}
}

// A receiver that is gone, or hangs, holds nobody up for long.
func TestAReceiverThatIsGone(t *testing.T) {
	s := event.NewStream("boot")
	tracer, err := New(t.Context(), Options{Endpoint: "http://127.0.0.1:1", Events: s, Name: func(string) string { return "" },
		Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- tracer.Run(ctx) }()
	s.Emit(event.Event{Type: event.TurnStarted, Agent: "a", Turn: "t", Body: event.Started{}})
	for range 2 * maxCalls { // none of them waits
		_, _ = tracer.Model("a", model{err: errors.New("x")}).Call(t.Context(), nil, nil)
	}
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}

	if _, err := New(t.Context(), Options{Endpoint: "nowhere"}); err == nil {
		t.Error("an endpoint without a host is taken")
	}
	var off *Tracer
	if _, ok := off.Model("a", model{}).(agents.Model).(model); !ok {
		t.Error("a model is traced by nobody")
	}
}
