package folders

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"

	"daycare/engine/address"
	"daycare/engine/beneath"
	"daycare/engine/crash"
	"daycare/engine/disk"
	"daycare/engine/fault"
	"daycare/engine/finding"
	"daycare/engine/message"
	"daycare/engine/record"
)

// editableFiles are the files of an agent that users edit.
var editableFiles = []string{address.File, "state.json", "history.jsonl"}

// promptFile is the last rendered system prompt of an agent, which users only read.
const promptFile = "SYSTEM.md"

// ErrNotEditable: the file cannot be edited through the API.
var ErrNotEditable = fault.NotEditable

// A Version is a file's content at one time.
type Version struct {
	Content []byte
	Hash    string // SHA-256, in hex
}

func version(content []byte) Version {
	sum := sha256.Sum256(content)
	return Version{content, hex.EncodeToString(sum[:])}
}

// Changed says that a file is not the version that an edit was made from.
type Changed struct{ Now Version }

func (e *Changed) Error() string { return "the file has changed in the meantime" }

// CheckFile finds what is wrong in the content of a file that users edit, by its
// name; path is for the findings.
func CheckFile(path string, content []byte) ([]finding.Finding, error) {
	switch filepath.Base(path) {
	case address.File:
		_, found := address.Decode(path, content)
		return found, nil
	case "state.json":
		_, found := record.ParseState(path, content)
		return found, nil
	case "history.jsonl":
		return record.CheckHistory(path, content), nil
	}

	return nil, fmt.Errorf("%w: %s; allowed: %s", ErrNotEditable, filepath.Base(path), strings.Join(editableFiles, ", "))
}

// blobs is the folder of texts that are too long for a history. Users only read them.
const blobs = "blobs/"

// Read reads a file of an agent that users edit, its system prompt (SYSTEM.md), or a text that its
// history names by hash (blobs/HASH). One that is not there is empty, but for the last. Errors:
// ErrNotEditable, fault.NoFile.
func (f *Folders) Read(id, name string) (Version, error) {
	if hash, ok := strings.CutPrefix(name, blobs); ok {
		return f.blob(id, hash)
	}
	listed := name
	if name == promptFile {
		listed = address.File
	}
	path, err := f.editableFile(id, listed)
	if err != nil {
		return Version{}, err
	}
	path = filepath.Join(filepath.Dir(path), name)
	content, err := beneath.Whole(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return Version{}, fmt.Errorf("read %s: %w", name, err)
	}

	return version(content), nil
}

func (f *Folders) blob(id, hash string) (Version, error) {
	path, err := f.editableFile(id, address.File)
	if err != nil {
		return Version{}, err
	}
	text, err := record.ReadBlob(filepath.Dir(path), hash)
	if err != nil {
		return Version{}, fmt.Errorf("%w: %s%.80s", fault.NoFile, blobs, hash)
	}

	return version([]byte(text)), nil
}

// Write publishes a user's version of a file, if it is good and what stands
// there is still the version with that hash; it counts as if an editor had saved it.
// Errors: *Changed, findings of severity Error.
func (f *Folders) Write(id, name string, content []byte, hash string) (Version, error) {
	path, err := f.editableFile(id, name)
	if err != nil {
		return Version{}, err
	}
	found, err := CheckFile(path, content)
	if err == nil {
		err = finding.Join(found)
	}
	if err == nil && name == address.File {
		err = f.sameAgent(id, path, content)
	}
	if err != nil {
		return Version{}, err
	}

	base, err := f.Read(id, name)
	if err != nil {
		return Version{}, err
	}
	if base.Hash != hash {
		return Version{}, &Changed{base}
	}

	vol := f.Volume
	if vol == nil { // nothing runs: this is an editor like any other
		vol = disk.NewVolume(f.Root)
	}
	if crash.Bug("editlost") {
		content = base.Content
	}

	_, err = record.Publish(vol, f.folder(id), name, content, base.Content)
	if errors.Is(err, disk.ErrChanged) {
		now, rerr := f.Read(id, name)
		return Version{}, errors.Join(&Changed{now}, rerr)
	}
	if err != nil {
		return Version{}, fmt.Errorf("write %s: %w", name, err)
	}

	return version(content), nil
}

// sameAgent refuses a descriptor of another agent.
func (f *Folders) sameAgent(id, path string, content []byte) error {
	d, _ := address.Decode(path, content)
	wrong := finding.Finding{ID: "descriptor-id", Severity: finding.Error, File: path, Line: 1}
	switch other, taken := f.Index.Lookup(d); {
	case d.ID != "" && d.ID != id:
		wrong.Reason, wrong.Remedy = fmt.Sprintf("id %q differs from the name of its folder", d.ID), "Leave it at "+id+"."
	case taken && other != id:
		wrong.Reason, wrong.Remedy = "agent "+other+" has the same address", "Change one of the two."
	default:
		return nil
	}

	return finding.Join([]finding.Finding{wrong})
}

// editableFile is the path of a file that users edit.
func (f *Folders) editableFile(id, name string) (string, error) {
	if _, ok := f.Index.Get(id); !ok {
		return "", message.ErrUnknownAgent
	}
	for _, known := range editableFiles {
		if name == known {
			return filepath.Join(f.folder(id), name), nil
		}
	}

	return "", fmt.Errorf("%w: %s; allowed: %s", ErrNotEditable, name, strings.Join(editableFiles, ", "))
}
