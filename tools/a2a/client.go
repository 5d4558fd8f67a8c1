package a2a

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	sdk "github.com/a2aproject/a2a-go/v2/a2a"
	"github.com/a2aproject/a2a-go/v2/a2aclient"
	"github.com/a2aproject/a2a-go/v2/a2aclient/agentcard"
	sdklog "github.com/a2aproject/a2a-go/v2/log"

	"daycare/engine/lan"
)

const (
	cardTime = 15 * time.Second
	maxBody  = 8 << 20 // bytes of one response
)

var (
	// errElsewhere: a card, or a redirect, leads to another server than the settings name.
	errElsewhere = errors.New("it leads to another server")
	// errInside: a name of the Internet leads into the network of this machine.
	errInside = errors.New("its address is this machine or in its network; set local: true for the remote agent if that is meant")
	errLarge  = fmt.Errorf("the response has more than %d bytes", maxBody)
)

// A line is a client of a remote agent, and the way to its server.
type line struct {
	*a2aclient.Client
	way *guarded
}

// connect reads the card of a remote agent and makes a client of it.
func (d *Desk) connect(ctx context.Context, r Remote) (*line, error) {
	headers, err := d.o.Headers(r.ID)
	if err != nil {
		return nil, err
	}
	u, err := url.Parse(r.URL)
	if err != nil {
		return nil, fmt.Errorf("the url of the remote agent %s is broken", r.ID)
	}
	way := &guarded{server: u, headers: headers, next: transport(r.Local, net.InterfaceAddrs)}
	client := &http.Client{Transport: way}
	ctx = sdklog.AttachLogger(ctx, slog.New(slog.DiscardHandler)) // it would log what remote agents do wrong

	limited, cancel := context.WithTimeout(ctx, cardTime)
	defer cancel()
	card, err := agentcard.NewResolver(client).Resolve(limited, r.URL)
	if err != nil {
		return nil, fmt.Errorf("read the card of the remote agent %s: %w", r.ID, reason(err))
	}
	c, err := a2aclient.NewFromCard(ctx, card, a2aclient.WithJSONRPCTransport(client), a2aclient.WithRESTTransport(client))
	if err != nil {
		return nil, fmt.Errorf("the remote agent %s speaks neither JSON-RPC nor REST of A2A %s", r.ID, sdk.Version)
	}

	return &line{c, way}, nil
}

// transport connects to public addresses, and to those of the own network where local is set.
// Wherever a name leads, the address decides when it is dialled.
func transport(local bool, mine lan.Interfaces) http.RoundTripper {
	d := net.Dialer{Timeout: 10 * time.Second, Control: func(_, to string, _ syscall.RawConn) error {
		ap, err := netip.ParseAddrPort(to)
		if err != nil {
			return errInside
		}
		switch place := lan.Of(ap.Addr(), mine); {
		case place == lan.Public, place == lan.Inside && local:
			return nil
		}
		return errInside
	}}
	return &http.Transport{DialContext: d.DialContext, DisableKeepAlives: true, TLSHandshakeTimeout: 10 * time.Second,
		MaxResponseHeaderBytes: 64 << 10}
}

// guarded sends requests to one server only, with the secrets for it, and bounds what comes back.
type guarded struct {
	server  *url.URL
	headers http.Header
	next    http.RoundTripper
	status  atomic.Int32 // of the last response
}

// refused reports whether the server said no to the last request with an HTTP status. After one of 500 and above it is not known
// what it did.
func (g *guarded) refused() bool { return g.status.Load()/100 == 4 }

// RoundTrip makes a request.
func (g *guarded) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.URL.Scheme != g.server.Scheme || !strings.EqualFold(r.URL.Host, g.server.Host) {
		return nil, fmt.Errorf("%w: %s", errElsewhere, r.URL.Host)
	}
	r = r.Clone(r.Context())
	r.Header.Set("User-Agent", "daycare")
	for name, values := range g.headers {
		r.Header[name] = values
	}
	resp, err := g.next.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	g.status.Store(int32(resp.StatusCode))
	resp.Body = &bounded{resp.Body, maxBody}

	return resp, nil
}

// A bounded body ends with an error where it is too long.
type bounded struct {
	io.ReadCloser
	left int64
}

func (b *bounded) Read(p []byte) (int, error) {
	if b.left <= 0 {
		return 0, errLarge
	}
	n, err := b.ReadCloser.Read(p[:min(int64(len(p)), b.left)])
	b.left -= int64(n)

	return n, err
}

// reason is an error without the address in it, which may hold a token.
func reason(err error) error {
	if e, ok := errors.AsType[*url.Error](err); ok {
		return e.Err
	}
	return err
}
