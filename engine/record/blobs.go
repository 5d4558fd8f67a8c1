package record

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"daycare/engine/beneath"
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
	shas, err := PutBlobs(vol, dir, text)
	if err != nil {
		return "", err
	}

	return shas[0], nil
}

// PutBlobs is PutBlob for several texts, for whose names it waits once.
func PutBlobs(vol *disk.Volume, dir string, texts ...string) (shas []string, err error) {
	folder := filepath.Join(dir, blobDir)
	old := false
	var missing []string
	for _, text := range texts {
		sum := sha256.Sum256([]byte(text))
		sha := hex.EncodeToString(sum[:])
		shas = append(shas, sha)
		if info, err := os.Stat(filepath.Join(folder, sha)); err == nil && info.Size() == int64(len(text)) {
			old = true
		} else {
			missing = append(missing, sha, text)
		}
	}

	if len(missing) > 0 {
		if err := vol.MkdirAll(folder); err != nil {
			return nil, fmt.Errorf("make folder of blobs: %w", err)
		}
	}
	if err := vol.SyncDir("blob.dirsync", dir); err != nil {
		return nil, fmt.Errorf("make folder of blobs: %w", err)
	}
	if old && len(missing) == 0 {
		// The names may be in the page cache only, if a crash came before the sync. Writing another syncs them, too.
		return shas, vol.SyncDir("blob.dirsync", folder)
	}
	for i := 0; i < len(missing); i += 2 {
		if err := vol.WriteFile("blob", filepath.Join(folder, missing[i]), []byte(missing[i+1])); err != nil {
			return nil, fmt.Errorf("write blob: %w", err)
		}
	}

	return shas, nil
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
	data, err := beneath.Whole(filepath.Join(dir, blobDir, sha))
	if err != nil {
		return "", fmt.Errorf("read blob: %w", err)
	}

	return string(data), nil
}
