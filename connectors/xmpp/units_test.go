package xmpp

import (
	"context"
	"crypto/sha256"
	"encoding/xml"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"daycare/connectors/chat"
	"daycare/connectors/connectortest"
	"daycare/engine/message"
)

// The example of RFC 7677, section 3.
func TestSCRAM(t *testing.T) {
	const nonce = "rOprNGfwEbeRWgbNEkqO"
	s := &scram{hash: sha256.New, password: "pencil", nonce: nonce, first: "n=user,r=" + nonce}
	const challenge = "r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096"
	got, err := s.answer(challenge)
	const want = "c=biws,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ="
	if got != want || err != nil {
		t.Errorf("answer = %q, %v, want %q", got, err, want)
	}
	if err := s.verify("v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4="); err != nil {
		t.Error(err)
	}

	for _, end := range []string{"", "v=", "v=AAAA", "e=other-error"} {
		if s.verify(end) == nil {
			t.Errorf("a server that ends with %q is believed", end)
		}
	}
	for _, bad := range []string{"", "r=other,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096", "r=" + nonce + ",s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096",
		"r=" + nonce + "x,s=,i=4096", "r=" + nonce + "x,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=1",
		"r=" + nonce + "x,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=999999999",
		"m=x," + challenge} {
		if got, err := s.answer(bad); err == nil {
			t.Errorf("the challenge %q is answered with %q", bad, got)
		}
	}
}

func TestAddresses(t *testing.T) {
	for in, want := range map[string]string{
		"Ada@Example.ORG": "ada@example.org", "ada@example.org./Phone": "ada@example.org/Phone", "example.org": "example.org",
		"\u00c5da@xn--mller-kva.example": "\u00e5da@m\u00fcller.example", "a@b/c@d/e": "a@b/c@d/e",
	} {
		if j, err := parseJID(in); err != nil || j.String() != want {
			t.Errorf("%q is %q, %v, want %q", in, j, err, want)
		}
	}
	for _, bad := range []string{"", "@example.org", "a b@example.org", "a@", "a@b/", "ada<x>@example.org", "a@b c",
		strings.Repeat("a", maxPart+1) + "@example.org"} {
		if j, err := parseJID(bad); err == nil {
			t.Errorf("%q is the address %q", bad, j)
		}
	}
	if !contains([]string{"ADA@example.org"}, "ada@EXAMPLE.org/x") || contains([]string{"ada@example.org"}, "ada@example.org.evil") {
		t.Error("addresses are compared as text")
	}
}

func FuzzElement(f *testing.F) {
	f.Add("<message from='a@b' type='chat'><body>hi &amp; \x00bye</body></message>")
	f.Fuzz(func(t *testing.T, text string) {
		sent := node(nsClient, "message", "to", text, "id", "1").with(node(nsClient, "body").saying(text),
			node(nsSID, "x").with(node(nsHints, "y")))
		var got element
		if err := xml.Unmarshal([]byte("<s xmlns='"+nsClient+"'>"+string(sent.bytes())+"</s>"), &got); err != nil || len(got.Kids) != 1 {
			t.Fatalf("%q makes %q: %v", text, sent.bytes(), err)
		}
		if m := got.Kids[0]; !m.has(nsClient, "body") || !m.Kids[len(m.Kids)-1].has(nsHints, "y") {
			t.Errorf("%q makes %+v", text, m)
		}
		_, _ = parseJID(text)
		quote, rest := replied(got.Kids[0], text)
		_, _ = quote, rest
	})
}

// A quotation of many lines takes memory as its length does.
func TestLongQuotations(t *testing.T) {
	body := strings.Repeat(">\n", 50_000) + "> a\nb"
	end := strconv.Itoa(len(body) - 1)
	m := node(nsClient, "message").with(node(nsFall, "fallback", "for", nsReply).with(node(nsFall, "body", "start", "0", "end", end)))
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	quote, rest := replied(m, body)
	runtime.ReadMemStats(&after)
	if took := (after.TotalAlloc - before.TotalAlloc) >> 20; quote != "a" || rest != "b" || took > 10 {
		t.Errorf("%d bytes are %.20q, answered with %.20q, and take %d MB of memory", len(body), quote, rest, took)
	}
}

func TestValidate(t *testing.T) {
	good := Options{Settings: chat.Settings{ID: "xmpp", Allow: []string{adaJID}}, JID: botJID, Server: "localhost:5222",
		Plaintext: true, Rooms: []string{"r@rooms.example"}, Names: Names{Always: []string{"R@rooms.example"}}}
	if err := good.Validate(); err != nil {
		t.Error(err)
	}
	for _, change := range []func(*Options){
		func(o *Options) { o.ID = "" }, func(o *Options) { o.JID = "bot" }, func(o *Options) { o.JID = botJID + "/x" },
		func(o *Options) { o.Server = "x" }, func(o *Options) { o.Server = "xmpp.example:5222" }, func(o *Options) { o.Server = "" },
		func(o *Options) { o.DirectTLS = true }, func(o *Options) { o.Allow = []string{"ada"} }, func(o *Options) { o.Nick = "a/b" },
		func(o *Options) { o.Allow = []string{"r@rooms.example/ada"} }, func(o *Options) { o.Rooms = nil },
	} {
		o := good
		change(&o)
		if o.Validate() == nil {
			t.Errorf("%+v is valid, want an error", o)
		}
	}
	if _, err := New(good, "", chat.Host{}, slog.New(slog.DiscardHandler)); err == nil || !strings.Contains(err.Error(), "auth set xmpp") {
		t.Errorf("without a password: %v, want what to do", err)
	}
}

func TestWrongPassword(t *testing.T) {
	s := newServer(t, "something else")
	c := testConnector(t, s, Options{}, chat.Host{}, slog.New(slog.DiscardHandler))
	err := c.Run(t.Context(), nil)
	if err == nil || !strings.Contains(err.Error(), "auth set xmpp") || strings.Contains(err.Error(), canary) {
		t.Errorf("Run = %v, want what to do", err)
	}
}

// A password is never sent where somebody could listen, and a server that speaks without end
// is cut off.
func TestServersThatAreNotTrusted(t *testing.T) {
	for name, said := range map[string]string{
		"no TLS":      "<stream:features><mechanisms xmlns='" + nsSASL + "'><mechanism>PLAIN</mechanism></mechanisms></stream:features>",
		"no end":      "<stream:features>" + strings.Repeat(" ", 2*maxStanza),
		"a directive": "<!DOCTYPE x [<!ENTITY a 'b'>]><stream:features/>",
		"not XMPP":    "</stream:stream>",
	} {
		t.Run(name, func(t *testing.T) {
			l, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			var wg sync.WaitGroup
			defer wg.Wait()
			defer l.Close()
			var heard string
			wg.Go(func() {
				conn, err := l.Accept()
				if err != nil {
					return
				}
				defer conn.Close()
				fmt.Fprintf(conn, "<stream:stream xmlns='%s' xmlns:stream='%s'>%s", nsClient, nsStream, said)
				buf := make([]byte, 1<<16)
				for {
					n, err := conn.Read(buf)
					heard += string(buf[:n])
					if err != nil {
						return
					}
				}
			})
			c, err := New(Options{Settings: chat.Settings{ID: "xmpp"}, JID: botJID, Server: l.Addr().String()}, canary, chat.Host{},
				slog.New(slog.DiscardHandler))
			if err != nil {
				t.Fatal(err)
			}
			if err := c.Run(t.Context(), nil); err == nil {
				t.Error("Run = nil, want an error")
			}
			wg.Wait()
			if strings.Contains(heard, "<auth") {
				t.Errorf("the server heard %q", heard)
			}
		})
	}
}

// What others claim in the name of our server, of a room or of an archive is not believed.
func TestForgeries(t *testing.T) {
	s := newServer(t, canary)
	c := testConnector(t, s, Options{}, chat.Host{}, slog.New(slog.DiscardHandler))
	var mu sync.Mutex
	var got []string
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	var run sync.WaitGroup
	running, stop := context.WithCancel(ctx)
	run.Go(func() {
		_ = c.Run(running, func(_ context.Context, in message.Incoming) (message.Receipt, error) {
			mu.Lock()
			defer mu.Unlock()
			got = append(got, in.Text)
			return message.Receipt{Agent: "a", Item: in.Dedupe}, nil
		})
	})
	ownCopy := strings.Replace(forgedCopy("c", "a true copy"), "from='"+eveJID+"'", "from='"+botJID+"'", 1)
	s.tell(ctx, forgedCopy("1", "a forged copy"), forgedResult("2", "of no archive"),
		speech("r@rooms.example/ada", "3", "of a room that we are not in"),
		strings.Replace(speech("r@rooms.example/ada", "4", "in a room"), "chat", "groupchat", 1),
		speech(botJID+"/other", "5", "of ourselves"), ownCopy, speech(adaJID+"/x", "6", "hello"))
	stop()
	run.Wait()
	if want := []string{"a true copy", "hello"}; !slices.Equal(got, want) {
		t.Errorf("delivered %q, want %q", got, want)
	}
}

// What a message does to others, and what it quotes.
func TestWhatAStanzaBecomes(t *testing.T) {
	c := testConnector(t, newServer(t, canary), Options{Rooms: []string{"r@rooms.example"}}, chat.Host{}, slog.New(slog.DiscardHandler))
	s := &session{c: c, flow: newFlow(jid{"bot", "test.example", "daycare"})}
	s.flow.rooms["r@rooms.example"] = &room{address: "r@rooms.example", nick: "bot", people: map[string]string{"Ada": adaJID}}
	parse := func(kind, from, inner string) (chat.Post, bool) {
		t.Helper()
		var e element
		text := "<message xmlns='jabber:client' id='m' type='" + kind + "' from='" + from + "'>" + inner + "</message>"
		if err := xml.Unmarshal([]byte(text), &e); err != nil {
			t.Fatal(err)
		}
		j, err := parseJID(from)
		if err != nil {
			t.Fatal(err)
		}
		return intake{s}.post(j, e, false)
	}
	for name, tt := range map[string]struct {
		kind, from, inner, text string
		right                   func(chat.Post) bool
	}{
		"a correction": {"chat", adaJID, "<body>new</body><replace xmlns='" + nsCorrect + "' id='old'/>", "new",
			func(p chat.Post) bool { return p.Amends == "old" }},
		"a deletion": {"chat", adaJID, "<body>This person deleted</body><retract xmlns='" + nsRetract + "' id='old'/>", "",
			func(p chat.Post) bool { return p.Amends == "old" }},
		"an old deletion": {"chat", adaJID, "<apply-to xmlns='" + nsFasten +
			"' id='old'><retract xmlns='urn:xmpp:message-retract:0'/></apply-to>", "",
			func(p chat.Post) bool { return p.Amends == "old" }},
		"a reaction": {"chat", adaJID, "<reactions xmlns='" + nsReact + "' id='old'><reaction>+</reaction></reactions>",
			"The person reacted to message old with +", func(p chat.Post) bool { return p.Note }},
		"a reply": {"chat", adaJID, "<body>&gt; was\nyes</body><reply xmlns='" + nsReply + "' id='old'/><fallback xmlns='" + nsFall +
			"' for='" + nsReply + "'><body start='0' end='6'/></fallback>", "yes",
			func(p chat.Post) bool { return p.Quote == "was" && p.ReplyTo == "old" }},
		"a file": {"chat", adaJID, "<body>https://x.example/a/b.png</body><x xmlns='" + nsOOB + "'>" +
			"<url>https://x.example/a/b.png</url></x>",
			"",
			func(p chat.Post) bool { return len(p.Files) == 1 && p.Files[0].Name == "b.png" }},
		"chatter": {"groupchat", "r@rooms.example/Ada", "<body>hi all</body>", "hi all",
			func(p chat.Post) bool { return p.Group && !p.Addressed && p.From.UserID == adaJID }},
		"to us": {"groupchat", "r@rooms.example/Ada", "<body>Bot: hi</body><stanza-id xmlns='" + nsSID + "' by='r@rooms.example' id='7'/>",
			"hi",
			func(p chat.Post) bool { return p.Addressed && p.MessageID == "7" }},
		"a correction in a room": {"groupchat", "r@rooms.example/Ada", "<body>bot: ho</body><replace xmlns='" + nsCorrect + "' id='m'/>",
			"ho",
			func(p chat.Post) bool { return p.Amends == "7" || p.Amends == "m" }},
		"of who is hidden": {"groupchat", "r@rooms.example/Eve", "<body>bot: hi</body>", "hi",
			func(p chat.Post) bool { return p.From.UserID == "r@rooms.example/Eve" }},
		"of ourselves":       {"groupchat", "r@rooms.example/bot", "<body>hi</body>", "-", nil},
		"in private, masked": {"chat", "r@rooms.example/Ada", "<body>hi</body>", "-", nil},
		"masked elsewhere":   {"chat", "q@rooms.example/Ada", "<body>hi</body><x xmlns='" + nsMUCUser + "'/>", "-", nil},
		"typing":             {"chat", adaJID, "<composing xmlns='" + nsStates + "'/>", "-", nil},
		"a headline":         {"headline", adaJID, "<body>news</body>", "-", nil},
	} {
		p, ok := parse(tt.kind, tt.from, tt.inner)
		if ok != (tt.right != nil) || ok && (p.Text != tt.text || !tt.right(p)) {
			t.Errorf("%s is %+v, %v", name, p, ok)
		}
	}
}

// Addresses that users send lead to the Internet, or to our own server.
func TestFilesComeFromTheInternet(t *testing.T) {
	f := newFiles(Options{}, jid{domain: "example.org"})
	for _, bad := range []string{"http://example.org/x", "https://ada@example.org/x", "file:///etc/passwd",
		"aesgcm://x/y", "https:///x", "::"} {
		if _, err := f.fetch(t.Context(), bad); err == nil {
			t.Errorf("%q was fetched", bad)
		}
	}
	if _, err := f.fetch(t.Context(), "https://127.0.0.1:1/x"); !errors.Is(err, errPlace) {
		t.Errorf("this machine: %v, want %v", err, errPlace)
	}
}

// resumable is a server on which sessions can be resumed, a connector that is connected to it, and what that delivered,
// each message once. deliver, if any, is called before a message is durable.
func resumable(t *testing.T, deliver func()) (s *server, c *Connector, heard func() []string) {
	t.Helper()
	s = newServer(t, canary)
	s.resumes = true
	c = testConnector(t, s, Options{}, chat.Host{Waiting: &connectortest.Keeper{}}, slog.New(slog.DiscardHandler))
	var mu sync.Mutex
	var texts, keys []string
	ctx, cancel := context.WithCancel(t.Context())
	var run sync.WaitGroup
	run.Go(func() {
		for ctx.Err() == nil {
			_ = c.Run(ctx, func(_ context.Context, in message.Incoming) (message.Receipt, error) {
				if deliver != nil {
					deliver()
				}
				mu.Lock()
				defer mu.Unlock()
				if !slices.Contains(keys, in.Dedupe) {
					texts, keys = append(texts, in.Text), append(keys, in.Dedupe)
				}

				return message.Receipt{Agent: "a", Item: in.Dedupe}, nil
			})
		}
	})
	t.Cleanup(func() { cancel(); run.Wait() })

	return s, c, func() []string {
		mu.Lock()
		defer mu.Unlock()
		return slices.Clone(texts)
	}
}

func answer(again bool) message.Outgoing {
	return message.Outgoing{ID: "out", To: message.Address{ChannelID: adaJID}, Text: "answer", Parts: 1, Retry: again}
}

// A break of the connection is no break of the conversation: the session goes on, what was
// not handled comes again, and what the server did not get is sent again, each once.
func TestSessionsAreResumed(t *testing.T) {
	s, c, heard := resumable(t, nil)
	s.tell(t.Context(), speech(adaJID, "1", "one"))
	s.there(t.Context()).conn.Close()
	s.awaitResumed(1)
	s.tell(t.Context(), speech(adaJID, "2", "two"))
	for _, again := range []bool{false, true} {
		if _, err := c.Send(t.Context(), answer(again)); err != nil {
			t.Error(err)
		}
	}

	if keys := heard(); !slices.Equal(keys, []string{"one", "two"}) || s.awaitResumed(1) != 1 {
		t.Errorf("delivered %q in %d resumptions, want each once and one", keys, s.awaitResumed(1))
	}
	if got := s.received(); len(got) != 1 {
		t.Errorf("the server got %+v, want the answer once", got)
	}
}

// A message that becomes durable while a session is resumed comes again, as the server heard of it too late.
// It has the number that it had: what comes after it would else be acknowledged before it came.
func TestAMessageIsDurableWhileItsSessionIsResumed(t *testing.T) {
	arrived, durable := make(chan struct{}, 1), make(chan struct{})
	makeDurable := sync.OnceFunc(func() { close(durable) })
	defer makeDurable()
	s, c, heard := resumable(t, func() {
		select {
		case arrived <- struct{}{}:
		default:
		}
		<-durable
	})
	n := s.there(t.Context()).put(speech(adaJID, "1", "one"))
	<-arrived
	s.answers(func(_ *peer, e element) bool {
		if e.XMLName.Local != "resume" {
			return false
		}
		for makeDurable(); c.flow.have() < n; {
			time.Sleep(time.Millisecond)
		}
		return false
	})
	broken := c.current.Load()
	s.there(t.Context()).conn.Close()
	<-broken.done
	if _, err := c.acquire(t.Context()); err != nil { // as an answer does, before the delivery of the first has ended
		t.Fatal(err)
	}
	defer c.release()
	if received := s.tell(t.Context(), speech(adaJID, "2", "two")); !received[0] || s.awaitResumed(1) != 1 {
		t.Errorf("acknowledged: %v, in %d resumptions", received, s.awaitResumed(1))
	}
	if keys := heard(); !slices.Equal(keys, []string{"one", "two"}) {
		t.Errorf("delivered %q", keys)
	}
}

// What is written to a connection that broke is not counted when the session is resumed on another: it is not sent
// there, and an acknowledgment of something else would be taken for its own.
func TestABrokenConnectionCountsNothing(t *testing.T) {
	s, c, _ := resumable(t, nil)
	s.tell(t.Context(), speech(adaJID, "1", "one"))
	stale := c.current.Load()
	s.there(t.Context()).conn.Close()
	for s.awaitResumed(1); c.current.Load() == nil || c.current.Load() == stale; {
		time.Sleep(time.Millisecond)
	}

	err := stale.say(t.Context(), node(nsClient, "message", "to", adaJID, "id", "out").with(node(nsClient, "body").saying("answer")))
	if waits, has := stale.flow.known("out"); err == nil || waits != nil || has {
		t.Errorf("a connection that broke wrote: %v; it waits: %v, the server has it: %v", err, waits, has)
	}
	if _, err := c.Send(t.Context(), answer(true)); err != nil || len(s.received()) != 1 {
		t.Errorf("sent again: %v; the server got %+v", err, s.received())
	}
}

// It hears what it sends to itself.
func TestLoop(t *testing.T) {
	s := newServer(t, canary)
	c := testConnector(t, s, Options{}, chat.Host{}, slog.New(slog.DiscardHandler))
	if verdict, err := c.Loop(t.Context()); err != nil || verdict != botJID+" sent a message to itself and read it" {
		t.Errorf("Loop = %q, %v", verdict, err)
	}
	s.revoke(true)
	if _, err := c.Loop(t.Context()); err == nil || !strings.Contains(err.Error(), "auth set xmpp") {
		t.Errorf("Loop with a wrong password = %v, want what to do", err)
	}
}

// What may have been said by a process that died is looked for in the archive, also by a session that
// has not said yet that it is here.
func TestWhatWasSaidIsFoundInTheArchive(t *testing.T) {
	s := newServer(t, canary)
	asked := 0
	s.answers(func(p *peer, e element) bool {
		query, mam := e.kid(nsMAM, "query")
		switch {
		case e.has(nsInfo, "query") && e.attr("to") == botJID:
			p.put(fmt.Sprintf("<iq type='result' id='%s' from='%s'><query xmlns='%s'><feature var='%s'/></query></iq>",
				e.attr("id"), botJID, nsInfo, nsMAM))
		case mam:
			asked++
			p.put(fmt.Sprintf("<message from='%s' to='%s'><result xmlns='%s' queryid='%s' id='1'><forwarded xmlns='%s'>"+
				"<message xmlns='jabber:client' from='%s/old' to='%s' type='chat' id='request-1'><body>x</body></message>"+
				"</forwarded></result></message>",
				botJID, botJID, nsMAM, query.attr("queryid"), nsForward, botJID, adaJID))
			p.put(fmt.Sprintf("<iq type='result' id='%s' from='%s'><fin xmlns='%s' complete='true'/></iq>", e.attr("id"), botJID, nsMAM))
		default:
			return false
		}
		return true
	})
	c := testConnector(t, s, Options{}, chat.Host{}, slog.New(slog.DiscardHandler))
	for key, want := range map[string]int{"request-1": 0, "request-2": 1} {
		before := len(s.heard())
		if id, err := c.Post(t.Context(), message.Address{ChannelID: adaJID, UserID: adaJID}, key, "", "may I?"); err != nil || id != key {
			t.Fatalf("Post = %q, %v", id, err)
		}
		if said := len(s.heard()) - before; said != want {
			t.Errorf("%s was said %d times, want %d", key, said, want)
		}
	}
	if asked != 2 {
		t.Errorf("the archive was asked %d times", asked)
	}
}

// How far an archive was read is kept where a power cut does not lose it: without it what was said
// meanwhile would not be read.
func TestPlacesAreKeptDurably(t *testing.T) {
	host := chat.Host{Waiting: &connectortest.Keeper{}}
	s := newServer(t, canary)
	c := testConnector(t, s, Options{}, host, slog.New(slog.DiscardHandler))
	c.marks.start(adaJID, position{ID: "7"})
	c.save(true)
	c = testConnector(t, s, Options{}, host, slog.New(slog.DiscardHandler))
	if err := c.remember(); err != nil {
		t.Fatal(err)
	}
	if at, ok := c.marks.place(adaJID); !ok || at.ID != "7" {
		t.Errorf("the place is %+v, %v", at, ok)
	}
}

// Where it cannot be read how far archives were read nothing is read, and the connector is begun again;
// of a broken file nothing is known.
func TestPlacesThatCannotBeRead(t *testing.T) {
	for name, tt := range map[string]struct {
		data string
		err  error
		want string
	}{"unreadable": {"", syscall.EMFILE, "how far archives were read"}, "broken": {"{", nil, "connect"}, "none": {"", fs.ErrNotExist,
		"connect"}} {
		host := chat.Host{Waiting: unreadable{tt.data, tt.err}}
		c, err := New(Options{Settings: chat.Settings{ID: "xmpp"}, JID: botJID, Server: "127.0.0.1:1"}, canary, host,
			slog.New(slog.DiscardHandler))
		if err != nil {
			t.Fatal(err)
		}
		if err := c.Run(t.Context(), nil); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// unreadable is a keeper of which a file is, or cannot be read.
type unreadable struct {
	data string
	err  error
}

func (u unreadable) Load(string, string) ([]byte, error) { return []byte(u.data), u.err }
func (unreadable) Save(string, string, []byte) error     { return nil }
