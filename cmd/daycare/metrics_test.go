package main

import (
	"context"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"daycare/cmd/daycare/talk"
	"daycare/engine/control"
	"daycare/engine/lazyregexp"
)

// The lines of the text format: comments with the name and type, and samples.
var sample = lazyregexp.New(`^(# (HELP \w+ .+|TYPE \w+ (gauge|counter|histogram))|\w+(\{(\w+="([^"\\]|\\.)*",?)+\})? [0-9.e+-]+)$`)

// A conversation is counted from its acceptance to its end.
func TestMetrics(t *testing.T) {
	t.Parallel()
	workspace := t.TempDir()
	write(t, filepath.Join(workspace, "README.md"), "hello\n")
	write(t, filepath.Join(workspace, home, "settings.yaml"), "providers: [ { id: play, type: scripted } ]\n")
	root := startRuntime(t, workspace)
	client, err := control.Dial(root)
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	if _, err := client.Stream(t.Context(), "", talk.Own(control.Message{Text: "what is in README.md?"}),
		func(control.RawEvent) {}); err != nil {
		t.Fatal(err)
	}

	web := http.Client{Transport: &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "unix", filepath.Join(root, "daycare.sock"))
	}}}
	defer web.CloseIdleConnections()
	var text string
	get := func() string {
		resp, err := web.Get("http://daycare/metrics")
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		body, err := io.ReadAll(resp.Body)
		if err != nil || resp.StatusCode != http.StatusOK {
			t.Fatalf("status %d, %v: %s", resp.StatusCode, err, body)
		}

		return string(body)
	}
	waitFor(t, "the turn in the metrics", func() bool {
		text = get()
		return strings.Contains(text, `daycare_turns_total{reason="done"} 1`)
	})

	for _, want := range []string{
		`daycare_items_accepted_total{kind="message"} 1`, `daycare_items_done_total 1`,
		`daycare_tool_calls_total{tool="read",status="ok"} 1`, `daycare_model_calls_total{provider="play",model="scripted"} 2`,
		`daycare_turn_seconds_count 1`, `daycare_inbox_items 0`, `daycare_provider_up{id="play",type="scripted"} 1`,
		`daycare_barriers_total `,
	} {
		if !strings.Contains(text, "\n"+want) {
			t.Errorf("no %q in:\n%s", want, text)
		}
	}

	for line := range strings.Lines(text) {
		if !sample.MatchString(strings.TrimSuffix(line, "\n")) {
			t.Errorf("no line of the format: %q", line)
		}
	}
}
