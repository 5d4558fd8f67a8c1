package bench

import (
	"context"
	"testing"
	"time"
)

func TestBig(t *testing.T) {
	ctx := context.Background()
	d, err := Disk(ctx, t.TempDir(), 64, 2*time.Second)
	t.Logf("disk 64: %.0f/s p50 %v %v", d.Rate(), d.P50, err)
	d1, err := Disk(ctx, t.TempDir(), 1, 1*time.Second)
	t.Logf("disk 1: %.0f/s p50 %v %v", d1.Rate(), d1.P50, err)
	rate, p50, p99, err := Turns(ctx, t.TempDir(), 1000, 20)
	t.Logf("1000x20: %.0f turns/s, p50 %v, p99 %v rss %d MB %v ratio %.2f", rate, p50, p99, rss()>>20, err, rate*3/d.Rate())
	o, o99, err := Overhead(ctx, t.TempDir(), 10_000, 200)
	t.Logf("overhead 10KB: %v p99 %v %v", o, o99, err)
	o, o99, err = Overhead(ctx, t.TempDir(), 500_000, 200)
	t.Logf("overhead 500KB: %v p99 %v %v", o, o99, err)
}
