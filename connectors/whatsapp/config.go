package whatsapp

import (
	"errors"
	"fmt"

	"daycare/connectors"
	"daycare/connectors/chat"
	"daycare/engine/lazyregexp"
)

// Options are the settings of one number of the WhatsApp Cloud API:
//
//	connectors:
//	  - id: whatsapp
//	    type: whatsapp
//	    number: "106540352242922"      # its phone number id
//	    listen: 127.0.0.1:8791         # a TLS proxy leads here
//	    allow: ["4915112345678"]       # numbers, digits only
//	    template: { name: news, language: en }
//
// Secrets by id: whatsapp is the access token, whatsapp-secret the app secret.
type Options struct {
	chat.Settings
	Number    string   `json:"number" ask:"Phone number ID (not the number itself)"`
	Listen    string   `json:"listen" ask:"HOST:PORT to listen on, such as 127.0.0.1:8791"`
	Template  Template `json:"template"`
	BaseURL   string   `json:"baseURL"` // of the Graph API; "": Meta's
	TokenEnv  string   `json:"tokenEnv"`
	SecretEnv string   `json:"secretEnv"`
}

// A Template is a message that Meta approved. It is sent where nothing else may be: when the
// user did not write for 24 hours.
type Template struct {
	Name     string `json:"name"`
	Language string `json:"language"` // "": en
}

const officialAPI = "https://graph.facebook.com/v24.0"

var (
	waID         = lazyregexp.New(`^[1-9][0-9]{5,14}$`)
	graphID      = lazyregexp.New(`^[0-9]{5,20}$`)
	templateName = lazyregexp.New(`^[a-z0-9_]{1,512}$`)
)

// Validate reports everything that is wrong with o, as one error of a line each.
func (o Options) Validate() error {
	wrong := o.Settings.Check(waID.MatchString, `a number with its country, digits only, such as "4915112345678"`)
	if !graphID.MatchString(o.Number) {
		wrong = append(wrong, fmt.Errorf("number: found %q, want the phone number id of WhatsApp, API Setup", o.Number))
	}
	if !connectors.Listens(o.Listen) {
		wrong = append(wrong, fmt.Errorf("listen: found %q, want HOST:PORT such as 127.0.0.1:8791", o.Listen))
	}

	if o.Template != (Template{}) && !templateName.MatchString(o.Template.Name) {
		wrong = append(wrong, fmt.Errorf("template.name: found %q, want the name of an approved template: a-z 0-9 _", o.Template.Name))
	}
	if o.BaseURL != "" && !connectors.Web(o.BaseURL) {
		wrong = append(wrong, errors.New("baseURL: want an http:// or https:// address"))
	}

	return errors.Join(wrong...)
}
