package xmpp

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"encoding/xml"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"daycare/connectors/connectortest"
)

const (
	botJID = "bot@test.example"
	adaJID = "ada@test.example"
	bobJID = "bob@test.example"
	eveJID = "eve@test.example"
)

// server is a fake of an XMPP server, with stream management and faults that a real one
// would not have on demand.
type server struct {
	t        *testing.T
	listener net.Listener
	wg       sync.WaitGroup
	password string
	features string // behind the login, beside bind
	lingers  bool   // who says no more is not hung up on
	resumes  bool   // sessions can be resumed

	mu      sync.Mutex
	all     map[net.Conn]bool
	peers   []*peer // that are there, the newest last
	sent    []connectortest.Sent
	told    []connectortest.Sent // all, notices too
	stanzas []element            // as they came
	fault   connectortest.Fault
	answer  func(p *peer, e element) bool // asked first; true: dealt with
	kept    map[string]*peer              // that can be resumed, by id
	resumed int                           // sessions
	revoked bool
	order   []string          // ids of messages of the bot
	texts   map[string]string // by id, as corrections left them
}

// answers has f asked first about what comes.
func (s *server) answers(f func(p *peer, e element) bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.answer = f
}

// peer is one session.
type peer struct {
	s     *server
	conn  net.Conn
	mu    sync.Mutex
	in    uint32
	out   uint32
	acked uint32
	queue []string // written and not acknowledged
	here  bool
	gone  chan struct{}
}

func newServer(t *testing.T, password string) *server {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &server{t: t, listener: l, password: password, texts: map[string]string{}, all: map[net.Conn]bool{}, kept: map[string]*peer{},
		features: "<sm xmlns='" + nsSM + "'/>"}
	s.wg.Go(s.accept)
	t.Cleanup(func() {
		l.Close()
		s.hangUp()
		s.wg.Wait()
	})

	return s
}

// hangUp breaks all connections.
func (s *server) hangUp() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for c := range s.all {
		c.Close()
	}
}

// revoke has the password accepted no more, or again.
func (s *server) revoke(revoked bool) {
	s.mu.Lock()
	s.revoked = revoked
	s.mu.Unlock()
	s.hangUp()
}

func (s *server) accept() {
	for {
		conn, err := s.listener.Accept()
		if err != nil {
			return
		}
		s.mu.Lock()
		s.all[conn] = true
		s.mu.Unlock()
		s.wg.Go(func() {
			s.serve(conn)
			conn.Close()
			s.mu.Lock()
			delete(s.all, conn)
			s.mu.Unlock()
		})
	}
}

func (s *server) serve(conn net.Conn) {
	for n, offers := 0, "<mechanisms xmlns='"+nsSASL+"'><mechanism>PLAIN</mechanism></mechanisms>"; ; n++ {
		dec := xml.NewDecoder(conn)
		for {
			token, err := dec.Token()
			if err != nil {
				return
			}
			if _, ok := token.(xml.StartElement); ok {
				break
			}
		}
		fmt.Fprintf(conn, "<?xml version='1.0'?><stream:stream xmlns='%s' xmlns:stream='%s' id='x' version='1.0'>", nsClient, nsStream)
		fmt.Fprintf(conn, "<stream:features>%s</stream:features>", offers)
		if n == 1 {
			if s.session(conn, dec); s.lingers {
				<-s.t.Context().Done()
			}
			return
		}
		e, err := read(dec)
		if err != nil {
			return
		}
		s.mu.Lock()
		revoked := s.revoked
		s.mu.Unlock()
		if text, _ := base64.StdEncoding.DecodeString(e.Text); revoked || string(text) != "\x00bot\x00"+s.password {
			fmt.Fprintf(conn, "<failure xmlns='%s'><not-authorized/></failure></stream:stream>", nsSASL)
			return
		}
		fmt.Fprintf(conn, "<success xmlns='%s'/>", nsSASL)
		offers = "<bind xmlns='" + nsBind + "'/>" + s.features
	}
}

func read(dec *xml.Decoder) (e element, err error) {
	for {
		token, err := dec.Token()
		if err != nil {
			return e, err
		}
		switch t := token.(type) {
		case xml.StartElement:
			return e, dec.DecodeElement(&e, &t)
		case xml.EndElement:
			return e, net.ErrClosed
		}
	}
}

func (s *server) session(conn net.Conn, dec *xml.Decoder) {
	p := &peer{s: s, conn: conn, gone: make(chan struct{})}
	defer func() {
		s.mu.Lock()
		for i, other := range s.peers {
			if other == p {
				s.peers = append(s.peers[:i], s.peers[i+1:]...)
				break
			}
		}
		s.mu.Unlock()
		close(p.gone)
	}()
	for {
		e, err := read(dec)
		if err != nil {
			return
		}
		if e.XMLName.Space == nsClient {
			p.mu.Lock()
			p.in++
			p.mu.Unlock()
		}
		s.mu.Lock()
		s.stanzas = append(s.stanzas, e)
		answer := s.answer
		s.mu.Unlock()
		if answer != nil && answer(p, e) {
			continue
		}
		if !s.deal(p, e) {
			return
		}
	}
}

// deal is what a server does with an element; false: it hangs up.
func (s *server) deal(p *peer, e element) bool {
	switch e.XMLName.Local {
	case "enable": // what comes behind it counts
		p.mu.Lock()
		p.in, p.out, p.acked, p.queue = 0, 0, 0, nil
		p.mu.Unlock()
		if !s.resumes {
			p.raw("<enabled xmlns='" + nsSM + "'/>")
			break
		}
		id := rand.Text()
		s.keep(id, p)
		p.raw(fmt.Sprintf("<enabled xmlns='%s' id='%s' resume='true'/>", nsSM, id))
	case "resume":
		s.mu.Lock()
		old := s.kept[e.attr("previd")]
		s.mu.Unlock()
		if old == nil {
			p.raw("<failed xmlns='" + nsSM + "'><item-not-found xmlns='" + nsErrors + "'/></failed>")
			break
		}
		s.keep(e.attr("previd"), p)
		return p.resume(old, e)
	case "r":
		if !s.is(connectortest.Stall) {
			p.raw(fmt.Sprintf("<a xmlns='%s' h='%d'/>", nsSM, p.in))
		}
	case "a":
		return p.ack(e)
	case "presence":
		s.mu.Lock()
		if !p.here && e.attr("to") == "" {
			p.here = true
			s.peers = append(s.peers, p)
		}
		s.mu.Unlock()
	case "iq":
		s.iq(p, e)
	case "message":
		return s.message(p, e)
	}

	return true
}

func (s *server) iq(p *peer, e element) {
	body := ""
	switch {
	case e.attr("type") == "result", e.attr("type") == "error":
		return
	case e.has(nsBind, "bind"):
		body = "<bind xmlns='" + nsBind + "'><jid>" + botJID + "/daycare</jid></bind>"
	case e.has(nsInfo, "query"):
		body = "<query xmlns='" + nsInfo + "'/>"
	case e.has(nsPing, "ping") && s.is(connectortest.Stall):
		return
	}
	p.put(fmt.Sprintf("<iq type='result' id='%s' from='%s'>%s</iq>", e.attr("id"), e.attr("to"), body))
}

// message keeps what was said, if it does; false: it hangs up.
func (s *server) message(p *peer, e element) bool {
	body, ok := e.kid(nsClient, "body")
	if !ok {
		return true
	}
	if to, _, ok := strings.Cut(e.attr("to"), "/"); ok && to == botJID {
		p.put(string(node(nsClient, "message", "from", e.attr("to"), "to", e.attr("to"), "type", "chat", "id", e.attr("id")).with(
			node(nsClient, "body").saying(body.Text)).bytes()))
		return true
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	sent := connectortest.Sent{Key: e.attr("id"), Text: body.Text}
	switch s.fault {
	case connectortest.Broken:
		return false
	case connectortest.Gone:
		p.put(fmt.Sprintf("<message type='error' id='%s' from='%s'><error type='cancel'><item-not-found xmlns='%s'/></error></message>",
			e.attr("id"), e.attr("to"), nsErrors))
		return true
	case connectortest.Stall:
		return true
	}
	s.told = append(s.told, sent)
	if r, ok := e.kid(nsCorrect, "replace"); ok {
		s.texts[r.attr("id")] = body.Text
	} else {
		s.order, s.texts[sent.Key] = append(s.order, sent.Key), body.Text
	}
	if e.attr("to") != eveJID && !strings.Contains(body.Text, "requests access") && !strings.Contains(body.Text, "is not in") {
		s.sent = append(s.sent, sent)
	}

	return s.fault != connectortest.Drop
}

func (p *peer) raw(text string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	_, _ = p.conn.Write([]byte(text)) // who hung up does not read
}

// ack forgets what the other side has; false: it says to have more than was sent, and the server hangs up.
func (p *peer) ack(e element) bool {
	h, err := strconv.ParseUint(e.attr("h"), 10, 32)
	p.mu.Lock()
	n := uint32(h) - p.acked
	known := err == nil && n <= uint32(len(p.queue))
	if known {
		p.queue, p.acked = p.queue[n:], uint32(h)
	}
	p.mu.Unlock()
	if !known {
		p.raw("<stream:error><undefined-condition xmlns='urn:ietf:params:xml:ns:xmpp-streams'/>" +
			"<handled-count-too-high xmlns='" + nsSM + "'/></stream:error></stream:stream>")
	}

	return known
}

// keep notes that a session can be resumed.
func (s *server) keep(id string, p *peer) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.kept[id] = p
}

// resume continues the session of an older connection with what the other side has not; false: the server hangs up.
func (p *peer) resume(old *peer, e element) bool {
	old.mu.Lock()
	in, out, acked, queue := old.in, old.out, old.acked, slices.Clone(old.queue)
	old.mu.Unlock()
	p.mu.Lock()
	p.in, p.out, p.acked, p.queue = in, out, acked, queue
	p.mu.Unlock()
	if !p.ack(e) {
		return false
	}

	p.raw(fmt.Sprintf("<resumed xmlns='%s' previd='%s' h='%d'/>", nsSM, e.attr("previd"), in))
	p.mu.Lock()
	queue = slices.Clone(p.queue)
	p.mu.Unlock()
	for _, text := range queue {
		p.raw(text)
	}
	p.s.mu.Lock()
	defer p.s.mu.Unlock()
	p.s.resumed++
	p.s.peers = append(p.s.peers, p)

	return true
}

// awaitResumed waits until sessions were resumed n times, and returns how often they were.
func (s *server) awaitResumed(n int) int {
	for {
		s.mu.Lock()
		got := s.resumed
		s.mu.Unlock()
		if got >= n || s.t.Context().Err() != nil {
			return got
		}
		time.Sleep(time.Millisecond)
	}
}

// put sends a stanza and returns its number.
func (p *peer) put(text string) uint32 {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.out++
	p.queue = append(p.queue, text)
	_, _ = p.conn.Write([]byte(text))
	return p.out
}

func (p *peer) has(n uint32) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.acked >= n
}

func (s *server) is(f connectortest.Fault) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.fault == f
}

func (s *server) misbehave(f connectortest.Fault) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fault = f
}

// visible are the texts that users see.
func (s *server) visible() (all []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, id := range s.order {
		all = append(all, s.texts[id])
	}
	return all
}

func (s *server) received() []connectortest.Sent {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]connectortest.Sent(nil), s.sent...)
}

func (s *server) heard() []connectortest.Sent {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]connectortest.Sent(nil), s.told...)
}

// there waits for a session that is there.
func (s *server) there(ctx context.Context) *peer {
	for {
		s.mu.Lock()
		n := len(s.peers)
		if n > 0 {
			p := s.peers[n-1]
			s.mu.Unlock()
			return p
		}
		s.mu.Unlock()
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(time.Millisecond):
		}
	}
}

// speech is a message as a stanza.
func speech(from, id, text string) string {
	return string(node(nsClient, "message", "from", from, "to", botJID, "type", "chat", "id", id).with(
		node(nsClient, "body").saying(text)).bytes())
}

// tell sends stanzas and tells of each whether it was acknowledged.
func (s *server) tell(ctx context.Context, stanzas ...string) []bool {
	received := make([]bool, len(stanzas))
	p := s.there(ctx)
	if p == nil {
		return received
	}
	var numbers []uint32
	for _, text := range stanzas {
		numbers = append(numbers, p.put(text))
	}
	for i, n := range numbers {
		for !p.has(n) {
			select {
			case <-ctx.Done():
				return received
			case <-p.gone:
				return received
			case <-time.After(time.Millisecond):
			}
		}
		received[i] = true
	}

	return received
}
