package talk

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"path/filepath"

	"daycare/cmd/daycare/term"
	"daycare/engine/control"
	"daycare/engine/disk"
	"daycare/engine/inbox"
	"daycare/engine/message"
	"daycare/engine/permission"
	"daycare/engine/workspace"
)

// leaveLetter leaves a message for an agent while no daemon runs. It writes no
// inbox: only the holder of the lock may do that. Files are copied now, as they are.
func leaveLetter(ctx context.Context, c *term.App, at workspace.Place, ref string, m control.Message) error {
	client, err := c.Offline(at, c.Warn)
	if err != nil {
		return err
	}
	a, err := client.Agent(ctx, ref)
	if err != nil {
		return term.About(err, "find agent", ref)
	}

	letter := inbox.Fields{Text: m.Text, Type: m.Kind, Silent: m.Silent, Queue: m.Queue}
	vol := disk.NewVolume(at.Data)
	folders, err := permission.OpenFolders(nil, at, func(string, error) {})
	if err != nil {
		return err
	}

	files, err := control.NewFileStore(at.Data, vol, folders)
	if err != nil {
		return err
	}

	for _, f := range m.Files {
		kept, err := stored(files, f)
		if err != nil {
			return fmt.Errorf("attach %s: %w", cmp.Or(f.Path, f.Name), err)
		}
		letter.Files = append(letter.Files, inbox.Enclosure{ID: kept.ID})
	}

	dir := filepath.Join(at.Data, "drop")
	item, err := inbox.Post(vol, dir, a.ID, letter)
	if err != nil {
		return term.About(err, "send to", ref)
	}

	return sent(c, sendResult{Agent: a.ID, Item: item, Dropped: dir})
}

// stored is a file of a letter, which is stored at once.
func stored(files *control.FileStore, f control.File) (message.File, error) {
	if f.Path == "" {
		return files.Put(f.Name, bytes.NewReader(f.Data))
	}
	return files.Adopt(f.Path)
}
