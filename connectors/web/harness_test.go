package web

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"daycare/connectors/connectortest"
	"daycare/engine"
	"daycare/engine/apitoken"
	"daycare/engine/control"
	"daycare/engine/disk"
	"daycare/engine/event"
	"daycare/engine/finding"
	"daycare/engine/message"
)

// TestConnector holds the page to the contract of the chat platforms: what a browser sends is durable before it is
// accepted, in order, and there once however often it is sent. There is no way out: the page reads the history.
func TestConnector(t *testing.T) {
	connectortest.Run(t, func(t *testing.T) connectortest.Harness {
		b := &browser{t: t, root: t.TempDir()}
		return connectortest.Harness{
			New: func(_ *testing.T, log *slog.Logger) engine.Connector {
				s := &served{root: b.root, log: log, here: make(chan struct{})}
				b.turnTo(s)
				return s
			},
			Offer: b.offer,
			Other: func(ctx context.Context, m connectortest.Message) { b.send(ctx, "beta", m, nil) },
			Forge: func(ctx context.Context, m connectortest.Message) {
				for _, forge := range []func(http.Header){
					func(h http.Header) { h.Set("Cookie", h.Get("Cookie")+"x") },
					func(h http.Header) { h.Set("Origin", "https://evil.example") },
					func(h http.Header) { h.Del("X-Daycare") },
				} {
					b.send(ctx, "alpha", m, forge)
				}
			},
			To:      []message.Address{{Connector: "web", ChannelID: "web"}},
			Secrets: []string{"cookie-of-nobody"}, Unable: []connectortest.Fault{connectortest.Hide},
		}
	})
}

// served is the page and its API as a connector: what a browser posts is delivered.
type served struct {
	quiet
	root    string
	log     *slog.Logger
	here    chan struct{} // closed when it is served for the first time
	once    sync.Once
	addr    string // the same each time that it runs
	door    *Door
	deliver message.Deliver
}

func (*served) ID() string { return "web" }

func (*served) Send(context.Context, message.Outgoing) (string, error) {
	return "", errors.New("the page reads the history")
}

func (*served) Resolve(ref string) (string, error) { return ref, nil }

func (s *served) Deliver(ctx context.Context, in message.Incoming) (message.Receipt, error) {
	return s.deliver(ctx, in)
}

func (s *served) Run(ctx context.Context, deliver message.Deliver) error {
	s.deliver = deliver
	tokens := apitoken.Open(s.root, disk.NewVolume(s.root), func(string, []finding.Finding) {})
	s.door = New(Options{Root: s.root, Tokens: tokens, Open: func(context.Context) (string, error) { return "http://" + s.addr, nil }})
	l, err := control.ListenTCP(control.TCP{Addr: cmp.Or(s.addr, "127.0.0.1:0"), BrowsersOnly: true, Tokens: tokens,
		Page: s.door, Log: s.log})
	if err != nil {
		return err
	}
	if tokens.HasSessions() { // as the daemon does at its start
		s.door.Serve()
	}
	h := control.Handler(control.Backend{Agents: s, Permissions: noAsks{}, Daemon: running{}, Browsers: s.door,
		Events: event.NewStream("boot")}, control.Options{Log: s.log})
	s.once.Do(func() {
		s.addr = l.Addr().String()
		close(s.here)
	})
	message.Up(ctx)
	return control.Serve(ctx, h, nil, l)
}

// browser is what people have: it logs in, and posts as the page does.
type browser struct {
	t    *testing.T
	root string

	mu     sync.Mutex
	at     *served
	cookie string
}

func (b *browser) turnTo(s *served) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.at, b.cookie = s, ""
}

func (b *browser) offer(ctx context.Context, messages ...connectortest.Message) []bool {
	received := make([]bool, len(messages))
	for i, m := range messages {
		if received[i] = b.send(ctx, "alpha", m, nil); !received[i] {
			break
		}
	}
	return received
}

// send posts a message and reports whether it was accepted.
func (b *browser) send(ctx context.Context, agent string, m connectortest.Message, change func(http.Header)) bool {
	at, cookie, err := b.login(ctx)
	if err != nil {
		return false
	}
	body, err := json.Marshal(control.Message{Text: m.Text, Dedupe: "web-" + m.Key})
	if err != nil {
		b.t.Error(err)
	}
	status, _, _ := at.post(ctx, "/v1/agents/"+agent+"/messages", string(body), func(h http.Header) {
		h.Set("Cookie", cookie)
		if change != nil {
			change(h)
		}
	})
	return status == http.StatusAccepted
}

// login logs in where the page is served now.
func (b *browser) login(ctx context.Context) (*served, string, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	select {
	case <-b.at.here:
	case <-ctx.Done():
		return nil, "", ctx.Err()
	}
	if b.cookie != "" {
		return b.at, b.cookie, nil
	}
	i, err := b.at.door.Invite(ctx)
	if err != nil {
		return nil, "", err
	}
	_, token, _ := strings.Cut(i.URL, "#token=")
	status, cookies, err := b.at.post(ctx, "/v1/session", `{"token":"`+token+`"}`, func(http.Header) {})
	if err != nil || status != http.StatusOK || len(cookies) != 1 {
		return nil, "", errors.Join(err, fmt.Errorf("login: %d, %d cookies", status, len(cookies)))
	}
	b.cookie = cookies[0].Name + "=" + cookies[0].Value
	return b.at, b.cookie, nil
}

func (s *served) post(ctx context.Context, path, body string, change func(http.Header)) (int, []*http.Cookie, error) {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, "POST", "http://"+s.addr+path, strings.NewReader(body))
	if err != nil {
		return 0, nil, err
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("X-Daycare", "1")
	change(req.Header)
	resp, err := (&http.Transport{DisableKeepAlives: true}).RoundTrip(req)
	if err != nil {
		return 0, nil, err
	}
	defer resp.Body.Close()
	_, err = io.Copy(io.Discard, resp.Body)
	return resp.StatusCode, resp.Cookies(), err
}
