package upkeep

import (
	"io"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"daycare/cmd/daycare/term"
	"daycare/engine/config"
	"daycare/engine/workspace"
)

// After a restore the tokens of connectors are named that nobody has, too: a backup has none.
func TestRestoreNamesTheTokensOfConnectors(t *testing.T) {
	root := t.TempDir()
	path := filepath.Join(root, workspace.Home, config.Name)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	settings := `providers: [ { id: claude, type: anthropic } ]
connectors:
  - { id: ops, type: telegram, allow: ["1"] }
  - { id: named, type: telegram, tokenEnv: MY_BOT, allow: ["1"] }
  - { id: held, type: telegram, allow: ["1"] }
`
	if err := os.WriteFile(path, []byte(settings), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("ANTHROPIC_API_KEY", "")
	t.Setenv("MY_BOT", "")
	t.Setenv("DAYCARE_SECRET_HELD", "777:token")
	got := missingSecrets(&term.App{Streams: term.Streams{Out: io.Discard, Err: io.Discard}}, workspace.At(root))
	if want := []string{"MY_BOT", "claude", "ops"}; !slices.Equal(got, want) {
		t.Errorf("missing are %q, want %q", got, want)
	}
}
