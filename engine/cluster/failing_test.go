package cluster

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"

	"daycare/engine/cluster/clustertest"
	"daycare/engine/disk"
)

// failing is a store of which one call fails.
type failing struct {
	store
	mu   sync.Mutex
	left int // calls until then
}

func (f *failing) fail(what string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.left--; f.left == 0 {
		return fmt.Errorf("%w: %s was seeded", disk.ErrAway, what)
	}
	return nil
}

// met reports whether the call came.
func (f *failing) met() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.left <= 0
}

func (f *failing) last(ctx context.Context, unit string) (logged, error) {
	if err := f.fail("last"); err != nil {
		return logged{}, err
	}
	return f.store.last(ctx, unit)
}

func (f *failing) read(ctx context.Context, unit string) ([]logged, error) {
	if err := f.fail("read"); err != nil {
		return nil, err
	}
	return f.store.read(ctx, unit)
}

func (f *failing) publish(ctx context.Context, unit string, expect uint64, m logged) (uint64, error) {
	if err := f.fail("publish"); err != nil {
		return 0, err
	}
	return f.store.publish(ctx, unit, expect, m)
}

func (f *failing) put(ctx context.Context, sha string, data []byte) error {
	if err := f.fail("put"); err != nil {
		return err
	}
	return f.store.put(ctx, sha, data)
}

func (f *failing) get(ctx context.Context, sha string) ([]byte, error) {
	if err := f.fail("get"); err != nil {
		return nil, err
	}
	return f.store.get(ctx, sha)
}

// acquire acquires an agent with a store of which the nth call fails, and again if that failed; met: there was an
// nth call.
func (m *host) acquire(agent string, n int) (met bool) {
	m.t.Helper()
	f := &failing{store: m.store, left: n}
	m.store = f
	err := m.Acquire(agent)
	if m.store = f.store; err != nil && !errors.Is(err, disk.ErrAway) {
		m.t.Errorf("call %d failed: %v", n, err)
	}
	m.own(agent)

	return f.met()
}

// Whatever call of the servers fails while a machine claims an agent, it has all of it in the end, and nothing else.
func TestAClaimOfWhichACallFails(t *testing.T) {
	t.Parallel()
	s := clustertest.Serve(t, clustertest.Store(t), 0)
	a, b := newHost(t, s), newHost(t, s)
	large := strings.Repeat("large ", 100_000)
	for n := 1; ; n++ {
		agent := fmt.Sprint("agent", n)
		a.make(agent + "/blobs")
		for name, text := range map[string]string{"history.jsonl": "1\n", "blobs/x": large, "state.json": "{}"} {
			if err := os.WriteFile(a.path(agent, name), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		first := a.acquire(agent, n)
		l := a.open(agent, "history.jsonl")
		add(t, l, "2")
		l.Close()
		a.Release(agent, false)

		second := b.acquire(agent, n)
		blob, err := os.ReadFile(b.path(agent, "blobs/x"))
		if got := b.lines(agent, "history.jsonl"); err != nil || string(blob) != large || !slices.Equal(got, []string{"1", "2"}) {
			t.Errorf("without call %d the other machine has %q and %d bytes, %v", n, got, len(blob), err)
		}
		if err := os.WriteFile(b.path(agent, "state.json"), []byte("edited"), 0o600); err != nil {
			t.Fatal(err)
		}
		b.Release(agent, false)

		third := a.acquire(agent, n)
		if state, err := os.ReadFile(a.path(agent, "state.json")); err != nil || string(state) != "edited" {
			t.Errorf("without call %d the first one has the state %q, %v", n, state, err)
		}
		a.Release(agent, true)
		if !first && !second && !third {
			if n < 4 {
				t.Errorf("a claim needs %d calls", n-1)
			}
			return
		}
	}
}
