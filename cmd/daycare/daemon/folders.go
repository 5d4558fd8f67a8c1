package daemon

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"

	"daycare/engine/address"
	"daycare/engine/apitoken"
	"daycare/engine/config"
	"daycare/engine/permission"
)

// FoldersNotSynced is what follows for a workspace on a file system that has no sync
// for folders: many of FUSE, 9p, SMB.
const FoldersNotSynced = "this file system cannot sync folders: a file created just before a power cut may be lost"

// prepareFolders reserves disk space, ends what a crash left half done in the folder of a workspace, makes the folders that
// every workspace has, and makes all durable: what is synced inside a folder is lost in a power cut with the folder's own
// name. A folder that was made by hand gets its .gitignore.
func (r *Daemon) prepareFolders() error {
	if err := r.vol.Reserve(); err != nil {
		return fmt.Errorf("reserve disk space: %w", err)
	}
	if err := r.vol.Recover(r.at.Data, config.IgnoreName, permission.FoldersFile, apitoken.Name, apitoken.UsedName,
		address.IndexFile); err != nil {
		return err
	}
	if err := config.Ignore(r.at.Data); err != nil {
		r.log.Warn("git may commit secrets of this workspace", "err", err)
	}

	in := func(names ...string) (paths []string) {
		for _, name := range names {
			paths = append(paths, filepath.Join(r.at.Data, name))
		}
		return paths
	}
	// From the inside out, so a letter that was just taken has its new name before it loses the old one.
	if err := r.vol.Prepare(in("agents", "cron", "drop", "drop/.taken", "drop/bad", "files", "heartbeat", "permissions"),
		in("drop/.taken", "files", "permissions")...); err != nil {
		return err
	}
	if r.vol.CannotSyncFolders() {
		r.log.Warn(FoldersNotSynced, "folder", r.at.Data)
	}

	// A folder above that this user cannot open was not made by daycare.
	if err := r.vol.SyncDir("home.dirsync", filepath.Dir(r.at.Data)); err != nil && !errors.Is(err, fs.ErrPermission) {
		return err
	}

	return nil
}
