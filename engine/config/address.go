package config

import (
	"net/url"
	"strings"

	"go.yaml.in/yaml/v3"
)

// HideLogin returns an address without its user and password, for display.
func HideLogin(address string) string {
	scheme, rest, _ := strings.Cut(address, "://")
	host, path := rest, ""
	if i := strings.IndexAny(rest, "/?#"); i >= 0 {
		host, path = rest[:i], rest[i:]
	}

	at := strings.LastIndexByte(host, '@')
	if at < 0 {
		return address
	}

	return scheme + "://" + redacted + host[at:] + path
}

// logins are the secrets in an address: its password, or the user if there is none, as
// which some services want a token; as they are spelled and as they are sent.
func logins(address string) (secrets []Secret) {
	u, err := url.Parse(strings.TrimSpace(address))
	if err != nil || u.User == nil {
		return nil
	}
	user, spelled, _ := strings.Cut(u.User.String(), ":")
	secret, ok := u.User.Password()
	if !ok {
		secret, spelled = u.User.Username(), user
	}

	for _, s := range []string{secret, spelled} {
		if s != "" {
			secrets = append(secrets, Secret{s})
		}
	}

	return secrets
}

// addresses are the values of a connector's options that are addresses.
func addresses(n *yaml.Node) (all []string) {
	if n == nil {
		return nil
	}
	if strings.Contains(n.Value, "://") {
		all = append(all, n.Value)
	}

	for _, child := range n.Content {
		all = append(all, addresses(child)...)
	}

	return all
}
