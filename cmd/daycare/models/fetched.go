package models

import (
	"errors"
	"fmt"
	"os"
	"time"

	"daycare/agents/providers/catalogue"
	"daycare/engine/beneath"
)

// FileName is the file in .daycare with the list of models that a user fetched.
const FileName = "models.json"

// ReadFetched reads that file; nil if it does not exist.
func ReadFetched(path string) (*catalogue.Newer, error) {
	data, err := beneath.Whole(path)
	if path == "" || errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}

	return catalogue.ReadNewer(data, path, time.Now())
}

// StampOf tells versions of a file apart; "" means that there is no file.
func StampOf(path string) string {
	info, err := os.Stat(path)
	if err != nil {
		return ""
	}

	return fmt.Sprint(info.ModTime().UnixNano(), " ", info.Size())
}
