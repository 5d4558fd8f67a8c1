package signal

import (
	"errors"
	"fmt"
	"net/url"
	"slices"

	"daycare/connectors/chat"
	"daycare/engine/lazyregexp"
)

// Options are the settings of one Signal account, served by signal-cli's HTTP
// daemon:
//
//	connectors:
//	  - id: signal
//	    type: signal
//	    account: "+4915112345678"
//	    url: http://127.0.0.1:8080
//	    command: ""              # a path of signal-cli: daycare starts the daemon itself
//	    allow: ["4ad5c1f6-7c1e-4a0d-9f3e-2b1c0d9e8f7a"]   # account ids (ACI); or numbers
type Options struct {
	chat.Settings
	Account string `json:"account" ask:"Number that signal-cli is registered with, such as +4915112345678"`
	URL     string `json:"url" ask:"Address of signal-cli, such as http://127.0.0.1:8080"`
	Command string `json:"command"`
}

var (
	numberRule = lazyregexp.New(`^\+[1-9][0-9]{4,18}$`)
	personRule = lazyregexp.New(`^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$`)
)

// Validate reports everything that is wrong with o, as one error of a line each.
func (o Options) Validate() error {
	wrong := o.Settings.Check(func(s string) bool { return numberRule.MatchString(s) || personRule.MatchString(s) },
		`an account id or a number such as "+4915112345678"`)
	if !numberRule.MatchString(o.Account) {
		wrong = append(wrong, fmt.Errorf("account: found %q, want the number that signal-cli "+
			"is registered with, such as \"+4915112345678\"", o.Account))
	}
	if u, err := url.Parse(o.URL); err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.User != nil {
		wrong = append(wrong, errors.New("url: want the http:// address of signal-cli's daemon, without a user"))
	}

	return errors.Join(wrong...)
}

// identity is who someone is for the allow list: the number if that is on it,
// else the account id, which stays the same when the number changes.
func (o Options) identity(uuid, number string) string {
	if number != "" && slices.Contains(o.Allow, number) || uuid == "" {
		return number
	}
	return uuid
}
