//go:build !race

package main

import (
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/google/jsonschema-go/jsonschema"

	"daycare/cmd/daycare/doctor"
	"daycare/engine/form"
)

// check validates YAML or JSON against a schema.
func check(t *testing.T, name, text string) error {
	t.Helper()
	known, ok := resolved.Load(name)
	if !ok {
		s, err := doctor.SchemaOf(name)
		if err != nil {
			t.Fatal(err)
		}
		if known, err = s.Resolve(nil); err != nil {
			t.Fatalf("schema %s cannot be resolved: %v", name, err)
		}
		resolved.Store(name, known)
	}

	var v any
	f := form.Kind{ID: name}.YAML(name, []byte(text))
	if f.Read(&v); f.Failed() {
		t.Fatal(f.Found)
	}
	return known.(*jsonschema.Resolved).Validate(v)
}

// resolved has the schemas that check has resolved, by name: that takes longer than to check a line.
var resolved sync.Map

// Schemas accept what the program writes and accepts, and find slips of the pen.
func TestSchemas(t *testing.T) {
	t.Parallel()
	root, err := moduleRoot()
	if err != nil {
		t.Fatal(err)
	}
	read := func(name string) string {
		data, err := os.ReadFile(filepath.Join(root, name))
		if err != nil {
			t.Fatal(err)
		}
		return string(data)
	}
	for _, tt := range []struct {
		name, text string
		good       bool
	}{
		{"settings", "providers: [{id: a, type: anthropic}]\nconnectors: [{id: t, type: telegram, allow: ['1'], " +
			"tokenEnv: X}]\nagents: {subagentTTL: 1h}", true},
		{"settings", "agents: {queue: steer}", true},
		{"settings", "agents: {queue: later}", false},
		{"settings", "agnets: {}", false},
		{"state.json", read("engine/record/testdata/state.golden.json"), true},
		{"state", `{"provider":{"model":"m"}}`, true},
		{"state", `{"provider":{"model":5}}`, false},
		{"descriptor", `{"type":"permanent","id":"x","name":"Ops","mine":1}`, true},
		{"descriptor", `{"type":"permanant"}`, false},
		{"descriptor", `{"name":"Ops"}`, false},
		{"task", "catchUp: some", false},
		{"task", "{every: 1h, gate: test -s queue.txt}", true},
		{"task", "{every: 1h, gate: {command: x, timeoutMs: 0}}", false},
		{"test", "{messages: [hello, {text: there, expect: [{contains: a}]}], expect: [{called: read}, {called: {tool: read}}]}", true},
		{"test", "{messages: [hello], expect: [{contians: a}]}", false},
		{"test", "{messages: [{txt: hello}], expect: [{contains: a}]}", false},
		{"subagent", "{name: Look, description: d, tools: [read], inputSchema: {type: object}}", true},
		{"subagent", "{name: Look, tools: [read]}", false},
		{"subagent", "{name: Look, description: d, maxIterations: 1000}", false},
	} {
		if err := check(t, tt.name, tt.text); (err == nil) != tt.good {
			t.Errorf("%s %.60q: %v, want good %v", tt.name, tt.text, err, tt.good)
		}
	}
}
