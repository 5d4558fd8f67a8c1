package disk

import "testing"

// /proc is a file system that has no sync for folders, and is there on every Linux.
func TestSyncOfAFolderThatHasNone(t *testing.T) {
	v := NewVolume(t.TempDir())
	if err := v.SyncDir("log.dirsync", "/proc"); err != nil || v.Err() != nil {
		t.Errorf("sync of /proc: %v, the volume: %v", err, v.Err())
	}
	if ok, err := SyncsFolders("/proc"); ok || err != nil {
		t.Errorf("the probe of /proc says %v, %v", ok, err)
	}
	if ok, err := SyncsFolders(t.TempDir()); !ok || err != nil {
		t.Errorf("the probe of a folder says %v, %v", ok, err)
	}
}
