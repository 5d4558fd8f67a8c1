//go:build !otel

package tracing

import (
	"context"
	"errors"

	"daycare/agents"
)

// A Tracer makes spans of what happens. In this build there is none.
type Tracer struct{}

// New reports that this build cannot trace.
func New(context.Context, Options) (*Tracer, error) {
	return nil, errors.New("tracing.endpoint has no effect: this build is without OpenTelemetry\n" +
		"build daycare with it: go build -tags otel ./cmd/daycare")
}

// Model is the model as it is.
func (*Tracer) Model(_ string, m agents.Model) agents.Model { return m }

// Run has nothing to do.
func (*Tracer) Run(context.Context) error { return nil }
