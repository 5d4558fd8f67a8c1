package terminal

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/creack/pty"

	"daycare/engine/control"
	"daycare/engine/event"
)

// Fifty agents stream at a hundred pieces a second each, and a user types: what
// it costs, how much goes to the terminal, and how soon a key is seen.
const (
	loadAgents = 50
	loadEvery  = 10 * time.Millisecond
	loadFor    = 6 * time.Second
	slowLine   = 4 << 10 // bytes a second
)

// TestMain is the UI itself when the load test runs this program again.
func TestMain(m *testing.M) {
	root := os.Getenv("DAYCARE_TUI_ROOT")
	if root == "" {
		os.Exit(m.Run())
	}
	err := Run(context.Background(), Options{
		Dial: func(context.Context) (*control.Client, error) { return control.Dial(root) },
		Own:  own, Workspace: root, Input: os.Stdin, Output: os.Stdout,
	})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// BenchmarkLoad prints what the UI costs meanwhile:
//
//	cpu-%            of one core
//	KB/s, writes/s   to the terminal: how often something is drawn, and how much
//	B/word           to the terminal for one more word of a long answer
//	ms/key, p95-ms/key   from a key to its letter on the screen: half of them, 95 %
//	MB               resident
//
// The UI is a process of its own behind a real socket and a real terminal device.
func BenchmarkLoad(b *testing.B) {
	root, d, stop := serveDaemon(b)
	defer stop()
	ids := make([]string, loadAgents)
	for i := range ids {
		ids[i] = d.add(fmt.Sprintf("%d/", i), fmt.Sprintf("streamer %d", i), func(a *event.Agent) { a.State = event.Thinking })
	}
	for _, page := range []struct {
		name, open string
		line       int
	}{{"one conversation", "\r", 0}, {"all agents", "", 0}, {"one conversation over a slow line", "\r", slowLine}} {
		b.Run(page.name, func(b *testing.B) {
			for b.Loop() {
				load(b, root, d, ids, page.open, page.line)
			}
		})
	}
}

// serveDaemon is the daemon in memory on a real socket.
func serveDaemon(t testing.TB) (root string, d *daemon, stop func()) {
	t.Helper()
	root, err := os.MkdirTemp("", "tui")
	if err != nil {
		t.Fatal(err)
	}
	d = newDaemon()
	l, err := control.ListenUnix(root, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	h := control.Handler(control.Backend{Agents: d, Permissions: d, Daemon: d, Events: d.stream}, control.Options{})
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	wg.Go(func() { _ = control.Serve(ctx, h, slog.New(slog.DiscardHandler), l) })
	return root, d, func() { cancel(); wg.Wait(); os.RemoveAll(root) }
}

// A screenful is what came out of the UI: how much, in how many frames, and when a
// text was seen.
type screenful struct {
	mu      sync.Mutex
	tail    []byte
	bytes   int
	writes  int
	waiting []byte
	seen    chan time.Time
}

func (s *screenful) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.bytes += len(p)
	s.writes++
	s.tail = append(s.tail, p...)
	if len(s.tail) > 1<<16 {
		s.tail = slices.Clone(s.tail[len(s.tail)-1<<12:])
	}
	if s.waiting != nil && bytes.Contains(s.tail, s.waiting) {
		s.waiting = nil
		s.seen <- time.Now()
	}
	return len(p), nil
}

// expect begins to wait for a text that comes from now on.
func (s *screenful) expect(text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.tail, s.waiting = s.tail[:0], []byte(text)
}

// load is one run; line is how many bytes a second the terminal takes, 0 any number.
func load(t *testing.B, root string, d *daemon, ids []string, open string, line int) {
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), "DAYCARE_TUI_ROOT="+root, "TERM=xterm-256color")
	tty, err := pty.StartWithSize(cmd, &pty.Winsize{Rows: 40, Cols: 120})
	if err != nil {
		t.Fatal(err)
	}
	defer tty.Close()
	out := &screenful{seen: make(chan time.Time, 1)}
	var wg sync.WaitGroup
	wg.Go(func() {
		buf := make([]byte, 1<<16)
		if line > 0 {
			buf = buf[:line/64]
		}
		for {
			if line > 0 {
				time.Sleep(time.Second / 64)
			}
			n, err := tty.Read(buf)
			if n > 0 {
				_, _ = out.Write(buf[:n])
			}
			if err != nil {
				return
			}
		}
	})
	time.Sleep(700 * time.Millisecond)
	_, _ = tty.WriteString(open)
	time.Sleep(300 * time.Millisecond)

	one := token(d, ids[0], out)
	ctx, cancel := context.WithTimeout(context.Background(), loadFor)
	defer cancel()
	var streams sync.WaitGroup
	sent := 0
	streams.Go(func() { sent = streaming(ctx, d, ids) })
	before, bytesBefore, writesBefore := usage(t, cmd.Process.Pid), out.bytes, out.writes
	began := time.Now()
	delays := typing(ctx, tty, out, open != "")
	streams.Wait()
	spent := usage(t, cmd.Process.Pid) - before
	took := time.Since(began)
	memory := resident(cmd.Process.Pid)
	out.mu.Lock()
	bytes, writes := out.bytes-bytesBefore, out.writes-writesBefore
	out.mu.Unlock()

	_ = cmd.Process.Signal(syscall.SIGTERM)
	_ = cmd.Wait()
	tty.Close()
	wg.Wait()
	t.ReportMetric(100*spent.Seconds()/took.Seconds(), "cpu-%")
	t.ReportMetric(float64(bytes)/1024/took.Seconds(), "KB/s")
	t.ReportMetric(float64(writes)/took.Seconds(), "writes/s")
	t.ReportMetric(float64(sent)/took.Seconds(), "pieces/s")
	t.ReportMetric(float64(memory>>20), "MB")
	if open == "" {
		return
	}
	if line == 0 { // on a slow line it is not over when it is counted
		t.ReportMetric(float64(one), "B/word")
	}
	if len(delays) == 0 {
		t.Fatal("no key was ever seen on the screen")
	}
	slices.Sort(delays)
	ms := func(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
	t.ReportMetric(ms(delays[len(delays)/2]), "ms/key")
	t.ReportMetric(ms(delays[len(delays)*95/100]), "p95-ms/key")
}

// token is how many bytes go to the terminal for one word in a long answer.
func token(d *daemon, id string, out *screenful) int {
	text := strings.Repeat("words that were said before. ", 60)
	d.emit(event.TurnStarted, id, "t0", event.Started{Attempt: 1})
	d.say(id, "t0", 0, text)
	// The clock of the status line ticks once a second: look between two ticks.
	time.Sleep(time.Second)
	best := 0
	for range 4 {
		out.mu.Lock()
		before := out.bytes
		out.mu.Unlock()
		d.say(id, "t0", len(text), "word ")
		text += "word "
		time.Sleep(200 * time.Millisecond)
		out.mu.Lock()
		n := out.bytes - before
		out.mu.Unlock()
		if best == 0 || n > 0 && n < best {
			best = n
		}
	}
	return best
}

// streaming lets all agents stream until ctx ends.
func streaming(ctx context.Context, d *daemon, ids []string) (sent int) {
	offset := make([]int, len(ids))
	turn := fmt.Sprint("t", time.Now().UnixNano())
	for _, id := range ids {
		d.emit(event.TurnStarted, id, turn, event.Started{Attempt: 1})
	}
	tick := time.NewTicker(loadEvery)
	defer tick.Stop()
	for n := 0; ; n++ {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return sent
		}
		for i, id := range ids {
			text := fmt.Sprintf("word%d ", n%10)
			if n%40 == 39 {
				text += "\n\n"
			}
			d.say(id, turn, offset[i], text)
			offset[i] += len(text)
			sent++
		}
	}
}

// typing types letters and measures when each is seen.
func typing(ctx context.Context, tty *os.File, out *screenful, types bool) (delays []time.Duration) {
	for n := 0; ; n++ {
		select {
		case <-time.After(120 * time.Millisecond):
		case <-ctx.Done():
			return delays
		}
		if !types {
			continue
		}
		letter := string(rune('A' + n%26)) // nothing else on the screen is in capitals
		out.expect(letter)
		at := time.Now()
		_, _ = tty.WriteString(letter)
		select {
		case seen := <-out.seen:
			delays = append(delays, seen.Sub(at))
		case <-ctx.Done():
			return delays
		}
	}
}

// usage is the CPU time of a process so far.
func usage(t testing.TB, pid int) time.Duration {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("/proc", fmt.Sprint(pid), "stat"))
	if err != nil {
		t.Skip("no /proc here to read the CPU time from")
	}
	var user, sys int64
	fields := bytes.Fields(data[bytes.LastIndexByte(data, ')')+1:])
	_, _ = fmt.Sscan(string(fields[11]), &user)
	_, _ = fmt.Sscan(string(fields[12]), &sys)
	return time.Duration(user+sys) * 10 * time.Millisecond
}

func resident(pid int) int64 {
	data, err := os.ReadFile(filepath.Join("/proc", fmt.Sprint(pid), "statm"))
	if err != nil {
		return 0
	}
	var size, pages int64
	_, _ = fmt.Sscan(string(data), &size, &pages)
	return pages * int64(os.Getpagesize())
}
