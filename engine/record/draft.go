package record

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"daycare/engine/beneath"
	"daycare/engine/disk"
)

const draftName = "draft.json"

// A Draft is the answer that is being streamed. It is removed when its record is written; one that
// exists at a start was interrupted by a crash.
type Draft struct {
	Turn     string `json:"turn"`
	Text     string `json:"text"`
	Thinking string `json:"thinking,omitempty"`
	// Provider and Model are who answers, Input the estimated size of the request in tokens:
	// with them the cost is estimated if a crash cuts off the answer.
	Provider string `json:"provider,omitempty"`
	Model    string `json:"model,omitempty"`
	Input    int64  `json:"input,omitempty"`
}

// WriteDraft replaces the draft without syncing it: it survives a crash of the process, but perhaps
// not a power cut.
func WriteDraft(vol *disk.Volume, dir string, d Draft) error {
	if err := vol.WriteDraft("draft", filepath.Join(dir, draftName), append(encoded(d), '\n')); err != nil {
		return fmt.Errorf("write draft: %w", err)
	}

	return nil
}

// ReadDraft reads the draft; ok is false if there is none, or if a power cut left it half written.
func ReadDraft(dir string) (d Draft, ok bool, err error) {
	data, err := beneath.Whole(filepath.Join(dir, draftName))
	if errors.Is(err, fs.ErrNotExist) {
		return d, false, nil
	}
	if err != nil {
		return d, false, fmt.Errorf("read draft: %w", err)
	}
	if json.Unmarshal(data, &d) != nil {
		return Draft{}, false, nil
	}

	return d, true, nil
}

// RemoveDraft removes the draft, if there is one.
func RemoveDraft(dir string) error {
	err := os.Remove(filepath.Join(dir, draftName))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}

	return err
}
