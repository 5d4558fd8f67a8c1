package e2ee

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"maunium.net/go/mautrix/crypto/attachment"
)

const maxFile = 64 << 20 // bytes of an encrypted file

// OpenFile decrypts a file, whose keys are in the message. What was changed is an error.
func OpenFile(keys json.RawMessage, from io.Reader) (io.Reader, error) {
	var f attachment.EncryptedFile
	if err := json.Unmarshal(keys, &f); err != nil {
		return nil, fmt.Errorf("decrypt file: its keys cannot be read: %w", err)
	}
	data, err := io.ReadAll(io.LimitReader(from, maxFile+1))
	if err != nil {
		return nil, err
	}
	if len(data) > maxFile {
		return nil, errors.New("decrypt file: it is too large")
	}
	if err := f.DecryptInPlace(data); err != nil {
		return nil, fmt.Errorf("decrypt file: %w", err)
	}

	return bytes.NewReader(data), nil
}

// SealFile encrypts a file in place; keys is what a message says of it, by its address.
func SealFile(data []byte) (sealed []byte, keys func(address string) any) {
	f := attachment.NewEncryptedFile()
	f.EncryptInPlace(data)
	return data, func(address string) any {
		return struct {
			*attachment.EncryptedFile
			URL string `json:"url"`
		}{f, address}
	}
}
