package bench

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"daycare/engine/control"
	"daycare/engine/lazyregexp"
	"daycare/engine/workspace"
)

// A child is a real daemon on a workspace of its own, seen from outside.
type child struct {
	root   string // its .daycare
	cmd    *exec.Cmd
	said   bytes.Buffer
	client *control.Client
	http   *http.Client // over the socket: for what a program sees of it, headers and all
}

// launch starts the daemon on work with these settings.
func launch(ctx context.Context, binary, work, settings string) (*child, error) {
	c := &child{root: workspace.At(work).Data}
	if err := os.MkdirAll(c.root, 0o700); err != nil {
		return nil, err
	}
	if err := os.WriteFile(filepath.Join(c.root, "settings.yaml"), []byte(settings), 0o600); err != nil {
		return nil, err
	}

	c.cmd = exec.CommandContext(ctx, binary, "--workspace", work, "start")
	c.cmd.Stdout, c.cmd.Stderr, c.cmd.Env = &c.said, &c.said, append(os.Environ(), "XDG_STATE_HOME="+os.DevNull)
	if err := c.cmd.Start(); err != nil {
		return nil, err
	}

	began, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	var err error
	if c.client, err = connect(began, c.root); err != nil {
		return nil, errors.Join(fmt.Errorf("the daemon does not answer: %w\n%s", err, c.said.String()), c.stop())
	}

	socket := filepath.Join(c.root, control.SocketName)
	c.http = &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 1024,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			var d net.Dialer
			return d.DialContext(ctx, "unix", socket)
		}}}

	return c, nil
}

// stop ends the daemon in order.
func (c *child) stop() error {
	if c.client != nil {
		c.client.Close()
		c.http.CloseIdleConnections()
	}
	err := c.cmd.Process.Signal(syscall.SIGTERM)
	if werr := c.cmd.Wait(); werr != nil && c.cmd.ProcessState.ExitCode() > 0 {
		err = errors.Join(err, fmt.Errorf("the daemon ended badly: %w\n%s", werr, c.said.String()))
	}

	return err
}

// settle waits until nothing waits and nobody works.
func (c *child) settle(ctx context.Context) error {
	for {
		s, err := c.client.Status(ctx)
		if err != nil {
			return err
		}
		if s.Queued == 0 {
			list, err := c.client.Agents(ctx)
			if err != nil {
				return err
			}
			busy := 0
			for _, a := range list {
				if a.State != "" && a.State != "idle" {
					busy++
				}
			}

			if busy == 0 {
				return nil
			}
		}

		select {
		case <-time.After(200 * time.Millisecond):
		case <-ctx.Done():
			return fmt.Errorf("%d items still wait: %w", s.Queued, ctx.Err())
		}
	}
}

// A Usage is what a process holds. Zero is not known.
type Usage struct {
	RSS, Peak       int64 // bytes
	FDs, Goroutines int
}

var (
	peakLine       = lazyregexp.New(`VmHWM:\s+(\d+) kB`)
	goroutinesLine = lazyregexp.New(`(?m)^go_goroutines (\d+)$`)
)

// usage looks at the daemon.
func (c *child) usage(ctx context.Context) (u Usage, err error) {
	if u.RSS, err = resident(c.cmd.Process.Pid); err != nil {
		return u, err
	}
	proc := fmt.Sprintf("/proc/%d/", c.cmd.Process.Pid)
	if data, err := os.ReadFile(proc + "status"); err == nil {
		if m := peakLine.FindSubmatch(data); m != nil {
			kb, _ := strconv.ParseInt(string(m[1]), 10, 64)
			u.Peak = kb << 10
		}
	}
	if list, err := os.ReadDir(proc + "fd"); err == nil {
		u.FDs = len(list)
	}

	text, err := c.client.Metrics(ctx)
	if m := goroutinesLine.FindStringSubmatch(text); m != nil {
		u.Goroutines, _ = strconv.Atoi(m[1])
	}

	return u, err
}

// count finds what each match of pattern in the messages that users wrote, as all
// histories hold them, was, and how often it is there.
func (c *child) count(pattern *lazyregexp.Regexp) (map[string]int, error) {
	seen := map[string]int{}
	err := filepath.WalkDir(filepath.Join(c.root, "agents"), func(path string, d os.DirEntry, err error) error {
		history := strings.HasPrefix(d.Name(), "history") || filepath.Base(filepath.Dir(path)) == "history"
		if err != nil || d.IsDir() || !history || filepath.Ext(path) != ".jsonl" {
			return err
		}
		data, err := os.ReadFile(path)
		for line := range bytes.Lines(data) {
			if bytes.Contains(line, []byte(`"type":"user_message"`)) {
				for _, m := range pattern.FindAll(line, -1) {
					seen[string(m)]++
				}
			}
		}

		return err
	})

	return seen, err
}
