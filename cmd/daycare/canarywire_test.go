package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"daycare/engine/control"
)

// A parrot is a model server that keeps what it is sent, and that knows the secret: it
// has commands run that print it, and says it itself, cut into pieces.
type parrot struct {
	mu     sync.Mutex
	heard  []string
	calls  int
	canary string
}

func (p *parrot) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.heard = append(p.heard, string(body))
	n := p.calls
	p.calls++
	w.Header().Set("Content-Type", "text/event-stream")
	send := func(delta any, finish any) {
		chunk, _ := json.Marshal(map[string]any{"model": "m",
			"choices": []any{map[string]any{"index": 0, "delta": delta, "finish_reason": finish}}})
		fmt.Fprintf(w, "data: %s\n\n", chunk)
		w.(http.Flusher).Flush()
	}
	call := func(id, name string, arguments map[string]any) {
		text, _ := json.Marshal(arguments)
		send(map[string]any{"tool_calls": []any{map[string]any{"index": 0, "id": id, "type": "function",
			"function": map[string]any{"name": name, "arguments": string(text)}}}}, nil)
		send(map[string]any{}, "tool_calls")
	}
	switch n {
	case 0: // in the foreground, long
		call("c0", "exec", map[string]any{"command": "cat long.txt"})
	case 1: // with a log of its own
		call("c1", "exec", map[string]any{"command": "cat long.txt", "background": true})
	case 2: // a command that holds the secret itself
		call("c2", "exec", map[string]any{"command": "echo " + p.canary})
	case 3: // to another agent, so long that it goes to a file
		call("c3", "send_agent_message", map[string]any{"agentId": "1/", "text": strings.Repeat("I found "+p.canary+". ", 600)})
	case 4:
		call("c4", "read", map[string]any{"path": "notes.txt"})
	default:
		for _, piece := range []string{"It is ", p.canary[:3], p.canary[3:7], p.canary[7:], ", and this is the end"} {
			send(map[string]any{"reasoning_content": piece}, nil)
			send(map[string]any{"content": piece}, nil)
		}
		send(map[string]any{}, "stop")
	}

	fmt.Fprint(w, "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":10,\"completion_tokens\":2,\"total_tokens\":12}}\n\ndata: [DONE]\n\n")
}

// TestCanaryOnEverySurface has a secret come in by every way (what a user writes,
// attaches and drops, what commands print, what the model says in pieces) and looks
// for it wherever daycare writes, shows or sends something.
func TestCanaryOnEverySurface(t *testing.T) {
	t.Parallel()
	const canary = `canary/8f3e+a1"b2&c3`
	spellings := spelled(t, canary)
	p := &parrot{canary: canary}
	server := httptest.NewServer(p)
	defer server.Close()
	dir := t.TempDir()
	auth, err := json.Marshal(map[string]string{"telegram": canary})
	if err != nil {
		t.Fatal(err)
	}
	notes := strings.Join(spellings, "\n") + "\n"
	for name, text := range map[string]string{
		"notes.txt": notes, "long.txt": strings.Repeat(notes, 2000), "attached.txt": "my token: " + canary + "\n",
		home + "/auth.json": string(auth),
		home + "/settings.yaml": "log: { level: debug }\ntools: { exec: { sandbox: \"off\" } }\nproviders: [ { id: p, " +
			"type: openai, model: m, baseURL: \"" + server.URL + "/v1\" } ]\n",
	} {
		write(t, filepath.Join(dir, name), text)
	}
	d := &process{t: t, workspace: dir}
	d.start()
	defer d.kill()
	client, err := control.Dial(filepath.Join(dir, home))
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	said := &loudspeaker{}
	for _, name := range []string{"first", "second"} { // 0/ and 1/
		if _, err := client.Create(t.Context(), control.NewAgent{Type: "user", Name: name}); err != nil {
			t.Fatal(err)
		}
	}
	watched := make(chan error, 1)
	go func() {
		watched <- client.Events(t.Context(), control.Filter{}, "",
			func(e control.RawEvent) error { _, err := said.Write(e.Data); return err })
	}()
	out, err := client.Stream(t.Context(), "0/",
		control.Message{Text: "keep " + canary + " to yourself", Files: []control.File{{Path: filepath.Join(dir, "attached.txt")}}},
		func(e control.RawEvent) { said.Write(e.Data) })
	if err != nil || !strings.Contains(out.Text, "this is the end") {
		t.Fatalf("%+v %v: %s", out, err, d.said.String())
	}
	write(t, filepath.Join(dir, home, "drop", ".letter"), "and "+canary+" too")
	if err := os.Rename(filepath.Join(dir, home, "drop", ".letter"), filepath.Join(dir, home, "drop", "0__letter.md")); err != nil {
		t.Fatal(err)
	}
	waitFor(t, "the turn of the letter and of the other agent", func() bool {
		list, err := client.Agents(t.Context())
		p.mu.Lock()
		defer p.mu.Unlock()
		return err == nil && p.calls >= 8 && list[0].State == "idle" && list[1].State == "idle" && list[0].Queued+list[1].Queued == 0
	})
	p.mu.Lock()
	surfaces := map[string]string{"events": said.String(), "the daemon's own words": d.said.String(),
		"requests to the model": strings.Join(p.heard, "\n")}
	p.mu.Unlock()
	hidden := 0
	err = filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		rel, _ := filepath.Rel(dir, path)
		// What users wrote themselves, and what they attached, stays as it is.
		if err != nil || !e.Type().IsRegular() || !strings.Contains(rel, "/") || rel == home+"/auth.json" ||
			strings.HasPrefix(rel, home+"/files/") {
			return err
		}
		data, err := os.ReadFile(path)
		surfaces[rel] = string(data)
		hidden += bytes.Count(data, []byte("[redacted]"))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for where, text := range surfaces {
		for _, s := range spellings {
			if i := strings.Index(text, s); i >= 0 {
				t.Errorf("%s has the secret as %q: …%q…", where, s, text[max(0, i-100):min(len(text), i+60)])
			}
		}
	}
	for _, want := range []string{"/inbox.jsonl", "/history.jsonl", "/blobs/", "/jobs/", "messages/"} {
		found := false
		for where, text := range surfaces {
			found = found || strings.Contains(where, want) && strings.Contains(text, "[redacted]")
		}
		if !found {
			t.Errorf("no file %s has a mark in it, so this test proves nothing of them", want)
		}
	}
	if !strings.Contains(surfaces["events"], `"tool.progress"`) ||
		!strings.Contains(surfaces["events"], `"message.delta"`) || !strings.Contains(surfaces["events"], "[redacted]") {
		t.Errorf("the events had neither progress nor pieces: %.2000s", surfaces["events"])
	}
	t.Logf("%d surfaces, %d marks", len(surfaces), hidden)
}
