package address

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/nrednav/cuid2"

	"daycare/engine/crash"
	"daycare/engine/disk"
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
var ErrReadOnly = errors.New("agents cannot be changed here")

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
		id = cuid2.Generate()
	}
	if d.Type == Subagent || d.Type == Permanent {
		d.ID = id
	}
	data, err := Encode(d)
	if err != nil {
		return Meta{}, err
	}
	address := d.key()
	if address == "" {
		address = id
	}
	m, err, _ := x.making.Do(address, func() (any, error) {
		if known, ok := x.known(d, id); ok {
			return known, nil
		}
		return x.make(id, d, data, state, fill)
	})
	if err != nil {
		return Meta{}, fmt.Errorf("make agent %s: %w", id, full(err))
	}
	return m.(Meta), nil
}

// known is the agent that a descriptor or an id belongs to.
func (x *Index) known(d Descriptor, id string) (Meta, bool) {
	if have, ok := x.Lookup(d); ok {
		id = have
	}
	return x.Get(id)
}

func (x *Index) make(id string, d Descriptor, descriptor, state []byte, fill func(dir string) error) (Meta, error) {
	h, err := x.handles.give(id, d.ParentAgentID, time.Now())
	if err == nil {
		err = x.handles.sync()
	}
	if err != nil {
		return Meta{}, err
	}
	if err := x.build(id, descriptor, state, fill); err != nil {
		return Meta{}, err
	}
	x.mu.Lock()
	m := x.put(id, d, h)
	x.mu.Unlock()
	x.Keep(id)
	return m, nil
}

// build makes the folder: files, sync, rename, sync of agents/.
func (x *Index) build(id string, descriptor, state []byte, fill func(dir string) error) (err error) {
	temp, final := filepath.Join(x.dir, newPrefix+id), filepath.Join(x.dir, id)
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
	if err := x.vol.WriteFile("descriptor", filepath.Join(temp, descriptorFile), descriptor); err != nil {
		return err
	}
	if err := x.vol.WriteFile("state", filepath.Join(temp, stateFile), state); err != nil {
		return err
	}
	if fill != nil {
		if err := fill(temp); err != nil {
			return err
		}
	}
	if err := x.vol.SyncDir("folder.sync", temp); err != nil {
		return err
	}
	if err = x.vol.Rename("folder", temp, final); err != nil && x.vol.Err() == nil {
		// Its name may be there and not durable. Whoever asked is told that there is no
		// agent, and asks again: there must not be two then.
		if back := x.vol.Rename("folder", final, temp); back != nil && !errors.Is(back, fs.ErrNotExist) {
			err = errors.Join(err, back)
		}
	}
	return err
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
	trash := filepath.Join(filepath.Dir(x.dir), "trash")
	if err := x.vol.MkdirAll(trash); err != nil {
		return "", fmt.Errorf("make trash: %w", err)
	}
	from, to := filepath.Join(x.dir, id), filepath.Join(trash, time.Now().UTC().Format("20060102T150405.000Z")+"-"+id)
	err := x.vol.Rename("trash", from, to) // its old name goes last
	if disk.Exists(from) {
		return "", fmt.Errorf("move agent to trash: %w", err)
	}
	x.Forget(id)
	if errors.Is(err, fs.ErrNotExist) {
		err = nil // somebody else took it away
	}
	return to, err
}

// Forget takes an agent out of the index; its folder stays as it is. A Rescan
// finds it again.
func (x *Index) Forget(id string) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.forget(id)
}
