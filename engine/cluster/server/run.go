//go:build natsserver

package server

import (
	"context"
	"crypto/subtle"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/url"
	"os"
	"strconv"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"

	"daycare/engine/cluster"
)

const (
	// maxPayload is how large a message may be, in bytes.
	maxPayload = 8 << 20
	// readyFor bounds how long a start takes.
	readyFor = time.Minute
	// clusterName is the name of the servers together.
	clusterName = "daycare"
)

// Here reports whether this program has the server.
const Here = true

// Run runs a server until ctx ends. ready is called with the address for daycares.
func Run(ctx context.Context, o Options, ready func(address string)) error {
	opts, err := o.nats()
	if err != nil {
		return err
	}
	s, err := server.NewServer(opts)
	if err != nil {
		return fmt.Errorf("start the server: %w", err)
	}
	s.SetLoggerV2(logger{o.Log}, false, false, false)
	go s.Start()
	defer s.WaitForShutdown()
	defer s.Shutdown()
	if !s.ReadyForConnections(readyFor) {
		return errors.New("the server does not start; its output is above")
	}

	own, err := o.promise(s)
	if err != nil {
		return err
	}
	defer own.Close()

	ready(s.ClientURL())
	<-ctx.Done()

	return nil
}

// promise tells who asks that messages are synced before they are acknowledged: clients cannot see it.
func (o Options) promise(s *server.Server) (*nats.Conn, error) {
	conn, err := nats.Connect("", nats.InProcessServer(s), nats.UserInfo(o.Access.User, o.Access.Password))
	if err == nil {
		_, err = conn.Subscribe(cluster.SyncedSubject, func(m *nats.Msg) {
			if err := m.Respond(nil); err != nil {
				o.Log.Debug("a question was not answered", "err", err)
			}
		})
	}
	if err != nil {
		return nil, fmt.Errorf("start the server: %w", err)
	}

	return conn, nil
}

// nats are the options as the server takes them.
func (o Options) nats() (*server.Options, error) {
	if err := o.Check(); err != nil {
		return nil, err
	}
	if err := os.MkdirAll(o.Store, 0o700); err != nil {
		return nil, fmt.Errorf("make the folder of the server: %w", err)
	}
	opts := &server.Options{ServerName: o.Name, JetStream: true, StoreDir: o.Store, SyncAlways: true, MaxPayload: maxPayload,
		NoSigs: true}
	if o.Access.User != "" {
		opts.CustomClientAuthentication = o.Access
	}
	var err error
	if opts.Host, opts.Port, err = split(o.Listen); err != nil {
		return nil, err
	}
	if o.Access.Cert != "" {
		if opts.TLSConfig, err = o.Access.tls(o.Access.User == "" && o.Access.CA != ""); err != nil {
			return nil, err
		}
		opts.TLS, opts.TLSTimeout = true, server.TLS_TIMEOUT.Seconds()
	}
	if o.Peers.Listen == "" {
		return opts, nil
	}

	c := &opts.Cluster
	c.Name, c.Username, c.Password = clusterName, o.Access.User, o.Access.Password
	if c.Host, c.Port, err = split(o.Peers.Listen); err != nil {
		return nil, err
	}
	if o.Access.Cert != "" {
		if c.TLSConfig, err = o.Access.tls(true); err != nil {
			return nil, err
		}
		c.TLSConfig.RootCAs = c.TLSConfig.ClientCAs // each server connects to the others, too
		c.TLSTimeout = server.TLS_TIMEOUT.Seconds()
	}
	for _, at := range o.Peers.Routes {
		u := &url.URL{Scheme: "nats", Host: at}
		if o.Access.User != "" {
			u.User = url.UserPassword(o.Access.User, o.Access.Password)
		}
		opts.Routes = append(opts.Routes, u)
	}

	return opts, nil
}

// Check reports whether a client shows the user and the password. The server compares no
// password of its options itself: it would warn of one that is written in them as it is, though
// it comes from the environment.
func (a Access) Check(c server.ClientAuthentication) bool {
	shown := c.GetOpts()
	user := subtle.ConstantTimeCompare([]byte(shown.Username), []byte(a.User))
	return user&subtle.ConstantTimeCompare([]byte(shown.Password), []byte(a.Password)) == 1
}

// tls is the configuration with the certificate. verify: whoever connects needs one of the CA.
func (a Access) tls(verify bool) (*tls.Config, error) {
	c, err := server.GenTLSConfig(&server.TLSConfigOpts{CertFile: a.Cert, KeyFile: a.Key, CaFile: a.CA, Verify: verify})
	if err != nil {
		return nil, fmt.Errorf("read the certificate: %w", err)
	}

	return c, nil
}

func split(at string) (host string, port int, err error) {
	host, text, err := net.SplitHostPort(at)
	if err == nil {
		port, err = strconv.Atoi(text)
	}
	if err != nil {
		return "", 0, fmt.Errorf("found %q, allowed: HOST:PORT", at)
	}
	if port == 0 {
		port = server.RANDOM_PORT
	}

	return host, port, nil
}

// A logger gives what the server says to ours. What it says about its course is of no interest.
type logger struct{ log *slog.Logger }

func (l logger) Noticef(format string, v ...any) { l.log.Debug(fmt.Sprintf(format, v...)) }
func (l logger) Warnf(format string, v ...any)   { l.log.Warn(fmt.Sprintf(format, v...)) }
func (l logger) Errorf(format string, v ...any)  { l.log.Error(fmt.Sprintf(format, v...)) }
func (l logger) Fatalf(format string, v ...any)  { l.log.Error(fmt.Sprintf(format, v...)) }
func (l logger) Debugf(format string, v ...any)  { l.log.Debug(fmt.Sprintf(format, v...)) }
func (l logger) Tracef(format string, v ...any)  { l.log.Debug(fmt.Sprintf(format, v...)) }
