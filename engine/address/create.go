package address

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/nrednav/cuid2"

	"daycare/engine/crash"
	"daycare/engine/message"
)

const (
	descriptorFile = "descriptor.json"
	newPrefix      = ".new-"
)

// ErrReadOnly: the index was loaded for looking only.
var ErrReadOnly = errors.New("agents cannot be changed here")

// Create makes an agent, or returns the one that its address maps to. Two first
// messages at once make one agent. The folder is built under another name, synced
// and renamed, so an agent either exists whole or not at all; its handle is
// durable before.
func (x *Index) Create(d Descriptor, state []byte) (Meta, error) {
	if x.vol == nil {
		return Meta{}, ErrReadOnly
	}
	if k := d.key(); k != "" {
		lock := x.lockOf(k)
		lock.Lock()
		defer lock.Unlock()
		if id, ok := x.Lookup(d); ok {
			m, _ := x.Get(id)
			return m, nil
		}
	}
	id := d.ID
	if id == "" {
		id = cuid2.Generate()
	}
	if m, ok := x.Get(id); ok {
		return m, nil // a repeated call after a crash
	}
	data, err := Encode(d)
	if err != nil {
		return Meta{}, err
	}
	x.mu.Lock()
	_, err = x.handles.give(id, d.ParentAgentID, time.Now())
	x.mu.Unlock()
	if err != nil {
		return Meta{}, err
	}
	if err := x.build(id, data, state); err != nil {
		return Meta{}, fmt.Errorf("make agent %s: %w", id, err)
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.add(id, d)
}

// lockOf is the lock of one address.
func (x *Index) lockOf(key string) *sync.Mutex {
	x.mu.Lock()
	defer x.mu.Unlock()
	l, ok := x.making[key]
	if !ok {
		l = &sync.Mutex{}
		x.making[key] = l
	}
	return l
}

// build makes the folder: files, sync, rename, sync of agents/.
func (x *Index) build(id string, descriptor, state []byte) error {
	temp, final := filepath.Join(x.dir, newPrefix+id), filepath.Join(x.dir, id)
	if err := os.RemoveAll(temp); err != nil { // of an earlier try
		return err
	}
	if err := crash.Do("folder.mkdir", func() error { return os.Mkdir(temp, 0o700) }); err != nil {
		return err
	}
	if err := x.vol.WriteFile("descriptor", filepath.Join(temp, descriptorFile), descriptor); err != nil {
		return err
	}
	if err := x.vol.WriteFile("state", filepath.Join(temp, "state.json"), state); err != nil {
		return err
	}
	if err := x.vol.SyncDir("folder.sync", temp); err != nil {
		return err
	}
	if err := crash.Do("folder.rename", func() error { return os.Rename(temp, final) }); err != nil {
		return err
	}
	return x.vol.SyncDir("folder.dirsync", x.dir)
}

// Remove moves an agent's folder to trash/<time>-<id> and forgets the agent. It
// returns where the folder is now.
func (x *Index) Remove(id string) (string, error) {
	if x.vol == nil {
		return "", ErrReadOnly
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	m, ok := x.byID[id]
	if !ok {
		return "", fmt.Errorf("%w: %s", message.ErrUnknownAgent, id)
	}
	trash := filepath.Join(filepath.Dir(x.dir), "trash")
	if err := os.MkdirAll(trash, 0o700); err != nil {
		return "", err
	}
	to := filepath.Join(trash, time.Now().UTC().Format("20060102T150405.000Z")+"-"+id)
	if err := crash.Do("trash.rename", func() error { return os.Rename(filepath.Join(x.dir, id), to) }); err != nil {
		return "", fmt.Errorf("move agent to trash: %w", err)
	}
	if err := errors.Join(x.vol.SyncDir("trash.dirsync", trash), x.vol.SyncDir("trash.dirsync", x.dir)); err != nil {
		return "", err
	}
	delete(x.byID, id)
	if k := m.Descriptor.key(); x.byKey[k] == id {
		delete(x.byKey, k)
	}
	return to, nil
}
