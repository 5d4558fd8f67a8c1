package clustertest

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
)

// A Way leads to a server. On it one request to JetStream can be refused, as servers refuse one that have trouble, and
// answers can be on their way for some time, as those from another continent.
type Way struct {
	URL string

	mu      sync.Mutex
	late    time.Duration // by which all that the server says arrives later
	left    int           // requests until then; 0: none is refused
	refused string
}

// Refused is what the server seems to say of a request that was refused.
const Refused = "seeded by a test"

// WayTo makes a way to a server, until the test ends.
func WayTo(t testing.TB, s *server.Server) *Way {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	w, at := &Way{URL: "nats://" + l.Addr().String()}, s.Addr().String()
	go func() {
		for {
			client, err := l.Accept()
			if err != nil {
				return
			}
			there, err := net.Dial("tcp", at)
			if err != nil { // it is down
				client.Close()
				continue
			}
			p := &passage{way: w, client: client, server: there, inboxes: map[string]string{}}
			go p.requests()
			go p.answers()
		}
	}()

	return w
}

// Refuse has the nth request from now on be refused.
func (w *Way) Refuse(n int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.left, w.refused = n, ""
}

// Late has all that the server says from now on arrive later.
func (w *Way) Late(by time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.late = by
}

// Allow has no more request be refused.
func (w *Way) Allow() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.left = 0
}

// Met is the subject of the request that was refused; "": there were not as many.
func (w *Way) Met() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.refused
}

// refuses counts a request, and reports whether it is the one.
func (w *Way) refuses(subject string) bool {
	ours := false
	for _, prefix := range []string{"$JS.API.", "$KV.", "$O.", "dc.log.", "dc.part."} {
		ours = ours || strings.HasPrefix(subject, prefix)
	}
	if !ours || strings.HasPrefix(subject, "$KV.dc-nodes.") { // that are written all the time
		return false
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.left == 0 {
		return false
	}
	if w.left--; w.left > 0 {
		return false
	}
	w.refused = subject

	return true
}

// A passage is one connection on a way.
type passage struct {
	way            *Way
	client, server net.Conn

	mu      sync.Mutex // of what is written to the client
	inboxes map[string]string
}

// frame reads one message of the protocol; words are those of its first line.
func frame(r *bufio.Reader) (whole []byte, words []string, err error) {
	line, err := r.ReadString('\n')
	if err != nil {
		return nil, nil, err
	}
	whole, words = []byte(line), strings.Fields(line)
	if len(words) == 0 || !strings.Contains(" PUB HPUB MSG HMSG ", " "+words[0]+" ") {
		return whole, words, nil
	}
	size, err := strconv.Atoi(words[len(words)-1])
	if err != nil {
		return nil, nil, err
	}
	body := make([]byte, size+len("\r\n"))
	if _, err := io.ReadFull(r, body); err != nil {
		return nil, nil, err
	}

	return append(whole, body...), words, nil
}

// requests brings what the client says to the server.
func (p *passage) requests() {
	defer p.server.Close()
	for r := bufio.NewReader(p.client); ; {
		whole, words, err := frame(r)
		if err != nil {
			return
		}
		if len(words) > 2 && words[0] == "SUB" {
			p.inboxes[words[1]] = words[len(words)-1]
		}
		if asks := map[string]int{"PUB": 4, "HPUB": 5}; len(words) > 0 && asks[words[0]] == len(words) && p.way.refuses(words[1]) {
			if err := p.refuse(words[1], words[2]); err != nil {
				return
			}
			continue
		}
		if _, err := p.server.Write(whole); err != nil {
			return
		}
	}
}

// refuse answers a request in the place of the server.
func (p *passage) refuse(subject, reply string) error {
	sid := p.inboxes[reply]
	if at := strings.LastIndexByte(reply, '.'); sid == "" && at > 0 {
		sid = p.inboxes[reply[:at]+".*"]
	}
	body := fmt.Sprintf(`{"error":{"code":500,"err_code":10000,"description":%q}}`, Refused)
	answer := fmt.Sprintf("MSG %s %s %d\r\n%s\r\n", reply, sid, len(body), body)
	if strings.HasPrefix(subject, "$JS.API.DIRECT.") {
		head := "NATS/1.0 500 " + Refused + "\r\n\r\n"
		answer = fmt.Sprintf("HMSG %s %s %d %d\r\n%s\r\n", reply, sid, len(head), len(head), head)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	_, err := p.client.Write([]byte(answer))

	return err
}

// answers brings what the server says to the client.
func (p *passage) answers() {
	type said struct {
		whole []byte
		due   time.Time
	}
	under := make(chan said, 1<<10) // way
	go func() {
		defer close(under)
		for r := bufio.NewReader(p.server); ; {
			whole, _, err := frame(r)
			if err != nil {
				return
			}
			p.way.mu.Lock()
			due := time.Now().Add(p.way.late)
			p.way.mu.Unlock()
			under <- said{whole, due}
		}
	}()

	for one := range under {
		time.Sleep(time.Until(one.due))
		p.mu.Lock()
		_, _ = p.client.Write(one.whole) // who has closed it hears no more
		p.mu.Unlock()
	}
	p.client.Close()
}
