package apitoken

import (
	"bytes"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"time"

	"daycare/engine/crash"
	"daycare/engine/disk"
	"daycare/engine/finding"
)

var (
	// ErrUnknown: no token has that name.
	ErrUnknown = errors.New("no such token")
	// ErrTaken: a token has that name already.
	ErrTaken = errors.New("a token with this name already exists")
)

// prefix begins every token, so that users and scanners recognise one.
const prefix = "daycare_"

// Create makes a token and keeps its hash. The token is returned this once.
func Create(root, name string, rights Rights, expires *time.Time) (secret string, made Token, err error) {
	return keep(root, name, Token{Scopes: rights.Scopes, Agents: rights.Agents, Expires: expires})
}

// sessionLife is how long a browser stays logged in.
const sessionLife = 30 * 24 * time.Hour

// CreateSession makes the login of a browser, with the owner's rights, for 30 days. Its secret is
// for a cookie only: FindSession finds it, Find does not. browser is a part of its name:
// web-firefox-1c9e04.
func CreateSession(root, browser string) (secret, name string, made Token, err error) {
	unique := make([]byte, 4)
	rand.Read(unique)
	name = fmt.Sprintf("web-%s-%x", browser, unique)
	until := crash.Now().Add(sessionLife).UTC().Truncate(time.Second)
	secret, made, err = keep(root, name, Token{Scopes: Everything.Scopes, Expires: &until, Via: viaWeb})
	return secret, name, made, err
}

func keep(root, name string, made Token) (secret string, _ Token, err error) {
	random := make([]byte, 32)
	rand.Read(random) // it never fails
	secret = prefix + base64.RawURLEncoding.EncodeToString(random)
	made.Hash, made.Created = hash(secret), disk.StampOf(crash.Now())
	if err := made.check(name); err != nil {
		return "", made, fmt.Errorf("create token %s: %w", name, err)
	}

	err = change(root, func(tokens map[string]Token) error {
		if _, ok := tokens[name]; ok {
			return fmt.Errorf("create token %q: %w", name, ErrTaken)
		}
		maps.DeleteFunc(tokens, func(_ string, t Token) bool { return t.Via == viaWeb && t.Expired(crash.Now()) })
		tokens[name] = made
		return nil
	})
	if err != nil {
		return "", made, err
	}

	return secret, made, nil
}

// Revoke removes a token, or returns ErrUnknown.
func Revoke(root, name string) error {
	return change(root, func(tokens map[string]Token) error {
		if _, ok := tokens[name]; !ok {
			return fmt.Errorf("revoke token %q: %w", name, ErrUnknown)
		}
		delete(tokens, name)
		return nil
	})
}

// change replaces the file in one step. A file that cannot be read is not overwritten: the
// error is its findings. Two changes at once wait for each other, so that none brings back
// what the other revoked.
func change(root string, edit func(map[string]Token) error) error {
	release, err := disk.Alone(root)
	if err != nil {
		return fmt.Errorf("change tokens: %w", err)
	}
	defer release()

	tokens, found := read(root)
	if err := finding.Join(found); err != nil {
		return err
	}
	if tokens == nil {
		tokens = map[string]Token{}
	}
	if err := edit(tokens); err != nil {
		return err
	}

	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetIndent("", "  ")
	if err := enc.Encode(tokens); err != nil {
		return fmt.Errorf("write tokens: %w", err)
	}

	path, err := disk.Through(root, filepath.Join(root, Name))
	if err == nil {
		err = disk.NewVolume(root).WriteFile("tokens", path, b.Bytes())
	}
	if err != nil {
		return fmt.Errorf("write tokens: %w", err)
	}

	return nil
}
