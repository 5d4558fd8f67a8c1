package inbox

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"daycare/engine/disk"
)

// Post durably writes a message for the agent ref into the drop folder dir and returns
// the id that its item will have. It needs no lock: commands send messages this way
// while no daemon runs, because only the holder of the lock writes to inboxes. ref is as
// on the command line; empty is the terminal's own agent.
func Post(vol *disk.Volume, dir, ref string, l Fields) (item string, err error) {
	l.ID = l.idOr()
	if err := l.check(); err != nil {
		return "", fmt.Errorf("write to drop folder: %w", err)
	}

	// Messages that are posted within one tick of the file system's clock are distinguished
	// by their names.
	name := time.Now().UTC().Format("20060102T150405.000000000Z-") + l.ID + ".json"
	if ref != "" {
		written := strings.ReplaceAll(ref, "/", "-")
		name = written + "__" + name
		if strings.HasPrefix(ref, ".") || strings.ContainsAny(ref, "\x00\n") ||
			Addressee(name) != ref || len(name) > maxDroppedName {
			return "", fmt.Errorf("write to drop folder: %q is not a valid file name; use the agent's id", ref)
		}
	}

	content, err := json.MarshalIndent(l, "", "  ")
	if err != nil {
		return "", fmt.Errorf("write to drop folder: %w", err)
	}
	if err := vol.MkdirAll(dir); err != nil {
		return "", fmt.Errorf("write to drop folder: %w", err)
	}
	if err := vol.WriteFile("post", filepath.Join(dir, name), append(content, '\n')); err != nil {
		return "", fmt.Errorf("write to drop folder: %w", err)
	}

	return l.ID, nil
}
