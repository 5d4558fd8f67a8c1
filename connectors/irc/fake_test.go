package irc

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"daycare/connectors/connectortest"
)

// server is a fake of one IRC server, with message ids and accounts, and faults
// that a real one would not have on demand.
type server struct {
	t        *testing.T
	listener net.Listener
	wg       sync.WaitGroup
	password string

	mu    sync.Mutex
	calls int                 // connections ever made
	conns map[net.Conn]string // nick of each that is let in
	all   map[net.Conn]bool
	sent  []connectortest.Sent
	fault connectortest.Fault
	// revoked: the password is accepted no more.
	revoked bool
}

func newServer(t *testing.T, password string) *server {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &server{t: t, listener: l, password: password, conns: map[net.Conn]string{}, all: map[net.Conn]bool{}}
	s.wg.Go(s.accept)
	t.Cleanup(func() {
		l.Close()
		s.hangUp()
		s.wg.Wait()
	})

	return s
}

// hangUp ends all connections: nothing is said on them any more.
func (s *server) hangUp() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for c := range s.all {
		c.Close()
		delete(s.all, c)
		delete(s.conns, c)
	}
}

// revoke has the password accepted no more, or again.
func (s *server) revoke(revoked bool) {
	s.mu.Lock()
	s.revoked = revoked
	s.mu.Unlock()
	s.hangUp()
}

func (s *server) isRevoked() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.revoked
}

func (s *server) accept() {
	for {
		conn, err := s.listener.Accept()
		if err != nil {
			return
		}
		s.mu.Lock()
		s.calls++
		s.all[conn] = true
		s.mu.Unlock()
		s.wg.Go(func() { s.serve(conn) })
	}
}

func (s *server) serve(conn net.Conn) {
	defer func() {
		s.mu.Lock()
		delete(s.conns, conn)
		delete(s.all, conn)
		s.mu.Unlock()
		conn.Close()
	}()

	say := func(format string, args ...any) { fmt.Fprintf(conn, ":fake "+format+"\r\n", args...) }
	nick := ""
	for in := bufio.NewScanner(conn); in.Scan(); {
		command, rest, _ := strings.Cut(in.Text(), " ")
		switch command {
		case "CAP":
			switch verb, _, _ := strings.Cut(rest, " "); verb {
			case "LS":
				say("CAP * LS :account-tag message-tags server-time sasl=PLAIN,EXTERNAL")
			case "REQ":
				say("CAP * ACK %s", rest[strings.Index(rest, ":"):])
			case "END":
				say("001 %s :Welcome", nick)
				s.mu.Lock()
				if s.all[conn] {
					s.conns[conn] = nick
				}
				s.mu.Unlock()
			}
		case "AUTHENTICATE":
			if rest == "PLAIN" {
				fmt.Fprint(conn, "AUTHENTICATE +\r\n")
			} else if rest == s.password && !s.isRevoked() {
				say("903 * :Logged in")
			} else {
				say("904 * :No")
			}
		case "NICK":
			nick = strings.TrimPrefix(rest, ":")
		case "PING":
			if !s.is(connectortest.Stall) {
				say("PONG fake %s", rest)
			}
		case "PRIVMSG":
			target, text, _ := strings.Cut(rest, " ")
			if strings.EqualFold(target, nick) {
				fmt.Fprintf(conn, ":%s!us@host PRIVMSG %s %s\r\n", nick, nick, text)
				continue
			}
			text = strings.TrimPrefix(text, ":")
			mask := ":" + nick + "!~" + strings.Repeat("u", 10) + "@" + strings.Repeat("h", 63)
			if s.take(target, text[:min(len(text), 510-len(mask+" PRIVMSG "+target+" :"))]) {
				return
			}
			if s.is(connectortest.Gone) {
				say("401 %s %s :No such nick", nick, target)
			}
		case "QUIT":
			return
		}
	}
}

// take keeps what was said, if it does; hangUp ends the connection.
func (s *server) take(target, text string) (hangUp bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch s.fault {
	case connectortest.Broken:
		return true
	case connectortest.Gone, connectortest.Stall:
		return false
	}
	if target != "eve" && !strings.Contains(text, "A user who is not in") {
		s.sent = append(s.sent, connectortest.Sent{Text: text})
	}

	return s.fault == connectortest.Drop
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

func (s *server) received() []connectortest.Sent {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]connectortest.Sent(nil), s.sent...)
}

// tell has someone say something, as soon as a nick is there to hear it.
func (s *server) tell(ctx context.Context, nick, tags, source, target, text string) bool {
	for {
		s.mu.Lock()
		for conn, n := range s.conns {
			if n == nick {
				fmt.Fprintf(conn, "%s:%s PRIVMSG %s :%s\r\n", tags, source, target, text)
				s.mu.Unlock()
				return true
			}
		}

		s.mu.Unlock()
		select {
		case <-ctx.Done():
			return false
		case <-time.After(time.Millisecond):
		}
	}
}
