package bench

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"daycare/agents"
	"daycare/engine/control"
	"daycare/engine/cuid"
	"daycare/engine/event"
	"daycare/engine/workspace"
)

// A Daemon is what a real daemon process costs.
type Daemon struct {
	Ready  time.Duration // from the start of the process until the API answers
	First  time.Duration // first answer of one agent, over a model that answers at once
	RSS    int64         // resident bytes when idle
	CPU    time.Duration // used while idle
	Idled  time.Duration // how long it was watched
	Agents int
}

// Process starts the daemon binary on a workspace with so many agents, each with a
// history of historyBytes, and measures it from outside.
func Process(ctx context.Context, binary, dir string, count int, historyBytes int64, idle time.Duration) (d Daemon, err error) {
	work, err := os.MkdirTemp(dir, "bench-daemon-")
	if err != nil {
		return d, err
	}
	defer os.RemoveAll(work)
	d.Agents = count
	first, err := populate(ctx, work, count, historyBytes)
	if err != nil {
		return d, fmt.Errorf("prepare %d agents: %w", count, err)
	}
	if err := os.WriteFile(filepath.Join(workspace.At(work).Data, "settings.yaml"),
		[]byte("providers: [{id: offline, type: scripted}]\n"), 0o600); err != nil {
		return d, err
	}

	cmd := exec.CommandContext(ctx, binary, "--workspace", work, "start")
	begin := time.Now()
	if err := cmd.Start(); err != nil {
		return d, err
	}
	defer func() {
		err = errors.Join(err, cmd.Process.Signal(syscall.SIGTERM))
		cmd.Wait()
	}()

	client, err := connect(ctx, workspace.At(work).Data)
	if err != nil {
		return d, err
	}
	defer client.Close()
	d.Ready = time.Since(begin)
	if first != "" {
		at := time.Now()
		if _, err := client.Stream(ctx, first, control.Message{Text: "hello"}, func(control.RawEvent) {}); err != nil {
			return d, fmt.Errorf("first answer: %w", err)
		}
		d.First = time.Since(at)
	}

	return d, d.watch(ctx, cmd.Process.Pid, idle)
}

// connect waits until the API answers.
func connect(ctx context.Context, root string) (*control.Client, error) {
	for {
		client, err := control.Dial(root)
		if err == nil {
			var s event.Status
			if s, err = client.Status(ctx); err == nil && s.Running {
				return client, nil
			}
			client.Close()
		}

		select {
		case <-ctx.Done():
			return nil, errors.Join(ctx.Err(), err)
		case <-time.After(time.Millisecond):
		}
	}
}

// watch looks at the process while it has nothing to do: when it has given back what
// its start needed.
func (d *Daemon) watch(ctx context.Context, pid int, idle time.Duration) error {
	if err := settle(ctx, pid); err != nil {
		return err
	}
	before, err := cpuTime(pid)
	if err != nil {
		return err
	}
	if err := rest(ctx, idle); err != nil {
		return err
	}

	after, err := cpuTime(pid)
	if err != nil {
		return err
	}
	d.CPU, d.Idled = after-before, idle
	d.RSS, err = resident(pid)

	return err
}

// tidied is how long after its start a daemon with few agents has nothing left to tidy up.
const tidied = 3 * time.Second

// settle waits until a daemon that was just started has nothing left to tidy up: it uses no processor for a second, or
// does something all the time.
func settle(ctx context.Context, pid int) error {
	if err := rest(ctx, tidied); err != nil {
		return err
	}
	used := time.Duration(-1)
	for range 60 {
		now, err := cpuTime(pid)
		if err != nil || now == used {
			return err
		}
		used = now
		if err := rest(ctx, time.Second); err != nil {
			return err
		}
	}

	return nil
}

func rest(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// cpuTime is what /proc says a process has used; zero where there is no /proc.
func cpuTime(pid int) (time.Duration, error) {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if errors.Is(err, os.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}

	_, rest, _ := strings.Cut(string(data), ") ")
	f := strings.Fields(rest)
	if len(f) < 13 {
		return 0, fmt.Errorf("read /proc/%d/stat: too short", pid)
	}

	var user, system int64
	if _, err := fmt.Sscan(f[11]+" "+f[12], &user, &system); err != nil {
		return 0, err
	}

	const tick = 10 * time.Millisecond // USER_HZ is 100 on every Linux that Go runs on
	return time.Duration(user+system) * tick, nil
}

func resident(pid int) (int64, error) {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/statm", pid))
	if errors.Is(err, os.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}

	var size, pages int64
	_, err = fmt.Sscan(string(data), &size, &pages)

	return pages * int64(os.Getpagesize()), err
}

// populate writes agents as a finished conversation leaves them: one is real, the
// others are copies of its files. Their histories are holes but for the end,
// because that is all that a start reads, and 10,000 whole ones would be 10 GB.
func populate(ctx context.Context, work string, n int, historyBytes int64) (first string, err error) {
	w, err := NewWorld(work, instant{"hi"}, agents.Followup)
	if err != nil || n == 0 {
		return "", err
	}
	w.Run()
	ids, err := w.Agents(ctx, 1)
	if err == nil {
		_, err = w.Ask(ctx, ids[0], "hello")
	}
	if err = errors.Join(err, w.Close()); err != nil {
		return "", err
	}

	root := filepath.Join(workspace.At(work).Data, "agents")
	files := map[string][]byte{}
	for _, name := range []string{"state.json", "inbox.jsonl", "history.jsonl"} {
		if files[name], err = os.ReadFile(filepath.Join(root, ids[0], name)); err != nil {
			return "", err
		}
	}

	handles, err := os.ReadFile(filepath.Join(root, "handles.jsonl"))
	if err != nil {
		return "", err
	}

	for i := 1; i < n; i++ {
		id := cuid.New()
		handles = fmt.Appendf(handles, `{"handle":"%d/","id":"%s","at":"2026-01-01T00:00:00.000Z"}`+"\n", i, id)
		if err := copyAgent(filepath.Join(root, id), i, files, historyBytes); err != nil {
			return "", err
		}
	}

	return ids[0], os.WriteFile(filepath.Join(root, "handles.jsonl"), handles, 0o600)
}

func copyAgent(dir string, i int, files map[string][]byte, historyBytes int64) error {
	if err := os.Mkdir(dir, 0o700); err != nil {
		return err
	}
	descriptor := fmt.Sprintf(`{"type":"user","connector":"bench","channelId":"%d","userId":"u"}`, i)
	errs := []error{
		os.WriteFile(filepath.Join(dir, "descriptor.json"), []byte(descriptor), 0o600),
		os.WriteFile(filepath.Join(dir, "state.json"), files["state.json"], 0o600),
		os.WriteFile(filepath.Join(dir, "inbox.jsonl"), files["inbox.jsonl"], 0o600),
	}
	f, err := os.OpenFile(filepath.Join(dir, "history.jsonl"), os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}

	end := append([]byte{'\n'}, files["history.jsonl"]...)
	_, err = f.WriteAt(end, max(0, historyBytes-int64(len(end))))
	return errors.Join(append(errs, err, f.Close())...)
}

// Startup is the median wall time of running a command n times.
func Startup(ctx context.Context, n int, binary string, args ...string) (time.Duration, error) {
	times := make([]time.Duration, 0, n)
	for range n {
		at := time.Now()
		if err := exec.CommandContext(ctx, binary, args...).Run(); err != nil {
			return 0, fmt.Errorf("run %s %s: %w", binary, strings.Join(args, " "), err)
		}
		times = append(times, time.Since(at))
	}

	return median(times), nil
}
