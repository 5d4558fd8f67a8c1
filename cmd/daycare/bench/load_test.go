package bench

import (
	"context"
	"testing"
	"time"
)

func TestQuickFigures(t *testing.T) {
	ctx := context.Background()
	rate, p50, p99, resident, err := Turns(ctx, t.TempDir(), 8, 5)
	if err != nil || rate <= 0 {
		t.Fatalf("turns: %v, %v/s", err, rate)
	}
	t.Logf("8 agents: %.0f turns/s, p50 %v, p99 %v, %d MiB resident", rate, p50, p99, resident>>20)
	rate, p50, p99, err = Accept(ctx, t.TempDir(), 8, 200*time.Millisecond)
	if err != nil || rate <= 0 {
		t.Fatalf("accept: %v, %v/s", err, rate)
	}
	t.Logf("8 agents: %.0f accepted/s, p50 %v, p99 %v", rate, p50, p99)
}
