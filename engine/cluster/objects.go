package cluster

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"daycare/engine/disk"
)

// Attachments are contents that belong to no unit.
type attachments struct{ c *cards }

// keptFor bounds how long an attachment is on its way.
const keptFor = 30 * time.Second

// Keep keeps a content for all machines under a name, which has one content for ever.
func (n attachments) Keep(name string, data []byte) error {
	if n.c.away() {
		return disk.ErrAway
	}
	ctx, cancel := context.WithTimeout(n.c.until, keptFor)
	defer cancel()
	if _, err := n.objects().PutBytes(ctx, name, data); err != nil {
		return fmt.Errorf("%w: keep %s for other machines: %w", disk.ErrAway, name, err)
	}

	return nil
}

// Fetch is what Keep kept; ok is false if nobody kept it.
func (n attachments) Fetch(name string) (data []byte, ok bool, err error) {
	ctx, cancel := context.WithTimeout(n.c.until, keptFor)
	defer cancel()
	data, err = n.objects().GetBytes(ctx, name)
	if errors.Is(err, jetstream.ErrObjectNotFound) {
		return nil, false, nil
	}
	if err != nil {
		return nil, false, fmt.Errorf("%w: fetch %s: %w", disk.ErrAway, name, err)
	}

	return data, true, nil
}

func (n attachments) objects() jetstream.ObjectStore { return n.c.keep.handles.objects }
