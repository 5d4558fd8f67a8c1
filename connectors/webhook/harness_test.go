package webhook

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strconv"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"daycare/connectors/connectortest"
	"daycare/engine"
	"daycare/engine/message"
)

var (
	_ engine.Connector = (*Connector)(nil)
	_ engine.Answerer  = (*Connector)(nil)
)

const canary = "canary+secret/of=the hook"

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestConnector(t *testing.T) {
	connectortest.Run(t, func(t *testing.T) connectortest.Harness {
		s := &service{}
		server := httptest.NewServer(s)
		t.Cleanup(server.Close)
		t.Cleanup(func() { s.misbehave(connectortest.None) })
		return connectortest.Harness{
			New: func(t *testing.T, log *slog.Logger) engine.Connector {
				c, err := New(Options{ID: "hooks", Listen: "127.0.0.1:0", Hooks: []Hook{
					{ID: "a", SecretEnv: "A", Callback: server.URL + "/a?token=" + tokenCanary},
					{ID: "b", SecretEnv: "A", Callback: server.URL + "/b"},
				}}, func(string) string { return canary }, log)
				if err != nil {
					t.Fatal(err)
				}
				c.ingress.Grace = 100 * time.Millisecond
				s.turnTo(c)

				return c
			},
			Offer: s.offer,
			Other: func(ctx context.Context, m connectortest.Message) { s.offerTo(ctx, "b", m) },
			Forge: func(ctx context.Context, m connectortest.Message) {
				r := newRequest("a", m.Text)
				r.Header.Set("X-Webhook-Delivery", m.Key)
				signStamped(r, "not "+canary, m.Text, time.Now())
				s.post(ctx, r)
			},
			To:      []message.Address{{Connector: "hooks", ChannelID: "a"}, {Connector: "hooks", ChannelID: "b"}},
			Sent:    s.received,
			Fault:   s.misbehave,
			Unable:  []connectortest.Fault{connectortest.Forget}, // that it answers is all that it says
			Secrets: []string{canary, tokenCanary},
		}
	})
}

const tokenCanary = "canary-token-of-the-callback"

// service is a program that posts to hooks and takes callbacks.
type service struct {
	mu    sync.Mutex
	to    *Connector
	sent  []connectortest.Sent
	fault connectortest.Fault
	calm  chan struct{} // closed when the fault is over
}

func (s *service) turnTo(c *Connector) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.to = c
}

func (s *service) offer(ctx context.Context, messages ...connectortest.Message) []bool {
	received := make([]bool, len(messages))
	for i, m := range messages {
		if received[i] = s.offerTo(ctx, "a", m); !received[i] {
			break
		}
	}
	return received
}

func (s *service) offerTo(ctx context.Context, hook string, m connectortest.Message) bool {
	r := newRequest(hook, m.Text)
	r.Header.Set("X-Webhook-Delivery", fmt.Sprintf("%x", m.Key))
	signStamped(r, canary, m.Text, time.Now())
	return s.post(ctx, r) == http.StatusAccepted
}

func (s *service) post(ctx context.Context, r *http.Request) (status int) {
	s.mu.Lock()
	c := s.to
	s.mu.Unlock()
	for c.Address() == "" { // Run has not begun to listen
		select {
		case <-ctx.Done():
			return 0
		case <-time.After(time.Millisecond):
		}
	}
	status, _, _ = do(r.WithContext(ctx), c.Address())

	return status
}

func (s *service) received() []connectortest.Sent {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]connectortest.Sent(nil), s.sent...)
}

func (s *service) misbehave(f connectortest.Fault) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.calm != nil {
		close(s.calm)
		s.calm = nil
	}
	if s.fault = f; f == connectortest.Stall {
		s.calm = make(chan struct{})
	}
}

// ServeHTTP takes a callback.
func (s *service) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	s.mu.Lock()
	fault, calm := s.fault, s.calm
	s.mu.Unlock()

	switch fault {
	case connectortest.Broken:
		http.Error(w, canary, http.StatusInternalServerError)
		return
	case connectortest.Busy:
		w.Header().Set("Retry-After", strconv.Itoa(int(connectortest.BusyFor/time.Second)))
		http.Error(w, canary, http.StatusTooManyRequests)
		return
	case connectortest.Gone:
		http.Error(w, canary, http.StatusGone)
		return
	case connectortest.Stall:
		<-calm
		return
	}

	claimed, refused := readClaim(r.Header)
	if refused == nil {
		refused = claimed.check(canary, body, time.Now())
	}
	if refused != nil {
		http.Error(w, refused.reason, http.StatusUnauthorized)
		return
	}

	var a answer
	if err := json.Unmarshal(body, &a); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	s.mu.Lock()
	s.sent = append(s.sent, connectortest.Sent{Key: r.Header.Get("Idempotency-Key"), Text: a.Text})
	s.mu.Unlock()
	if fault == connectortest.Drop {
		panic(http.ErrAbortHandler)
	}
}

// newRequest makes an unsigned request; do fills in the address.
func newRequest(hook, body string) *http.Request {
	r, err := http.NewRequest(http.MethodPost, "http://localhost/hooks/"+hook, bytes.NewReader([]byte(body)))
	if err != nil {
		panic(err)
	}
	r.Header.Set("Content-Type", "text/plain")
	return r
}

// do posts a request and returns what came back.
func do(r *http.Request, address string) (status int, header http.Header, body []byte) {
	r.URL.Host = address
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	resp, err := client.Do(r)
	if err != nil {
		return 0, nil, []byte(err.Error())
	}
	defer resp.Body.Close()
	body, _ = io.ReadAll(resp.Body)

	return resp.StatusCode, resp.Header, body
}
