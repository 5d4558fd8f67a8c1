//go:build otel

package tracing

import (
	"cmp"
	"context"
	"errors"
	"net/url"
	"strings"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	"daycare/agents"
	"daycare/agents/providers"
	"daycare/engine/event"
)

const (
	exportTime = 10 * time.Second // for one request to the receiver
	flushTime  = 5 * time.Second  // for what is left at the end
	maxCalls   = 1024             // model calls that wait to become spans; others are lost
	maxTurns   = 4096             // agents whose newest turn is known
)

// A Tracer makes spans of what happens.
type Tracer struct {
	o        Options
	provider *sdktrace.TracerProvider
	spans    trace.Tracer
	calls    chan modelCall

	turns map[string]*turn // by agent: the newest; used by Run alone
}

// A turn is a turn of an agent, with what is under way in it.
type turn struct {
	id    string
	ctx   context.Context // of its span
	span  trace.Span      // nil: it has ended
	ended time.Time
	tools map[string]trace.Span
}

// A modelCall is a call of a model that has ended.
type modelCall struct {
	agent        string
	began, ended time.Time
	answer       *providers.Response
	err          error
}

// New makes a tracer. Nothing is sent before Run.
func New(ctx context.Context, o Options) (*Tracer, error) {
	to, err := address(o.Endpoint)
	if err != nil {
		return nil, err
	}
	exporter, err := otlptracehttp.New(ctx, otlptracehttp.WithEndpointURL(to), otlptracehttp.WithHeaders(o.Headers),
		otlptracehttp.WithTimeout(exportTime))
	if err != nil {
		return nil, err
	}
	otel.SetErrorHandler(otel.ErrorHandlerFunc(func(err error) { o.Log.Warn("traces not sent", "err", err) }))
	about := resource.NewSchemaless(attribute.String("service.name", "daycare"), attribute.String("service.version", o.Version))
	t := &Tracer{o: o, calls: make(chan modelCall, maxCalls), turns: map[string]*turn{},
		provider: sdktrace.NewTracerProvider(sdktrace.WithBatcher(exporter), sdktrace.WithResource(about))}
	t.spans = t.provider.Tracer("daycare")

	return t, nil
}

// address is where traces go: below the endpoint, unless that has a path.
func address(endpoint string) (string, error) {
	u, err := url.Parse(endpoint)
	if err != nil || u.Host == "" {
		return "", errors.New("tracing.endpoint: want an http:// or https:// address")
	}
	if strings.Trim(u.Path, "/") == "" {
		u.Path = "/v1/traces"
	}

	return u.String(), nil
}

// Model is a model of an agent whose calls are traced.
func (t *Tracer) Model(agent string, m agents.Model) agents.Model {
	if t == nil {
		return m
	}
	return traced{t, agent, m}
}

type traced struct {
	tracer *Tracer
	agent  string
	model  agents.Model
}

// Call passes everything on.
func (m traced) Call(ctx context.Context, req *providers.Request, watch func(providers.Event)) (*providers.Response, error) {
	began := time.Now()
	answer, err := m.model.Call(ctx, req, watch)
	select {
	case m.tracer.calls <- modelCall{m.agent, began, time.Now(), answer, err}:
	default: // a flood; an agent never waits for its traces
	}

	return answer, err
}

// Run makes spans until ctx ends, and sends what is left.
func (t *Tracer) Run(ctx context.Context) error {
	next := uint64(1)
	read := func() {
		events, first := t.o.Events.Since(next)
		for _, e := range events {
			t.note(e)
		}
		next = max(next, first) + uint64(len(events))
	}
	for changes := t.o.Events.Changes(ctx); ctx.Err() == nil; {
		select {
		case <-ctx.Done():
		case <-changes:
			read()
		case c := <-t.calls:
			read() // its turn began before it
			t.called(c)
		}
	}

	read()
	for len(t.calls) > 0 {
		t.called(<-t.calls)
	}
	for _, of := range t.turns {
		of.end(time.Now())
	}
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), flushTime)
	defer cancel()
	if err := t.provider.Shutdown(last); err != nil {
		t.o.Log.Warn("traces not sent", "err", err)
	}

	return nil
}

// note makes spans of one event. No text of messages, arguments or results gets into them.
func (t *Tracer) note(e event.Event) {
	switch b := e.Body.(type) {
	case event.Started:
		t.begin(e, b)
	case event.Finished:
		t.finish(e, b)
	case event.Tool:
		if e.Type == event.ToolStarted {
			t.toolStarted(e, b)
		} else {
			t.toolFinished(e, b)
		}
	case event.Sent:
		t.delivered(e, b)
	default:
		if e.Type == event.AgentSlept || e.Type == event.AgentEnded {
			t.turns[e.Agent].end(e.At)
			delete(t.turns, e.Agent)
		}
	}
}

// end ends what a turn left open.
func (of *turn) end(at time.Time) {
	if of == nil || of.span == nil {
		return
	}
	for _, span := range of.tools {
		span.End(trace.WithTimestamp(at))
	}
	of.span.End(trace.WithTimestamp(at))
	of.span, of.tools, of.ended = nil, nil, at
}

func (t *Tracer) begin(e event.Event, b event.Started) {
	t.turns[e.Agent].end(e.At)
	if len(t.turns) >= maxTurns {
		clear(t.turns)
	}
	name := cmp.Or(t.o.Name(e.Agent), e.Agent)
	ctx, span := t.spans.Start(context.Background(), "invoke_agent "+name, trace.WithTimestamp(e.At),
		trace.WithSpanKind(trace.SpanKindInternal), trace.WithAttributes(
			attribute.String("gen_ai.operation.name", "invoke_agent"), attribute.String("gen_ai.agent.id", e.Agent),
			attribute.String("gen_ai.agent.name", name), attribute.String("gen_ai.conversation.id", e.Agent),
			attribute.String("gen_ai.request.model", b.Model), attribute.String("daycare.turn.id", e.Turn),
			attribute.Int("daycare.turn.attempt", b.Attempt), attribute.StringSlice("daycare.items", b.Items)))
	t.turns[e.Agent] = &turn{id: e.Turn, ctx: ctx, span: span, tools: map[string]trace.Span{}}
}

func (t *Tracer) finish(e event.Event, b event.Finished) {
	of := t.turns[e.Agent]
	if of == nil || of.span == nil || of.id != e.Turn {
		return
	}
	of.span.SetAttributes(attribute.String("daycare.turn.reason", b.Reason))
	if b.Reason == "error" || b.Reason == "poison" {
		of.span.SetAttributes(attribute.String("error.type", b.Reason))
		of.span.SetStatus(codes.Error, "the turn failed")
	}
	of.end(e.At)
}

// in is where spans of an agent belong: in its newest turn.
func (t *Tracer) in(agent string) context.Context {
	if of := t.turns[agent]; of != nil {
		return of.ctx
	}
	return context.Background()
}

func (t *Tracer) tool(e event.Event, b event.Tool, began time.Time) trace.Span {
	_, span := t.spans.Start(t.in(e.Agent), "execute_tool "+b.Name, trace.WithTimestamp(began), trace.WithAttributes(
		attribute.String("gen_ai.operation.name", "execute_tool"), attribute.String("gen_ai.tool.name", b.Name),
		attribute.String("gen_ai.tool.call.id", b.Call), attribute.String("gen_ai.tool.type", "function")))
	return span
}

func (t *Tracer) toolStarted(e event.Event, b event.Tool) {
	if of := t.turns[e.Agent]; of != nil && of.span != nil {
		of.tools[b.Call] = t.tool(e, b, e.At)
	}
}

func (t *Tracer) toolFinished(e event.Event, b event.Tool) {
	of := t.turns[e.Agent]
	var span trace.Span
	if of != nil && of.tools[b.Call] != nil {
		span = of.tools[b.Call]
		delete(of.tools, b.Call)
	} else {
		span = t.tool(e, b, e.At.Add(-time.Duration(b.MS)*time.Millisecond))
	}
	if b.Status != "ok" {
		span.SetAttributes(attribute.String("error.type", b.Status))
		span.SetStatus(codes.Error, b.Status)
	}
	span.End(trace.WithTimestamp(e.At))
}

// delivered is the way of an answer to its chat: from the end of the turn on.
func (t *Tracer) delivered(e event.Event, b event.Sent) {
	began := e.At
	if of := t.turns[e.Agent]; of != nil && !of.ended.IsZero() && of.ended.Before(began) {
		began = of.ended
	}
	_, span := t.spans.Start(t.in(e.Agent), "send "+b.Connector, trace.WithTimestamp(began), trace.WithSpanKind(trace.SpanKindProducer),
		trace.WithAttributes(attribute.String("messaging.operation.type", "send"), attribute.String("messaging.system", "daycare"),
			attribute.String("messaging.destination.name", b.Connector), attribute.String("messaging.message.id", b.Out),
			attribute.Int("daycare.part", b.Part), attribute.Int("daycare.parts", b.Parts)))
	if e.Type == event.OutboxFailed {
		span.SetAttributes(attribute.String("error.type", "not_delivered"))
		span.SetStatus(codes.Error, "not delivered")
	}
	span.End(trace.WithTimestamp(e.At))
}

// called is a call of a model.
func (t *Tracer) called(c modelCall) {
	list := []attribute.KeyValue{attribute.String("gen_ai.operation.name", "chat")}
	name := "chat"
	if r := c.answer; r != nil && c.err == nil {
		model := cmp.Or(r.Asked, r.Model)
		name = strings.TrimSpace("chat " + model)
		list = append(list, attribute.String("gen_ai.provider.name", r.Provider), attribute.String("gen_ai.request.model", model),
			attribute.String("gen_ai.response.model", r.Model),
			attribute.Int64("gen_ai.usage.input_tokens", r.Usage.Input+r.Usage.CacheRead+r.Usage.CacheWrite),
			attribute.Int64("gen_ai.usage.output_tokens", r.Usage.Output),
			attribute.Int64("gen_ai.usage.cache_read.input_tokens", r.Usage.CacheRead),
			attribute.Int64("gen_ai.usage.cache_creation.input_tokens", r.Usage.CacheWrite),
			attribute.StringSlice("gen_ai.response.finish_reasons", []string{string(r.Finish)}))
	}
	_, span := t.spans.Start(t.in(c.agent), name, trace.WithTimestamp(c.began), trace.WithSpanKind(trace.SpanKindClient),
		trace.WithAttributes(list...))
	if c.err != nil {
		span.SetAttributes(attribute.String("error.type", kindOf(c.err)))
		span.SetStatus(codes.Error, kindOf(c.err))
	}
	span.End(trace.WithTimestamp(c.ended))
}

// kindOf names an error without its text, which may quote a message.
func kindOf(err error) string {
	if errors.Is(err, context.Canceled) {
		return "canceled"
	}
	return "model_error"
}
