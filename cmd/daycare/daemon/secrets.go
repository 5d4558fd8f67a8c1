package daemon

import (
	"daycare/engine/config"
)

// hideSecrets makes what the settings know as secret unprintable, from now on.
func (r *conf) hideSecrets() {
	var values []string
	for _, s := range r.settings.Current().Secrets() {
		values = append(values, s.Reveal())
	}
	r.secrets.Set(values)
}

// keyOf is the key of a provider as the settings in force have it: a new one
// counts from the next request on.
func (r *conf) keyOf(p config.Provider) func() string {
	return func() string {
		for _, now := range r.settings.Current().Providers {
			if now.ID == p.ID {
				return now.APIKey.Reveal()
			}
		}

		return p.APIKey.Reveal()
	}
}
