package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"daycare/engine/finding"
	"daycare/engine/message"
	"daycare/engine/permission"
	"daycare/tools"
	"daycare/tools/mcp/mcptest"
)

// The tests talk to a program: this one, run again as a server of the official SDK.
const serveEnv = "DAYCARE_TEST_MCP_SERVER"

func TestMain(m *testing.M) {
	if how := os.Getenv(serveEnv); how != "" {
		mcptest.Serve(how)
		return
	}
	if os.Getenv(probeEnv) != "" {
		if err := runProbe(os.Args[len(os.Args)-1]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

// A world is a pool with what it told.
type world struct {
	*Pool
	t      *testing.T
	dir    string
	mu     sync.Mutex
	found  map[string][]finding.Finding
	starts int
	kept   map[string]string
}

// newWorld is a pool with servers "a" that behave as said.
func newWorld(t *testing.T, how ...string) *world {
	w := &world{t: t, dir: filepath.Join(t.TempDir(), "mcp"), found: map[string][]finding.Finding{}, kept: map[string]string{}}
	if err := os.Mkdir(w.dir, 0o700); err != nil {
		t.Fatal(err)
	}
	write := func(path string, data []byte) error { return os.WriteFile(path, data, 0o600) }
	w.Pool = NewPool(t.Context(), Options{Dir: w.dir, Version: "test", Start: w.start, WriteFile: write, WriteDraft: write,
		Headers: func(Server) (http.Header, error) { return http.Header{"Authorization": {"Bearer key"}}, nil },
		Keep: func(name, kind string, data []byte) (message.File, error) {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.kept[name] = string(data)
			return message.File{ID: "id", Name: name, MimeType: kind, Size: int64(len(data)), Path: "/files/" + name}, nil
		},
		Read: func(path string, found []finding.Finding) {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.found[path] = found
		}})
	t.Cleanup(w.Close)
	w.is(how...)
	return w
}

// is has the servers a, b, c behave as said.
func (w *world) is(how ...string) {
	var list []Server
	for i, h := range how {
		list = append(list, Server{ID: string(rune('a' + i)), Timeout: 2 * time.Minute, Command: h, Stamp: h})
	}
	w.Configure(list)
}

// A child is a server as a program.
type child struct {
	io.ReadCloser
	io.WriteCloser
	cmd *exec.Cmd
}

func (c *child) Close() error {
	err := errors.Join(c.WriteCloser.Close(), c.ReadCloser.Close())
	c.cmd.Process.Kill()
	c.cmd.Wait()
	return err
}

func (w *world) start(s Server, errs io.Writer) (io.ReadWriteCloser, error) {
	if s.Command == "missing" {
		return nil, errors.New("there is no such program")
	}
	w.mu.Lock()
	w.starts++
	w.mu.Unlock()
	cmd := exec.Command(os.Args[0])
	cmd.Env, cmd.Stderr = append(os.Environ(), serveEnv+"="+s.Command), errs
	in, err1 := cmd.StdinPipe()
	out, err2 := cmd.StdoutPipe()
	return &child{out, in, cmd}, errors.Join(err1, err2, cmd.Start())
}

// all waits until the servers were seen, and returns the tools by name.
func (w *world) all() map[string]tools.Tool {
	w.t.Helper()
	w.Offered()
	for _, s := range w.Pool.all() {
		_, done, err := s.use(w.t.Context())
		if err != nil {
			w.t.Fatal(err)
		}
		done()
	}
	list := w.Offered().Tools
	set, err := tools.NewSet(list...)
	if err != nil {
		w.t.Fatal(err)
	}
	by := map[string]tools.Tool{}
	for spec, tool := range set.All() {
		by[spec.Name] = tool
	}
	return by
}

// call calls a tool.
func (w *world) call(ctx context.Context, tool tools.Tool, args string, progress func(string)) tools.Result {
	w.t.Helper()
	if tool == nil {
		w.t.Fatal("there is no such tool")
	}
	if progress == nil {
		progress = func(string) {}
	}
	res, err := tool.Run(ctx, tools.Call{ID: "call-1", Name: tool.Spec().Name, Arguments: json.RawMessage(args), Agent: "x",
		Access: permission.Default("/w"), Progress: progress})
	if err != nil {
		w.t.Fatal(err)
	}
	return res
}

// wrong is what was told of the server a.
func (w *world) wrong() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return fmt.Sprint(w.found[Path(w.dir, "a")])
}

// logged is the log of the server a.
func (w *world) logged() string {
	w.Pool.find("a").log.save()
	data, _ := os.ReadFile(w.dir + "/a.log")
	return string(data)
}
