package irc

import (
	"bufio"
	"context"
	"errors"
	"log/slog"
	"net"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"daycare/connectors/chat"
	"daycare/engine/message"
)

// echo answers as a server does that lets everybody in; of replaces what it says to the
// lines that begin so.
func echo(of map[string]string) func(line string) []string {
	return func(line string) []string {
		if reply := answers(of)(line); reply == nil || len(reply) > 0 {
			return reply
		}
		if mark, ok := strings.CutPrefix(line, "PING "); ok {
			return []string{":s PONG s " + mark}
		}
		return answers(map[string]string{"CAP LS": ":s CAP * LS :account-tag sasl", "CAP END": ":s 001 bot :hi",
			"CAP REQ": ":s CAP * ACK :account-tag sasl", "AUTHENTICATE PLAIN": "AUTHENTICATE +", "AUTHENTICATE A": ":s 903 * :in"})(line)
	}
}

// What is said of an answer, and whether it is tried again if the server refuses it.
func TestWhatIsSaid(t *testing.T) {
	file := message.File{Name: "a.pdf", Size: 12}
	for name, tt := range map[string]struct {
		to     string
		server map[string]string
		said   []string // of PRIVMSG
		wrong  string
		final  bool
	}{
		"lines and a file": {to: "ada", said: []string{"ada :hello all", "ada two", "ada :[file a.pdf, 12 bytes: IRC carries no files]"}},
		"nobody there": {to: "ada", server: map[string]string{"PRIVMSG": ":s 401 bot Ada :No such nick"},
			wrong: "say to ada: No such nick", final: true},
		"another is gone": {to: "ada", server: map[string]string{"PRIVMSG ada two": ":s 401 bot eve :No such nick\n:s PONG s old\n:s 401"}},
		"an old answer": {to: "ada", server: map[string]string{"PRIVMSG ada two": ":s PONG s old",
			"PRIVMSG ada :[file": ":s 404 bot ada :Cannot send"}, wrong: "Cannot send", final: true},
		"too long a name": {to: "#" + strings.Repeat("x", 500), wrong: "write PRIVMSG: "},
		"not a nick":      {to: "a b", wrong: `"a b" is not a nick or channel`, final: true},
		"no nick":         {wrong: "is not a nick or channel", final: true},
		"not let in":      {to: "ada", server: map[string]string{"CAP LS": ":s 465 bot :banned"}, wrong: "refuses the connection: banned"},
		"it hangs up":     {to: "ada", server: map[string]string{"PRIVMSG": "bye"}, wrong: "127.0.0.1:"}, // seen as it is read or written
	} {
		t.Run(name, func(t *testing.T) {
			address, d := converse(t, echo(tt.server))
			c := testConnector(t, Options{Server: address}, chat.Host{}, slog.New(slog.DiscardHandler))
			_, err := c.Send(t.Context(), message.Outgoing{To: message.Address{ChannelID: tt.to}, Text: "hello all\n\ntwo",
				Files: []message.File{file}})
			var no *message.NotSent
			if final := errors.As(err, &no) && no.Final; final != tt.final || (err != nil) != (tt.wrong != "") ||
				err != nil && !strings.Contains(err.Error(), tt.wrong) {
				t.Errorf("Send = %v, final %v; want %q, %v", err, final, tt.wrong, tt.final)
			}

			for _, line := range tt.said {
				d.has(t, "PRIVMSG "+line)
			}
		})
	}
}

// A part that the flood limit would hold up for longer than there is time is given back.
func TestFloodLimit(t *testing.T) {
	address, d := converse(t, echo(nil))
	c := testConnector(t, Options{Server: address}, chat.Host{}, slog.New(slog.DiscardHandler))
	c.flood = flood{burst: 1, every: time.Hour}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	err := c.Say(ctx, message.Address{ChannelID: "ada"}, "", "one\ntwo")
	if err == nil || !strings.Contains(err.Error(), "flood limit") || slices.Contains(d.lines(), "PRIVMSG ada two") {
		t.Errorf("Say = %v after %q, want the flood limit before the second line", err, d.lines())
	}
}

// Probe reports under a nick of its own what a user has to know about the network.
func TestProbe(t *testing.T) {
	const masks = "; it does not report accounts, so allow needs masks such as *!ada@203.0.113.7"
	for name, tt := range map[string]struct {
		account string
		server  map[string]string
		verdict string
		wrong   string
	}{
		"accounts":    {"daycare", nil, " accepts the connection as daycare", ""},
		"a guest":     {"", nil, " accepts the connection", ""},
		"no accounts": {"", map[string]string{"CAP LS": ":s CAP * LS :"}, " accepts the connection" + masks, ""},
		"refused":     {"daycare", map[string]string{"AUTHENTICATE A": ":s 904 * :no"}, "", "auth set irc"},
	} {
		address, d := converse(t, echo(tt.server))
		c := testConnector(t, Options{Server: address, Nick: "averylongnick", Account: tt.account, Channels: []string{"#room"}},
			chat.Host{},
			slog.New(slog.DiscardHandler))
		verdict, err := c.Probe(t.Context())
		if (err != nil) != (tt.wrong != "") || err != nil && !strings.Contains(err.Error(), tt.wrong) ||
			err == nil && verdict != address+tt.verdict {
			t.Errorf("%s: Probe = %q, %v; want %q, %q", name, verdict, err, tt.verdict, tt.wrong)
		}
		if d.has(t, "NICK averylon_"); slices.Contains(d.lines(), "JOIN #room") {
			t.Errorf("%s: it joined a channel", name)
		}
	}
}

// One connection serves Run and every Send beside it. It ends with the last of them, and
// one that the server has ended is replaced.
func TestOneConnection(t *testing.T) {
	s := newServer(t, "")
	c := testConnector(t, Options{Server: s.listener.Addr().String()}, chat.Host{}, slog.New(slog.DiscardHandler))
	acquire := func(calls int) *session {
		t.Helper()
		got, err := c.acquire(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if s.mu.Lock(); s.calls != calls {
			t.Errorf("%d connections were made, want %d", s.calls, calls)
		}
		s.mu.Unlock()
		return got
	}

	first := acquire(1)
	acquire(1)
	if c.release(); first.ended() {
		t.Error("the connection ended while somebody needed it")
	}
	if c.release(); !first.ended() || c.live != nil {
		t.Error("a connection that nobody needs stays open")
	}

	second := acquire(2)
	s.hangUp()
	<-second.done
	third := acquire(3)
	if err := second.conn.SetDeadline(time.Time{}); !errors.Is(err, net.ErrClosed) {
		t.Errorf("an ended connection is still open: %v", err)
	}
	c.release()
	if third.ended() {
		t.Error("who leaves an ended connection ends the next one")
	}
	c.release()
}

// A server that is not there is named.
func TestNoServer(t *testing.T) {
	for _, plaintext := range []bool{true, false} {
		c := testConnector(t, Options{Server: "127.0.0.1:1"}, chat.Host{}, slog.New(slog.DiscardHandler))
		c.o.Plaintext = plaintext
		if err := c.Run(t.Context(), nil); err == nil || !strings.Contains(err.Error(), "connect to 127.0.0.1:1: ") {
			t.Errorf("plaintext %v: Run = %v", plaintext, err)
		}
	}
}

// A daemon that stops while a server lets it wait does not report that as a failure.
func TestStoppedInTheGreeting(t *testing.T) {
	address, d := converse(t, echo(map[string]string{"CAP LS": ":s NOTICE * :wait"}))
	c := testConnector(t, Options{Server: address}, chat.Host{}, slog.New(slog.DiscardHandler))
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- c.Run(ctx, nil) }()
	d.has(t, "USER bot 0 * daycare")
	cancel()
	if err := <-done; err != nil {
		t.Errorf("Run = %v, want nil", err)
	}
}

// A connection is kept alive by pings, with which the nick is asked for that someone else
// has. One that says nothing counts as lost, and a server that does not hang up is not
// waited for long.
func TestAQuietConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ours, theirs := net.Pipe()
		s := &session{c: &Connector{o: Options{Nick: "bot"}}, conn: ours, ending: ending{done: make(chan struct{})}}
		s.reader.Initialize(ours, 512, maxLength)
		s.nick.Store("bot_")
		s.stopped, s.stop = context.WithCancelCause(t.Context())
		begun := time.Now()
		s.wg.Go(s.ping)
		in := bufio.NewScanner(theirs)
		for _, want := range []string{"PING daycare", "NICK bot", "PING daycare", "PING daycare"} {
			if in.Scan(); in.Text() != want {
				t.Errorf("after %v it says %q, want %q", time.Since(begun), in.Text(), want)
			}
			if want == "NICK bot" {
				s.nick.Store("bot")
			}
		}
		if took := time.Since(begun); took != 3*pingEvery {
			t.Errorf("three pings took %v", took)
		}

		go func(in *bufio.Scanner) {
			for in.Scan() {
			}
		}(in)
		begun = time.Now()
		s.wg.Go(s.read)
		if <-s.done; time.Since(begun) != silence || s.err() == nil || !strings.Contains(s.err().Error(), "read from") {
			t.Errorf("a silent connection ends after %v: %v", time.Since(begun), s.err())
		}
		s.close()

		ours, theirs = net.Pipe()
		s = &session{c: s.c, conn: ours, ending: ending{done: make(chan struct{})}}
		s.stopped, s.stop = context.WithCancelCause(t.Context())
		last := false
		s.wg.Go(func() {
			<-s.stopped.Done()
			time.Sleep(time.Minute)
			last = true
		})
		begun = time.Now()
		closed := make(chan struct{})
		go func() {
			s.close()
			close(closed)
		}()
		in = bufio.NewScanner(theirs)
		if in.Scan(); in.Text() != "QUIT :daycare is stopping" || in.Scan() || time.Since(begun) != byeTime {
			t.Errorf("it says %q and hangs up after %v", in.Text(), time.Since(begun))
		}
		if <-closed; !last {
			t.Error("it is closed before all has ended")
		}
	})
}

// It hears what it says to itself, and takes it for nothing else.
func TestLoop(t *testing.T) {
	s := newServer(t, "")
	c := testConnector(t, Options{Server: s.listener.Addr().String(), Channels: []string{"#room"}}, chat.Host{},
		slog.New(slog.DiscardHandler))
	if verdict, err := c.Loop(t.Context()); err != nil || verdict != "bot_ sent a message to itself and read it" {
		t.Errorf("Loop = %q, %v", verdict, err)
	}
	s.hangUp()
	s.listener.Close()
	if _, err := c.Loop(t.Context()); err == nil {
		t.Error("Loop without a server is no error")
	}
}
