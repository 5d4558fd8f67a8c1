package email

import (
	"errors"
	"fmt"
	"net/mail"
	"strings"

	"daycare/connectors"
	"daycare/connectors/chat"
)

// Options are the settings of one mailbox:
//
//	connectors:
//	  - id: email
//	    type: email
//	    address: daycare@example.com
//	    imap: imap.example.com:993
//	    smtp: smtp.example.com:465
//	    user: ""                 # "": the address; the password is the secret of this id
//	    mailbox: INBOX
//	    allow: ["ada@example.org"]
//	    authserv: mx.example.com # who vouches for senders, see docs/connectors/email.md
//	    trustFrom: false         # true: believe every From
//	    plaintext: false         # true: without TLS, for servers on this machine
type Options struct {
	chat.Settings
	Address   string `json:"address" ask:"Mail address of the agent"`
	IMAP      string `json:"imap" ask:"IMAP server, such as imap.example.com:993"`
	SMTP      string `json:"smtp" ask:"SMTP server, such as smtp.example.com:465"`
	User      string `json:"user"`
	SecretEnv string `json:"secretEnv"` // "": the secret of this id
	Mailbox   string `json:"mailbox"`
	Authserv  string `json:"authserv" offer:"Name of your mail server in Authentication-Results, such as mx.example.com"`
	TrustFrom bool   `json:"trustFrom"`
	Plaintext bool   `json:"plaintext"`
}

// Validate reports everything that is wrong with o, as one error of a line each.
func (o Options) Validate() error {
	wrong := o.Settings.Check(isAddress, "a mail address such as ada@example.org")
	if !isAddress(o.Address) {
		wrong = append(wrong, fmt.Errorf("address: found %q, want a mail address such as daycare@example.com", o.Address))
	}

	for key, server := range map[string]string{"imap": o.IMAP, "smtp": o.SMTP} {
		if !connectors.HostPort(server) {
			wrong = append(wrong, fmt.Errorf("%s: found %q, want HOST:PORT", key, server))
		}
	}

	if o.Authserv == "" && !o.TrustFrom {
		wrong = append(wrong, errors.New("authserv: missing; anyone can forge From, so name the server whose "+
			"Authentication-Results to trust, or set trustFrom: true"))
	}

	return errors.Join(wrong...)
}

func isAddress(s string) bool {
	p, err := mail.ParseAddress(s)
	return err == nil && p.Address == s
}

// domain is what follows the @ of an address.
func domain(address string) string {
	return strings.ToLower(address[strings.LastIndexByte(address, '@')+1:])
}
