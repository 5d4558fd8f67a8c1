package config

import (
	"fmt"
	"path/filepath"

	"daycare/engine/disk"
)

// IgnoreName is the name of the file that keeps git from committing secrets and runtime files.
const IgnoreName = ".gitignore"

// IgnoreText is the content of that file as daycare writes it.
const IgnoreText = `# What a repository should not contain: secrets, live state, files that daycare can create again.
auth.json
tokens.json
tokens.used.json
pairing.json
daycare.sock
daycare.lock
.ballast
.failed
agents.index
logs/
trash/
drop/
usage/
files/
connectors/
mcp/*.log
agents/*/draft.json
agents/*/blobs/
`

// Ignore writes the .gitignore of a .daycare directory that has none. It is called wherever the
// directory or auth.json is created, and at each start, because users create them by hand, too. An
// existing file stays as it is, even if it is empty.
func Ignore(root string) error {
	path := filepath.Join(root, IgnoreName)
	if disk.Exists(path) {
		return nil
	}
	// Without a barrier: what a crash leaves, the next call writes over.
	if err := disk.NewVolume(root).WriteDraft("ignore", path, []byte(IgnoreText)); err != nil {
		return fmt.Errorf("write %s: %w", IgnoreName, err)
	}

	return nil
}
