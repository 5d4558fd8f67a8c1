package upkeep

import (
	"bytes"
	"crypto/ed25519"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"

	"golang.org/x/crypto/blake2b"
)

// A publicKey is one of minisign: two letters, an id, and the ed25519 key.
type publicKey struct {
	id  []byte
	key ed25519.PublicKey
}

// parseKey reads a public key of minisign, with or without its comment line.
func parseKey(text string) (publicKey, error) {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	raw, err := base64.StdEncoding.DecodeString(strings.TrimSpace(lines[len(lines)-1]))
	if err != nil || len(raw) != 2+8+ed25519.PublicKeySize || string(raw[:2]) != "Ed" {
		return publicKey{}, errors.New("not a minisign public key (expected 56 characters that start with RW)")
	}

	return publicKey{raw[2:10], raw[10:]}, nil
}

// verify reports whether a signature of minisign is the key's, for these bytes and for its own
// trusted comment. Both of its kinds are known: of the bytes, and of their BLAKE2b hash.
func (k publicKey) verify(content, signature []byte) error {
	lines := strings.Split(strings.TrimSpace(string(signature)), "\n")
	if len(lines) < 4 {
		return errors.New("it is not a minisign signature")
	}
	raw, err := base64.StdEncoding.DecodeString(strings.TrimSpace(lines[1]))
	global, gerr := base64.StdEncoding.DecodeString(strings.TrimSpace(lines[3]))
	comment, ok := strings.CutPrefix(strings.TrimRight(lines[2], "\r"), "trusted comment: ")
	if err != nil || gerr != nil || !ok || len(raw) != 2+8+ed25519.SignatureSize ||
		len(global) != ed25519.SignatureSize {
		return errors.New("it is not a minisign signature")
	}

	kind, id, sig := string(raw[:2]), raw[2:10], raw[10:]
	if !bytes.Equal(id, k.id) {
		return fmt.Errorf("it was made with key %X; expected key %X", id, k.id)
	}

	switch kind {
	case "Ed":
	case "ED":
		sum := blake2b.Sum512(content)
		content = sum[:]
	default:
		return fmt.Errorf("unknown signature kind %q", kind)
	}

	if !ed25519.Verify(k.key, content, sig) || !ed25519.Verify(k.key, append(bytes.Clone(sig), comment...), global) {
		return errors.New("it does not match the file")
	}

	return nil
}
