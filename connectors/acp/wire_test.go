package acp

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"daycare/engine/control"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// An editor is the other side of a connection whose daemon is not there.
type editor struct {
	t    *testing.T
	to   *io.PipeWriter
	from *bufio.Reader
	end  chan error
}

func connect(t *testing.T) *editor {
	t.Helper()
	in, to := io.Pipe()
	from, out := io.Pipe()
	e := &editor{t: t, to: to, from: bufio.NewReader(from), end: make(chan error, 1)}
	none := func(context.Context) (*control.Client, error) { return nil, control.ErrNotRunning }
	go func() {
		e.end <- Run(context.Background(), Options{Workspace: t.TempDir(), Version: "1", Connect: none, Dial: none,
			Log: slog.New(slog.DiscardHandler)}, in, out)
	}()
	t.Cleanup(func() {
		to.Close()
		if err := <-e.end; err != nil {
			t.Errorf("Run: %v", err)
		}
	})

	return e
}

type response struct {
	ID     json.RawMessage
	Result json.RawMessage
	Error  struct {
		Code    int
		Message string
	}
}

// says writes a message, and returns what comes back.
func (e *editor) says(line string) (r response) {
	e.t.Helper()
	go func() { _, _ = io.WriteString(e.to, line+"\n") }()
	answer, err := e.from.ReadBytes('\n')
	if err != nil {
		e.t.Fatal(err)
	}
	if err := json.Unmarshal(answer, &r); err != nil {
		e.t.Fatalf("%s: %v", answer, err)
	}

	return r
}

// Bad input gets an error that says why, and the connection continues.
func TestBadInputIsAnswered(t *testing.T) {
	e := connect(t)
	for _, tt := range []struct {
		name, line, id string
		code           int
		want           string
	}{
		{"not JSON", `{"jsonrpc":`, "null", -32700, "not JSON"},
		{"a batch", `[{"jsonrpc":"2.0","id":1,"method":"initialize"}]`, "null", -32600, "batches"},
		{"neither id nor method", `{"jsonrpc":"2.0"}`, "null", -32600, "neither a method nor an id"},
		{"an unknown method", `{"jsonrpc":"2.0","id":"a","method":"session/fly","params":{}}`, `"a"`, -32601, "not found"},
		{"no session", `{"jsonrpc":"2.0","id":2,"method":"session/prompt","params":{"sessionId":"x","prompt":[{"type":"text",` +
			`"text":"hi"}]}}`,
			"2", codeMissing, `no session "x"`},
		{"outside of the workspace", `{"jsonrpc":"2.0","id":3,"method":"session/new","params":{"cwd":"/","mcpServers":[]}}`, "3",
			codeInvalid, "/ is not in the workspace"},
		{"100 MB", `{"jsonrpc":"2.0","id":4,"method":"session/prompt","params":{"x":"` + strings.Repeat("y", 100<<20) + `"}}`, "4", -32600,
			"the message has 1048576"},
		{"no daemon", `{"jsonrpc":"2.0","id":5,"method":"session/list","params":{}}`, "5", codeInternal, "the daemon is not running"},
	} {
		r := e.says(tt.line)
		if string(r.ID) != tt.id || r.Error.Code != tt.code || !strings.Contains(r.Error.Message, tt.want) {
			t.Errorf("%s: id %s, code %d, %q; want %s, %d, %q", tt.name, r.ID, r.Error.Code, r.Error.Message, tt.id, tt.code, tt.want)
		}
	}

	r := e.says(`{"jsonrpc":"2.0","id":6,"method":"initialize","params":{"protocolVersion":1,"clientCapabilities":{}}}`)
	if !strings.Contains(string(r.Result), `"loadSession":true`) {
		t.Errorf("after all that, initialize: %s %v", r.Result, r.Error)
	}
}

// A second request with the id of one that has no response yet is refused; the first is not lost.
func TestAnIDIsUsedOnce(t *testing.T) {
	w, lines := newWire(nil, io.Discard)
	go func() { _, _ = io.Copy(io.Discard, lines) }()
	defer w.feed.Close()
	var said strings.Builder
	w.out = &said
	line := []byte(`{"jsonrpc":"2.0","id":"<7>","method":"session/list","params":{}}`)
	if !w.take(line, len(line)) || said.Len() > 0 {
		t.Fatalf("the first was refused: %s", said.String())
	}
	if !w.take(line, len(line)) {
		t.Error("nothing more is read")
	}
	if !strings.Contains(said.String(), `"id":"\u003c7\u003e"`) || !strings.Contains(said.String(), "has no response yet") {
		t.Errorf("the second: %s", said.String())
	}

	said.Reset()
	if _, err := fmt.Fprintln(w, `{"jsonrpc":"2.0","id":"\u003c7\u003e","result":{}}`); err != nil {
		t.Fatal(err)
	}
	said.Reset()
	if w.take(line, len(line)); said.Len() > 0 {
		t.Errorf("after the response: %s", said.String())
	}
}

// The end of the program ends the connection, although the editor still speaks.
func TestTheProgramEnds(t *testing.T) {
	in, to := io.Pipe()
	defer to.Close()
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		ended <- Run(ctx, Options{Workspace: t.TempDir(), Log: slog.New(slog.DiscardHandler)}, in, io.Discard)
	}()
	fmt.Fprintln(to, `{"jsonrpc":"2.0","method":"session/cancel","params":{"sessionId":"none"}}`)
	cancel()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("Run: %v", err)
	}
}

func TestALongLineIsLetGo(t *testing.T) {
	in := bufio.NewReader(io.MultiReader(strings.NewReader(`{"id":1,"x":"`+strings.Repeat("y", maxLine)+"\"}\n"),
		strings.NewReader("{}\n")))
	line, size, err := readLine(in)
	if err != nil || size <= maxLine || len(line) > maxHead || string(idIn(line)) != "1" {
		t.Errorf("%d bytes kept of %d, id %s, %v", len(line), size, idIn(line), err)
	}
	if line, _, err = readLine(in); string(line) != "{}\n" || err != nil {
		t.Errorf("the next line: %q %v", line, err)
	}
	if _, _, err = readLine(in); !errors.Is(err, io.EOF) {
		t.Errorf("the end: %v", err)
	}
}

func FuzzWire(f *testing.F) {
	f.Add([]byte(`{"id":1,"method":"a"}`))
	f.Add([]byte(`[1]`))
	f.Add([]byte("\n\n{}\n{\"id\":{},\"method\":\"x\"}"))
	f.Fuzz(func(t *testing.T, data []byte) {
		w, lines := newWire(strings.NewReader(string(data)), io.Discard)
		done := make(chan struct{})
		go func() { defer close(done); _, _ = io.Copy(io.Discard, lines) }()
		w.read()
		<-done
	})
}
