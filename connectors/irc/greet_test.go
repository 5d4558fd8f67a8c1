package irc

import (
	"bufio"
	"bytes"
	"fmt"
	"log/slog"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ergochat/irc-go/ircmsg"

	"daycare/connectors/chat"
	"daycare/engine/message"
)

// A dialogue is a server that answers each line as a test says, and keeps what it heard.
type dialogue struct {
	mu    sync.Mutex
	heard []string
	conn  net.Conn
}

func (d *dialogue) lines() []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return append([]string(nil), d.heard...)
}

// has waits until the server has heard a line.
func (d *dialogue) has(t *testing.T, line string) {
	t.Helper()
	for end := time.Now().Add(30 * time.Second); time.Now().Before(end); time.Sleep(time.Millisecond) {
		for _, l := range d.lines() {
			if l == line {
				return
			}
		}
	}
	t.Errorf("the server heard %q, want %q", d.lines(), line)
}

// converse starts a server for one connection that answers so; nil ends the connection.
func converse(t *testing.T, answer func(line string) []string) (address string, d *dialogue) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	d = &dialogue{}
	var served sync.WaitGroup
	served.Go(func() {
		conn, err := l.Accept()
		if err != nil {
			return
		}
		defer conn.Close()
		d.mu.Lock()
		d.conn = conn
		d.mu.Unlock()
		for in := bufio.NewScanner(conn); in.Scan(); {
			d.mu.Lock()
			d.heard = append(d.heard, in.Text())
			d.mu.Unlock()
			reply := answer(in.Text())
			if reply == nil || strings.HasPrefix(in.Text(), "QUIT") {
				return
			}
			for _, line := range reply {
				fmt.Fprintf(conn, "%s\r\n", line)
			}
		}
	})
	t.Cleanup(func() {
		l.Close()
		served.Wait()
	})

	return l.Addr().String(), d
}

// talk has a connector greet a server that answers so; nil ends the connection.
func talk(t *testing.T, o Options, log *slog.Logger, answer func(line string) []string) (*session, *dialogue, error) {
	t.Helper()
	var d *dialogue
	o.Server, d = converse(t, answer)
	s, err := testConnector(t, o, chat.Host{}, log).connect(t.Context())
	t.Cleanup(func() {
		if s != nil {
			s.close()
		}
	})
	return s, d, err
}

// answers are what a server says to the lines that begin so; to others nothing.
func answers(of map[string]string) func(line string) []string {
	return func(line string) []string {
		for begin, reply := range of {
			if strings.HasPrefix(line, begin) {
				if reply == "bye" {
					return nil
				}
				return strings.Split(reply, "\n")
			}
		}
		return []string{}
	}
}

// A server is greeted as it answers: with what it is able to, or without; by another nick if
// ours is taken; and what it refuses is said with what to do.
func TestHowAServerIsGreeted(t *testing.T) {
	const welcome = ":s 001 bot :hi"
	for name, tt := range map[string]struct {
		account string
		server  map[string]string
		nick    string // "": it fails
		said    string // by us
		wrong   string
	}{
		"with abilities": {"", map[string]string{"CAP LS": ":s CAP * LS :message-tags other sasl=PLAIN",
			"CAP REQ": ":s CAP * ACK :message-tags", "CAP END": welcome},
			"bot", "CAP REQ message-tags", ""},
		"in two lines": {"ada", map[string]string{"CAP LS": ":s CAP * LS * :sasl=PLAIN\n:s CAP * LS :server-time",
			"CAP REQ":            ":s CAP * ACK :server-time sasl",
			"AUTHENTICATE PLAIN": "AUTHENTICATE +", "AUTHENTICATE ": ":s 903 * :in", "CAP END": "PING :a", "PONG a": welcome}, "bot",
			"CAP REQ :server-time sasl", ""},
		"without any": {"", map[string]string{"CAP LS": ":s CAP * LS :", "CAP END": welcome}, "bot", "CAP END", ""},
		"it changes its mind": {"", map[string]string{"CAP LS": ":s CAP * LS :message-tags", "CAP REQ": ":s CAP * NAK :message-tags",
			"CAP END": welcome}, "bot", "CAP END", ""},
		"it knows no abilities": {"", map[string]string{"CAP LS": ":s 421 * CAP :Unknown command", "USER": welcome}, "bot",
			"NICK bot", ""},
		"no accounts, old": {"ada", map[string]string{"CAP LS": ":s 421 * CAP :Unknown command"}, "", "",
			"does not support accounts: leave account empty"},
		"no accounts": {"ada", map[string]string{"CAP LS": ":s CAP * LS :message-tags"}, "", "",
			"does not support accounts: leave account empty"},
		"half a line of abilities": {"", map[string]string{"CAP LS": ":s CAP *\n:s CAP * NEW :x\n:s CAP * LS :", "CAP END": welcome}, "bot",
			"CAP END", ""},
		"a nick that is taken": {"", map[string]string{"NICK bot_": welcome[:7] + "bot_ :hi", "NICK bot": ":s 433 * bot :taken"},
			"bot_", "NICK bot_", ""},
		"all nicks are taken":      {"", map[string]string{"NICK": ":s 433 * bot :taken"}, "", "", "all nicks are in use"},
		"a nick that it refuses":   {"", map[string]string{"NICK": ":s 432 * bot :bad"}, "", "", "the server rejects the nick bot"},
		"a nick of its own":        {"", map[string]string{"NICK": ":s 001 guest7 :hi"}, "guest7", "USER bot 0 * daycare", ""},
		"a welcome without a nick": {"", map[string]string{"NICK": ":s 001"}, "bot", "CAP LS 302", ""},
		"a ban": {"", map[string]string{"NICK": ":s 465 bot :you are banned"}, "", "",
			"the server refuses the connection: you are banned"},
		"its own password": {"", map[string]string{"NICK": ":s 464 bot :password"}, "", "",
			"the server refuses the connection: password"},
		"an error": {"", map[string]string{"NICK": "ERROR :closing link"}, "", "", "the server said: closing link"},
		"a ping first": {"", map[string]string{"NICK": "PING :abc", "PONG abc": "PING :def", "PONG def": welcome}, "bot",
			"PONG abc", ""},
		"a notice first":      {"", map[string]string{"NICK": ":s NOTICE * :wait\nPING :abc", "PONG abc": welcome}, "bot", "PONG abc", ""},
		"a line that is none": {"", map[string]string{"NICK": "\x00\n" + welcome}, "bot", "NICK bot", ""},
		"nothing":             {"", map[string]string{"CAP LS": "bye"}, "", "", "greet 127.0.0.1:"},
	} {
		var welcomed, early atomic.Bool
		o := Options{Account: tt.account, Channels: []string{"#room"}}
		s, d, err := talk(t, o, slog.New(slog.DiscardHandler), func(line string) []string {
			if line == "JOIN #room" && !welcomed.Load() {
				early.Store(true)
			}
			if line == "NICK bot" && name == "a nick that is taken" {
				return []string{tt.server["NICK bot"]}
			}
			if line == "AUTHENTICATE PLAIN" {
				return []string{tt.server[line]}
			}
			reply := answers(tt.server)(line)
			welcomed.Store(welcomed.Load() || strings.Contains(strings.Join(reply, " "), ":s 001"))
			return reply
		})
		if (err == nil) != (tt.nick != "") || err != nil && (!strings.Contains(err.Error(), tt.wrong) ||
			strings.Contains(err.Error(), canary)) {
			t.Errorf("%s: %v, want %q", name, err, tt.wrong)
			continue
		}
		if err != nil {
			continue
		}
		if s.me() != tt.nick {
			t.Errorf("%s: we are %q, want %q", name, s.me(), tt.nick)
		}
		d.has(t, tt.said)
		if d.has(t, "JOIN #room"); early.Load() {
			t.Errorf("%s: we join before we are welcome: %q", name, d.lines())
		}
	}
}

// A connection joins its channels, answers pings, follows its own nick, and says in the log
// why it is not in a channel.
func TestALiveConnection(t *testing.T) {
	var mu sync.Mutex
	var out bytes.Buffer
	log := slog.New(slog.NewTextHandler(writer(func(p []byte) (int, error) {
		mu.Lock()
		defer mu.Unlock()
		return out.Write(p)
	}), nil))
	s, d, err := talk(t, Options{Channels: []string{"#one", "#two"}}, log,
		answers(map[string]string{"CAP LS": ":s CAP * LS :", "CAP END": ":s 001 bot :hi"}))
	if err != nil {
		t.Fatal(err)
	}
	d.has(t, "JOIN #one")
	d.has(t, "JOIN #two")
	fmt.Fprint(d.conn, ":s 473 bot #one :invite only\r\n:x!u@h KICK #two other :bye\r\n:x!u@h KICK #two Bot :out\r\n:x!u@h NICK "+
		"other\r\n:bot!u@h NICK newbot\r\nPING :xyz\r\n")
	d.has(t, "PONG xyz")
	if s.me() != "newbot" {
		t.Errorf("after our nick has changed we are %q", s.me())
	}
	mu.Lock()
	text := out.String()
	mu.Unlock()
	if !strings.Contains(text, "invite only") || strings.Count(text, "kicked from a channel") != 1 {
		t.Errorf("the log says\n%s", text)
	}
	s.close()
	d.has(t, "QUIT :daycare is stopping")
}

type writer func(p []byte) (int, error)

func (w writer) Write(p []byte) (int, error) { return w(p) }

// What a line says becomes a message: who it is of, where it was said, and whether it is
// meant for us.
func TestWhatALineBecomes(t *testing.T) {
	s := &session{c: &Connector{o: Options{Settings: chat.Settings{Allow: []string{"*!ada@*"}}}}}
	s.nick.Store("bot")
	for _, tt := range []struct {
		line string
		want chat.Post
		none bool
	}{
		{"@msgid=m1;account=eve :Ada!ada@h PRIVMSG bot :hello there", chat.Post{Key: "m1", MessageID: "m1", Sender: "Ada",
			Text: "hello there",
			From: message.Address{ChannelID: "ada", UserID: "eve"}}, false},
		{"@msgid=m1 :Ada!ada@h PRIVMSG #Room :bot: hello", chat.Post{Key: "m1", MessageID: "m1", Sender: "Ada", Text: "hello", Group: true,
			Addressed: true,
			From:      message.Address{ChannelID: "#room", UserID: "*!ada@*"}}, false},
		{"@msgid=m1 :Ada!ada@h PRIVMSG #Room :hello", chat.Post{Key: "m1", MessageID: "m1", Sender: "Ada", Text: "hello", Group: true,
			From: message.Address{ChannelID: "#room", UserID: "*!ada@*"}}, false},
		{"@msgid=m1 :Ada!ada@h PRIVMSG bot :\x01ACTION waves\x01", chat.Post{Key: "m1", MessageID: "m1", Sender: "Ada", Text: "* waves",
			From: message.Address{ChannelID: "ada", UserID: "*!ada@*"}}, false},
		{"@msgid=m1 :Ada!ada@h PRIVMSG bot :a\xffb", chat.Post{Key: "m1", MessageID: "m1", Sender: "Ada", Text: "a\uFFFDb",
			From: message.Address{ChannelID: "ada", UserID: "*!ada@*"}}, false},
		{":Ada!ada@h PRIVMSG bot :\x01VERSION\x01", chat.Post{}, true}, {":Ada!ada@h PRIVMSG bot", chat.Post{}, true},
		{"PRIVMSG bot :hello", chat.Post{}, true},
	} {
		m, err := ircmsg.ParseLine(tt.line)
		if err != nil {
			t.Fatal(err)
		}
		got, ok := s.post(m)
		if ok == tt.none || fmt.Sprintf("%+v", got) != fmt.Sprintf("%+v", tt.want) {
			t.Errorf("%q becomes %+v (%v), want %+v", tt.line, got, ok, tt.want)
		}
	}
	m, err := ircmsg.ParseLine("@msgid= :Ada!ada@h PRIVMSG bot :hello")
	if err != nil {
		t.Fatal(err)
	}
	one, _ := s.post(m)
	time.Sleep(time.Microsecond)
	if two, _ := s.post(m); one.Key == two.Key || !strings.HasPrefix(one.Key, "at") {
		t.Errorf("without ids two messages have the keys %q and %q", one.Key, two.Key)
	}
	if last(ircmsg.Message{}) != "" {
		t.Error("a line without words has a last one")
	}
}

// A long line is cut between words if that is not too early, and within no character.
func TestWhereALineIsCut(t *testing.T) {
	x := func(n int) string { return strings.Repeat("x", n) }
	for line, want := range map[string][2]string{
		x(maxLine): {x(maxLine), ""}, x(maxLine + 1): {x(maxLine), "x"}, x(300) + " " + x(200): {x(300), x(200)},
		x(maxLine/2) + " " + x(300):   {x(maxLine/2) + " " + x(maxLine/2-1), x(300 - maxLine/2 + 1)},
		x(maxLine/2+1) + " " + x(300): {x(maxLine/2 + 1), x(300)},
		x(maxLine-1) + "é":            {x(maxLine - 1), "é"},
	} {
		if head, rest := cut(line, maxLine); head != want[0] || rest != want[1] {
			t.Errorf("a line of %d bytes is cut into %d and %d, want %d and %d", len(line), len(head), len(rest),
				len(want[0]), len(want[1]))
		}
	}
	for mask, want := range map[string]bool{"a": true, "*": true, "a*": true, "*a": true, "b*": false, "a*a": false, "": false,
		"**a**": true} {
		if got := fits(mask, "a"); got != want {
			t.Errorf("%q fits a: %v", mask, got)
		}
	}
}
