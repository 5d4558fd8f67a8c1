package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"daycare/cmd/daycare/inspect"
	"daycare/engine/control"
	"daycare/engine/fault"
	"daycare/engine/workspace"
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
	if !reflect.DeepEqual(want, got) {
		t.Errorf("%s: the command, and the API:\n%s\n%s", what, command, data)
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
	n := inspect.Inspector(workspace.At(dir))

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
	n := inspect.Inspector(workspace.At(dir))
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

func TestSharedFilesAreEditedByHash(t *testing.T) {
	dir := t.TempDir()
	home := filepath.Join(dir, ".daycare")
	if err := errors.Join(os.MkdirAll(filepath.Join(home, "agents", "x"), 0o700),
		os.WriteFile(filepath.Join(dir, "planted.md"), []byte("of an agent"), 0o600),
		os.Symlink(filepath.Join(dir, "planted.md"), filepath.Join(home, "USER.md"))); err != nil {
		t.Fatal(err)
	}
	n, ctx := inspect.Inspector(workspace.At(dir)), t.Context()

	none, hash, err := n.ReadShared(ctx, "SOUL.md")
	if err != nil || len(none) != 0 {
		t.Fatalf("a file that is missing: %q, %v", none, err)
	}
	first, err := n.WriteShared(ctx, "SOUL.md", []byte("You are kind.\n"), hash)
	if err != nil {
		t.Fatal(err)
	}
	var conflict *control.Conflict
	if _, err := n.WriteShared(ctx, "SOUL.md", []byte("You are rude.\n"), hash); !errors.As(err, &conflict) ||
		conflict.Content != "You are kind.\n" || conflict.Hash != first {
		t.Errorf("over another version: %v", err)
	}
	if _, err := n.WriteShared(ctx, "SOUL.md", []byte("You are brief.\n"), first); err != nil {
		t.Errorf("over its version: %v", err)
	}

	var unfit *control.Unfit
	_, hash, _ = n.ReadShared(ctx, "cron/look/TASK.md")
	if _, err := n.WriteShared(ctx, "cron/look/TASK.md", []byte("---\nschedule: sometimes\n---\nlook\n"), hash); !errors.As(err, &unfit) ||
		unfit.Findings[0].Line != 2 {
		t.Errorf("a task that never runs: %v", err)
	}
	if _, err := n.WriteShared(ctx, "cron/look/TASK.md", []byte("---\nschedule: \"0 9 * * *\"\n---\nlook\n"), hash); err != nil {
		t.Errorf("a new task: %v", err)
	}

	for _, name := range []string{"auth.json", "tokens.json", "../x.md", "agents/x/state.json", "heartbeat/.x.md", "cron/../auth.json",
		"subagents/a/b.md", ""} {
		if _, _, err := n.ReadShared(ctx, name); !errors.Is(err, fault.NotEditable) {
			t.Errorf("%q is read: %v", name, err)
		}
		if _, err := n.WriteShared(ctx, name, []byte("x"), "x"); !errors.Is(err, fault.NotEditable) {
			t.Errorf("%q is written: %v", name, err)
		}
	}
	_, hash, _ = n.ReadShared(ctx, "USER.md")
	if _, err := n.WriteShared(ctx, "USER.md", []byte("x"), hash); err == nil {
		t.Error("a link into the workspace is written through")
	}

	files, err := n.SharedFiles(ctx)
	var names []string
	for _, f := range files {
		names = append(names, f.Name+" "+f.Schema)
	}
	if err != nil || !strings.Contains(strings.Join(names, ","), "SOUL.md ,") ||
		!strings.Contains(strings.Join(names, ","), "cron/look/TASK.md task") {
		t.Errorf("files %v, %v", names, err)
	}
}

// The API shows no secret: settings with one in them are edited elsewhere.
func TestSettingsWithSecretsAreNotShown(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, ".daycare", "settings.yaml")
	put := func(text string) {
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(text), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	n, ctx := inspect.Inspector(workspace.At(dir)), t.Context()
	put("log: {level: info}\n")
	text, hash, err := n.ReadShared(ctx, "settings.yaml")
	if err != nil || string(text) != "log: {level: info}\n" {
		t.Fatalf("%q, %v", text, err)
	}
	for _, bad := range []string{"control: {listen: \"127.0.0.1:0\", token: canary-token}\n",
		"log: {level: [\ncontrol: {token: canary-token}\n"} {
		put(bad)
		var invalid *control.Invalid
		text, _, err := n.ReadShared(ctx, "settings.yaml")
		if !errors.As(err, &invalid) || strings.Contains(err.Error()+invalid.Hint, "canary") {
			t.Errorf("%q is read: %q, %v", bad, text, err)
		}
		if _, err := n.WriteShared(ctx, "settings.yaml", []byte("log: {level: warn}\n"), hash); !errors.As(err, &invalid) ||
			strings.Contains(err.Error(), "canary") {
			t.Errorf("the conflict shows it: %v", err)
		}
	}
}

func TestServicesAreTriedOverTheAPI(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, ".daycare", "settings.yaml")
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte("providers:\n- {id: s, type: scripted}\n"+
		"connectors:\n- {id: hooks, type: webhook, listen: \"127.0.0.1:0\", hooks: [{id: ci}]}\n"+
		"- {id: openai, type: openai}\n"), 0o600)); err != nil {
		t.Fatal(err)
	}
	n, ctx := inspect.Inspector(workspace.At(dir)), t.Context()
	var got struct {
		ID             string
		OK             bool
		Verdict, Model string
	}
	try := func(answer json.RawMessage, err error) {
		t.Helper()
		if got.OK, got.Verdict = false, ""; errors.Join(err, json.Unmarshal(answer, &got)) != nil {
			t.Fatalf("%s, %v", answer, err)
		}
	}
	if try(n.TestProvider(ctx, "s")); !got.OK || got.ID != "s" {
		t.Errorf("provider: %+v", got)
	}
	if try(n.TestConnector(ctx, "openai")); !got.OK || got.Verdict == "" {
		t.Errorf("connector: %+v", got)
	}
	if try(n.TestConnector(ctx, "hooks")); got.OK || !strings.Contains(got.Verdict, "secret") {
		t.Errorf("a connector without its secret: %+v", got)
	}
	for _, ask := range []func(context.Context, string) (json.RawMessage, error){n.TestProvider, n.TestConnector} {
		_, err := ask(ctx, "none")
		if invalid, ok := errors.AsType[*control.Invalid](err); !ok || invalid.Field != "name" {
			t.Errorf("an unknown id: %v", err)
		}
	}
}
