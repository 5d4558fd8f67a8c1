package apitoken

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"time"

	"daycare/engine/beneath"
	"daycare/engine/disk"
	"daycare/engine/finding"
	"daycare/engine/form"
	"daycare/engine/lazyregexp"
)

// Name is the file of tokens in a .daycare directory.
const Name = "tokens.json"

// maxFile bounds the file, in bytes.
const maxFile = 1 << 20

// A Token is one entry of the file. The token itself is not in it.
type Token struct {
	Hash    string     `json:"hash" check:"required"` // sha256:HEX of the token
	Scopes  []Scope    `json:"scopes" check:"required"`
	Agents  []string   `json:"agents,omitempty"` // ids of the only agents that it is about; absent: all
	Created disk.Stamp `json:"created"`
	Expires *time.Time `json:"expires,omitempty"` // absent: never
	// Via is "web" for the login of a browser: its secret is a cookie and not accepted in a header.
	Via string `json:"via,omitempty" allow:"web"`
}

// viaWeb is the Via of the login of a browser.
const viaWeb = "web"

// IsSession reports whether it is the login of a browser.
func (t Token) IsSession() bool { return t.Via == viaWeb }

// Expired reports whether a token is too old at a time.
func (t Token) Expired(now time.Time) bool { return t.Expires != nil && !now.Before(*t.Expires) }

func (t Token) rights() Rights { return Rights{Scopes: t.Scopes, Agents: t.Agents} }

// namePattern is what a token can be called: it is shown where a decision is recorded.
const namePattern = `^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$`

var (
	names  = lazyregexp.New(namePattern)
	hashes = lazyregexp.New(`^sha256:[0-9a-f]{64}$`)
)

// hash is what the file keeps of a token. A token has 256 random bits, so a fast hash
// tells nothing about it.
func hash(secret string) string {
	sum := sha256.Sum256([]byte(secret))
	return "sha256:" + hex.EncodeToString(sum[:])
}

// Check returns what is wrong in the content of a tokens.json, each member of it: a file with a
// misspelled one must not give more than its owner meant. path is for the findings.
func Check(path string, content []byte) ([]finding.Finding, error) {
	_, found := parse(path, content)
	return found, nil
}

// read returns the tokens of a .daycare directory; none if the file is missing.
func read(root string) (map[string]Token, []finding.Finding) {
	path := filepath.Join(root, Name)
	real, err := disk.Through(root, path) // not into the workspace, where agents write
	var data []byte
	if err == nil {
		data, _, err = beneath.Own(real, maxFile)
	}
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, []finding.Finding{{ID: "tokens-unreadable", Severity: finding.Error, File: path, Reason: err.Error(),
			Remedy: "Make it a readable file. Remove it to revoke all tokens."}}
	}

	return parse(path, data)
}

// kind is how the file is read. A key that is unknown is an error: a misspelled one must
// not give more than its owner meant.
var kind = form.Kind{ID: "tokens", Unknown: finding.Error,
	IDs: map[string]string{"syntax": "invalid", "wrong-type": "invalid", "bad-value": "invalid", "unknown-key": "invalid",
		"missing": "invalid"},
	Remedy: "The last valid version stays active. `daycare auth token ls` shows the form; {} is a file without tokens."}

// parse never returns a part of a file: with an error there are no tokens.
func parse(path string, data []byte) (map[string]Token, []finding.Finding) {
	f := kind.JSON(path, data)
	var tokens map[string]Token
	f.Read(&tokens)
	if tokens == nil && !f.Failed() {
		f.Tell(finding.Error, "invalid", "", "not a JSON object of name and token", "")
	}
	if f.Failed() {
		return nil, f.Found
	}

	seen := map[string]string{}
	for _, name := range slices.Sorted(maps.Keys(tokens)) {
		t := tokens[name]
		err := t.check(name)
		if err == nil && seen[t.Hash] != "" {
			err = fmt.Errorf("hash: %q has the same", seen[t.Hash])
		}
		if err != nil {
			f.Tell(finding.Error, "invalid", name, fmt.Sprintf("token %q: %v", name, err), "")
			return nil, f.Found
		}

		seen[t.Hash] = name
	}

	return tokens, f.Found
}

// check returns what is wrong with a token of that name.
func (t Token) check(name string) error {
	if !names.MatchString(name) {
		return errors.New("the name is not allowed: letters, digits, dot, dash and underscore, at most 64")
	}
	if !hashes.MatchString(t.Hash) {
		return errors.New("hash: allowed: sha256: and 64 hexadecimal digits; only `daycare auth token create` makes one")
	}
	if len(t.Scopes) == 0 {
		return errors.New("scopes: missing, allowed: " + Names(Scopes))
	}

	for _, s := range t.Scopes {
		if !slices.Contains(Scopes, s) {
			return fmt.Errorf("scopes: found %q, allowed: %s", s, Names(Scopes))
		}
	}

	if t.Agents != nil && len(t.Agents) == 0 {
		return errors.New("agents: empty; name the ids of agents, or leave it out for all agents")
	}
	if slices.Contains(t.Agents, "") {
		return errors.New(`agents: found "", allowed: ids of agents`)
	}

	return nil
}
