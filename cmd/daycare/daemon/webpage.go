package daemon

import (
	"cmp"
	"context"
	"fmt"
	"hash/fnv"
	"net"
	"strconv"
	"sync"

	"daycare/connectors/web"
	"daycare/engine/control"
)

// A shown is what browsers see, and where.
type shown struct {
	door    *web.Door
	later   chan *control.Listener // for the server that runs
	opening sync.Mutex
	address string // http://127.0.0.1:7331; "": no listener has the page yet
}

// A webPage serves the page on the listener of the API, or on one of its own.
type webPage struct{ *Daemon }

func (r webPage) newDoor() *web.Door {
	return web.New(web.Options{Root: r.at.Data, Tokens: r.tokens, Open: r.open})
}

// atStart opens the page again for browsers that were logged in when the last daemon ended. One
// that cannot be opened is no reason not to start.
func (r webPage) atStart() *control.Listener {
	if !r.tokens.HasSessions() {
		return nil
	}
	var l *control.Listener
	if r.shown.address == "" {
		var note string
		var err error
		if l, note, err = r.listen(); err != nil {
			r.log.Warn("the page is not served", "err", err)
			r.notes = append(r.notes, fmt.Sprintf("%v; %s", err, otherAddress))
			return nil
		}
		if note != "" {
			r.notes = append(r.notes, note)
		}
		r.shown.address = l.URL
	}

	r.shown.door.Serve()
	return l
}

// open has a listener for the page, and returns its address.
func (r webPage) open(ctx context.Context) (string, error) {
	r.shown.opening.Lock()
	defer r.shown.opening.Unlock()
	if r.shown.address != "" {
		return r.shown.address, nil
	}
	l, _, err := r.listen()
	if err != nil {
		return "", err
	}

	select {
	case r.shown.later <- l:
	case <-ctx.Done():
		l.Close()
		return "", ctx.Err()
	}
	r.shown.address = l.URL
	return r.shown.address, nil
}

const otherAddress = "choose another address with web.listen in settings.yaml"

// listen opens a listener for browsers alone: at the address of the settings, else at the port of the workspace or, if
// that cannot be had, at one of the next. Then the log says so, and the note is for the user.
func (r webPage) listen() (l *control.Listener, note string, err error) {
	c := r.settings.Current()
	ways := []string{c.Web.Listen}
	if c.Web.Listen == "" {
		ways = addressesOf(r.at.Key())
	}
	var first error
	for _, addr := range ways {
		l, err = control.ListenTCP(control.TCP{Addr: addr, BrowsersOnly: true, Page: r.shown.door, Hosts: c.Web.Hosts,
			Cert: r.at.Resolve(c.Control.TLSCert), Key: r.at.Resolve(c.Control.TLSKey),
			Tokens: r.tokens, Log: r.log})
		if err == nil {
			break
		}
		first = cmp.Or(first, err)
	}

	switch {
	case err != nil:
		return nil, "", &control.Invalid{Reason: fmt.Sprintf("the page cannot be served: %v", first), Hint: otherAddress, Err: first}
	case first != nil:
		note = fmt.Sprintf("the page is at %s: %v, perhaps by the page of another workspace; open it with daycare web, or %s",
			l.URL, first, otherAddress)
		r.log.Warn("the page has another port", "address", l.URL, "err", first)
	}

	return l, note, nil
}

// Ports of pages are below those that systems give to outgoing connections.
const (
	firstPort = 20_000
	manyPorts = 10_000
	nextPorts = 20 // that are tried
)

// addressesOf are where the page of a workspace can be, the best first: the same after each start, so that an open page
// and its cookie find the daemon again.
func addressesOf(workspace string) (list []string) {
	h := fnv.New32a()
	h.Write([]byte(workspace))
	for i := range uint32(nextPorts) {
		list = append(list, net.JoinHostPort("127.0.0.1", strconv.Itoa(firstPort+int((h.Sum32()+i)%manyPorts))))
	}

	return list
}
