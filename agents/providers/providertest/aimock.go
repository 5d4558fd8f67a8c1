package providertest

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"daycare/agents/providers"
)

// Aimock talks to an independent server of the wire formats, so that an error in
// our reading of a format is not turned round in our own test server. It needs
// Node.js and the path of aimock's program llmock in DAYCARE_AIMOCK. base is what
// the provider expects behind the server's address already.
func Aimock(t *testing.T, provider New, base string) {
	program := os.Getenv("DAYCARE_AIMOCK")
	if program == "" {
		t.Skip("SKIPPED: no independent server. To run this test:\n" +
			"  npm install --prefix /tmp/aimock @copilotkit/aimock@1.43.0\n" +
			"  DAYCARE_AIMOCK=/tmp/aimock/node_modules/.bin/llmock go test ./agents/providers/...")
	}

	url := startAimock(t, program)
	p := provider(t, url, client(t))
	call := func(text string) []providers.Event {
		req := Conversation(p.ID())
		req.Messages = append(req.Messages, &providers.Message{Role: providers.User, Parts: []providers.Part{providers.Text{Text: text}}})
		return Collect(t, t.Context(), p, req)
	}
	t.Run("text", func(t *testing.T) {
		r := gather(t, p, call("say hello"))
		if r.text != "Hello — 世界! 👩‍🚀 Anything else?" || r.end.Finish != providers.EndTurn || r.pieces < 3 {
			t.Errorf("got %q in %d pieces, finish %s", r.text, r.pieces, r.end.Finish)
		}
		if r.end.Usage.Input == 0 || r.end.Usage.Output == 0 {
			t.Errorf("usage %+v", r.end.Usage)
		}
	})

	t.Run("tool calls", func(t *testing.T) {
		r := gather(t, p, call("read two files"))
		if len(r.calls) != 2 || r.end.Finish != providers.ToolUse ||
			r.calls[0].Arguments != `{"path":"a.txt","deep":{"n":1}}` || r.calls[1].Arguments != `{"path":"grün \"b\".txt"}` {
			t.Errorf("got calls %+v, finish %s", r.calls, r.end.Finish)
		}
	})

	t.Run("thinking", func(t *testing.T) {
		r := gather(t, p, call("think hard"))
		if r.thinking != "Let me see. Two and two." || r.text != "Four." {
			t.Errorf("got thinking %q, text %q", r.thinking, r.text)
		}
	})

	t.Run("cut off", func(t *testing.T) {
		if r := gather(t, p, call("talk long")); r.end.Finish != providers.MaxTokens {
			t.Errorf("finish %s", r.end.Finish)
		}
	})

	t.Run("refused", func(t *testing.T) {
		f := wantKind(t, call("be busy"), providers.Busy)
		if f.Status != 429 || !strings.Contains(f.Message, "slow down") {
			t.Errorf("failure %+v", f)
		}
		wantKind(t, call("be unknown"), providers.Auth)
	})
}

type gathered struct {
	text, thinking string
	pieces         int
	calls          []providers.ToolUseStop
	end            providers.Complete
}

func gather(t *testing.T, p providers.Provider, events []providers.Event) gathered {
	t.Helper()
	var g gathered
	for _, ev := range events {
		switch ev := ev.(type) {
		case providers.ContentDelta:
			g.text += ev.Text
			g.pieces++
		case providers.ThinkingDelta:
			g.thinking += ev.Text
		case providers.ToolUseStop:
			g.calls = append(g.calls, ev)
		case providers.Complete:
			g.end = ev
		case providers.Error:
			t.Fatalf("%s: %v", p.ID(), ev.Err)
		}
	}

	return g
}

// startAimock runs the server until the test ends and returns its address.
func startAimock(t *testing.T, program string) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}

	port := listener.Addr().(*net.TCPAddr).Port
	listener.Close()

	ctx, cancel := context.WithCancel(context.Background())
	cmd := exec.CommandContext(ctx, program, "--port", fmt.Sprint(port), "--chunk-size", "5",
		"--fixtures", filepath.Join("testdata", "aimock.json"))
	cmd.WaitDelay = 5 * time.Second
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}

	cmd.Stderr = cmd.Stdout
	if err := cmd.Start(); err != nil {
		t.Fatalf("start %s: %v", program, err)
	}
	var log strings.Builder
	read := make(chan struct{})
	go func() {
		defer close(read)
		io.Copy(&log, bufio.NewReader(out))
	}()

	t.Cleanup(func() {
		cancel()
		<-read
		if err := cmd.Wait(); err != nil && !errors.Is(ctx.Err(), context.Canceled) {
			t.Error(err)
		}
		if t.Failed() {
			t.Logf("aimock said:\n%s", log.String())
		}
	})

	url := fmt.Sprintf("http://127.0.0.1:%d", port)
	for deadline := time.Now().Add(20 * time.Second); time.Now().Before(deadline); time.Sleep(50 * time.Millisecond) {
		if resp, err := http.Get(url + "/health"); err == nil {
			resp.Body.Close()
			return url
		}
	}

	t.Fatal("aimock did not answer within 20 s")
	return ""
}
