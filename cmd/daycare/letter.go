package main

import (
	"context"
	"fmt"
	"path/filepath"

	"daycare/engine/control"
	"daycare/engine/disk"
	"daycare/engine/inbox"
)

// leaveLetter leaves a message for an agent while no daemon runs. It writes no
// inbox: only the holder of the lock may do that.
func (c *cli) leaveLetter(ctx context.Context, root, ref string, m control.Message) error {
	client, err := c.offline(root, c.warn)
	if err != nil {
		return err
	}
	a, err := client.Agent(ctx, ref)
	if err != nil {
		return fmt.Errorf("find agent %s: %w", ref, err)
	}
	letter := inbox.Fields{Text: m.Text, Type: m.Kind, Silent: m.Silent, Queue: m.Queue}
	for _, f := range m.Files {
		letter.Files = append(letter.Files, inbox.Enclosure{Path: f.Path})
	}
	dir := filepath.Join(root, home, "drop")
	item, err := inbox.Post(disk.NewVolume(filepath.Join(root, home)), dir, a.ID, letter)
	if err != nil {
		return fmt.Errorf("send to %s: %w", ref, err)
	}
	return c.sent(sendResult{Agent: a.ID, Item: item, Letter: dir})
}
