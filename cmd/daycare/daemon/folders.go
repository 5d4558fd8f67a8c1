package daemon

import (
	"path/filepath"

	"daycare/engine/address"
	"daycare/engine/apitoken"
	"daycare/engine/config"
	"daycare/engine/disk"
	"daycare/engine/permission"
)

// FoldersNotSynced is what follows for a workspace on a file system that has no sync
// for folders: many of FUSE, 9p, SMB.
const FoldersNotSynced = "this file system cannot sync folders: a file created just before a power cut may be lost"

// keepFolders makes the folders durable that opening a workspace may have made:
// what is synced inside a folder is lost in a power cut with the folder's own name.
// A folder that was made by hand gets its .gitignore.
func (r *Daemon) keepFolders() error {
	if r.system == nil {
		return nil // it was not opened
	}

	// What a crash left of a file that was being written goes first.
	if err := r.vol.Recover(r.at.Data, config.IgnoreName, permission.FoldersFile, apitoken.Name, apitoken.UsedName,
		address.IndexFile); err != nil {
		return err
	}
	if err := config.Ignore(r.at.Data); err != nil {
		r.log.Warn("git may commit secrets of this workspace", "err", err)
	}

	ok, err := disk.SyncsFolders(r.at.Data)
	if err != nil {
		return r.vol.Fail(err)
	}
	if !ok {
		r.log.Warn(FoldersNotSynced, "folder", r.at.Data)
	}

	slot := filepath.Join(r.at.Data, "drop")
	// From the inside out; and a letter that was just taken has its new name before
	// it loses the old one.
	for _, dir := range []string{filepath.Join(slot, ".taken"), slot, r.at.Data, r.at.Dir} {
		if err := r.vol.SyncDir("home.dirsync", dir); err != nil {
			return err
		}
	}

	return nil
}
