package prompt

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"daycare/agents/providers"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "write testdata anew from what the code gives now")

// golden compares got with testdata/NAME.golden.
func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	path := filepath.Join("testdata", name+".golden")
	if *update {
		if err := os.MkdirAll("testdata", 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}

	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatalf("%v (go test ./agents/prompt -update makes it)", err)
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("%s differs; if that is meant, run go test ./agents/prompt -update (-want +got):\n%s", path, diff)
	}
}

// dump is a request as users read it: settings on a line, then each message.
func dump(req *providers.Request, tokens int) []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, "model=%s max=%d agent=%s session=%s foreground=%v tools=%d tokens=%d\n",
		req.Model, req.MaxTokens, req.Agent, req.Session, req.Foreground, len(req.Tools), tokens)
	for _, m := range req.Messages {
		b.Write(encode(m))
	}
	return b.Bytes()
}

// encode is a wire format for tests: every byte that a provider could send.
func encode(m *providers.Message) []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, "\n== %s\n", m.Role)
	for _, p := range m.Parts {
		switch p := p.(type) {
		case providers.Text:
			fmt.Fprintf(&b, "text: %s\n", p.Text)
		case providers.Reasoning:
			fmt.Fprintf(&b, "reasoning: %s (%s, %s)\n", p.Text, p.Provider, p.Signature)
		case providers.Call:
			fmt.Fprintf(&b, "call: %s %s %s\n", p.ID, p.Name, compact(p.Arguments))
		case providers.Result:
			fmt.Fprintf(&b, "result: %s %s error=%v %s\n", p.CallID, p.Name, p.IsError, p.Text)
			for _, img := range p.Images {
				fmt.Fprintf(&b, "  image: %s %q\n", img.MimeType, img.Data)
			}
			for _, d := range p.Documents {
				fmt.Fprintf(&b, "  document: %s %s %q, else %q\n", d.Name, d.MimeType, d.Data, d.Text)
			}
		case providers.Image:
			fmt.Fprintf(&b, "image: %s %q\n", p.MimeType, p.Data)
		case providers.Document:
			fmt.Fprintf(&b, "document: %s %s %q\n", p.Name, p.MimeType, p.Data)
		default:
			fmt.Fprintf(&b, "%T\n", p)
		}
	}

	return b.Bytes()
}

// compact gives the arguments back only if they are the object that wires want.
func compact(raw json.RawMessage) string {
	var object map[string]any
	if err := json.Unmarshal(raw, &object); err != nil {
		return "NOT AN OBJECT: " + string(raw)
	}
	return string(raw)
}
