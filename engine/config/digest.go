package config

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"

	"go.yaml.in/yaml/v3"
)

// ownSections are a machine's own, where several share agents.
var ownSections = []string{"cluster", "control", "web", "log", "tracing"}

// Digest returns a short hash of each section of the settings, by its key, but of those that are a
// machine's own: so machines that share agents tell whether they have the same ones. Secrets have no
// part in it: settings only name them.
func (c *Config) Digest() (map[string]string, error) {
	data, err := json.Marshal(c)
	if err != nil {
		return nil, fmt.Errorf("hash settings: %w", err)
	}
	var sections map[string]json.RawMessage
	_ = json.Unmarshal(data, &sections)
	for _, own := range ownSections {
		delete(sections, own)
	}
	for _, one := range c.Connectors {
		options, _ := yaml.Marshal(one.Raw) // it was read from YAML
		sections["connectors"] = append(sections["connectors"], options...)
	}

	digest := map[string]string{}
	for key, text := range sections {
		sum := sha256.Sum256(text)
		digest[key] = hex.EncodeToString(sum[:4])
	}

	return digest, nil
}
