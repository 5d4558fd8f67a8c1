//go:build !race

package bench

import (
	"bufio"
	"fmt"
	"log"
	"net"
	"net/http"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"daycare/agents"
	"daycare/agents/providers/openai"
	"daycare/engine/beneath"
	"daycare/engine/crash/crashtest"
)

// A turn on the real wire allocates at most this. The model is a process of its own. Before the allocations were
// counted there were 1,030 of 125 KB, with those of a model in the same process.
const (
	mostAllocs = 375
	mostBytes  = 45_000
)

// BenchmarkTurnOnTheWire is a turn on a local model that streams 20 pieces over HTTP, in conversations of some lengths.
func BenchmarkTurnOnTheWire(b *testing.B) {
	for _, size := range []struct {
		name            string
		messages, bytes int
	}{{"new", 0, 0}, {"10KB", 10, 1000}, {"1MB", 10, 100_000}, {"turn1000", 1000, 1000}} {
		b.Run(size.name, func(b *testing.B) {
			ask := onTheWire(b)
			for range size.messages {
				ask(strings.Repeat("word ", size.bytes/5))
			}
			b.ReportAllocs()
			for b.Loop() {
				ask("hello")
			}
		})
	}
}

func TestWhatATurnAllocates(t *testing.T) {
	ask := onTheWire(t)
	for range 20 {
		ask("hello")
	}
	allocs, size := allocatedBy(ask)
	t.Logf("a turn: %d allocations, %d bytes", allocs, size)
	if allocs > mostAllocs || size > mostBytes {
		t.Errorf("a turn makes %d allocations of %d bytes, want at most %d of %d", allocs, size, mostAllocs, mostBytes)
	}
}

// A megabyte that was said before is sent as it was encoded then, without being put together. Of each message a turn
// makes a few words, for the list of what is sent.
func TestWhatALongConversationAllocates(t *testing.T) {
	t.Setenv("TMPDIR", crashtest.Memory()) // a thousand turns flush often
	for _, long := range []struct {
		name            string
		messages, bytes int
	}{{"ten messages of 100 KB", 10, 100_000}, {"a thousand of 1 KB", 1000, 1000}} {
		ask := onTheWire(t)
		for range 10 {
			ask("hello")
		}
		shortAllocs, shortBytes := allocatedBy(ask)
		for range long.messages {
			ask(strings.Repeat("word ", long.bytes/5))
		}
		allocs, size := allocatedBy(ask)
		t.Logf("%s: %d allocations of %d bytes, before %d of %d", long.name, allocs, size, shortAllocs, shortBytes)
		if allocs > shortAllocs+20 || size > shortBytes+40_000+uint64(long.messages*2*perMessage) {
			t.Errorf("%s: a turn makes %d allocations of %d bytes, and %d of %d without them", long.name, allocs, size,
				shortAllocs, shortBytes)
		}
	}
}

// perMessage is what a turn allocates for each message sent before: its place in the list grows now and then. A message of a
// user and its answer are two.
const perMessage = 16

// The stack of an agent that waits is 4 KB: what needs more works on another one, which ends with it, and the way to
// where it waits takes little of it.
func TestAnAgentThatWaitsHasASmallStack(t *testing.T) {
	const n, most = 400, 5_000
	w, err := NewWorld(t.TempDir(), instant{"ok"}, agents.Followup)
	if err != nil {
		t.Fatal(err)
	}
	w.Run()
	t.Cleanup(func() { w.Close() })
	ids, err := w.Agents(t.Context(), n)
	if err != nil {
		t.Fatal(err)
	}

	before := stacks()
	for _, id := range ids {
		if o, err := w.Ask(t.Context(), id, "hello"); err != nil || o.Reason != "done" {
			t.Fatal(o.Reason, err)
		}
	}
	each := (stacks() - before) / n
	t.Logf("an agent that waits has %d bytes of stack", each)
	if each > most {
		t.Errorf("an agent that waits has %d bytes of stack, want at most %d", each, most)
	}
}

// stacks is the size of all stacks once those that are mostly empty have shrunk, which each collection does by half.
func stacks() int64 {
	for range 5 {
		runtime.GC()
	}
	var now runtime.MemStats
	runtime.ReadMemStats(&now)

	return int64(now.StackInuse)
}

// allocatedBy is the mean of a turn.
func allocatedBy(ask func(string)) (allocs, size uint64) {
	const turns = 50
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for range turns {
		ask("hello")
	}
	runtime.ReadMemStats(&after)
	return (after.Mallocs - before.Mallocs) / turns, (after.TotalAlloc - before.TotalAlloc) / turns
}

// streamingModel, in the environment, makes this program the model's server.
const streamingModel = "DAYCARE_TEST_STREAMING_MODEL"

func TestMain(m *testing.M) {
	if os.Getenv(streamingModel) != "" {
		streamPieces()
	}
	os.Exit(m.Run())
}

// modelServer starts a process that answers as a model, so that what it allocates is not counted, and returns its address.
func modelServer(t testing.TB) (addr string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), streamingModel+"=1")
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})

	addr, err = bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(addr)
}

// streamPieces prints its address and answers each request with a stream of pieces, until it is killed.
func streamPieces() {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(l.Addr())
	log.Fatal(http.Serve(l, http.HandlerFunc(answerAtOnce)))
}

// onTheWire returns a function that makes one turn of an agent.
func onTheWire(t testing.TB) (ask func(text string)) {
	t.Helper()
	w := worldOnTheWire(t)
	ids, err := w.Agents(t.Context(), 1)
	if err != nil {
		t.Fatal(err)
	}

	time.Sleep(2 * beneath.Tick) // a state.json that was saved within a tick is read for each turn

	return func(text string) {
		if o, err := w.Ask(t.Context(), ids[0], text); err != nil || o.Reason != "done" {
			t.Fatal(o.Reason, err)
		}
	}
}

// worldOnTheWire has agents with a local model that streams 20 pieces over HTTP.
func worldOnTheWire(t testing.TB) *World {
	t.Helper()
	model, err := openai.New(openai.Options{ID: "local", BaseURL: "http://" + modelServer(t) + "/v1", Model: "local"})
	if err != nil {
		t.Fatal(err)
	}
	w, err := NewWorld(t.TempDir(), model, agents.Followup)
	if err != nil {
		t.Fatal(err)
	}
	w.Run()
	t.Cleanup(func() { w.Close() })

	return w
}

// BenchmarkConversationsOnTheWire has several conversations at once with a local model that streams 20 pieces over HTTP. Its
// processor time is that of this process: without the model, with those who ask.
func BenchmarkConversationsOnTheWire(b *testing.B) {
	asDaemon()
	defer runtime.SetDefaultGOMAXPROCS()
	for _, n := range []int{1, 8, 64} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			w := worldOnTheWire(b)
			ids, err := w.Agents(b.Context(), n)
			if err != nil {
				b.Fatal(err)
			}
			var begun atomic.Int64
			before, err := cpuTime(os.Getpid())
			if err != nil {
				b.Fatal(err)
			}
			b.ResetTimer()

			var group errgroup.Group
			for _, id := range ids {
				group.Go(func() error {
					for begun.Add(1) <= int64(b.N) {
						if o, err := w.Ask(b.Context(), id, "hello"); err != nil || o.Reason != "done" {
							return fmt.Errorf("turn: %s: %w", o.Reason, err)
						}
					}
					return nil
				})
			}
			if err := group.Wait(); err != nil {
				b.Fatal(err)
			}
			b.StopTimer()

			after, err := cpuTime(os.Getpid())
			if err != nil {
				b.Fatal(err)
			}
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "turns/s")
			b.ReportMetric(float64((after-before).Microseconds())/1000/float64(b.N), "processor-ms/turn")
		})
	}
}
