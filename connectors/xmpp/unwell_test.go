package xmpp

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/binary"
	"encoding/pem"
	"encoding/xml"
	"errors"
	"fmt"
	"log/slog"
	"math/big"
	"net"
	"os"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"daycare/connectors/chat"
	"daycare/connectors/connectortest"
	"daycare/engine/message"
)

// certificate is one of a domain that this process trusts: the file that it writes is where Go finds whom
// the system trusts.
func certificate(domain, file string) (tls.Certificate, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return tls.Certificate{}, err
	}
	made := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: domain}, DNSNames: []string{domain},
		NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true}
	der, err := x509.CreateCertificate(rand.Reader, made, made, &key.PublicKey, key)
	if err != nil {
		return tls.Certificate{}, err
	}
	err = os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), 0o600)

	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, err
}

// A password is sent inside TLS, from the first byte or after both agreed on it, if the server is who it
// says it is; how is what users read.
func TestTheWayIntoAServer(t *testing.T) {
	const offer = "<stream:features><starttls xmlns='" + nsTLS + "'/></stream:features>"
	mechanisms := "<stream:features><mechanisms xmlns='" + nsSASL + "'><mechanism>PLAIN</mechanism></mechanisms></stream:features>"
	for name, tt := range map[string]struct {
		domain string
		direct bool
		agrees string // to TLS
		want   string // how, or part of the error
	}{
		"agreed":                 {"test.example", false, "<proceed xmlns='" + nsTLS + "'/>", "PLAIN over TLS 1.3"},
		"direct":                 {"test.example", true, "", "PLAIN over TLS 1.3"},
		"refused":                {"test.example", false, "<failure xmlns='" + nsTLS + "'/>", "the server refuses TLS"},
		"hung up":                {"test.example", false, "", "the server refuses TLS"},
		"another domain":         {"other.example", false, "<proceed xmlns='" + nsTLS + "'/>", "certificate is valid for test.example"},
		"direct, another domain": {"other.example", true, "", "certificate is valid for test.example"},
	} {
		t.Run(name, func(t *testing.T) {
			l, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			var wg sync.WaitGroup
			defer wg.Wait()
			defer l.Close()
			wg.Go(func() {
				conn, err := l.Accept()
				if err != nil {
					return
				}
				defer func() { conn.Close() }()
				greet := func(features string) *xml.Decoder {
					dec := xml.NewDecoder(conn)
					for _, begun := (any)(nil).(xml.StartElement); !begun; {
						token, err := dec.Token()
						if err != nil {
							return nil
						}
						_, begun = token.(xml.StartElement)
					}
					fmt.Fprintf(conn, "<stream:stream xmlns='%s' xmlns:stream='%s'>%s", nsClient, nsStream, features)
					return dec
				}
				secure := &tls.Config{Certificates: []tls.Certificate{trusted}}
				if tt.direct {
					conn = tls.Server(conn, secure)
				} else {
					dec := greet(offer)
					if e, err := read(dec); err != nil || !e.is(nsTLS, "starttls") || tt.agrees == "" {
						return
					}
					fmt.Fprint(conn, tt.agrees)
					conn = tls.Server(conn, secure)
				}
				dec := greet(mechanisms)
				if dec == nil {
					return
				}
				if e, err := read(dec); err != nil || !e.is(nsSASL, "auth") {
					return
				}
				fmt.Fprintf(conn, "<success xmlns='%s'/>", nsSASL)
				greet("<stream:features><bind xmlns='" + nsBind + "'/></stream:features>")
			})
			o := Options{Server: l.Addr().String(), DirectTLS: tt.direct}
			s, features, how, err := o.dial(t.Context(), jid{"bot", tt.domain, ""}, canary)
			if err != nil {
				how = err.Error()
			} else {
				defer s.conn.Close()
			}
			if well := strings.HasPrefix(tt.want, "PLAIN"); !strings.Contains(how, tt.want) || well != (err == nil) ||
				well && !features.has(nsBind, "bind") || strings.Contains(how, canary) {
				t.Errorf("%q, %v, want %q", how, err, tt.want)
			}
		})
	}
}

// Where a server is the domain says, if the settings do not; else it is the domain itself.
func TestWhereAServerIs(t *testing.T) {
	records := map[string]string{ // by service and domain: port and host
		"_xmpp-client._tcp.one.example.": "5333 host.one.example.", "_xmpps-client._tcp.one.example.": "443 tls.one.example.",
		"_xmpp-client._tcp.none.example.": "0 .",
	}
	before := net.DefaultResolver
	defer func() { net.DefaultResolver = before }()
	net.DefaultResolver = &net.Resolver{PreferGo: true, Dial: func(context.Context, string, string) (net.Conn, error) {
		ours, theirs := net.Pipe()
		go resolve(theirs, records)
		return ours, nil
	}}
	for _, tt := range []struct {
		o            Options
		domain, want string
	}{
		{Options{Server: "127.0.0.1:1"}, "one.example", "127.0.0.1:1"}, {Options{}, "one.example", "host.one.example:5333"},
		{Options{DirectTLS: true}, "one.example", "tls.one.example:443"}, {Options{}, "none.example", "none.example:5222"},
		{Options{}, "two.example", "two.example:5222"}, {Options{DirectTLS: true}, "two.example", "two.example:5223"},
	} {
		if got := tt.o.place(t.Context(), tt.domain); got != tt.want {
			t.Errorf("the server of %s, direct %v, is %s, want %s", tt.domain, tt.o.DirectTLS, got, tt.want)
		}
	}
}

// resolve answers one question over a connection of DNS, as over TCP.
func resolve(conn net.Conn, records map[string]string) {
	defer conn.Close()
	head := make([]byte, 2)
	if _, err := conn.Read(head); err != nil {
		return
	}
	q := make([]byte, binary.BigEndian.Uint16(head))
	if _, err := conn.Read(q); err != nil {
		return
	}
	name, at := "", 12
	for q[at] > 0 {
		name += string(q[at+1:at+1+int(q[at])]) + "."
		at += 1 + int(q[at])
	}
	question := q[12 : at+5]
	answer := append([]byte{q[0], q[1], 0x81, 0x80, 0, 1, 0, 0, 0, 0, 0, 0}, question...)
	record, ok := records[strings.ToLower(name)]
	if !ok {
		answer[3] |= 3 // no such name
	} else {
		answer[7] = 1
		port, host := 0, ""
		fmt.Sscan(record, &port, &host)
		data := []byte{0, 1, 0, 1, byte(port >> 8), byte(port)}
		for label := range strings.SplitSeq(strings.TrimSuffix(host, "."), ".") {
			if label != "" {
				data = append(append(data, byte(len(label))), label...)
			}
		}
		data = append(data, 0)
		answer = append(answer, 0xc0, 12, 0, 33, 0, 1, 0, 0, 0, 60, 0, byte(len(data)))
		answer = append(answer, data...)
	}
	_, _ = conn.Write(append(binary.BigEndian.AppendUint16(nil, uint16(len(answer))), answer...))
}

// A server that breaks off, or says what makes no sense, at any step of a login is one that cannot be logged
// in to; the connector is not up.
func TestLoginsThatBreakOff(t *testing.T) {
	hangUp := func(p *peer, _ element) bool { p.conn.Close(); return true }
	says := func(text string) func(*peer, element) bool {
		return func(p *peer, e element) bool { p.raw(strings.Replace(text, "ID", e.attr("id"), 1)); return true }
	}
	presence := func(e element) bool { return e.XMLName.Local == "presence" && e.attr("to") == "" }
	enter := func(e element) bool { return e.XMLName.Local == "presence" && e.attr("to") != "" }
	for name, tt := range map[string]struct {
		at   func(e element) bool
		does func(p *peer, e element) bool
		want string
	}{
		"bind": {func(e element) bool { return e.has(nsBind, "bind") }, hangUp, "log in at the server"},
		"no address": {func(e element) bool { return e.has(nsBind, "bind") },
			says("<iq type='result' id='ID'><bind xmlns='" + nsBind + "'/></iq>"), "gives us no address"},
		"a refusal with an address": {func(e element) bool { return e.has(nsBind, "bind") },
			says("<iq type='error' id='ID'><bind xmlns='" + nsBind + "'><jid>" + botJID + "/x</jid></bind></iq>"), "gives us no address"},
		"enable":   {func(e element) bool { return e.XMLName.Local == "enable" }, hangUp, "log in at the server"},
		"account":  {func(e element) bool { return e.has(nsInfo, "query") && e.attr("to") == botJID }, hangUp, "the server"},
		"archive":  {func(e element) bool { return e.has(nsMAM, "query") }, hangUp, "the server"},
		"presence": {presence, hangUp, "the server"},
		"copies":   {func(e element) bool { return e.has(nsCarbons, "enable") }, hangUp, "the server"},
		"room":     {enter, hangUp, "the server"},
		"conflict": {presence, says("<stream:error><conflict xmlns='x'/><text xmlns='x'>replaced</text><other xmlns='x'/></stream:error>"),
			"conflict: replaced\nanother program has logged in as " + botJID},
	} {
		t.Run(name, func(t *testing.T) {
			s := newServer(t, canary)
			h := newHouse(s)
			s.answers(func(p *peer, e element) bool {
				if tt.at(e) {
					return tt.does(p, e)
				}
				return h.deal(p, e)
			})
			c := testConnector(t, s, Options{Rooms: []string{teamJID}}, chat.Host{Waiting: &connectortest.Keeper{}},
				slog.New(slog.DiscardHandler))
			up := 0
			ctx, cancel := context.WithTimeout(message.WithUp(t.Context(), func() { up++ }), 20*time.Second)
			defer cancel()
			err := c.Run(ctx, (&connectortest.Taker{}).Deliver)
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("Run = %v, want %q", err, tt.want)
			}
			if up > 0 && name != "presence" && name != "copies" && name != "conflict" { // these are not waited for
				t.Error("the connector was up")
			}
		})
	}
}

// A greeting that is cut short by the end of the program is no error.
func TestAGreetingThatIsCutShort(t *testing.T) {
	s := newServer(t, canary)
	ctx, cancel := context.WithCancel(t.Context())
	s.answers(func(_ *peer, e element) bool { cancel(); return true })
	if err := testConnector(t, s, Options{}, chat.Host{}, slog.New(slog.DiscardHandler)).Run(ctx, nil); err != nil {
		t.Error(err)
	}
}

// Without a connection nothing is sent, of whatever kind; an invalid address is refused for good.
func TestWhatCannotBeSaid(t *testing.T) {
	s := newServer(t, canary)
	c := testConnector(t, s, Options{}, chat.Host{}, slog.New(slog.DiscardHandler))
	all := func(to message.Address) map[string]error {
		_, send := c.Send(t.Context(), message.Outgoing{ID: "o", Parts: 1, Text: "x", To: to})
		_, post := pen{Connector: c}.Post(t.Context(), to, "", "", "x")
		return map[string]error{"send": send, "post": post, "say": c.Say(t.Context(), to, "", "x"),
			"edit": pen{Connector: c}.Edit(t.Context(), to, "1", "x"), "react": c.React(t.Context(), to, "1", "x")}
	}
	for what, err := range all(message.Address{ChannelID: "@"}) {
		var no *message.NotSent
		if !errors.As(err, &no) || !no.Final {
			t.Errorf("%s to nobody: %v", what, err)
		}
	}
	s.listener.Close()
	s.hangUp()
	for what, err := range all(message.Address{ChannelID: adaJID}) {
		if err == nil || !strings.Contains(err.Error(), "connect to") {
			t.Errorf("%s: %v", what, err)
		}
	}
	if _, err := c.Loop(t.Context()); err == nil {
		t.Error("a loop over nothing")
	}
}

// A connection that ended is not used again.
func TestAConnectionThatEndedIsReplaced(t *testing.T) {
	s := newServer(t, canary)
	c := testConnector(t, s, Options{}, chat.Host{}, slog.New(slog.DiscardHandler))
	first, err := c.acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	s.hangUp()
	<-first.done
	second, err := c.acquire(t.Context())
	if err != nil || second == first || second.ended() {
		t.Errorf("the same connection: %v, %v", second == first, err)
	}
	first.wg.Wait() // all of it has ended
	c.release()
	c.release()
	if c.live != nil || !second.ended() {
		t.Error("the connection is kept although nobody needs it")
	}
}

// Where nothing can be written any more, nothing is waited for, also by who tries it again.
func TestWhatCannotBeWritten(t *testing.T) {
	for _, features := range []string{"<sm xmlns='" + nsSM + "'/>", ""} {
		s := newServer(t, canary)
		s.features, s.lingers = features, true
		c := testConnector(t, s, Options{}, chat.Host{}, slog.New(slog.DiscardHandler))
		on, err := c.acquire(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if err := on.stream.conn.(*net.TCPConn).CloseWrite(); err != nil {
			t.Fatal(err)
		}
		out := message.Outgoing{ID: "o", Parts: 1, Text: "x", To: message.Address{ChannelID: adaJID}}
		_, send := c.Send(t.Context(), out)
		_, again := c.Send(t.Context(), out)
		_, question := on.await(t.Context(), "get", "", node(nsPing, "ping"))
		for what, err := range map[string]error{"send": send, "again": again, "question": question, "begin": on.listen(t.Context()),
			"typing": c.Typing(t.Context(), out.To)} {
			if !errors.Is(err, syscall.EPIPE) {
				t.Errorf("%s: %v", what, err)
			}
		}
		on.stream.conn.Close()
		c.release()
	}
}

// A server that asks what was read gets an answer.
func TestTheServerAsksWhatWasRead(t *testing.T) {
	s, e := newServer(t, canary), &connectortest.Taker{}
	stop := connectortest.Serve(t, testConnector(t, s, Options{}, chat.Host{}, slog.New(slog.DiscardHandler)), e.Deliver)
	answers := func() (n int) {
		s.mu.Lock()
		defer s.mu.Unlock()
		for _, one := range s.stanzas {
			if one.is(nsSM, "a") {
				n++
			}
		}
		return n
	}
	p, before := s.there(t.Context()), answers()
	for end := time.Now().Add(10 * time.Second); answers() == before; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("no answer")
		}
		p.raw("<r xmlns='" + nsSM + "'/>")
	}
	if err := stop(); err != nil {
		t.Error(err)
	}
}

// A message of ours is known by its key while it waits and when the server has it, and no longer when it came back.
func TestWhatTheServerHasOfUs(t *testing.T) {
	f := newFlow(jid{"bot", "test.example", ""})
	w := f.add(0, "one", []byte("x"), false)
	f.add(0, "", []byte("no message"), false)
	if waits, has := f.known("one"); waits != w || has {
		t.Errorf("written: %v, %v", waits, has)
	}
	if f.refuse("", errors.New("no")) || f.refuse("other", errors.New("no")) {
		t.Error("nobody waits for that")
	}
	if f.acked(1); f.refuse("one", errors.New("no")) {
		t.Error("nobody waits for a message that the server has")
	}
	if waits, has := f.known("one"); waits != nil || has {
		t.Errorf("came back late: %v, %v", waits, has)
	}
	f.add(0, "two", nil, false)
	if !f.refuse("two", errors.New("no")) {
		t.Error("somebody waits for it")
	}
	if waits, has := f.known("two"); waits != nil || has {
		t.Errorf("refused: %v, %v", waits, has)
	}
	f.acked(3)
	if _, has := f.known("two"); has {
		t.Error("what was refused counts as delivered")
	}
	f.add(0, "three", nil, false)
	if f.acked(4); !hasKey(f, "three") || hasKey(f, "four") {
		t.Error("the server has the third alone")
	}
}

func hasKey(f *flow, key string) bool { _, has := f.known(key); return has }

// What a refusal says of trying again.
func TestRefusalsOfStanzas(t *testing.T) {
	for kind, final := range map[string]bool{"cancel": true, "modify": true, "auth": true, "wait": false, "continue": false, "": false} {
		e := node(nsClient, "message", "from", adaJID+"/x").with(node(nsClient, "error", "type", kind).with(
			node(nsErrors, "gone"), node(nsErrors, "text").saying("moved")))
		var no *message.NotSent
		if err := failure(e); !errors.As(err, &no) || no.Final != final ||
			err.Error() != "the server of "+adaJID+" refuses it: gone: moved" {
			t.Errorf("%q: %v, final %v", kind, err, no != nil && no.Final)
		}
	}
}

// Files come from hosts of our server in our own network, and from no others there.
func TestHostsOfFiles(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	for own, ok := range map[string]bool{"127.0.0.1": true, "0.0.1": true, "test.example": false, "27.0.0.1": false} {
		f := newFiles(Options{}, jid{"bot", own, ""})
		conn, err := f.dial(t.Context(), "tcp", l.Addr().String())
		if err == nil {
			conn.Close()
		}
		if (err == nil) != ok || err != nil && !errors.Is(err, errPlace) {
			t.Errorf("of the server %s: %v", own, err)
		}
	}
	if _, err := newFiles(Options{}, jid{}).dial(t.Context(), "tcp", "nowhere"); err == nil {
		t.Error("an address without a port")
	}
	for address, want := range map[string]string{"https://x/a/b.png?c": "b.png", "https://x/": "file", "https://x": "file",
		"https://x/\x7f": "file",
		"https://x/a/":   "a"} {
		if got := nameOf(address); got != want {
			t.Errorf("the file of %q is called %q, want %q", address, got, want)
		}
	}
}
