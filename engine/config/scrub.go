package config

import (
	"bytes"
	"errors"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"daycare/engine/workspace"
)

// errSecretsStay: some secret could not be taken out of the settings.
var errSecretsStay = errors.New(Name + " contains a key or token that cannot be removed from a copy\n" +
	"move it to auth.json with: daycare auth set ID")

// minSecret is how long a secret is at least that is looked for in a text, in bytes.
const minSecret = 6

// Scrub returns the text of settings.yaml without the secrets that the configuration knows; empty
// strings take their places. Text that is not valid YAML is an error, because a secret in it could
// not be recognised.
func (c *Config) Scrub(text []byte) ([]byte, error) {
	var before, after yaml.Node
	if err := yaml.Unmarshal(text, &before); err != nil {
		return nil, errors.New(Name + " cannot be read, so keys and tokens in it cannot be left out\n" +
			"see what is wrong with: daycare validate")
	}
	for _, s := range c.Secrets() {
		if len(s.value) >= minSecret {
			text = bytes.ReplaceAll(text, []byte(s.value), nil)
		}
	}
	if err := yaml.Unmarshal(text, &after); err != nil || c.hasSecret(&after) {
		return nil, errSecretsStay
	}

	return text, nil
}

// hasSecret reports whether a value below n contains a secret, however it is written.
func (c *Config) hasSecret(n *yaml.Node) bool {
	for _, s := range c.Secrets() {
		if len(s.value) >= minSecret && strings.Contains(n.Value, s.value) {
			return true
		}
	}
	for _, sub := range n.Content {
		if c.hasSecret(sub) {
			return true
		}
	}

	return false
}

// Named lists the files in the workspace that the settings name, relative to it; private are those
// that contain keys.
func (c *Config) Named(at workspace.Place) (all, private []string) {
	add := func(path string) string {
		rel := at.Store(at.Resolve(path))
		if path != "" && !strings.HasPrefix(rel, "/") && !slices.Contains(all, rel) { // several may share a file
			all = append(all, rel)
		}
		return rel
	}
	for _, p := range c.Providers {
		if script, ok := p.Options["script"].(string); ok {
			add(script)
		}
	}
	add(c.Control.TLSCert)
	add(c.Cluster.TLSCA)
	add(c.Cluster.TLSCert)
	if key := add(c.Cluster.TLSKey); c.Cluster.TLSKey != "" {
		private = append(private, key)
	}
	if key := add(c.Control.TLSKey); c.Control.TLSKey != "" {
		private = append(private, key)
	}

	return all, private
}
