package plugins

import "daycare/engine/config"

// A Vault hands out secrets of the active settings, and remembers which a
// connector was made of.
type Vault struct {
	current func() *config.Config
	used    map[string]config.Secret // by name
}

// NewVault returns a vault over the settings as current returns them.
func NewVault(current func() *config.Config) *Vault {
	return &Vault{current: current, used: map[string]config.Secret{}}
}

// Of is the secret that a setting names, else that of the connector's id.
func (v *Vault) Of(name, id string) string {
	if name == "" {
		name = id
	}
	v.used[name] = v.current().SecretNamed(name)
	return v.used[name].Reveal()
}

// Now is a secret that is asked for whenever it is needed.
func (v *Vault) Now(name string) string { return v.current().SecretNamed(name).Reveal() }

// Good reports whether the secrets are still the ones that were used.
func (v *Vault) Good() bool {
	c := v.current()
	for name, was := range v.used {
		if c.SecretNamed(name) != was {
			return false
		}
	}

	return true
}
