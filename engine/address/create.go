package address

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"golang.org/x/sync/singleflight"

	"daycare/engine/crash"
	"daycare/engine/cuid"
	"daycare/engine/disk"
	"daycare/engine/finding"
	"daycare/engine/message"
)

const (
	// File is the name of the descriptor in an agent's folder.
	File           = "descriptor.json"
	descriptorFile = File
	stateFile      = "state.json"
	newPrefix      = ".new-"
)

// ErrReadOnly: the index was loaded for looking only.
var ErrReadOnly = errors.New("agents are read-only here")

// Create makes an agent with the given state.json, or returns the one that its
// address or id belongs to already. Two first messages at once make one agent. The
// folder is built under another name, synced and renamed, so an agent either
// exists whole or not at all; its handle is durable before. Errors: ErrReadOnly,
// disk.ErrFull, disk.ErrFailed.
func (x *Index) Create(d Descriptor, state []byte) (Meta, error) { return x.CreateWith(d, state, nil) }

// CreateWith is Create of an agent that has more files from the beginning: fill
// writes them into the folder before it is one of agents/. It is not called for an
// agent that is there already.
func (x *Index) CreateWith(d Descriptor, state []byte, fill func(dir string) error) (Meta, error) {
	if x.vol == nil {
		return Meta{}, ErrReadOnly
	}
	id := d.ID
	if id == "" {
		id = cuid.New()
	}
	if d.Type == Subagent || d.Type == Permanent {
		d.ID = id
	}

	data, err := Encode(d)
	if err != nil {
		return Meta{}, err
	}
	address := d.Key()
	if address == "" {
		address = id
	}

	m, err, _ := x.maker.making.Do(address, func() (any, error) {
		if known, ok := x.existing(d, id); ok {
			return known, nil
		}
		own, err := x.maker.claim(d, id)
		if err != nil {
			return Meta{}, err
		}
		if known, ok := x.Get(own); ok {
			return known, nil
		}
		made, err := x.maker.make(own, d, data, state, fill)
		if err == nil {
			x.Keep(own)
		}

		return made, err
	})
	if err != nil {
		return Meta{}, fmt.Errorf("create agent %s: %w", id, full(err))
	}

	return m.(Meta), nil
}

// existing is the agent that a descriptor or an id belongs to.
func (x *Index) existing(d Descriptor, id string) (Meta, bool) {
	if have, ok := x.Lookup(d); ok {
		id = have
	}
	return x.Get(id)
}

// A folderMaker makes the folders of agents.
type folderMaker struct {
	vol    *disk.Volume // nil: read only
	scan   *scan
	making singleflight.Group // by address: two first messages at once make one agent
	shared Registry           // nil: this machine has all agents
}

func (k *folderMaker) make(id string, d Descriptor, descriptor, state []byte, fill func(dir string) error) (Meta, error) {
	h, err := k.scan.handles.give(id, d.ParentAgentID, time.Now())
	if err == nil {
		err = k.scan.handles.sync()
	}
	if err != nil {
		return Meta{}, err
	}
	if err := k.build(id, descriptor, state, fill); err != nil {
		return Meta{}, err
	}

	k.scan.known.mu.Lock()
	m := k.scan.known.put(id, d, h)
	k.scan.known.mu.Unlock()
	return m, nil
}

// build makes the folder: files, sync, rename, sync of agents/.
func (k *folderMaker) build(id string, descriptor, state []byte, fill func(dir string) error) (err error) {
	temp, final := filepath.Join(k.scan.dir, newPrefix+id), filepath.Join(k.scan.dir, id)
	if err := os.RemoveAll(temp); err != nil { // of an earlier try
		return err
	}
	defer func() {
		if err != nil {
			discard(temp)
		}
	}()

	if err := crash.Do("folder.mkdir", func() error { return os.Mkdir(temp, 0o700) }); err != nil {
		return err
	}
	if err := k.vol.AddFile("descriptor", filepath.Join(temp, descriptorFile), descriptor); err != nil {
		return err
	}
	if err := k.vol.AddFile("state", filepath.Join(temp, stateFile), state); err != nil {
		return err
	}
	if fill != nil {
		if err := fill(temp); err != nil {
			return err
		}
	}
	if err := k.vol.SyncDir("folder.sync", temp); err != nil {
		return err
	}

	// Where its name is there and cannot be made durable, the volume has failed: the next start finds the agent.
	return k.vol.Rename("folder", temp, final)
}

// discard removes a folder that did not become an agent. The names are removed first,
// because a process without a free descriptor cannot list a folder, but can remove names
// that it knows.
func discard(temp string) {
	for _, name := range []string{descriptorFile, stateFile} {
		os.Remove(filepath.Join(temp, name))
	}
	os.RemoveAll(temp)
}

// full says in the engine's words that there is no room.
func full(err error) error {
	if !errors.Is(err, disk.ErrFull) && (errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT)) {
		return fmt.Errorf("%w: %w", disk.ErrFull, err)
	}
	return err
}

// Remove moves an agent's folder to trash/<time>-<id> and forgets the agent. It
// returns where the folder is now. Moved back, it is the same agent with the same
// handle after the next Rescan.
func (x *Index) Remove(id string) (string, error) {
	if x.vol == nil {
		return "", ErrReadOnly
	}
	if _, ok := x.Get(id); !ok {
		return "", fmt.Errorf("%w: %s", message.ErrUnknownAgent, id)
	}

	trash := filepath.Join(filepath.Dir(x.scan.dir), "trash")
	if err := x.vol.MkdirAll(trash); err != nil {
		return "", fmt.Errorf("make trash: %w", err)
	}
	from, to := filepath.Join(x.scan.dir, id), filepath.Join(trash, time.Now().UTC().Format("20060102T150405.000Z")+"-"+id)
	err := x.vol.Rename("trash", from, to) // its old name goes last
	if disk.Exists(from) {
		return "", fmt.Errorf("move agent to trash: %w", err)
	}

	x.Forget(id)
	if errors.Is(err, fs.ErrNotExist) {
		err = nil // someone else took it away
	}

	return to, err
}

// Forget takes an agent out of the index; its folder stays as it is. A Rescan
// finds it again.
func (x *Index) Forget(id string) {
	x.known.mu.Lock()
	defer x.known.mu.Unlock()
	x.scan.forget(id)
}

// removeUnfinished removes the folders of agents whose making a crash cut short. One that
// cannot be removed is a finding: nothing looks into it again, and every agent works.
func (k *folderMaker) removeUnfinished() (found []finding.Finding, err error) {
	left, err := disk.Glob(k.scan.dir, newPrefix+"*")
	if err != nil {
		return nil, err
	}

	for _, path := range left {
		if err := os.RemoveAll(path); err != nil {
			found = append(found, finding.Finding{ID: "agent-unfinished", Severity: finding.Warning, File: path,
				Reason: fmt.Sprintf("the folder of an agent that was never finished cannot be removed: %v", err),
				Remedy: "remove it: it contains nothing that was accepted"})
		}
	}

	return found, nil
}
