package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"daycare/cmd/daycare/inspect"
	"daycare/engine/control"
	"daycare/engine/fault"
)

// printed is what a command prints with --json, whatever its exit code.
func printed(t *testing.T, dir string, args ...string) string {
	t.Helper()
	var out, said bytes.Buffer
	execute(append([]string{"--workspace", dir, "--json"}, args...), strings.NewReader(""), &out, &said)
	if out.Len() == 0 {
		t.Fatalf("%v: %s", args, said.String())
	}
	return out.String()
}

// sameJSON compares what the API answers with what the command prints.
func sameJSON(t *testing.T, what, command string, answer any) {
	t.Helper()
	data, err := json.Marshal(answer)
	if err != nil {
		t.Fatal(err)
	}
	var want, got any
	if err := errors.Join(json.Unmarshal([]byte(command), &want), json.Unmarshal(data, &got)); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s: the command, and the API:\n%s", what, diff)
	}
}

func TestTheAPIAnswersWhatCommandsPrint(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) {
		path := filepath.Join(dir, ".daycare", name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(text), 0o600)); err != nil {
			t.Fatal(err)
		}
	}

	write("settings.yaml", "providers:\n- {id: s, type: scripted}\n")
	printed(t, dir, "chat", "hello")
	n := inspect.Inspector(dir)

	turn := ""
	history, err := filepath.Glob(filepath.Join(dir, ".daycare", "agents", "*", "history.jsonl"))
	if err != nil || len(history) != 1 {
		t.Fatalf("histories %v, %v", history, err)
	}
	lines, err := os.ReadFile(history[0])
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(lines)) {
		var r struct{ Turn string }
		if json.Unmarshal([]byte(line), &r) == nil && r.Turn != "" {
			turn = r.Turn
		}
	}

	answer, err := n.Trace(t.Context(), turn)
	if err != nil {
		t.Fatal(err)
	}
	sameJSON(t, "why", printed(t, dir, "why", turn), answer)
	if _, err := n.Trace(t.Context(), "none"); !errors.Is(err, fault.NoTrace) {
		t.Errorf("an unknown id: %v", err)
	}

	write("cron/look/TASK.md", "---\nschedule: sometimes\n---\nlook\n")
	checkup, err := n.Examine(t.Context())
	if err != nil || checkup.Healthy {
		t.Fatalf("%+v, %v", checkup, err)
	}
	sameJSON(t, "doctor", printed(t, dir, "doctor"), checkup)

	schema, err := n.Schema("settings")
	if err != nil {
		t.Fatal(err)
	}
	sameJSON(t, "schema", printed(t, dir, "schema", "settings"), schema)
	_, err = n.Schema("none")
	if invalid, ok := errors.AsType[*control.Invalid](err); !ok || invalid.Field != "name" || invalid.Hint == "" {
		t.Errorf("an unknown schema: %v", err)
	}

	var count int
	if err := n.Log(t.Context(), control.LogQuery{Level: "debug", Lines: 3}, func(raw []byte) error {
		count++
		return nil
	}); err != nil || count == 0 || count > 3 {
		t.Errorf("%d lines of the log, %v", count, err)
	}
}

func TestATextIsCheckedAsItsFile(t *testing.T) {
	dir := t.TempDir()
	if err := os.MkdirAll(filepath.Join(dir, ".daycare"), 0o700); err != nil {
		t.Fatal(err)
	}
	n := inspect.Inspector(dir)
	for _, c := range []struct {
		name, text string
		line, col  int
		says       string
	}{
		{"settings.yaml", "log: {level: info}\n", 0, 0, ""},
		{"settings.yaml", "log: {level: info}\nagents:\n  queue: never\n", 3, 10, "queue"},
		{"cron/look/TASK.md", "---\nschedule: sometimes\n---\nlook\n", 2, 11, "sometimes"},
		{"agents/x/state.json", "{", 1, 0, ""},
		{"SOUL.md", "You are kind.\n", 0, 0, ""},
	} {
		found, err := n.Validate(t.Context(), c.name, []byte(c.text))
		if err != nil || (len(found) > 0) != (c.line > 0) {
			t.Errorf("%s %q: %v, %v", c.name, c.text, found, err)
			continue
		}
		if c.line > 0 && (found[0].File != c.name || found[0].Line != c.line || c.col > 0 && found[0].Column != c.col ||
			!strings.Contains(found[0].Reason, c.says)) {
			t.Errorf("%s: %+v", c.name, found[0])
		}
	}
	for _, name := range []string{"", "../settings.yaml", "/etc/passwd", "settings.yaml/../../auth.json", "none.txt"} {
		_, err := n.Validate(t.Context(), name, nil)
		if invalid, ok := errors.AsType[*control.Invalid](err); !ok || invalid.Field != "name" {
			t.Errorf("%q: %v", name, err)
		}
	}
}
