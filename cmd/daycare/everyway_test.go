package main

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"daycare/cmd/daycare/commandtest"
	"daycare/cmd/daycare/daemon"
	"daycare/cmd/daycare/talk"
	"daycare/engine/control"
	"daycare/engine/freeport"
	"daycare/engine/workspace"
)

// TestEveryWayIn runs the whole program on a workspace and lets the same agent be
// reached by every door: the command line's client, the API over the socket, a
// letter, and a signed webhook whose answer goes to a callback. Each message must
// be answered, in order, and stand in history exactly once.
func TestEveryWayIn(t *testing.T) {
	t.Parallel()
	callback := make(chan map[string]any, 10)
	receiver := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var body map[string]any
		if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
			t.Errorf("callback: %v", err)
		}
		body["key"] = r.Header.Get("Idempotency-Key")
		callback <- body
	}))
	defer receiver.Close()
	listen := freeport.Take(t)
	workspace := t.TempDir()
	settings := fmt.Sprintf(`
providers:
  - { id: echo, type: scripted, options: { script: %q } }
connectors:
  - id: hooks
    type: webhook
    listen: %s
    hooks: [ { id: ci, secretEnv: EVERYWAY_SECRET, agentId: "0/", callback: %q } ]
`, filepath.Join(workspace, "script.yaml"), listen, receiver.URL)
	write(t, filepath.Join(workspace, home, "settings.yaml"), settings)
	write(t, filepath.Join(workspace, "script.yaml"), `rules: [ { reply: [ { text: "heard {{.Text}}" } ] } ]`)

	root := startRuntime(t, workspace)
	client, err := control.Dial(root)
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()

	// A user at the terminal.
	ctx := t.Context()
	o, err := client.Stream(ctx, "", talk.Own(control.Message{Text: "alpha"}), func(control.RawEvent) {})
	if err != nil || o.Text != "heard alpha" {
		t.Fatalf("terminal: %+v, %v", o, err)
	}
	// A program, over the socket.
	if o, err = client.Stream(ctx, "0/", control.Message{Text: "bravo"}, func(control.RawEvent) {}); err != nil || o.Text != "heard bravo" {
		t.Fatalf("api: %+v, %v", o, err)
	}
	// A script that drops a file.
	write(t, filepath.Join(workspace, "letter"), "charlie")
	if err := os.Rename(filepath.Join(workspace, "letter"), filepath.Join(root, "drop", "0-__letter.md")); err != nil {
		t.Fatal(err)
	}
	waitFor(t, "the letter's answer", func() bool { return strings.Contains(historyOf(t, root), "heard charlie") })
	// A service, by a signed webhook; twice, as services do.
	for i := range 2 {
		if status := hook(t, listen, `{"text":"delta"}`, "delivery-1"); status != http.StatusAccepted {
			t.Fatalf("webhook, try %d: status %d", i+1, status)
		}
	}
	select {
	case body := <-callback:
		if text, _ := body["text"].(string); !strings.Contains(text, "delta") || body["key"] == "" {
			t.Errorf("callback got %v", body)
		}
	case <-time.After(time.Minute):
		t.Fatal("no callback")
	}
	if status := hook(t, listen, `{"text":"echoes"}`, ""); status != http.StatusAccepted {
		t.Errorf("a hook without delivery id: status %d", status)
	}
	<-callback

	all := historyOf(t, root)
	last := 0
	for _, word := range []string{"alpha", "bravo", "charlie", "delta", "echoes"} {
		users := 0
		for line := range strings.Lines(all) {
			if strings.Contains(line, `"type":"user_message"`) && strings.Contains(line, word) {
				users++
			}
		}
		if users != 1 {
			t.Errorf("%q stands in history %d times, want once", word, users)
		}
		at := strings.Index(all, word)
		if at < last {
			t.Errorf("%q came before the one that was sent earlier", word)
		}
		last = at
	}
}

// startRuntime runs the program on a workspace until the test ends, and returns
// its .daycare directory.
func startRuntime(t *testing.T, dir string) string {
	t.Helper()
	started(t, dir)
	return filepath.Join(dir, home)
}

// started is a daemon of a workspace that runs until the test ends.
func started(t *testing.T, dir string) *daemon.Daemon {
	t.Helper()
	r, err := daemon.Open(t.Context(), daemon.Options{Place: workspace.At(dir)}, slog.LevelError)
	if err != nil {
		t.Fatal(err)
	}
	commandtest.Start(t, r)
	return r
}

func hook(t *testing.T, listen, body, delivery string) int {
	t.Helper()
	stamp := strconv.FormatInt(time.Now().Unix(), 10)
	mac := hmac.New(sha256.New, []byte(hookSecret))
	io.WriteString(mac, stamp+"."+body)
	var resp *http.Response
	waitFor(t, "the webhook's listener", func() bool {
		req, err := http.NewRequest(http.MethodPost, "http://"+listen+"/hooks/ci", bytes.NewReader([]byte(body)))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Content-Type", "application/json")
		req.Header.Set("X-Webhook-Timestamp", stamp)
		req.Header.Set("X-Webhook-Signature", "sha256="+hex.EncodeToString(mac.Sum(nil)))
		if delivery != "" {
			req.Header.Set("X-Webhook-Delivery", delivery)
		}
		resp, err = http.DefaultClient.Do(req)

		return err == nil
	})
	defer resp.Body.Close()

	return resp.StatusCode
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// historyOf returns the history of the only agent, "" until it has one.
func historyOf(t *testing.T, root string) string {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(root, "agents", "*", "history.jsonl"))
	if err != nil || len(paths) > 1 {
		t.Fatalf("%d agents, want 1 (%v)", len(paths), err)
	}
	if len(paths) == 0 {
		return ""
	}
	data, err := os.ReadFile(paths[0])
	if err != nil {
		t.Fatal(err)
	}

	return string(data)
}

func waitFor(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for began := time.Now(); !ok(); wait(began, 5*time.Millisecond) {
		if time.Since(began) > time.Minute {
			t.Fatalf("waited a minute for %s", what)
		}
	}
}
