//go:build otel

package main

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
)

// The turn of a real daemon arrives at a receiver, without what was said in it.
func TestTracesOfADaemon(t *testing.T) {
	var mu sync.Mutex
	var got bytes.Buffer // names and values are plain text in protocol buffers
	receiver := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		_, _ = io.Copy(&got, r.Body)
		w.Header().Set("Content-Type", "application/x-protobuf")
	}))
	defer receiver.Close()

	d := &process{t: t, workspace: t.TempDir()}
	write(t, filepath.Join(d.workspace, home, "settings.yaml"), fmt.Sprintf(
		"providers: [ { id: play, type: scripted, options: { script: script.yaml } } ]\ntracing: { endpoint: %q }\n", receiver.URL))
	write(t, filepath.Join(d.workspace, "script.yaml"), `
rules:
  - round: 1
    reply: [ { calls: [ { name: read, arguments: { path: notes.txt } } ] } ]
  - reply: [ { text: "it says: a quiet word" } ]
`)
	write(t, filepath.Join(d.workspace, "notes.txt"), "a quiet word")
	d.start()
	defer d.kill()
	for _, args := range [][]string{{"agents", "new", "--name", "Ada"}, {"send", "Ada", "what does it say?", "--wait"}, {"stop"}} {
		if out, err := exec.Command("daycare", append([]string{"--workspace", d.workspace}, args...)...).CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
	}

	waitFor(t, "the traces", func() bool {
		mu.Lock()
		defer mu.Unlock()
		return bytes.Contains(got.Bytes(), []byte("invoke_agent Ada"))
	})
	mu.Lock()
	defer mu.Unlock()
	for _, want := range []string{"service.name", "chat ", "execute_tool read", "gen_ai.usage.input_tokens", "daycare.turn.reason"} {
		if !bytes.Contains(got.Bytes(), []byte(want)) {
			t.Errorf("%q is missing in the traces", want)
		}
	}
	for _, not := range []string{"a quiet word", "what does it say", "notes.txt"} {
		if bytes.Contains(got.Bytes(), []byte(not)) {
			t.Errorf("%q is in the traces", not)
		}
	}
}
