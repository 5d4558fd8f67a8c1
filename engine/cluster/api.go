package cluster

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"sync"
	"time"

	"github.com/nats-io/nats.go"

	"daycare/engine/disk"
	"daycare/engine/message"
)

// A request to another machine is a message to its subject, which is answered with the subject
// of a stream. The asker takes the stream piece by piece, so that it gets no more than it reads,
// and each side notices within seconds that the other is gone. A body that does not fit into
// the message is fetched from the asker in the same way.

// Sizes in bytes, and times.
const (
	pieceMost = 256 << 10
	askMost   = 64 << 20         // of the body of a request
	pieceWait = 5 * time.Second  // after that a piece is empty, and asked for again
	pieceLost = 15 * time.Second // after that the other side is gone
)

// An ask is a request.
type ask struct {
	Caller json.RawMessage `json:"caller"`
	Method string          `json:"method"`
	URI    string          `json:"uri"`
	Header http.Header     `json:"header"`
	Body   []byte          `json:"body,omitempty"`
	Size   int             `json:"size,omitempty"` // of a body that is fetched from From
	From   string          `json:"from,omitempty"`
}

// A head begins an answer.
type head struct {
	Status int         `json:"status"`
	Header http.Header `json:"header"`
}

// Headers of pieces.
const (
	pieceHead  = "D-Head"  // on the first one
	pieceEnd   = "D-End"   // it is the last one
	pieceError = "D-Error" // the answer ends with an error
)

// Requests go from machine to machine.
type requests struct {
	boot string // of this process
	conn *nats.Conn
	work *sync.WaitGroup // what the end of the node waits for
	says *slog.Logger
}

// Boot is the id of this process among the machines.
func (n *requests) Boot() string { return n.boot }

// Ask sends a request to another machine; caller is what that one's serve is given. The answer
// streams; close its body. Errors: *message.Elsewhere if the machine is gone and has not seen
// the request.
func (n *requests) Ask(node string, caller []byte, r *http.Request) (*http.Response, error) {
	a := ask{Caller: caller, Method: r.Method, URI: r.URL.RequestURI(), Header: r.Header}
	body, err := readBody(r)
	if err != nil {
		return nil, err
	}
	s := &incoming{ctx: r.Context(), conn: n.conn, node: node}
	if len(body) <= pieceMost {
		a.Body = body
	} else {
		if s.offered, err = n.offer(body); err != nil {
			return nil, err
		}
		a.Size, a.From = len(body), s.offered.Subject
	}

	if err := n.begin(s, a); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return &http.Response{Status: http.StatusText(s.head.Status), StatusCode: s.head.Status, Header: s.head.Header, Proto: "HTTP/1.1",
		ProtoMajor: 1, ProtoMinor: 1, ContentLength: -1, Body: s, Request: r}, nil
}

// begin sends a request and waits for the beginning of its answer.
func (n *requests) begin(s *incoming, a ask) error {
	data, err := json.Marshal(a)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(s.ctx, forwardFor)
	defer cancel()
	reply, err := n.conn.RequestWithContext(ctx, askSubject+s.node, data)
	if errors.Is(err, nats.ErrNoResponders) {
		return &message.Elsewhere{Node: s.node}
	}
	if err != nil {
		return fmt.Errorf("%w: machine %s does not answer: %w", disk.ErrAway, s.node, err)
	}
	s.subject = string(reply.Data)
	if err = s.fill(); err == nil && s.head.Status == 0 {
		err = cmp.Or(s.end, io.ErrUnexpectedEOF)
	}

	return err
}

func readBody(r *http.Request) ([]byte, error) {
	if r.Body == nil {
		return nil, nil
	}
	body, err := io.ReadAll(io.LimitReader(r.Body, askMost+1))
	if err == nil && len(body) > askMost {
		err = fmt.Errorf("a request of over %d bytes cannot be sent to another machine", askMost)
	}

	return body, err
}

// offer lets the other machine fetch a body.
func (n *requests) offer(body []byte) (*nats.Subscription, error) {
	return n.conn.Subscribe(n.conn.NewInbox(), func(m *nats.Msg) {
		var at int
		if _, err := fmt.Sscan(string(m.Data), &at); err != nil || at < 0 || at > len(body) {
			return
		}
		if err := m.Respond(body[at:min(len(body), at+pieceMost)]); err != nil {
			n.says.Debug("a piece of a request was not sent", "err", err)
		}
	})
}

// A fetched body is one that the asker offers.
type fetched struct {
	ctx      context.Context
	conn     *nats.Conn
	from     string
	at, size int
	rest     []byte
}

func (f *fetched) Read(p []byte) (int, error) {
	if len(f.rest) == 0 {
		if f.at >= f.size {
			return 0, io.EOF
		}
		ctx, cancel := context.WithTimeout(f.ctx, pieceLost)
		defer cancel()
		m, err := f.conn.RequestWithContext(ctx, f.from, fmt.Append(nil, f.at))
		if err != nil {
			return 0, fmt.Errorf("read the request of another machine: %w", err)
		}
		f.rest, f.at = m.Data, f.at+len(m.Data)
		if len(m.Data) == 0 {
			return 0, io.ErrUnexpectedEOF
		}
	}
	k := copy(p, f.rest)
	f.rest = f.rest[k:]

	return k, nil
}

// incoming is the stream of an answer, at the asker.
type incoming struct {
	ctx           context.Context
	conn          *nats.Conn
	subject, node string
	offered       *nats.Subscription // for the body of the request; nil: it was sent with it
	head          head
	rest          []byte
	end           error // what comes after rest
}

// fill asks for pieces until there is something to read.
func (s *incoming) fill() error {
	for len(s.rest) == 0 && s.end == nil {
		ctx, cancel := context.WithTimeout(s.ctx, pieceLost)
		m, err := s.conn.RequestWithContext(ctx, s.subject, nil)
		cancel()
		if err != nil {
			if s.ctx.Err() != nil {
				return s.ctx.Err()
			}
			return fmt.Errorf("%w: machine %s ended in the middle of its answer: %w", disk.ErrAway, s.node, err)
		}

		s.rest = m.Data
		if text := m.Header.Get(pieceError); text != "" {
			s.end = errors.New(text)
		} else if m.Header.Get(pieceEnd) != "" {
			s.end = io.EOF
		}
		if text := m.Header.Get(pieceHead); text != "" {
			return json.Unmarshal([]byte(text), &s.head)
		}
	}

	return nil
}

func (s *incoming) Read(p []byte) (int, error) {
	if err := s.fill(); err != nil {
		return 0, err
	}
	if len(s.rest) == 0 {
		return 0, s.end
	}
	k := copy(p, s.rest)
	s.rest = s.rest[k:]

	return k, nil
}

// Close tells the other machine that nothing more is read.
func (s *incoming) Close() error {
	if s.offered != nil {
		unsubscribed(s.offered)
		s.offered = nil
	}
	if s.end != nil || s.subject == "" {
		return nil
	}
	s.end = errors.New("closed")
	return s.conn.Publish(s.subject, []byte("stop"))
}

// A Server does the requests of other machines.
type Server func(caller []byte, r *http.Request) (*http.Response, error)

// Answer does the requests of other machines with serve, until ctx ends.
func (n *requests) Answer(ctx context.Context, serve Server) error {
	sub, err := n.conn.Subscribe(askSubject+n.boot, func(m *nats.Msg) {
		n.work.Go(func() {
			if err := n.answer(ctx, m, serve); err != nil {
				n.says.Info("request of another machine not answered", "err", err)
			}
		})
	})
	if err != nil {
		return fmt.Errorf("accept requests of other machines: %w", err)
	}

	<-ctx.Done()
	unsubscribed(sub)

	return nil
}

// unsubscribed ends a subscription; its connection may have ended before.
func unsubscribed(sub *nats.Subscription) { _ = sub.Unsubscribe() }

// answer does one request.
func (n *requests) answer(ctx context.Context, m *nats.Msg, serve Server) error {
	var a ask
	if err := json.Unmarshal(m.Data, &a); err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var body io.Reader = bytes.NewReader(a.Body)
	if a.From != "" {
		body = &fetched{ctx: ctx, conn: n.conn, from: a.From, size: a.Size}
	}
	r, err := http.NewRequestWithContext(ctx, a.Method, "http://daycare"+a.URI, body)
	if err != nil {
		return err
	}
	r.Header, r.ContentLength = a.Header, int64(max(len(a.Body), a.Size))

	pulls, err := n.conn.SubscribeSync(n.conn.NewInbox())
	if err != nil {
		return err
	}
	defer unsubscribed(pulls) // it is over
	if err := m.Respond([]byte(pulls.Subject)); err != nil {
		return err
	}
	pieces := make(chan *nats.Msg)
	n.work.Go(func() { readPieces(ctx, pieces, func() (*http.Response, error) { return serve(a.Caller, r) }) })

	return give(ctx, pulls, pieces)
}

// readPieces does a request and sends the answer as pieces.
func readPieces(ctx context.Context, pieces chan<- *nats.Msg, do func() (*http.Response, error)) {
	send := func(m *nats.Msg) bool {
		select {
		case pieces <- m:
			return true
		case <-ctx.Done():
			return false
		}
	}
	resp, err := do()
	if err != nil {
		send(&nats.Msg{Header: nats.Header{pieceError: {err.Error()}}})
		return
	}
	defer resp.Body.Close() // its end is known
	first := string(jsonOf(head{resp.StatusCode, resp.Header}))
	if !send(&nats.Msg{Header: nats.Header{pieceHead: {first}}}) {
		return
	}

	piece := make([]byte, pieceMost)
	for err == nil {
		var k int
		k, err = resp.Body.Read(piece)
		m := &nats.Msg{Data: bytes.Clone(piece[:k]), Header: nats.Header{}}
		if errors.Is(err, io.EOF) {
			m.Header.Set(pieceEnd, "1")
		} else if err != nil {
			m.Header.Set(pieceError, err.Error())
		}
		if !send(m) {
			return
		}
	}
}

// give gives the pieces to who pulls them.
func give(ctx context.Context, pulls *nats.Subscription, pieces <-chan *nats.Msg) error {
	for {
		waiting, cancel := context.WithTimeout(ctx, pieceLost)
		pull, err := pulls.NextMsgWithContext(waiting)
		cancel()
		if err != nil || len(pull.Data) > 0 {
			return nil // whoever asked is gone, or has read enough
		}

		m := &nats.Msg{}
		select {
		case m = <-pieces:
		case <-time.After(pieceWait):
		case <-ctx.Done():
			return nil
		}
		if err := pull.RespondMsg(m); err != nil || m.Header.Get(pieceEnd) != "" || m.Header.Get(pieceError) != "" {
			return err
		}
	}
}
