package main

import "path/filepath"

// keepFolders makes the folders durable that opening a workspace may have made:
// what is synced inside a folder is lost in a power cut with the folder's own name.
func (r *runtimeParts) keepFolders() error {
	if r.system == nil {
		return nil // it was not opened
	}
	slot := filepath.Join(r.root, "drop")
	// From the inside out; and a letter that was just taken has its new name before
	// it loses the old one.
	for _, dir := range []string{filepath.Join(slot, ".taken"), slot, r.root, r.workspace} {
		if err := r.vol.SyncDir("home.dirsync", dir); err != nil {
			return err
		}
	}
	return nil
}
