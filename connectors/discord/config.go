package discord

import (
	"errors"
	"fmt"
	"strings"

	"daycare/connectors"
	"daycare/connectors/chat"
	"daycare/engine/lazyregexp"
)

// Options are the settings of one Discord bot:
//
//	connectors:
//	  - id: discord
//	    type: discord
//	    allow: ["80351110224678912"]   # user ids
//	    groups: mention                # always: every message in a channel is for the agent
//	    threads: false                 # answer in a thread of the message
type Options struct {
	chat.Settings
	TokenEnv string `json:"tokenEnv"`
	Groups   string `json:"groups" allow:"|mention|always"` // "": mention
	Threads  bool   `json:"threads"`
	BaseURL  string `json:"baseURL"` // of the REST API; "": Discord's
}

const officialAPI = "https://discord.com/api/v10"

var snowflake = lazyregexp.New(`^[0-9]{15,20}$`)

// Validate reports everything that is wrong with o, as one error of a line each.
func (o Options) Validate() error {
	wrong := o.Settings.Check(snowflake.MatchString, `the numeric id of a user such as "80351110224678912"; names can change`)
	if o.Groups != "" && o.Groups != "mention" && o.Groups != "always" {
		wrong = append(wrong, fmt.Errorf("groups: found %q, want mention or always", o.Groups))
	}
	if o.BaseURL != "" && !connectors.Web(o.BaseURL) {
		wrong = append(wrong, errors.New("baseURL: want an http:// or https:// address"))
	}

	return errors.Join(wrong...)
}

// readsAll reports whether messages are read that do not mention the bot.
func (o Options) readsAll() bool { return o.Groups == "always" }

// validToken reports whether a token can be sent in a header.
func validToken(token string) bool {
	return token != "" && !strings.ContainsFunc(token, func(r rune) bool { return r <= ' ' || r > '~' })
}
