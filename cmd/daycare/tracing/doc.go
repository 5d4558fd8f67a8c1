// Package tracing sends traces of what agents do to a receiver of OpenTelemetry, by OTLP over
// HTTP: turns, and in them calls of models and tools and the delivery of answers, named as the
// semantic conventions for generative AI say. It sends what took how long, and never what was said.
//
// It is in builds with the tag otel only, because the SDK adds 5 MB to the program:
// on.go. Others have off.go, which does nothing and says so.
//
// Spans are made of events (engine/event), which wait for no reader, and of the calls of models,
// which are noted beside them: what is lost in a flood is missing in the traces, and nothing waits
// for a receiver that is slow or gone.
package tracing
