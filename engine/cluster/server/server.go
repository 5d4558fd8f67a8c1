package server

import (
	"errors"
	"fmt"
	"log/slog"
	"net"

	"daycare/engine/lan"
)

// Options of a server.
type Options struct {
	Name   string // among the servers
	Listen string // HOST:PORT for daycares; port 0: any
	Store  string // folder of its data
	Peers  Peers
	Access Access
	Log    *slog.Logger
}

// Peers are the other servers of a cluster.
type Peers struct {
	Listen string   // HOST:PORT where they connect; "": there are none
	Routes []string // HOST:PORT of each; one of them may be this server
}

// An Access is who may connect.
type Access struct {
	User, Password string
	CA             string // PEM file of who signs the certificates of the other servers, and of clients without a password
	Cert, Key      string // PEM files
}

// Check returns what is missing for a server that other machines can reach: anyone who can write to the log of an
// agent is that agent.
func (o Options) Check() error {
	for _, at := range []string{o.Listen, o.Peers.Listen} {
		if at == "" {
			continue
		}
		host, _, err := net.SplitHostPort(at)
		if err != nil {
			return fmt.Errorf("found %q, allowed: HOST:PORT", at)
		}
		if lan.Loopback(host) {
			continue
		}
		if o.Access.Cert == "" || o.Access.Key == "" {
			return fmt.Errorf("%s can be reached from other machines and needs TLS\n"+
				"name a certificate and its key: --tls-cert, --tls-key", at)
		}
		if o.Access.User == "" || o.Access.Password == "" {
			return fmt.Errorf("%s can be reached from other machines and needs credentials\n"+
				"name a user with --user, and put the password into DAYCARE_SECRET_CLUSTER", at)
		}
	}
	if len(o.Peers.Routes) > 0 && o.Peers.Listen == "" {
		return errors.New("--peers names other servers, but not where they connect to this one\n" +
			"name that address with --peer-listen HOST:PORT")
	}

	return nil
}
