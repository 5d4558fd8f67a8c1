package connectortest

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"daycare/engine/message"
)

// How many messages wait after a night. The long one is played with DAYCARE_LONG=1, and takes
// minutes.
const (
	shortNight = 200
	longNight  = 10_000
)

// mostHeld is how much more memory than before a night can be in use, the fake of the platform
// and what it keeps of the messages included.
const mostHeld = 64 << 20

// night: messages that wait for the connector come in their order, each once, and are not held
// all at once.
func night(t *testing.T, p *platform) {
	n, within := shortNight, patience
	if os.Getenv("DAYCARE_LONG") != "" {
		n, within = longNight, 20*time.Minute
	}
	var all []Message
	for i := range n {
		all = append(all, Message{Key: fmt.Sprintf("night%d", i), Text: fmt.Sprintf("message %d of the night", i)})
	}
	ctx, cancel := context.WithTimeout(t.Context(), within)
	defer cancel()
	c, told := p.new(t), make(chan error, 1)
	go func() {
		for rest := all; len(rest) > 0; {
			for _, received := range p.Offer(ctx, rest...) {
				if !received {
					break
				}
				rest = rest[1:]
			}
			if ctx.Err() != nil {
				told <- fmt.Errorf("%d of %d messages were received within %s", n-len(rest), n, within)
				return
			}
		}
		told <- nil
	}()

	k := &keeperOfOrder{every: max(1, n/20), before: liveHeap(), keys: map[string]bool{}}
	began := time.Now()
	stop := p.run(t, c, k.deliver)
	if err := <-told; err != nil {
		t.Error(err)
	}
	stop()
	if k.next != n || k.wrong != "" {
		t.Errorf("%d messages came, want %d in their order; %s", k.next, n, k.wrong)
	}
	if k.most > mostHeld {
		t.Errorf("%d MiB more were in use than before, want at most %d", k.most>>20, mostHeld>>20)
	}
	t.Logf("%d in order, %.1f MiB, %.1f s", k.next, float64(max(k.most, 0))/(1<<20), time.Since(began).Seconds())
}

// keeperOfOrder is an engine that counts, and measures memory now and then.
type keeperOfOrder struct {
	every  int
	before int64
	mu     sync.Mutex
	keys   map[string]bool
	next   int
	wrong  string
	most   int64 // more than before, in bytes
}

func (k *keeperOfOrder) deliver(_ context.Context, in message.Incoming) (message.Receipt, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	receipt := message.Receipt{Agent: "agent", Item: in.Dedupe, Duplicate: k.keys[in.Dedupe]}
	if receipt.Duplicate {
		return receipt, nil
	}
	k.keys[in.Dedupe] = true
	if want := fmt.Sprintf("message %d of the night", k.next); strings.TrimSpace(in.Text) != want && k.wrong == "" {
		k.wrong = fmt.Sprintf("%q came where %q was next", in.Text, want)
	}
	if k.next++; k.next%k.every == 0 {
		k.most = max(k.most, liveHeap()-k.before)
	}

	return receipt, nil
}

// liveHeap is how much memory is in use, in bytes.
func liveHeap() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}
