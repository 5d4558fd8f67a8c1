package tracing

import (
	"log/slog"

	"daycare/engine/event"
)

// Options of a Tracer.
type Options struct {
	Endpoint string            // http://127.0.0.1:4318, or with the path of the receiver
	Headers  map[string]string // of each request
	Version  string            // of daycare
	Events   *event.Stream
	Name     func(agent string) string // what people call an agent, by its id; "": nothing
	Log      *slog.Logger
}
