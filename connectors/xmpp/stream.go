package xmpp

import (
	"context"
	"crypto/tls"
	"encoding/base64"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"time"

	"daycare/engine/lan"
)

const (
	greetTime = 30 * time.Second // from the call to the first stanza
	writeTime = 20 * time.Second
	// maxStanza is the most bytes of one stanza. Servers take far less from others.
	maxStanza = 4 << 20
)

// A stream is one XML stream over one connection.
type stream struct {
	conn    net.Conn
	in      *bounded
	dec     *xml.Decoder
	writing sync.Mutex
}

// bounded reads a connection, so many bytes between two resets.
type bounded struct {
	from io.Reader
	left int
}

var errLarge = fmt.Errorf("a stanza is larger than %d bytes", maxStanza)

func (b *bounded) Read(p []byte) (int, error) {
	if b.left <= 0 {
		return 0, errLarge
	}
	n, err := b.from.Read(p[:min(len(p), b.left)])
	b.left -= n
	return n, err
}

// use has the stream read from and write to a connection, from its beginning: what was read
// ahead of it is forgotten, because nobody vouched for it.
func (s *stream) use(conn net.Conn) {
	s.conn = conn
	s.in = &bounded{from: conn, left: maxStanza}
	s.dec = xml.NewDecoder(s.in)
}

// open begins the stream and returns what the server offers.
func (s *stream) open(domain, language string) (features element, err error) {
	s.use(s.conn)
	head := node("", "x", "to", domain, "version", "1.0", "xml:lang", language).bytes()
	head = append([]byte("<?xml version='1.0'?><stream:stream xmlns='"+nsClient+"' xmlns:stream='"+nsStream+"' "),
		head[len("<x "):len(head)-len("/>")]...)
	if err := s.send(append(head, '>')); err != nil {
		return element{}, err
	}

	for {
		token, err := s.dec.Token()
		if err != nil {
			return element{}, err
		}
		switch t := token.(type) {
		case xml.StartElement:
			if t.Name != (xml.Name{Space: nsStream, Local: "stream"}) {
				return element{}, fmt.Errorf("the server does not speak XMPP: it began with <%s>", t.Name.Local)
			}
			features, err := s.next()
			if err == nil && !features.is(nsStream, "features") {
				err = fmt.Errorf("the server began with <%s>", features.XMLName.Local)
			}
			return features, err
		case xml.ProcInst:
		case xml.CharData:
		default:
			return element{}, errors.New("the server does not speak XMPP")
		}
	}
}

// next reads one element of the stream. Comments, directives and instructions, which could
// smuggle something in, are no part of XMPP.
func (s *stream) next() (e element, err error) {
	s.in.left = maxStanza
	for {
		token, err := s.dec.Token()
		if err != nil {
			return e, err
		}
		switch t := token.(type) {
		case xml.StartElement:
			if err := s.dec.DecodeElement(&e, &t); err != nil {
				return e, err
			}
			if e.is(nsStream, "error") {
				return e, streamError(e)
			}
			return e, nil
		case xml.EndElement:
			return e, io.EOF
		case xml.CharData:
			s.in.left = maxStanza // white space between stanzas keeps the connection alive
		default:
			return e, errors.New("the server sent XML that XMPP does not allow")
		}
	}
}

// A fatal is why a server ended a stream.
type fatal struct{ Condition, Text string }

func (f *fatal) Error() string {
	return strings.TrimSuffix("the server ended the stream: "+f.Condition+": "+f.Text, ": ")
}

func streamError(e element) error {
	f := &fatal{}
	for _, k := range e.Kids {
		if k.XMLName.Local == "text" {
			f.Text = k.Text
		} else if f.Condition == "" {
			f.Condition = k.XMLName.Local
		}
	}

	return f
}

func (s *stream) send(data []byte) error {
	s.writing.Lock()
	defer s.writing.Unlock()
	_ = s.conn.SetWriteDeadline(time.Now().Add(writeTime))
	_, err := s.conn.Write(data)
	return err
}

func (s *stream) put(e element) error { return s.send(e.bytes()) }

// ask sends an element and returns the next one.
func (s *stream) ask(e element) (element, error) {
	if err := s.put(e); err != nil {
		return element{}, err
	}
	return s.next()
}

// place finds the server of a domain: what settings say, else what the domain says, else
// the domain itself.
func (o Options) place(ctx context.Context, domain string) string {
	if o.Server != "" {
		return o.Server
	}
	service, port := "xmpp-client", "5222"
	if o.DirectTLS {
		service, port = "xmpps-client", "5223"
	}
	if _, all, err := net.DefaultResolver.LookupSRV(ctx, service, "tcp", domain); err == nil && len(all) > 0 && all[0].Target != "." {
		return net.JoinHostPort(strings.TrimSuffix(all[0].Target, "."), fmt.Sprint(all[0].Port))
	}

	return net.JoinHostPort(domain, port)
}

// dial calls the server, secures the stream, and logs in. The stream it returns is open
// anew, with what the server offers behind the login.
func (o Options) dial(ctx context.Context, me jid, password string) (s *stream, features element, how string, err error) {
	server := o.place(ctx, me.domain)
	dialer := &net.Dialer{KeepAlive: 30 * time.Second}
	conn, err := dialer.DialContext(ctx, "tcp", server)
	if err != nil {
		return nil, element{}, "", fmt.Errorf("connect to %s: %w", server, err)
	}
	s = &stream{conn: conn}
	_ = conn.SetReadDeadline(time.Now().Add(greetTime))
	unwatch := context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Now()) })
	features, how, err = o.greet(s, me, password)
	if !unwatch() && err == nil {
		err = ctx.Err()
	}
	if err != nil {
		conn.Close()
		return nil, element{}, "", fmt.Errorf("log in at %s: %w", server, err)
	}
	_ = s.conn.SetReadDeadline(time.Time{})

	return s, features, how, nil
}

func (o Options) greet(s *stream, me jid, password string) (features element, how string, err error) {
	raw, secure := s.conn, &tls.Config{ServerName: me.domain, MinVersion: tls.VersionTLS12}
	if o.DirectTLS {
		secure.NextProtos = []string{"xmpp-client"}
		s.conn = tls.Client(raw, secure)
	}
	if features, err = s.open(me.domain, "en"); err != nil {
		return features, "", err
	}
	if !o.DirectTLS && !o.Plaintext {
		if !features.has(nsTLS, "starttls") {
			return features, "", errors.New("the server offers no TLS, so the password is not sent\n" +
				"if it takes TLS on another port, set server and directTLS")
		}
		proceed, err := s.ask(node(nsTLS, "starttls"))
		if err != nil || !proceed.is(nsTLS, "proceed") {
			return features, "", errors.Join(errors.New("the server refuses TLS"), err)
		}
		s.conn = tls.Client(raw, secure)
		if features, err = s.open(me.domain, "en"); err != nil {
			return features, "", err
		}
	}

	if how, err = o.login(s, features, me, password); err != nil {
		return features, "", err
	}
	if t, ok := s.conn.(*tls.Conn); ok {
		how += " over " + tls.VersionName(t.ConnectionState().Version)
	}
	features, err = s.open(me.domain, "en")

	return features, how, err
}

// A refusal is a login that the server refused.
type refusal struct{ Condition, Text string }

func (r *refusal) Error() string {
	return strings.TrimSuffix("the server refused the login: "+r.Condition+": "+r.Text, ": ")
}

// login proves the password in the best way that the server offers. Plainly it is said only
// where nobody listens: inside TLS, or to this machine.
func (o Options) login(s *stream, features element, me jid, password string) (how string, err error) {
	offered := map[string]bool{}
	list, _ := features.kid(nsSASL, "mechanisms")
	for _, m := range list.Kids {
		offered[m.Text] = true
	}
	for _, m := range mechanisms {
		if offered[m.name] {
			return m.name, s.scram(m.name, newScram(m.hash, me.local, password))
		}
	}

	_, encrypted := s.conn.(*tls.Conn)
	host, _, _ := net.SplitHostPort(s.conn.RemoteAddr().String())
	if !offered["PLAIN"] || !encrypted && !lan.Loopback(host) {
		return "", errors.New("the server offers no login that daycare knows: want SCRAM-SHA-256, SCRAM-SHA-1, or PLAIN inside TLS")
	}
	end, err := s.ask(node(nsSASL, "auth", "mechanism", "PLAIN").saying(base64.StdEncoding.EncodeToString(
		[]byte("\x00" + me.local + "\x00" + password))))
	if err == nil && !end.is(nsSASL, "success") {
		err = refused(end)
	}

	return "PLAIN", err
}

func (s *stream) scram(name string, proof *scram) error {
	challenge, err := s.ask(node(nsSASL, "auth", "mechanism", name).saying(base64.StdEncoding.EncodeToString([]byte(proof.begin()))))
	if err != nil {
		return err
	}
	if !challenge.is(nsSASL, "challenge") {
		return refused(challenge)
	}
	text, err := base64.StdEncoding.DecodeString(strings.TrimSpace(challenge.Text))
	if err != nil {
		return errors.New("the challenge of the server is malformed")
	}
	answer, err := proof.answer(string(text))
	if err != nil {
		return err
	}

	end, err := s.ask(node(nsSASL, "response").saying(base64.StdEncoding.EncodeToString([]byte(answer))))
	if err == nil && end.is(nsSASL, "challenge") { // its proof comes before the success
		text, _ = base64.StdEncoding.DecodeString(strings.TrimSpace(end.Text))
		if err := proof.verify(string(text)); err != nil {
			return err
		}
		end, err = s.ask(node(nsSASL, "response"))
		if err == nil && end.is(nsSASL, "success") {
			return nil
		}
	}
	if err != nil {
		return err
	}
	if !end.is(nsSASL, "success") {
		return refused(end)
	}
	text, _ = base64.StdEncoding.DecodeString(strings.TrimSpace(end.Text)) // what is no proof fails there

	return proof.verify(string(text))
}

func refused(e element) error {
	r := &refusal{Condition: e.XMLName.Local}
	for _, k := range e.Kids {
		if k.XMLName.Local == "text" {
			r.Text = k.Text
		} else {
			r.Condition = k.XMLName.Local
		}
	}

	return r
}
