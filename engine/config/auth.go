package config

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"

	"daycare/engine/disk"
	"daycare/engine/fault"
	"daycare/engine/finding"
	"daycare/engine/form"
)

// ErrNoSecret: auth.json has no secret with that id.
var ErrNoSecret = fault.NoSecret

// SetSecret writes a secret to auth.json of a .daycare directory. The file is replaced in one step,
// with mode 0600. A file that cannot be read is not overwritten: the error is its findings.
func SetSecret(root, id string, s Secret) error {
	if !form.Is("id", id) {
		return fmt.Errorf("set secret: found id %q, allowed: %s", id, form.Of("id"))
	}
	if s.IsZero() {
		return errors.New("set secret: it is empty")
	}

	return changeAuth(root, func(secrets map[string]Secret) error {
		secrets[id] = s
		return nil
	})
}

// KeepSecrets writes several secrets to auth.json in one step; undo restores the previous ones.
func KeepSecrets(root string, more map[string]Secret) (undo func() error, err error) {
	before := map[string]Secret{}
	err = changeAuth(root, func(secrets map[string]Secret) error {
		for id, s := range more {
			before[id] = secrets[id]
			secrets[id] = s
		}
		return nil
	})

	return func() error {
		return changeAuth(root, func(secrets map[string]Secret) error {
			for id, was := range before {
				if secrets[id] = was; was.IsZero() {
					delete(secrets, id)
				}
			}

			return nil
		})
	}, err
}

// StoredSecrets returns secrets as they are in auth.json now, regardless of the environment, in the
// order of ids. A missing one is zero.
func StoredSecrets(root string, ids ...string) (list []Secret, err error) {
	secrets, _, err := readAuth(root)
	for _, id := range ids {
		list = append(list, secrets[id])
	}

	return list, err
}

// ReplaceSecrets writes secrets to auth.json, and removes those that are zero, in one step.
func ReplaceSecrets(root string, more map[string]Secret) error {
	return changeAuth(root, func(secrets map[string]Secret) error {
		for id, s := range more {
			if secrets[id] = s; s.IsZero() {
				delete(secrets, id)
			}
		}
		return nil
	})
}

// WithSecrets returns the configuration with additional secrets that are not in auth.json yet. The
// environment overrides them, too.
func (c *Config) WithSecrets(more map[string]Secret) *Config {
	with := *c
	with.secrets = maps.Clone(c.secrets)
	if with.secrets == nil {
		with.secrets = map[string]Secret{}
	}
	maps.Copy(with.secrets, more)

	return &with
}

// RemoveSecret removes a secret from auth.json. Errors: ErrNoSecret.
func RemoveSecret(root, id string) error {
	return changeAuth(root, func(secrets map[string]Secret) error {
		if _, ok := secrets[id]; !ok {
			return fmt.Errorf("remove secret %q: %w", id, ErrNoSecret)
		}
		delete(secrets, id)
		return nil
	})
}

// changeAuth replaces the file in one step. Two changes at once, as of two servers that log in again, wait for each other:
// none takes back what the other one wrote.
func changeAuth(root string, change func(map[string]Secret) error) error {
	release, err := disk.Alone(root)
	if err != nil {
		return fmt.Errorf("change secrets: %w", err)
	}
	defer release()

	secrets, found, err := readAuth(root)
	if err = errors.Join(err, finding.Join(found)); err != nil {
		return err
	}
	if secrets == nil {
		secrets = map[string]Secret{}
	}
	if err := change(secrets); err != nil {
		return err
	}

	plain := map[string]string{}
	for id, s := range secrets {
		plain[id] = s.value
	}
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	_ = enc.Encode(plain)                // text can be written
	if err := Ignore(root); err != nil { // first: the secret is never there without it
		return fmt.Errorf("write secrets: %w", err)
	}

	path, err := disk.Through(root, filepath.Join(root, AuthName))
	if err == nil {
		err = disk.NewVolume(root).WriteFile("auth", path, b.Bytes())
	}
	if err != nil {
		return fmt.Errorf("write secrets: %w", err)
	}

	return nil
}

// A SecretSource says where one secret comes from, without its value.
type SecretSource struct {
	ID     string   `json:"id"`
	Source string   `json:"source"`           // auth.json, or the environment variable that contains it; "": it is missing
	File   bool     `json:"file"`             // it is in auth.json, perhaps overridden
	UsedBy []string `json:"usedBy,omitempty"` // "provider claude", "connector ops"
}

// SecretSources lists the secrets that are in auth.json or needed by the settings, by id.
func (c *Config) SecretSources() []SecretSource {
	all := map[string]*SecretSource{}
	at := func(id, usedBy string, envs ...string) {
		s := all[id]
		if s == nil {
			s = &SecretSource{ID: id}
			all[id] = s
		}
		if usedBy != "" {
			s.UsedBy = append(s.UsedBy, usedBy)
		}
		if _, s.File = c.secrets[id]; s.File && s.Source == "" {
			s.Source = AuthName
		}

		for _, name := range append([]string{secretEnv(id)}, envs...) { // the last wins
			if name != "" && !c.SecretEnv(name).IsZero() {
				s.Source = name
			}
		}
	}
	for id := range c.secrets {
		at(id, "")
	}

	given := func(id string) bool { return !c.secrets[id].IsZero() || !c.SecretEnv(secretEnv(id)).IsZero() }
	for _, p := range c.Providers {
		if p.Type != scripted && !p.onThisMachine() || given(p.ID) {
			at(p.ID, "provider "+p.ID, p.KeyEnv())
		}
	}

	for _, k := range c.Connectors {
		if given(k.ID) {
			at(k.ID, "connector "+k.ID)
		}
		for _, name := range envNames(k.Raw) {
			at(name, "connector "+k.ID, name)
		}
	}

	speechSources(c, given, at)
	c.ownSecrets(at)
	list := []SecretSource{}
	for _, id := range slices.Sorted(maps.Keys(all)) {
		list = append(list, *all[id])
	}

	return list
}

// ownSecrets tells at of the secrets that daycare's own ways in and out need.
func (c *Config) ownSecrets(at func(id, used string, env ...string)) {
	if c.Control.Listen != "" {
		at("control", "control.listen")
	}
	if c.Cluster.User != "" {
		at("cluster", "cluster.user")
	}
}

// Missing reports whether the secret is nowhere.
func (s SecretSource) Missing() bool { return s.Source == "" }
