package chat

import (
	"context"
	"io"
	"testing"
	"testing/synctest"
	"time"
)

// trickle is the body of a file: some bytes at once, each after a pause; then nothing comes
// until the reading is ended.
type trickle struct {
	ctx    context.Context
	pauses []time.Duration
}

func (t *trickle) Read(p []byte) (int, error) {
	if len(t.pauses) == 0 {
		<-t.ctx.Done()
		return 0, t.ctx.Err()
	}
	time.Sleep(t.pauses[0])
	t.pauses = t.pauses[1:]
	if err := t.ctx.Err(); err != nil {
		return 0, err
	}
	p[0] = 'x'

	return 1, nil
}

func (t *trickle) Close() error { return nil }

// A file of which nothing comes holds its chat up for half a minute, one that trickles for a
// minute, and the message goes on without it.
func TestAStalledFileDoesNotHoldUpItsChat(t *testing.T) {
	many := make([]time.Duration, 100)
	for i := range many {
		many[i] = 7 * time.Second
	}

	for name, tt := range map[string]struct {
		open   bool // even the request is not answered
		pauses []time.Duration
		want   string
		within time.Duration
	}{
		"no answer":      {true, nil, "no data arrived for 30 s", stallTime},
		"stalls":         {false, nil, "no data arrived for 30 s", stallTime},
		"stalls later":   {false, many[:3], "no data arrived for 30 s", 21*time.Second + stallTime},
		"trickles":       {false, many, "it took longer than a minute", fetchTime + 7*time.Second},
		"in time, slows": {false, []time.Duration{29 * time.Second, 29 * time.Second}, "it took longer than a minute", fetchTime},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld()
				d := w.desk(Options{}, talker{w})
				p := post("see")
				p.Files = []File{{Name: "a.bin", Open: func(ctx context.Context) (io.ReadCloser, error) {
					if tt.open {
						<-ctx.Done()
						return nil, ctx.Err()
					}
					return &trickle{ctx, tt.pauses}, nil
				}}}
				began := time.Now()
				if err := d.Take(t.Context(), w.deliver, p); err != nil {
					t.Fatalf("Take = %v, want the message without its file", err)
				}
				if took := time.Since(began); took > tt.within {
					t.Errorf("the chat was held up for %s, want at most %s", took, tt.within)
				}
				if in := w.taken[0]; in.Text != "see\n[the file a.bin is missing: "+tt.want+"]" {
					t.Errorf("delivered %q", in.Text)
				}
			})
		})
	}
}
