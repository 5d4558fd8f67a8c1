package bench

import (
	"context"
	"testing"
	"time"
)

func TestQuickFigures(t *testing.T) {
	ctx := context.Background()
	l, err := Turns(ctx, Place{Dir: t.TempDir()}, 8, 5)
	if err != nil || l.Rate <= 0 || l.Spent <= 0 {
		t.Fatalf("turns: %v, %+v", err, l)
	}
	t.Logf("8 agents: %.0f turns/s, p50 %v, p99 %v, %d MiB resident", l.Rate, l.P50, l.P99, l.Resident>>20)
	rate, p50, p99, err := Accept(ctx, Place{Dir: t.TempDir()}, 8, 200*time.Millisecond)
	if err != nil || rate <= 0 {
		t.Fatalf("accept: %v, %v/s", err, rate)
	}
	t.Logf("8 agents: %.0f accepted/s, p50 %v, p99 %v", rate, p50, p99)
}
