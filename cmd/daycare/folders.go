package main

import "path/filepath"

// keepFolders makes the folders durable that opening a workspace may have made:
// what is synced inside a folder is lost in a power cut with the folder's own name.
func (r *runtimeParts) keepFolders() error {
	if r.system == nil {
		return nil // it was not opened
	}
	for _, dir := range []string{filepath.Join(r.root, "drop"), r.root, r.workspace} {
		if err := r.vol.SyncDir("home.dirsync", dir); err != nil {
			return err
		}
	}
	return nil
}
