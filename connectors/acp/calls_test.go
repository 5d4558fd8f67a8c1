package acp

import (
	"encoding/json"
	"fmt"
	"runtime"
	"strings"
	"testing"

	acp "github.com/coder/acp-go-sdk"
	"github.com/google/go-cmp/cmp"

	"daycare/engine/record"
)

const twoPlaces = `--- a/main.go
+++ b/main.go
@@ -1,3 +1,3 @@
 package main
--- a
+++ b
 // end
@@ -9 +9,2 @@
-old
+new
+more
\ No newline at end of file
--- /dev/null
+++ b/added.txt
@@ -0,0 +1 @@
+hello
`

func TestHunksOfADiff(t *testing.T) {
	want := []hunk{
		{"main.go", 1, []byte("package main\n-- a\n// end\n"), []byte("package main\n++ b\n// end\n"), false},
		{"main.go", 9, []byte("old\n"), []byte("new\nmore\n"), false},
		{"added.txt", 1, nil, []byte("hello\n"), true},
	}
	if d := cmp.Diff(want, hunks(twoPlaces), cmp.AllowUnexported(hunk{})); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	content, at := changes("/w", record.Output{Blocks: []record.Block{{Type: "diff", Text: twoPlaces}}})
	if len(content) != 3 || content[0].Diff.Path != "/w/main.go" || content[2].Diff.OldText != nil || *at[1].Line != 9 {
		t.Errorf("%+v at %+v", content, at)
	}
}

// A diff of many lines takes memory as its length does.
func TestLongDiffs(t *testing.T) {
	const n = 50_000
	diff := fmt.Sprintf("@@ -1,%d +1,%d @@\n%s", n, n, strings.Repeat("-\n+\n", n))
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	list := hunks(diff)
	runtime.ReadMemStats(&after)
	if took := (after.TotalAlloc - before.TotalAlloc) >> 20; len(list) != 1 || len(list[0].new) != n || took > 10 {
		t.Errorf("%d bytes are %d hunks and take %d MB of memory", len(diff), len(list), took)
	}
}

func FuzzHunks(f *testing.F) {
	f.Add(twoPlaces)
	f.Add("@@ -1,9 +\n\n@@ x")
	f.Fuzz(func(_ *testing.T, diff string) { hunks(diff) })
}

func TestCallsSayWhatTheyDo(t *testing.T) {
	for _, tt := range []struct {
		tool, args, title, kind, at string
	}{
		{"read", `{"path":"a/b.go","offset":12}`, "read a/b.go", "read", "/w/a/b.go:12"},
		{"exec", `{"command":"go test\n./..."}`, "exec go test ./...", "execute", ""},
		{"apply_patch", `{"patch":"*** Begin Patch\n*** Update File: x.go\n*** Add File: /y.go\n"}`, "apply_patch", "edit",
			"/w/x.go /y.go"},
		{"grep", `{"pattern":"func","path":7}`, "grep func", "search", ""},
		{"CodeSearch", `"not an object"`, "CodeSearch", "other", ""},
	} {
		a := argumentsOf(json.RawMessage(tt.args))
		var at []string
		for _, l := range locations("/w", a) {
			place := l.Path
			if l.Line != nil {
				place += ":12"
			}
			at = append(at, place)
		}
		if got := titleOf(tt.tool, a); got != tt.title || string(kindOf(tt.tool)) != tt.kind || strings.Join(at, " ") != tt.at {
			t.Errorf("%s %s: %q, %s, at %v", tt.tool, tt.args, got, kindOf(tt.tool), at)
		}
	}
}

func TestPlansHaveSteps(t *testing.T) {
	for text, want := range map[string]string{
		"# Plan\n1. read it\n2) change it\n- test\n\nThen rest.": "read it|change it|test",
		"Only prose.\nTwo lines.":                                "Only prose.|Two lines.",
		"":                                                       "",
	} {
		var got []string
		for _, e := range planOf(text) {
			got = append(got, e.Content)
		}
		if strings.Join(got, "|") != want {
			t.Errorf("%q: %q", text, got)
		}
	}
}

func TestAPromptBecomesAMessage(t *testing.T) {
	png := acp.ImageBlock("iVBORw0KGgo=", "image/png")
	embedded := func(text string) acp.ContentBlock {
		return acp.ResourceBlock(acp.EmbeddedResourceResource{
			TextResourceContents: &acp.TextResourceContents{Uri: "file:///w/a.go", Text: text}})
	}
	m, err := compose("/w", []acp.ContentBlock{acp.TextBlock("look at "), acp.ResourceLinkBlock("b", "file:///w/b.go#L3"),
		embedded("x := `1`"), png})
	want := "look at b.go#L3\n\nFrom a.go:\n```\nx := `1`\n```"
	if err != nil || m.Text != want || len(m.Files) != 1 || m.Files[0].Name != "image.png" || len(m.Files[0].Data) != 8 {
		t.Errorf("%q %+v %v", m.Text, m.Files, err)
	}
	m, err = compose("/w", []acp.ContentBlock{embedded(strings.Repeat("a", maxInline+1))})
	if err != nil || m.Text != "a.go (attached)" || len(m.Files) != 1 {
		t.Errorf("a long text: %q, %d files, %v", m.Text, len(m.Files), err)
	}

	for _, tt := range []struct {
		block acp.ContentBlock
		want  string
	}{
		{acp.ImageBlock("%%", "image/png"), "prompt[0]: the data is not base64"},
		{acp.AudioBlock("", "audio/wav"), "audio is not supported"},
		{acp.TextBlock(" \n"), "the prompt is empty"},
	} {
		if _, err := compose("/w", []acp.ContentBlock{tt.block}); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%v, want %q", err, tt.want)
		}
	}
}
