package irc

import (
	"errors"
	"fmt"
	"strings"

	"daycare/connectors"
	"daycare/connectors/chat"
	"daycare/engine/lazyregexp"
)

// Options are the settings of one connection to a network:
//
//	connectors:
//	  - id: irc
//	    type: irc
//	    server: irc.libera.chat:6697
//	    nick: mydaycare
//	    account: ""              # of SASL; its password is the secret of this id
//	    channels: ["#mychannel"]
//	    allow: ["ada", "*!ada@203.0.113.7"]   # accounts; or masks, where there are no accounts
//	    plaintext: false         # true: without TLS
type Options struct {
	chat.Settings
	Server    string   `json:"server" ask:"Server, such as irc.libera.chat:6697"`
	Nick      string   `json:"nick" ask:"Nick of the bot"`
	Account   string   `json:"account" offer:"Its account at the network"`
	SecretEnv string   `json:"secretEnv"` // "": the secret of this id
	Channels  []string `json:"channels" offer:"Channels, such as #mine, #ours"`
	Plaintext bool     `json:"plaintext"`
}

var (
	nickRule    = lazyregexp.New("^[A-Za-z\\[\\]\\\\`_^{|}][A-Za-z0-9\\[\\]\\\\`_^{|}-]{0,29}$")
	channelRule = lazyregexp.New(`^[#&+!][^\x00-\x20,\x07]{1,63}$`)
)

// Validate reports everything that is wrong with o, as one error of a line each.
func (o Options) Validate() error {
	wrong := o.Settings.Check(couldWrite, "an account or a mask such as *!ada@203.0.113.7")
	if !connectors.HostPort(o.Server) {
		wrong = append(wrong, fmt.Errorf("server: found %q, want HOST:PORT such as irc.libera.chat:6697", o.Server))
	}
	if !nickRule.MatchString(o.Nick) {
		wrong = append(wrong, fmt.Errorf("nick: found %q, want letters, digits and -_[]{}|^`, a letter first", o.Nick))
	}

	for _, c := range o.Channels {
		if !channelRule.MatchString(c) {
			wrong = append(wrong, fmt.Errorf("channels: found %q, want a name such as #mychannel", c))
		}
	}

	return errors.Join(wrong...)
}

// couldWrite reports whether an entry of the allow list can be somebody.
func couldWrite(entry string) bool {
	return !strings.ContainsAny(entry, " \t\r\n") && strings.Trim(entry, "*!@") != ""
}

// identity is who someone is for the allow list: their account, else the first
// mask of the list that fits, else their whole mask. A nick alone is nobody: it is
// free for everybody who comes first.
func (o Options) identity(account, mask string) string {
	if account != "" && account != "*" {
		return account
	}
	for _, a := range o.Allow {
		if strings.Contains(a, "!") && fits(strings.ToLower(a), strings.ToLower(mask)) {
			return a
		}
	}

	return mask
}

// fits matches a mask with * for any text.
func fits(pattern, s string) bool {
	head, rest, star := strings.Cut(pattern, "*")
	if !star {
		return pattern == s
	}
	if !strings.HasPrefix(s, head) {
		return false
	}

	for i := len(head); i <= len(s); i++ {
		if fits(rest, s[i:]) {
			return true
		}
	}

	return false
}
