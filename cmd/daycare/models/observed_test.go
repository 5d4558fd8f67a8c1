package models

import (
	"context"
	"errors"
	"iter"
	"testing"

	"daycare/agents/providers"
	"daycare/engine/config"
)

// A told provider answers with the events it is told.
type told struct {
	providers.Provider
	next providers.Event
}

func (p *told) ID() string { return "told" }

func (p *told) Stream(context.Context, *providers.Request) iter.Seq[providers.Event] {
	return func(yield func(providers.Event) bool) { yield(p.next) }
}

func TestObserved(t *testing.T) {
	p := &told{}
	seen := &observed{Provider: p}
	m := &Chain{Settings: []config.Provider{{ID: "told", Type: "openai"}}, observed: []*observed{seen}}
	ended, cancel := context.WithCancel(context.Background())
	cancel()
	busy := &providers.Failure{Kind: providers.Busy, Provider: "told", Message: "later"}
	for _, step := range []struct {
		name  string
		ctx   context.Context
		event providers.Event
		state string
	}{
		{"an answer", context.Background(), providers.Complete{}, "running"},
		{"busy", context.Background(), providers.Error{Err: busy}, "failing"},
		{"an answer again", context.Background(), providers.Complete{}, "running"},
		{"a request that it refuses", context.Background(), providers.Error{Err: &providers.Failure{Kind: providers.Rejected}}, "running"},
		{"no connection", context.Background(), providers.Error{Err: errors.New("reset")}, "failing"},
		{"a stopped call", ended, providers.Error{Err: busy}, "failing"},
		{"and better", context.Background(), providers.Complete{}, "running"},
		{"a stopped call, once more", ended, providers.Error{Err: busy}, "running"},
	} {
		p.next = step.event
		for range seen.Stream(step.ctx, &providers.Request{}) {
		}
		got := m.Services(true)[0]
		if got.State != step.state || (got.LastError != "") != (step.state == "failing") {
			t.Errorf("%s: %+v, want %s", step.name, got, step.state)
		}
	}

	if got := m.Services(false)[0].State; got != "off" {
		t.Errorf("without a daemon: %s, want off", got)
	}
}
