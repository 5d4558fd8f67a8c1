package slack

import (
	"errors"
	"fmt"

	"daycare/connectors"
	"daycare/connectors/chat"
	"daycare/engine/lazyregexp"
)

// Options are the settings of one Slack app in one workspace:
//
//	connectors:
//	  - id: slack
//	    type: slack
//	    allow: [U024BE7LH]       # member ids
//	    listen: ""               # "": Socket Mode; HOST:PORT: Slack posts events here
//
// Secrets by id: slack is the bot token (xoxb-…); slack-app is the app token
// (xapp-…) of Socket Mode, slack-signing the signing secret of posted events. tokenEnv,
// appEnv and signingEnv name environment variables in their place.
type Options struct {
	chat.Settings
	Listen  string `json:"listen"`
	BaseURL string `json:"baseURL"` // of the Web API; "": Slack's

	TokenEnv   string `json:"tokenEnv"`
	AppEnv     string `json:"appEnv"`
	SigningEnv string `json:"signingEnv"`
}

// Secrets are what the app proves itself with, and Slack to it.
type Secrets struct {
	Bot     string
	App     string // Socket Mode
	Signing string // posted events
}

const officialAPI = "https://slack.com/api"

var memberID = lazyregexp.New(`^[UW][A-Z0-9]{5,20}$`)

// Validate reports everything that is wrong with o, as one error of a line each.
func (o Options) Validate() error {
	wrong := o.Settings.Check(memberID.MatchString, "a member id such as U024BE7LH")
	if o.Listen != "" && !connectors.Listens(o.Listen) {
		wrong = append(wrong, fmt.Errorf("listen: found %q, want HOST:PORT such as 127.0.0.1:8788", o.Listen))
	}
	if o.BaseURL != "" && !connectors.Web(o.BaseURL) {
		wrong = append(wrong, errors.New("baseURL: want an http:// or https:// address"))
	}

	return errors.Join(wrong...)
}

// missing says which secret is not there that the settings need.
func (o Options) missing(s Secrets) error {
	want := func(secret, id, what string) error {
		if secret != "" {
			return nil
		}
		return fmt.Errorf("slack %q has no %s\nset it with: daycare auth set %s", o.ID, what, id)
	}
	if err := want(s.Bot, o.ID, "bot token (xoxb-…)"); err != nil {
		return err
	}
	if o.Listen != "" {
		return want(s.Signing, o.ID+"-signing", "signing secret; without it anyone could write")
	}

	return want(s.App, o.ID+"-app", "app token (xapp-…) for Socket Mode")
}
