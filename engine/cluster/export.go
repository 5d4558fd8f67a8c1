package cluster

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"daycare/engine/address"
	"daycare/engine/disk"
)

// Export writes the agents of a cluster, their attachments and what belongs to all machines into
// c.Root, where there are no agents yet: what their logs have at this moment, each by itself. Nothing changes in the cluster.
// It returns how many there are.
func Export(ctx context.Context, c Config) (int, error) {
	conn, s, err := connect(ctx, c)
	if err != nil {
		return 0, err
	}
	defer conn.Close()
	all, err := readCards(ctx, s, c.Log)
	if err != nil {
		return 0, err
	}

	agents := filepath.Join(c.Root, "agents")
	if disk.Exists(agents) {
		return 0, fmt.Errorf("%s already exists\nexport to a new folder", agents)
	}
	w := &workingCopy{root: filepath.Join(c.Root, partName), vol: c.Volume, covers: c.Covers, log: c.Log}
	if err := c.Volume.RemoveAll("export", w.root); err != nil {
		return 0, err
	}
	defer c.Volume.RemoveAll("export", w.root) // it is empty by then, or of no use
	var handles bytes.Buffer
	n := 0
	for id, a := range all.Agents() {
		if ok, err := w.export(ctx, s, id); err != nil {
			return n, err
		} else if !ok {
			continue
		}
		line := jsonOf(exported{a.Handle, id, a.Descriptor.ParentAgentID, disk.StampOf(time.Now())})
		handles.Write(append(line, '\n'))
		n++
	}

	part := filepath.Join(w.root, "agents")
	err = c.Volume.MkdirAll(part)
	if err == nil {
		err = c.Volume.WriteFile("handles", filepath.Join(part, "handles.jsonl"), handles.Bytes())
	}
	if err == nil {
		err = errors.Join(exportFiles(ctx, s, c), exportShared(ctx, s, c))
	}
	if err == nil {
		err = c.Volume.Rename("export", part, agents)
	}

	return n, err
}

// partName is the folder in which the agents are until all are there: some of them alone would
// look like a workspace.
const partName = ".export"

// exported is a line of handles.jsonl.
type exported struct {
	Handle string     `json:"handle"`
	ID     string     `json:"id"`
	Parent string     `json:"parent,omitempty"`
	At     disk.Stamp `json:"at"`
}

// export writes the folder of one agent. ok is false if the agent was removed meanwhile.
func (w *workingCopy) export(ctx context.Context, s store, id string) (ok bool, err error) {
	files, err := w.newest(ctx, s, id, damagedIn)
	if files == nil || err != nil {
		return false, err
	}
	for name, f := range files {
		data, err := f.bytes(ctx, s)
		if err != nil {
			return false, err
		}
		path := filepath.Join(w.folder(id), filepath.FromSlash(name))
		if err = w.vol.MkdirAll(filepath.Dir(path)); err == nil {
			err = w.vol.WriteFile("export", path, data)
		}
		if err != nil {
			return false, err
		}
	}

	return true, nil
}

// damagedIn is how long a log may have a hole that nobody writes to.
const damagedIn = 20 * time.Second

// errLost: the servers have no log of an agent that there is.
var errLost = errors.New("the servers have lost the log")

// newest reads the log of a unit that others may write to: what is shortened while it is read is
// read again. nil: the agent was removed.
func (w *workingCopy) newest(ctx context.Context, s store, id string, holeFor time.Duration) (map[string]file, error) {
	var seen uint64
	for since := time.Now(); ; {
		head, err := s.last(ctx, id)
		if err != nil || head.retired {
			return nil, err
		}
		if head.seq == 0 {
			return nil, fmt.Errorf("%w of agent %s; the machines that have its folder still do: daycare cluster repair", errLost, id)
		}
		if head.seq != seen {
			seen, since = head.seq, time.Now()
		}

		log, err := s.read(ctx, id)
		if err != nil {
			return nil, err
		}
		err = errHole
		if len(log) > 0 && log[len(log)-1].seq >= head.seq { // else the server is behind
			if log[len(log)-1].retired {
				return nil, nil
			}
			var files map[string]file
			if files, err = fold(ctx, s, log, w.covers); err == nil {
				return files, nil
			}
		}
		if !errors.Is(err, errHole) || time.Since(since) > holeFor {
			return nil, fmt.Errorf("read the log of %s: %w", id, err)
		}

		select {
		case <-time.After(20 * time.Millisecond):
		case <-ctx.Done():
			return nil, fmt.Errorf("read the log of %s: %w", id, ctx.Err())
		}
	}
}

// bucketOf reads the files that belong to all machines from their bucket, for a process that is not a machine of the cluster.
func bucketOf(ctx context.Context, s *natsStore, c Config) (*sharing, error) {
	all := newSharing(*c.Shared, c, s, nil)
	w, err := s.handles.files.WatchAll(ctx, jetstream.IgnoreDeletes())
	if err != nil {
		return nil, fmt.Errorf("read what belongs to all machines: %w", err)
	}
	defer w.Stop() // nothing more is needed of it
	reading, cancel := context.WithCancel(ctx)
	defer cancel()
	read := make(chan struct{})
	go func() {
		all.follow(reading, w)
		close(read)
	}()
	select {
	case <-all.ring:
	case <-read:
	}
	cancel()
	if <-read; !all.whole {
		return nil, fmt.Errorf("read what belongs to all machines: %w", disk.ErrAway)
	}

	return all, nil
}

// exportShared writes the files that belong to all machines. One that is there already and is another
// one is kept aside.
func exportShared(ctx context.Context, s *natsStore, c Config) error {
	if c.Shared == nil {
		return nil
	}
	all, err := bucketOf(ctx, s, c)
	if err != nil {
		return err
	}
	for name := range all.there {
		data, ok, err := all.here(name)
		if err == nil && ok && data != nil && sum(data) != all.there[name].SHA {
			err = all.putAside(name, data)
		}
		if err == nil && ok && (data == nil || sum(data) != all.there[name].SHA) {
			err = all.adopt(ctx, name, data, all.there[name])
		}
		if err != nil {
			return fmt.Errorf("export %s: %w", name, err)
		}
	}

	return nil
}

// exportFiles writes the attachments that agents were sent.
func exportFiles(ctx context.Context, s *natsStore, c Config) error {
	list, err := s.handles.objects.List(ctx)
	if err != nil && !errors.Is(err, jetstream.ErrNoObjectsFound) {
		return fmt.Errorf("list attachments: %w", err)
	}
	dir := filepath.Join(c.Root, "files")
	if err := c.Volume.MkdirAll(dir); err != nil {
		return err
	}

	for _, o := range list {
		id, ok := strings.CutSuffix(strings.TrimPrefix(o.Name, "file."), ".reference")
		if !ok || !address.ValidID(id) {
			continue
		}
		line, err := s.handles.objects.GetBytes(ctx, o.Name)
		if err != nil {
			return fmt.Errorf("read attachment %s: %w", id, err)
		}
		var ref struct {
			Name string `json:"name"`
		}
		if err := json.Unmarshal(line, &ref); err != nil || ref.Name != filepath.Base(ref.Name) {
			return fmt.Errorf("%w: reference of attachment %s", errDamaged, id)
		}
		content, err := s.handles.objects.GetBytes(ctx, "file."+id+".content")
		if err != nil {
			return fmt.Errorf("read attachment %s: %w", id, err)
		}
		if err := c.Volume.WriteFile("export", filepath.Join(dir, id+"__"+ref.Name), content); err != nil {
			return err
		}
		if err := c.Volume.WriteFile("export", filepath.Join(dir, id+".json"), append(line, '\n')); err != nil {
			return err
		}
	}

	return nil
}
