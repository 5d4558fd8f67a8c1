//go:build !otel

package tracing

import (
	"strings"
	"testing"
)

// A build without OpenTelemetry says what to do.
func TestABuildWithoutTraces(t *testing.T) {
	tracer, err := New(t.Context(), Options{Endpoint: "http://127.0.0.1:4318"})
	if tracer != nil || err == nil || !strings.Contains(err.Error(), "-tags otel") {
		t.Errorf("%v, %v", tracer, err)
	}
}
