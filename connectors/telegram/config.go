package telegram

import (
	"errors"
	"fmt"
	"net/url"

	"daycare/connectors"
	"daycare/connectors/chat"
	"daycare/engine/lazyregexp"
)

// Options are the settings of one bot:
//
//	connectors:
//	  - id: telegram
//	    type: telegram
//	    allow: ["5550001"]       # user ids; the bot tells strangers theirs
//	    agentId: ""              # "": one agent a chat
//	    interim: false           # also what the model writes beside its tool calls
//	    tokenEnv: ""             # "": the secret of this id (daycare auth set telegram)
//	    webhook:                 # left out: the bot asks Telegram (long polling)
//	      url: https://daycare.example/telegram
//	      listen: 127.0.0.1:8443
type Options struct {
	chat.Settings
	TokenEnv string  `json:"tokenEnv"`
	BaseURL  string  `json:"baseURL"` // of a Bot API server of your own; "": Telegram's
	Webhook  Webhook `json:"webhook"`
}

// A Webhook has Telegram post updates instead of being asked for them.
type Webhook struct {
	URL    string `json:"url"`    // what Telegram posts to; a TLS proxy leads from there to Listen
	Listen string `json:"listen"` // HOST:PORT
}

const officialAPI = "https://api.telegram.org"

var userID = lazyregexp.New(`^[0-9]{1,19}$`)

// Validate reports everything that is wrong with o, as one error of a line each.
func (o Options) Validate() error {
	wrong := o.Settings.Check(userID.MatchString, `the numeric id of a user such as "5550001"; user names can change hands`)
	if o.BaseURL != "" && !connectors.Web(o.BaseURL) {
		wrong = append(wrong, errors.New("baseURL: want an http:// or https:// address"))
	}
	if o.Webhook != (Webhook{}) {
		if u, err := url.Parse(o.Webhook.URL); err != nil || u.Scheme != "https" && o.BaseURL == "" || u.Host == "" {
			wrong = append(wrong, errors.New("webhook.url: want the https:// address that Telegram posts to"))
		}
		if !connectors.Listens(o.Webhook.Listen) {
			wrong = append(wrong, fmt.Errorf("webhook.listen: found %q, want HOST:PORT such as 127.0.0.1:8443", o.Webhook.Listen))
		}
	}

	return errors.Join(wrong...)
}
