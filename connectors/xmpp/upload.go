package xmpp

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"path"
	"strconv"
	"strings"
	"syscall"
	"time"

	"daycare/engine/lan"
	"daycare/engine/message"
)

// uploadTime is how long a file may take.
const uploadTime = 5 * time.Minute

// files are those that go over HTTP beside the stream (XEP-0363).
type files struct {
	own    string // our server's domain, whose hosts may be in our own network
	plain  bool   // http is allowed: the server is this machine
	client *http.Client
}

func newFiles(o Options, me jid) *files {
	f := &files{own: me.domain, plain: o.Plaintext}
	t := http.DefaultTransport.(*http.Transport).Clone()
	t.Proxy = nil // it would look at addresses in our place
	t.DialContext = f.dial
	// A redirect would lead past the look at the address, and carry a ticket to somebody else.
	f.client = &http.Client{Transport: t, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	return f
}

var errPlace = errors.New("the address of the file is not on the Internet")

// dial connects to hosts on the Internet, and to those of our own server wherever they are:
// users send addresses, and must not have daycare look around in its network.
func (f *files) dial(ctx context.Context, network, address string) (net.Conn, error) {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	ours := host == f.own || strings.HasSuffix(host, "."+f.own)
	d := &net.Dialer{ControlContext: func(_ context.Context, _, dialed string, _ syscall.RawConn) error {
		at, err := netip.ParseAddrPort(dialed)
		if err != nil {
			return err
		}
		if place := lan.Of(at.Addr(), net.InterfaceAddrs); place == lan.Public || ours && place == lan.Inside {
			return nil
		}
		return errPlace
	}}
	return d.DialContext(ctx, network, address)
}

// checked reads an address of a file.
func (f *files) checked(address string) (*url.URL, error) {
	u, err := url.Parse(address)
	if err != nil || u.Host == "" || u.User != nil || u.Scheme != "https" && !(u.Scheme == "http" && f.plain) {
		return nil, errors.New("want an https:// address of a file")
	}

	return u, nil
}

// fetch opens a file that a user sent.
func (f *files) fetch(ctx context.Context, address string) (io.ReadCloser, error) {
	u, err := f.checked(address)
	if err != nil {
		return nil, err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), nil)
	if err != nil {
		return nil, errors.New("download file: the address is malformed")
	}
	resp, err := f.client.Do(req)
	if err != nil {
		return nil, fmt.Errorf("download file: %w", withoutAddress(err))
	}
	if resp.StatusCode != http.StatusOK {
		resp.Body.Close()
		return nil, fmt.Errorf("download file: %d %s", resp.StatusCode, http.StatusText(resp.StatusCode))
	}

	return resp.Body, nil
}

// withoutAddress is an error without the address in it, which is a ticket to the file.
func withoutAddress(err error) error {
	var e *url.Error
	if errors.As(err, &e) {
		return e.Err
	}

	return err
}

func nameOf(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return "file"
	}
	if name := path.Base(u.Path); name != "." && name != "/" {
		return name
	}

	return "file"
}

// A slot is a place for one file: where it is put, with what, and where others get it.
type slot struct {
	put, get string
	header   http.Header
}

var errNoUpload = errors.New("the server carries no files")

// uploads is a session that finds places for files.
type uploads struct{ *session }

// uploader finds the service of our server that carries files.
func (s uploads) uploader(ctx context.Context) (string, error) {
	list, err := s.await(ctx, "get", s.flow.me.domain, node(nsItems, "query"))
	if err != nil {
		return "", err
	}
	places := []string{s.flow.me.domain}
	q, _ := list.kid(nsItems, "query")
	for _, k := range q.Kids {
		if at := k.attr("jid"); at != "" && len(places) < 30 {
			places = append(places, at)
		}
	}
	for _, at := range places {
		if info, err := s.await(ctx, "get", at, node(nsInfo, "query")); err == nil && feature(info, nsUpload) {
			return at, nil
		}
	}

	return "", errNoUpload
}

// slot asks for a place for a file.
func (s uploads) slot(ctx context.Context, f message.File) (slot, error) {
	at, err := s.uploader(ctx)
	if err != nil {
		return slot{}, err
	}
	answer, err := s.await(ctx, "get", at, node(nsUpload, "request", "filename", path.Base(f.Name),
		"size", strconv.FormatInt(f.Size, 10), "content-type", f.MimeType))
	if err != nil {
		return slot{}, err
	}
	given, _ := answer.kid(nsUpload, "slot")
	put, _ := given.kid(nsUpload, "put")
	get, _ := given.kid(nsUpload, "get")
	to := slot{put: put.attr("url"), get: get.attr("url"), header: http.Header{}}
	for _, h := range put.Kids { // others could be used against us
		switch name := http.CanonicalHeaderKey(h.attr("name")); name {
		case "Authorization", "Cookie", "Expires":
			to.header.Set(name, strings.NewReplacer("\r", "", "\n", "").Replace(h.Text))
		}
	}

	return to, nil
}

// upload puts a file where others can get it, and returns the address.
func (c *Connector) upload(ctx context.Context, s *session, f message.File) (string, error) {
	content, err := os.Open(f.Path)
	if err != nil {
		return "", &message.NotSent{Final: true, Err: fmt.Errorf("open file %s to send: %w", f.Name, err)}
	}
	defer content.Close()
	info, err := content.Stat()
	if err != nil {
		return "", &message.NotSent{Final: true, Err: fmt.Errorf("open file %s to send: %w", f.Name, err)}
	}
	f.Size = info.Size()
	to, err := uploads{s}.slot(ctx, f)
	if err != nil {
		return "", err
	}
	u, err := c.files.checked(to.put)
	if err != nil {
		return "", fmt.Errorf("upload file: %w", err)
	}

	ctx, cancel := context.WithTimeout(ctx, uploadTime)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPut, u.String(), io.LimitReader(content, f.Size))
	if err != nil {
		return "", errors.New("upload file: the server returned an invalid address")
	}
	req.ContentLength, req.Header = f.Size, to.header
	if f.MimeType != "" {
		req.Header.Set("Content-Type", f.MimeType)
	}
	resp, err := c.files.client.Do(req)
	if err != nil {
		return "", fmt.Errorf("upload file: %w", withoutAddress(err))
	}
	resp.Body.Close()
	if resp.StatusCode/100 != 2 {
		return "", fmt.Errorf("upload file: the server answers %d", resp.StatusCode)
	}

	return to.get, nil
}
