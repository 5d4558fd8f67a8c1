package mattermost

import (
	"errors"
	"fmt"
	"net/url"

	"daycare/connectors"
	"daycare/connectors/chat"
	"daycare/engine/lazyregexp"
)

// Options are the settings of one bot account on a Mattermost server:
//
//	connectors:
//	  - id: mattermost
//	    type: mattermost
//	    url: https://chat.example.com
//	    allow: [hoi8p1iyjfnijptoqnzo4c7jnh]   # user ids
//	    groups: mention                       # always: every message in a channel is for the agent
//	    buttons: {}                           # listen and url: approvals have buttons
type Options struct {
	chat.Settings
	URL      string  `json:"url" ask:"Address of the server, such as https://chat.example.com"`
	TokenEnv string  `json:"tokenEnv"`
	Groups   string  `json:"groups" allow:"|mention|always"` // "": mention
	Buttons  Buttons `json:"buttons"`
}

// Buttons has the server post pressed buttons to daycare.
type Buttons struct {
	Listen string `json:"listen"` // HOST:PORT
	URL    string `json:"url"`    // where the server reaches Listen
}

var userID = lazyregexp.New(`^[a-z0-9]{26}$`)

// Validate reports everything that is wrong with o, as one error of a line each.
func (o Options) Validate() error {
	wrong := o.Settings.Check(userID.MatchString, "a user id of 26 letters and digits; names can change")
	if !web(o.URL) {
		wrong = append(wrong, errors.New("url: want the https:// address of the server"))
	}

	if o.Groups != "" && o.Groups != "mention" && o.Groups != "always" {
		wrong = append(wrong, fmt.Errorf("groups: found %q, want mention or always", o.Groups))
	}
	if o.Buttons != (Buttons{}) {
		if !connectors.Listens(o.Buttons.Listen) {
			wrong = append(wrong, fmt.Errorf("buttons.listen: found %q, want HOST:PORT such as 127.0.0.1:8790", o.Buttons.Listen))
		}
		if !web(o.Buttons.URL) {
			wrong = append(wrong, errors.New("buttons.url: want the address at which the server reaches daycare"))
		}
	}

	return errors.Join(wrong...)
}

func web(address string) bool {
	u, err := url.Parse(address)
	return err == nil && (u.Scheme == "http" || u.Scheme == "https") && u.Host != "" && u.User == nil
}
