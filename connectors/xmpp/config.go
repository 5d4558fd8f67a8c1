package xmpp

import (
	"errors"
	"fmt"
	"net"
	"strings"

	"daycare/connectors"
	"daycare/connectors/chat"
	"daycare/engine/lan"
)

// Options are the settings of one XMPP account:
//
//	connectors:
//	  - id: xmpp
//	    type: xmpp
//	    jid: mybot@example.org     # its password is the secret of this id
//	    server: ""                 # HOST:PORT; "": as the domain says, else port 5222 of it
//	    directTLS: false           # TLS from the first byte, usually on port 5223
//	    plaintext: false           # true: without TLS, for a server on this machine
//	    nick: mybot                # in rooms; "": what stands before the @
//	    rooms: [team@rooms.example.org]
//	    always: []                 # rooms in which every message is for the agent
//	    allow: ["ada@example.org"]
type Options struct {
	chat.Settings
	JID       string   `json:"jid" ask:"XMPP address of the bot, such as mybot@example.org"`
	SecretEnv string   `json:"secretEnv"` // "": the secret of this id
	Server    string   `json:"server" offer:"Server as HOST:PORT, if its domain does not say it"`
	DirectTLS bool     `json:"directTLS"`
	Plaintext bool     `json:"plaintext"`
	Rooms     []string `json:"rooms" offer:"Rooms, such as team@rooms.example.org"`
	Names              // in rooms
}

// Names are how the bot is called in rooms, and where it need not be called.
type Names struct {
	Nick   string   `json:"nick"`
	Always []string `json:"always"`
}

// Validate reports everything that is wrong with o, as one error of a line each.
func (o Options) Validate() error {
	wrong := o.Settings.Check(isAddress, "an address such as ada@example.org")
	if !isAddress(o.JID) {
		wrong = append(wrong, fmt.Errorf("jid: found %q, want an address such as mybot@example.org", o.JID))
	}
	host, _, _ := net.SplitHostPort(o.Server)
	if o.Server != "" && !connectors.HostPort(o.Server) {
		wrong = append(wrong, fmt.Errorf("server: found %q, want HOST:PORT such as xmpp.example.org:5222", o.Server))
	}
	if o.Plaintext && !lan.Loopback(host) {
		wrong = append(wrong, errors.New("plaintext: the password would cross the network unencrypted; "+
			"it needs a server such as 127.0.0.1:5222"))
	}
	if o.Plaintext && o.DirectTLS {
		wrong = append(wrong, errors.New("plaintext and directTLS exclude each other"))
	}

	for _, list := range []struct {
		key string
		all []string
	}{{"rooms", o.Rooms}, {"always", o.Always}} {
		for _, a := range list.all {
			if !isAddress(a) {
				wrong = append(wrong, fmt.Errorf("%s: found %q, want an address such as ada@example.org", list.key, a))
			}
		}
	}
	for _, a := range o.Always {
		if !contains(o.Rooms, a) {
			wrong = append(wrong, fmt.Errorf("always: %q is not in rooms", a))
		}
	}
	if strings.ContainsAny(o.Nick, "/\n") {
		wrong = append(wrong, fmt.Errorf("nick: found %q, want a name without / in it", o.Nick))
	}

	return errors.Join(wrong...)
}

// isAddress reports whether a text is an address without a resource.
func isAddress(s string) bool {
	j, err := parseJID(s)
	return err == nil && j.account()
}

// contains reports whether a list names an address, in any spelling.
func contains(list []string, address string) bool {
	want := bareOf(address)
	for _, a := range list {
		if bareOf(a) == want {
			return true
		}
	}

	return false
}

// bares are addresses as they are compared.
func bares(list []string) (all []string) {
	for _, a := range list {
		all = append(all, bareOf(a))
	}
	return all
}
