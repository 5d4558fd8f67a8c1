package ingress

import (
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"sync"
	"time"
)

// Limits of bodies that are being read. A body is read before its signature can be
// checked, so these bound what strangers can hold.
const (
	bodyTime     = 5 * time.Second // from the first byte to the last
	maxBodies    = 1024            // at once
	maxFromOne   = 256             // of them from one address
	maxBytes     = 64 << 20        // of all bodies that have not arrived whole
	maxBytesFrom = 16 << 20        // of them from one address
	bodyChunk    = 32 << 10
)

var (
	// ErrSlow: the body took longer than 5 s.
	ErrSlow = errors.New("the body took too long")
	// ErrCrowded: the body had to make room for others that came after it.
	ErrCrowded = errors.New("too many requests at once")
)

// Body reads the body of a request, at most one byte more than most. Where too many
// come at once the oldest has to go and not the newest: a service's own arrives within
// milliseconds, and strangers who send slowly must not shut it out. Errors: ErrSlow,
// ErrCrowded, what the connection said.
func (l *Listener) Body(w http.ResponseWriter, r *http.Request, most int64) ([]byte, error) {
	conn := http.NewResponseController(w)
	b := l.bodies.enter(address(r.RemoteAddr), func() { _ = conn.SetReadDeadline(time.Now()) })
	defer l.bodies.leave(b)
	_ = conn.SetReadDeadline(time.Now().Add(l.bodyTime()))
	var body []byte
	from := io.LimitReader(r.Body, most+1)
	chunk := make([]byte, min(bodyChunk, most+1))
	for {
		n, err := from.Read(chunk)
		body = append(body, chunk[:n]...)
		crowded := l.bodies.grow(b, n)
		switch {
		case crowded:
			return nil, ErrCrowded
		case errors.Is(err, io.EOF):
			_ = conn.SetReadDeadline(time.Time{})
			return body, nil
		case errors.Is(err, os.ErrDeadlineExceeded):
			return nil, ErrSlow
		case err != nil:
			return nil, err
		}
	}
}

func (l *Listener) bodyTime() time.Duration {
	if l.BodyTime > 0 {
		return l.BodyTime
	}
	return bodyTime
}

// address is a remote address without its port.
func address(remote string) string {
	if host, _, err := net.SplitHostPort(remote); err == nil {
		return host
	}
	return remote
}

// bodies are those that are being read, the oldest first. The zero value works.
type bodies struct {
	mu    sync.Mutex
	all   []*body
	bytes int
	from  map[string]share
}

// A share is what one address holds of all bodies.
type share struct{ bodies, bytes int }

// A body is one of them.
type body struct {
	address string
	bytes   int
	cut     func() // ends its reading
	gone    bool   // it had to make room
}

func (s *bodies) enter(address string, cut func()) *body {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.from == nil {
		s.from = map[string]share{}
	}

	switch {
	case s.from[address].bodies >= maxFromOne:
		s.makeRoom(address, nil)
	case len(s.all) >= maxBodies:
		s.makeRoom("", nil)
	}

	b := &body{address: address, cut: cut}
	s.all = append(s.all, b)
	s.from[address] = s.from[address].plus(1, 0)
	return b
}

// grow counts bytes that arrived, and reports whether the body had to go meanwhile.
func (s *bodies) grow(b *body, n int) (crowded bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if b.gone {
		return true
	}

	b.bytes += n
	s.bytes += n
	s.from[b.address] = s.from[b.address].plus(0, n)
	for s.from[b.address].bytes > maxBytesFrom && s.makeRoom(b.address, b) {
	}
	for s.bytes > maxBytes && s.makeRoom("", b) {
	}

	return false
}

// makeRoom ends the oldest body, of an address if one is given, that is not except. mu
// is held.
func (s *bodies) makeRoom(address string, except *body) bool {
	for _, b := range s.all {
		if b != except && (address == "" || b.address == address) {
			b.gone = true
			b.cut()
			s.remove(b)
			return true
		}
	}

	return false
}

func (s *bodies) leave(b *body) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !b.gone {
		s.remove(b)
	}
}

// remove forgets a body. mu is held.
func (s *bodies) remove(b *body) {
	for i, other := range s.all {
		if other == b {
			s.all = append(s.all[:i:i], s.all[i+1:]...)
			break
		}
	}

	s.bytes -= b.bytes
	if left := s.from[b.address].plus(-1, -b.bytes); left.bodies > 0 {
		s.from[b.address] = left
	} else {
		delete(s.from, b.address)
	}
}

func (s share) plus(bodies, bytes int) share { return share{s.bodies + bodies, s.bytes + bytes} }
