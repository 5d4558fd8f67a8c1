package main

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"daycare/engine/fault"
)

// spelled are the ways in which programs print a secret.
func spelled(t *testing.T, secret string) []string {
	t.Helper()
	quoted, err := json.Marshal(secret)
	if err != nil {
		t.Fatal(err)
	}
	return []string{
		secret, string(quoted[1 : len(quoted)-1]), strings.ReplaceAll(secret, `"`, `\"`),
		hex.EncodeToString([]byte(secret)), url.QueryEscape(secret),
		base64.StdEncoding.EncodeToString([]byte(secret)), base64.URLEncoding.EncodeToString([]byte(secret)),
		base64.StdEncoding.EncodeToString([]byte("bob:" + secret)),
	}
}

// TestCanary runs a whole conversation in which a tool prints a secret in every
// spelling, and looks for it in everything that was written and said.
func TestCanary(t *testing.T) {
	t.Parallel()
	const canary = `canary/8f3e+a1"b2&c3`
	dir := t.TempDir()
	auth, err := json.Marshal(map[string]string{"telegram": canary})
	if err != nil {
		t.Fatal(err)
	}

	spellings := spelled(t, canary)
	notes := "the token is here\n" + strings.Join(spellings, "\n") + "\nand this is the end\n"
	for name, text := range map[string]string{
		"notes.txt": notes, "long.txt": strings.Repeat(notes, 400), // so long that it goes to a file of its own
		home + "/auth.json": string(auth), home + "/AGENTS.md": "House rule: the token is " + canary + ".\n",
		home + "/settings.yaml": "log: { level: debug }\n",
	} {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}

	var said bytes.Buffer
	for _, message := range []string{"what is in notes.txt?", "what is in long.txt?"} {
		if code := execute([]string{"--workspace", dir, "chat", message}, strings.NewReader(""), &said, &said); code != fault.ExitOK {
			t.Fatalf("exit code %d: %s", code, said.String())
		}
	}

	if !strings.Contains(said.String(), "this is the end") {
		t.Errorf("the agent did not read the file, so this test proves nothing: %s", said.String())
	}
	look := func(where, text string) {
		for _, s := range spellings {
			if i := strings.Index(text, s); i >= 0 {
				t.Errorf("%s has the secret as %q: …%s…", where, s, text[max(0, i-60):min(len(text), i+80)])
			}
		}
	}
	look("what was said", said.String())
	hidden := 0
	err = filepath.WalkDir(filepath.Join(dir, home), func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() || d.Name() == "auth.json" || d.Name() == "AGENTS.md" {
			return err
		}
		data, err := os.ReadFile(path)
		look(path, string(data))
		hidden += bytes.Count(data, []byte("[redacted]"))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if hidden < len(spellings) {
		t.Errorf("only %d places are marked as redacted, so this test proves nothing", hidden)
	}
}
