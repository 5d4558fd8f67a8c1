package discord

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/coder/websocket"

	"daycare/connectors/connectortest"
	"daycare/engine/message"
)

// A connection that breaks is continued: what was written meanwhile comes, each message once.
func TestResume(t *testing.T) {
	s, e := newServer(t), &connectortest.Taker{}
	c := testConnector(t, s, Options{}, keeps(s), quiet())
	for round := range 3 {
		stopped := make(chan error, 1)
		go func() { stopped <- c.Run(t.Context(), e.Deliver) }()
		s.connected(t)
		s.write(fmt.Sprint("live", round), private(ada), ada, "live")
		e.Until(t, 2*round+1)
		s.cut()
		if err := <-stopped; err == nil || !strings.Contains(err.Error(), "connection ended") {
			t.Fatalf("Run = %v after its connection broke", err)
		}
		s.write(fmt.Sprint("away", round), private(ada), ada, "away")
		stop := connectortest.Serve(t, c, e.Deliver) // the engine begins again
		e.Until(t, 2*round+2)
		s.until(t, "resumed", func() bool { return s.sessions[len(s.sessions)-1].conn != nil })
		if len(s.sessions) != 1 {
			t.Errorf("round %d: %d sessions, want one that is continued", round, len(s.sessions))
		}
		if err := stop(); err != nil {
			t.Fatal(err)
		}
		s.until(t, "left", func() bool { return s.sessions[0].conn == nil })
	}
}

// Discord asks for another connection now and then, and may not know the session any more.
func TestReconnects(t *testing.T) {
	s, e := newServer(t), &connectortest.Taker{}
	var ups atomic.Int64
	var run sync.WaitGroup
	ctx, cancel := context.WithCancel(message.WithUp(t.Context(), func() { ups.Add(1) }))
	defer func() { cancel(); run.Wait() }()
	c := testConnector(t, s, Options{}, keeps(s), quiet())
	run.Go(func() {
		for ctx.Err() == nil {
			_ = c.Run(ctx, e.Deliver)
		}
	})
	s.connected(t)
	s.with(func() { s.send(s.conn, frame{Op: opReconnect}) })
	s.write("1", private(ada), ada, "1")
	e.Until(t, 1)
	for end := time.Now().Add(10 * time.Second); ups.Load() < 2; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("up %d times, want once for each connection", ups.Load())
		}
	}
	s.event("GUILD_MEMBERS_CHUNK", map[string]string{"x": strings.Repeat("x", 1<<20)}) // events are long at times
	s.with(func() {
		for _, l := range s.sessions {
			l.gone = true
		}
		s.send(s.conn, map[string]any{"op": opInvalid, "d": true})
	})
	s.write("2", private(ada), ada, "2")
	e.Until(t, 2)
	s.until(t, "a new session", func() bool { return len(s.sessions) == 2 })
	if got := e.Texts(); !slices.Equal(got, []string{"1", "2"}) {
		t.Errorf("taken are %q", got)
	}
}

// A gateway that says anything but hello is not Discord's, and nothing is told to it.
func TestHello(t *testing.T) {
	for _, says := range []string{`{"op":10,"d":{}}`, `{"op":10,"d":{"heartbeat_interval":0}}`, `{"op":10,"d":{"heartbeat_interval":-5}}`,
		`{"op":10,"d":[]}`, `{"op":10}`, `{"op":0,"d":{"heartbeat_interval":41250}}`, `{"op":`} {
		heard := make(chan []byte, 1)
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			conn, err := websocket.Accept(w, r, nil)
			if err != nil {
				return
			}
			defer conn.CloseNow()
			_ = conn.Write(r.Context(), websocket.MessageText, []byte(says))
			_, got, _ := conn.Read(r.Context())
			heard <- got
		}))
		c, _ := scripted(t, nil)
		c.gate.session.Store(&session{id: "1", url: "ws" + strings.TrimPrefix(s.URL, "http")})
		err := c.gate.run(t.Context())
		if err == nil || !strings.Contains(err.Error(), "hello") && !strings.Contains(err.Error(), "read the gateway") {
			t.Errorf("%s: Run = %v", says, err)
		}
		if got := <-heard; len(got) > 0 {
			t.Errorf("%s is answered with %s", says, got)
		}
		s.Close()
	}
}

// A session whose address does not answer any more is not continued there for ever.
func TestAddressIsGone(t *testing.T) {
	gone := httptest.NewServer(http.NotFoundHandler())
	gone.Close()
	c, _ := scripted(t, nil)
	c.gate.session.Store(&session{id: "1", url: "ws" + strings.TrimPrefix(gone.URL, "http")})
	if err := c.gate.run(t.Context()); err == nil || !strings.Contains(err.Error(), "connect the gateway") {
		t.Errorf("Run = %v", err)
	}
	if c.gate.session.Load() != nil {
		t.Error("the next connection would be made to the same address")
	}
}

// A connection over which no heartbeat is answered is given up.
func TestZombie(t *testing.T) {
	s := newServer(t)
	s.deaf, s.interval = true, 20
	c := testConnector(t, s, Options{}, keeps(s), quiet())
	if err := c.Run(t.Context(), (&connectortest.Taker{}).Deliver); err == nil ||
		!strings.Contains(err.Error(), "did not answer for 20ms") {
		t.Errorf("Run = %v", err)
	}
	if c.gate.session.Load() == nil {
		t.Error("the session is gone, want it continued")
	}
}

// A connection whose heartbeats are answered stays. They name the newest event, and come when Discord asks, too.
func TestHeartbeats(t *testing.T) {
	s, e := newServer(t), &connectortest.Taker{}
	s.interval = 500
	c := testConnector(t, s, Options{}, keeps(s), quiet())
	stop := connectortest.Serve(t, c, e.Deliver)
	s.connected(t)
	s.write("1", private(ada), ada, "1")
	e.Until(t, 1)
	s.until(t, "heartbeats", func() bool { return len(s.beats) >= 3 })
	s.with(func() {
		if len(s.sessions) != 1 {
			t.Errorf("%d sessions, want one", len(s.sessions))
		}
		newest := fmt.Sprintf(`{"d":%d,"op":1}`, len(s.sessions[0].told))
		if got := s.beats[len(s.beats)-1]; got != newest {
			t.Errorf("a heartbeat says %s, want %s", got, newest)
		}
	})
	if err := stop(); err != nil {
		t.Errorf("Run = %v", err)
	}

	asks := newServer(t)
	stop = connectortest.Serve(t, testConnector(t, asks, Options{}, keeps(asks), quiet()), e.Deliver)
	asks.connected(t)
	asks.with(func() { asks.send(asks.conn, frame{Op: opHeartbeat}) })
	asks.until(t, "a heartbeat", func() bool { return len(asks.beats) > 0 })
	if err := stop(); err != nil {
		t.Errorf("Run = %v", err)
	}
}

// How Discord ends a connection says whether the next one continues the session, begins one, or is not made.
func TestHowAConnectionEnds(t *testing.T) {
	for code, want := range map[websocket.StatusCode]struct {
		again, keeps bool
	}{
		4000: {false, true}, closeSequence: {true, false}, closeTimedOut: {true, false}, websocket.StatusGoingAway: {true, false},
		closeUnauthorized: {}, closeSharding: {}, closeVersion: {}, closeIntents: {}, closeDisallowed: {},
	} {
		s := newServer(t)
		c := testConnector(t, s, Options{}, keeps(s), quiet())
		c.gate.dispatch = func(string, json.RawMessage) {}
		ended := make(chan error, 1)
		go func() { ended <- c.gate.stay(t.Context()) }()
		s.connected(t)
		for end := time.Now().Add(time.Minute); c.gate.session.Load() == nil; time.Sleep(time.Millisecond) {
			if time.Now().After(end) {
				t.Fatal("no session")
			}
		}
		_ = s.conn.Close(code, "")
		err := <-ended
		if again, keeps := errors.Is(err, errAgain), c.gate.session.Load() != nil; again != want.again || keeps != want.keeps {
			t.Errorf("%d: another connection at once %v, the session is kept %v: %v", code, again, keeps, err)
		}
	}
}

// What no repetition heals is reported with what to do, without the token.
func TestRefused(t *testing.T) {
	for _, tt := range []struct {
		name  string
		spoil func(*server, *Connector)
		want  string
	}{
		{"intents", func(s *server, _ *Connector) { s.refuse = closeDisallowed }, "4014)\nat https://discord.com/developers"},
		{"token at the gateway", func(s *server, _ *Connector) { s.refuse = closeUnauthorized }, "daycare auth set discord"},
		{"token", func(_ *server, c *Connector) { c.api.token = "other" }, "daycare auth set discord"},
		{"shards", func(s *server, _ *Connector) { s.refuse = closeSharding }, "too many servers"},
		{"version", func(s *server, _ *Connector) { s.refuse = closeVersion }, "refuses the connection (4012)"},
		{"starts", func(s *server, _ *Connector) { s.remaining = 0 }, "no more connections of this bot for 1h0m0s"},
	} {
		s := newServer(t)
		c := testConnector(t, s, Options{}, keeps(s), quiet())
		tt.spoil(s, c)
		if err := c.Run(t.Context(), (&connectortest.Taker{}).Deliver); err == nil || !strings.Contains(err.Error(), tt.want) ||
			strings.Contains(err.Error(), token) {
			t.Errorf("%s: %v, want %q", tt.name, err, tt.want)
		}
	}

	a := newAPI("", token)
	for address, ok := range map[string]bool{"wss://gateway.discord.gg/": true, "ws://gateway.discord.gg": false, ":": false} {
		if _, err := a.safe(address); (err == nil) != ok {
			t.Errorf("%s is a gateway: %v", address, err)
		}
	}
}

// Messages that do not mention the bot are asked for only where they are wanted.
func TestIntents(t *testing.T) {
	for groups, want := range map[string]bool{"": false, "mention": false, "always": true} {
		s, e := newServer(t), &connectortest.Taker{}
		stop := connectortest.Serve(t, testConnector(t, s, Options{Groups: groups}, keeps(s), quiet()), e.Deliver)
		s.connected(t)
		if got := s.intents&intentMessageContent != 0; got != want {
			t.Errorf("groups %q: the privileged intent is asked for: %v", groups, got)
		}
		s.write("chatter", general, ada, "chatter")
		s.write("meant", general, ada, "<@"+me+"> meant")
		n := 1
		if want {
			n = 2
		}
		e.Until(t, n)
		stop()
		if got := e.Texts(); got[n-1] != "meant" || len(got) != n {
			t.Errorf("groups %q: taken are %q", groups, got)
		}
	}
}

// What is known to be refused is not called, apart for each channel unless it is all of them.
func TestRateLimits(t *testing.T) {
	a := newAPI("http://127.0.0.1:1", token)
	a.close("POST /channels/1/messages", time.Hour)
	call := func(path string) time.Duration {
		var no *apiError
		if errors.As(a.call(t.Context(), request{name: "x", method: http.MethodPost, path: path}, nil), &no) {
			return no.RetryAfter.Round(time.Hour)
		}
		return 0
	}
	if call("/channels/1/messages") != time.Hour || call("/channels/2/messages") != 0 {
		t.Error("a closed channel was called, or an open one not")
	}
	a.close("", time.Hour)
	if call("/channels/2/messages") != time.Hour {
		t.Error("a call was made while all are refused")
	}
	for path, want := range map[string]string{
		"/channels/7/messages/400000000000000009/reactions/x/@me": "/channels/7/messages/id/reactions/x/@me",
		"/channels/400000000000000001":                            "/channels/id",
		"/channels/1/messages?after=7":                            "/channels/1/messages",
		"/users/@me/channels":                                     "/users/@me/channels",
	} {
		if got := routeOf(path); got != want {
			t.Errorf("%s is the route %s, want %s", path, got, want)
		}
	}

	s := newServer(t)
	c := testConnector(t, s, Options{}, keeps(s), quiet())
	s.write("1", private(ada), ada, "1")
	s.limited = 1
	if _, _, err := c.in.rooms.direct(t.Context(), ada); retryAfter(err) != 50*time.Millisecond {
		t.Errorf("refused: %v", err)
	}
	if _, _, err := c.in.rooms.direct(t.Context(), ada); retryAfter(err) == 0 || len(s.calls) != 1 {
		t.Errorf("%v after %d calls, want the second one not made", err, len(s.calls))
	}
	time.Sleep(60 * time.Millisecond)
	if _, _, err := c.in.rooms.direct(t.Context(), ada); err != nil {
		t.Error(err)
	}
	s.limited = 2 // waited for: the page comes in the end
	if page, more, err := c.in.rooms.fetch(t.Context(), private(ada), 0); err != nil || more || len(page) != 1 {
		t.Errorf("fetched %d, %v, %v", len(page), more, err)
	}
}
