package ingress

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"
)

// bodyServer reads bodies of at most 10 bytes and tells what became of each.
func bodyServer(t *testing.T, bodyTime time.Duration) (address string, read chan string) {
	read = make(chan string, 10)
	l := &Listener{Name: "tests", Log: quiet(), BodyTime: bodyTime, Grace: time.Millisecond}
	ctx, cancel := context.WithCancel(t.Context())
	up, done := make(chan struct{}), make(chan error, 1)
	go func() {
		done <- l.Serve(ctx, "127.0.0.1:0", func(w http.ResponseWriter, r *http.Request) {
			body, err := l.Body(w, r, 10)
			read <- fmt.Sprint(string(body), err)
		}, func(context.Context) error { close(up); return nil })
	}()

	<-up
	t.Cleanup(func() { cancel(); <-done })
	return l.Address(), read
}

func TestBody(t *testing.T) {
	address, read := bodyServer(t, 0)
	for body, want := range map[string]string{"": "<nil>", "short": "short<nil>",
		strings.Repeat("x", 10): "xxxxxxxxxx<nil>", strings.Repeat("x", 20): "xxxxxxxxxxx<nil>"} {
		resp, err := http.Post("http://"+address, "text/plain", strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if got := <-read; got != want {
			t.Errorf("of %q was read %q, want %q", body, got, want)
		}
	}

	http.DefaultClient.CloseIdleConnections()
}

// A body that does not end in time is given up, and one whose sender hangs up.
func TestSlowBody(t *testing.T) {
	address, read := bodyServer(t, 50*time.Millisecond)
	for _, hangUp := range []bool{false, true} {
		conn, err := net.Dial("tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		io.WriteString(conn, "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\nsome")
		want := ErrSlow.Error()
		if hangUp {
			conn.Close()
			want = io.ErrUnexpectedEOF.Error()
		}
		if got := <-read; got != want {
			t.Errorf("hung up: %v: %q, want %q", hangUp, got, want)
		}
	}
}

// Where bodies are too many or too large together, the oldest has to go: of the
// address that sends too much if it is one.
func TestBodiesMakeRoom(t *testing.T) {
	var s bodies
	var cut []string
	enter := func(address, name string) *body { return s.enter(address, func() { cut = append(cut, name) }) }
	enter("quiet", "quiet")
	for i := range maxFromOne + 2 {
		enter("loud", fmt.Sprint("loud", i))
	}

	if fmt.Sprint(cut) != "[loud0 loud1]" {
		t.Errorf("one address sends too many: %v had to go", cut)
	}
	cut = nil
	for i := 0; len(s.all) < maxBodies; i++ {
		enter(fmt.Sprint("other", i), "other")
	}

	if enter("new", "new"); fmt.Sprint(cut) != "[quiet]" {
		t.Errorf("all send too many: %v had to go", cut)
	}

	s, cut = bodies{}, nil
	old, large := enter("a", "old"), enter("a", "large")
	for range maxBytesFrom / bodyChunk {
		s.grow(large, bodyChunk)
	}
	if len(cut) != 0 {
		t.Errorf("%v had to go within the bounds", cut)
	}

	s.grow(old, 1)
	if !s.grow(large, 0) || fmt.Sprint(cut) != "[large]" || s.bytes != 1 {
		t.Errorf("one address sends too much: %v had to go, %d bytes are left", cut, s.bytes)
	}
	s, cut = bodies{}, nil
	for i := range maxBytes/maxBytesFrom + 1 {
		b := enter(fmt.Sprint(i), fmt.Sprint(i))
		for range maxBytesFrom / bodyChunk {
			s.grow(b, bodyChunk)
		}
	}

	if fmt.Sprint(cut) != "[0]" || s.bytes != maxBytes {
		t.Errorf("all send too much: %v had to go, %d bytes are held", cut, s.bytes)
	}
	for len(s.all) > 0 {
		s.leave(s.all[0])
	}

	if s.bytes != 0 || len(s.from) != 0 {
		t.Errorf("at the end %d bytes of %d addresses are left", s.bytes, len(s.from))
	}
}

// What had to go is answered so.
func TestCrowdedBody(t *testing.T) {
	l := &Listener{}
	r, err := http.NewRequest(http.MethodPost, "http://x/", io.MultiReader(bytes.NewReader([]byte("some")), crowd{l}))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := l.Body(nil, r, 100); !errors.Is(err, ErrCrowded) {
		t.Errorf("Body = %v, want %v", err, ErrCrowded)
	}
}

// crowd is a body during whose reading many others come.
type crowd struct{ l *Listener }

func (c crowd) Read([]byte) (int, error) {
	for range maxFromOne {
		c.l.bodies.enter("", func() {})
	}
	return 0, io.EOF
}
