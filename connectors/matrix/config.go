package matrix

import (
	"errors"
	"fmt"
	"net/url"
	"strings"

	"daycare/connectors/chat"
	"daycare/engine/lan"
	"daycare/engine/lazyregexp"
)

// Options are the settings of one Matrix account:
//
//	connectors:
//	  - id: matrix
//	    type: matrix
//	    homeserver: https://matrix.example.org
//	    tokenEnv: ""             # "": the secret of this id (daycare auth set matrix)
//	    allow: ["@ada:example.org"]
//	    always: []               # rooms in which every message is for the agent
//	    verified: []             # fingerprints of the devices that may be read in encrypted rooms; none: all
type Options struct {
	chat.Settings
	Homeserver string   `json:"homeserver" ask:"Address of the homeserver, such as https://matrix.example.org"`
	TokenEnv   string   `json:"tokenEnv"` // "": the secret of this id
	Always     []string `json:"always"`
	Verified   []string `json:"verified"`
}

var (
	userRule = lazyregexp.New(`^@[^:\s]+:[^\s]+$`)
	roomRule = lazyregexp.New(`^![^\s]+$`)
	keyRule  = lazyregexp.New(`^[A-Za-z0-9+/]{43}$`)
)

// Validate reports everything that is wrong with o, as one error of a line each.
func (o Options) Validate() error {
	wrong := o.Settings.Check(userRule.MatchString, `a user id such as "@ada:example.org"`)
	u, err := url.Parse(o.Homeserver)
	switch {
	case err != nil || u.Host == "" || u.User != nil || strings.Trim(u.Path, "/") != "" || u.RawQuery != "":
		wrong = append(wrong, errors.New("homeserver: want an address such as https://matrix.example.org"))
	case u.Scheme != "https" && !(u.Scheme == "http" && lan.Loopback(u.Hostname())):
		wrong = append(wrong, errors.New("homeserver: the token would cross the network unencrypted; want https://"))
	}
	for _, a := range o.Always {
		if !roomRule.MatchString(a) {
			wrong = append(wrong, fmt.Errorf("always: found %q, want the internal id of a room such as \"!abc:example.org\"", a))
		}
	}

	for _, k := range o.Verified {
		if !keyRule.MatchString(bare(k)) {
			wrong = append(wrong, fmt.Errorf("verified: found %q, want a fingerprint, as daycare connectors verify %s prints it", k,
				o.ID))
		}
	}

	return errors.Join(wrong...)
}
