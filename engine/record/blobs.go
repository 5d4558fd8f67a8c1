package record

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"daycare/engine/disk"
	"daycare/engine/lazyregexp"
)

const blobDir = "blobs"

var blobName = lazyregexp.New(`^[0-9a-f]{64}$`)

// BlobPath is the path of a blob relative to its agent's folder, as it is named in the text of a
// shortened output.
func BlobPath(sha string) string { return blobDir + "/" + sha }

// PutBlob stores a text in the folder's blobs/ under its hash and returns the hash. It is durable
// on return; the same text is stored once.
func PutBlob(vol *disk.Volume, dir, text string) (sha string, err error) {
	sum := sha256.Sum256([]byte(text))
	sha = hex.EncodeToString(sum[:])
	folder := filepath.Join(dir, blobDir)
	path := filepath.Join(folder, sha)
	if info, err := os.Stat(path); err == nil && info.Size() == int64(len(text)) {
		// Its name may be in the page cache only, if a crash came before the sync.
		return sha, errors.Join(vol.SyncDir("blob.dirsync", folder), vol.SyncDir("blob.dirsync", dir))
	}
	if err := vol.MkdirAll(folder); err != nil {
		return "", fmt.Errorf("make folder of blobs: %w", err)
	}
	if err := vol.SyncDir("blob.dirsync", dir); err != nil {
		return "", fmt.Errorf("make folder of blobs: %w", err)
	}
	if err := vol.WriteFile("blob", path, []byte(text)); err != nil {
		return "", fmt.Errorf("write blob: %w", err)
	}

	return sha, nil
}

// KeepBlob syncs a blob that a tool wrote into the folder's blobs/. It must be called before a
// record names the blob.
func KeepBlob(vol *disk.Volume, dir, sha string) error {
	folder := filepath.Join(dir, blobDir)
	return errors.Join(
		vol.SyncFile("blob.sync", filepath.Join(folder, sha)),
		vol.SyncDir("blob.dirsync", folder),
		vol.SyncDir("blob.dirsync", dir))
}

// ReadBlob reads a text that PutBlob stored.
func ReadBlob(dir, sha string) (string, error) {
	if !blobName.MatchString(sha) {
		return "", fmt.Errorf("read blob: %q is not a SHA-256", sha)
	}
	data, err := os.ReadFile(filepath.Join(dir, blobDir, sha))
	if err != nil {
		return "", fmt.Errorf("read blob: %w", err)
	}

	return string(data), nil
}
