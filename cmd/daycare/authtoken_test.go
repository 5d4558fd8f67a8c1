package main

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"daycare/engine/control"
	"daycare/engine/freeport"
)

// A token that a command revokes loses what it has open in a daemon that runs, and a broken
// file is a problem that the daemon reports.
func TestTokensOfARunningDaemon(t *testing.T) {
	t.Parallel()
	workspace, listen := t.TempDir(), freeport.Take(t)
	write(t, filepath.Join(workspace, home, "settings.yaml"),
		"providers:\n  - { id: echo, type: scripted }\ncontrol: { listen: \""+listen+"\", token: s3cret }\n")
	client, err := control.Dial(startRuntime(t, workspace))
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	problems := func() int {
		s, err := client.Status(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return len(s.Problems)
	}
	run := func(args ...string) string {
		t.Helper()
		var out, said bytes.Buffer
		if code := execute(append([]string{"--workspace", workspace}, args...), strings.NewReader(""), &out, &said); code != 0 {
			t.Fatalf("daycare %s: exit code %d: %s", strings.Join(args, " "), code, said.String())
		}
		return out.String()
	}
	get := func(path, token string) *http.Response {
		t.Helper()
		req, err := http.NewRequestWithContext(t.Context(), "GET", "http://"+listen+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Authorization", "Bearer "+token)
		resp, err := (&http.Transport{DisableKeepAlives: true}).RoundTrip(req)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { resp.Body.Close() })
		return resp
	}
	run("agents", "new", "--name", "Alpha")
	run("agents", "new", "--name", "Beta")
	token := strings.TrimSpace(run("auth", "token", "create", "phone", "--scope", "read", "--agent", "Alpha"))
	var list struct{ Agents []struct{ Name string } }
	if err := json.NewDecoder(get("/v1/agents", token).Body).Decode(&list); err != nil || len(list.Agents) != 1 ||
		list.Agents[0].Name != "Alpha" {
		t.Errorf("agents of a token for one: %+v, %v", list, err)
	}
	events := get("/v1/events", token)
	if events.StatusCode != http.StatusOK {
		t.Fatalf("events: %s", events.Status)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_, _ = io.Copy(io.Discard, events.Body)
	}()
	run("auth", "token", "revoke", "phone")
	select {
	case <-ended:
	case <-time.After(time.Minute):
		t.Error("the events of a revoked token go on")
	}
	if got := get("/v1/agents", token).StatusCode; got != http.StatusUnauthorized {
		t.Errorf("a revoked token: %d", got)
	}
	write(t, filepath.Join(workspace, home, "tokens.json"), "{ broken")
	waitFor(t, "the broken file is reported", func() bool { return problems() > 0 })
	write(t, filepath.Join(workspace, home, "tokens.json"), "{}")
	waitFor(t, "it is good again", func() bool { return problems() == 0 })
}
