package xmpp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"daycare/connectors/chat"
	"daycare/connectors/connectortest"
	"daycare/engine/message"
)

// kept is where an archive was read up to, as it was saved.
func kept(t *testing.T, k *connectortest.Keeper, archive string) string {
	t.Helper()
	data, err := k.Load("xmpp", archivesFile)
	if err != nil {
		return ""
	}
	places := map[string]position{}
	if err := json.Unmarshal(data, &places); err != nil {
		t.Fatal(err)
	}
	return places[archive].ID
}

// at is a keeper that knows that the archive of the account was read up to a message.
func at(t *testing.T, id string) *connectortest.Keeper {
	t.Helper()
	n := 0
	fmt.Sscan(id, &n)
	data, err := json.Marshal(map[string]position{botJID: {ID: id, At: began.Add(time.Duration(n) * time.Minute)}})
	if err != nil {
		t.Fatal(err)
	}
	k := &connectortest.Keeper{}
	if err := k.Save("xmpp", archivesFile, data); err != nil {
		t.Fatal(err)
	}
	return k
}

// numbered are texts m1, m2, ….
func numbered(from, to int) (all []string) {
	for i := from; i <= to; i++ {
		all = append(all, fmt.Sprint("m", i))
	}
	return all
}

// What was said while daycare was away comes in its order, each once, over several pages, and what is
// said then comes behind it. An archive that has forgotten the place is read from its time on.
func TestArchivesAreCaughtUp(t *testing.T) {
	for name, lost := range map[string]int{"the place is known": 0, "the place is forgotten": 5} {
		t.Run(name, func(t *testing.T) {
			s, e := newServer(t, canary), &connectortest.Taker{}
			h := newHouse(s)
			h.lost = lost
			h.keep(botJID, adaJID+"/phone", numbered(1, 120)...)
			k := at(t, "3")
			c := testConnector(t, s, Options{}, chat.Host{Waiting: k}, slog.New(slog.DiscardHandler))
			stop := connectortest.Serve(t, c, e.Deliver)
			first := max(4, lost+1)
			got := e.Until(t, 120-first+1)
			if want := numbered(first, 120); !slices.Equal(got, want) {
				t.Fatalf("it got %q", got)
			}

			live := strings.Replace(speech(adaJID+"/phone", "live", "m121"), "</message>",
				"<stanza-id xmlns='"+nsSID+"' by='"+botJID+"' id='121'/></message>", 1)
			h.keep(botJID, adaJID+"/phone", "m121")
			s.tell(t.Context(), live)
			if got := e.Until(t, 121-first+1); got[len(got)-1] != "m121" {
				t.Errorf("it got %q behind the others", got[len(got)-1])
			}
			if err := stop(); err != nil {
				t.Error(err)
			}
			if place := kept(t, k, botJID); place != "121" {
				t.Errorf("it was read up to %q", place)
			}
			h.did(func(h *house) {
				if len(h.asked) < 3 {
					t.Errorf("%d pages were asked for", len(h.asked))
				}
			})
		})
	}
}

// The first time an archive counts as read: an agent does not answer what was said before there was
// one. The next time what was said meanwhile is read.
func TestAnArchiveIsReadFromTheFirstTimeOn(t *testing.T) {
	s, k := newServer(t, canary), &connectortest.Keeper{}
	h := newHouse(s)
	h.keep(botJID, adaJID+"/phone", numbered(1, 4)...)
	h.keep(teamJID, teamJID+"/Ada", "bot: r1", "bot: r2")
	var all []string
	for _, want := range [][]string{nil, {"m5", "m6", "r3"}} {
		e := &connectortest.Taker{}
		c := testConnector(t, s, Options{Rooms: []string{teamJID}}, chat.Host{Waiting: k}, slog.New(slog.DiscardHandler))
		stop := connectortest.Serve(t, c, e.Deliver)
		if want == nil {
			for kept(t, k, botJID) != "4" {
				time.Sleep(time.Millisecond)
			}
			joined(t, c)
			for {
				if p, ok := c.marks.place(teamJID); ok {
					if p.ID != "2" {
						t.Errorf("the room counts as read up to %q", p.ID)
					}
					break
				}
				time.Sleep(time.Millisecond)
			}
		}
		all = e.Until(t, len(want))
		if err := stop(); err != nil {
			t.Error(err)
		}
		if slices.Sort(all); !slices.Equal(all, want) {
			t.Errorf("it got %q, want %q", all, want)
		}
		if want == nil { // meanwhile
			h.keep(botJID, adaJID+"/phone", "m5", "m6")
			h.keep(teamJID, teamJID+"/Ada", "bot: r3")
		}
	}
	if a, b := kept(t, k, botJID), kept(t, k, teamJID); a != "6" || b != "3" {
		t.Errorf("read up to %q and %q", a, b)
	}
}

// joined waits until the connector is in the room.
func joined(t *testing.T, c *Connector) {
	t.Helper()
	for t.Context().Err() == nil {
		if s := c.current.Load(); s != nil {
			s.flow.state.Lock()
			r := s.flow.rooms[teamJID]
			in := r != nil && r.joined
			s.flow.state.Unlock()
			if in {
				return
			}
		}
		time.Sleep(time.Millisecond)
	}
}

// In a room those write whose account the room tells and who are allowed, as long as they are in it; a
// nick that somebody has becomes another one; and what we say is heard back as ours.
func TestRooms(t *testing.T) {
	s, e := newServer(t, canary), &connectortest.Taker{}
	h := newHouse(s)
	h.nicks, h.made = []string{"bot", "bot_"}, true
	host := chat.Host{Waiting: &connectortest.Keeper{}}
	c := testConnector(t, s, Options{Rooms: []string{"Team@Rooms.Test.Example"}}, host, slog.New(slog.DiscardHandler))
	stop := connectortest.Serve(t, c, e.Deliver)
	joined(t, c)
	s.tell(t.Context(), inTeam("Ada", "1", "bot__: one"), inTeam("Eve", "2", "bot__: of a stranger"), inTeam("bot__", "3", "bot__: of us"),
		inTeam("", "4", "bot__: of the room"), inTeam("Ada", "", "chatter"), inTeam("Ada", "5", "two",
			node(nsReply, "reply", "to", teamJID+"/bot__", "id", "3")))
	if got := e.Until(t, 2); !slices.Equal(got, []string{"one", "two"}) {
		t.Errorf("it got %q", got)
	}
	h.did(func(h *house) {
		if !slices.Equal(h.entered, []string{"bot", "bot_", "bot__"}) || h.opened != 1 {
			t.Errorf("it entered as %q, and %d rooms were opened", h.entered, h.opened)
		}
	})

	to := message.Address{ChannelID: teamJID, UserID: adaJID}
	out := message.Outgoing{ID: "out", To: to, Text: "answer", Parts: 1, ReplyTo: "1"}
	for _, again := range []bool{false, true} {
		out.Retry = again
		if _, err := c.Send(t.Context(), out); err != nil {
			t.Error(err)
		}
	}
	if got := s.received(); len(got) != 2 || !strings.Contains(got[0].Text, "did not read") || got[1].Text != "answer" {
		t.Errorf("said was %+v, want one answer, and one to the stranger", got)
	}
	said := s.last("message")
	if r, ok := said.kid(nsReply, "reply"); !ok || r.attr("id") != "1" || said.attr("type") != "groupchat" {
		t.Errorf("the answer is %s", said.bytes())
	}

	// Who left, and comes back without an account that the room tells, is nobody.
	s.tell(t.Context(), occupant("Ada", adaJID+"/phone", "unavailable"), occupant("Ada", "", ""), inTeam("Ada", "6", "bot__: three"),
		occupant("Ada", adaJID+"/phone", ""), inTeam("Ada", "7", "bot__: four"))
	if got := e.Until(t, 3); got[2] != "four" {
		t.Errorf("it got %q", got)
	}

	// Another client of our account is we; a reply to the nick that the settings give us is for us.
	s.tell(t.Context(), occupant("Us", botJID+"/other", ""), inTeam("Us", "9", "bot__: of ourselves"),
		inTeam("Ada", "10", "six", node(nsReply, "reply", "to", teamJID+"/bot", "id", "3")))
	if got := e.Until(t, 4); got[3] != "six" {
		t.Errorf("it got %q", got)
	}

	// We are put out; the next answer has us enter again.
	s.tell(t.Context(), occupant("bot__", botJID+"/daycare", "unavailable", "110"), inTeam("Ada", "8", "bot__: five"))
	e.Until(t, 5)
	if _, err := c.Send(t.Context(), message.Outgoing{ID: "out2", To: to, Text: "again", Parts: 1}); err != nil {
		t.Error(err)
	}
	h.did(func(h *house) {
		if len(h.entered) != 4 || h.entered[3] != "bot__" {
			t.Errorf("it entered as %q", h.entered)
		}
	})
	if err := stop(); err != nil {
		t.Error(err)
	}
}

// last is the newest stanza of a kind that came.
func (s *server) last(kind string) (e element) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, one := range s.stanzas {
		if one.XMLName.Local == kind {
			e = one
		}
	}
	return e
}

// What was said before a crash in a room is found in its archive.
func TestWhatWasSaidInARoomIsFound(t *testing.T) {
	s := newServer(t, canary)
	h := newHouse(s)
	out := message.Outgoing{ID: "out", To: message.Address{ChannelID: teamJID}, Text: "answer", Parts: 1}
	for n, want := range []int{1, 1} {
		c := testConnector(t, s, Options{Rooms: []string{teamJID}}, chat.Host{}, slog.New(slog.DiscardHandler))
		out.Retry = n > 0
		if _, err := c.Send(t.Context(), out); err != nil {
			t.Fatal(err)
		}
		if got := s.received(); len(got) != want {
			t.Errorf("said was %+v", got)
		}
	}
	h.did(func(h *house) { h.nicks = []string{"bot"} })
	for n := range maxNick {
		h.nicks = append(h.nicks, "bot"+strings.Repeat("_", n+1))
	}
	c := testConnector(t, s, Options{Rooms: []string{teamJID}}, chat.Host{}, slog.New(slog.DiscardHandler))
	if _, err := c.Send(t.Context(), out); err == nil || !strings.Contains(err.Error(), "conflict") {
		t.Errorf("into a room where every nick is taken: %v", err)
	}
}

// carrier takes what is put somewhere.
type carrier struct {
	status int
	err    error
	puts   []*http.Request
	body   string
}

func (c *carrier) RoundTrip(r *http.Request) (*http.Response, error) {
	if c.puts = append(c.puts, r); r.Body != nil {
		data, _ := io.ReadAll(r.Body)
		c.body = string(data)
	}
	if c.err != nil {
		return nil, c.err
	}
	return &http.Response{StatusCode: c.status, Body: io.NopCloser(strings.NewReader("")), Request: r}, nil
}

// A file is put where the server says, with the headers that are harmless, and its address is said.
func TestFilesAreUploaded(t *testing.T) {
	given := func(put string) string {
		return "<slot xmlns='" + nsUpload + "'><put url='" + put + "'><header name='authorization'>a&#10;b</header>" +
			"<header name='Host'>evil</header></put><get url='https://files.test.example/get/a.txt'/></slot>"
	}
	path := filepath.Join(t.TempDir(), "a.txt")
	if err := os.WriteFile(path, []byte("content"), 0o600); err != nil {
		t.Fatal(err)
	}
	good := given("https://files.test.example/put")
	for name, tt := range map[string]struct {
		slot string
		to   carrier
		file string
		said string // "": it is an error
	}{
		"all goes well":      {good, carrier{status: 201}, path, "https://files.test.example/get/a.txt"},
		"no place for files": {"", carrier{}, path, "[file a.txt, 7 bytes: this server carries no files]"},
		"it is refused":      {good, carrier{status: 403}, path, ""},
		"the server is gone": {good, carrier{err: errors.New("gone")}, path, ""},
		"no address":         {given("ftp://files.test.example/put"), carrier{}, path, ""},
		"no such file":       {good, carrier{}, path + "2", ""},
	} {
		s := newServer(t, canary)
		h := newHouse(s)
		h.slot = tt.slot
		c := testConnector(t, s, Options{}, chat.Host{}, slog.New(slog.DiscardHandler))
		c.files.client = &http.Client{Transport: &tt.to}
		_, err := c.Send(t.Context(), message.Outgoing{ID: "out", To: message.Address{ChannelID: adaJID}, Parts: 1,
			Files: []message.File{{Name: "a.txt", Path: tt.file, Size: 7, MimeType: "text/plain"}}})
		var said []string
		for _, one := range s.received() {
			said = append(said, one.Text)
		}
		if (err == nil) != (tt.said != "") || strings.Join(said, "|") != tt.said {
			t.Errorf("%s: said is %q, %v", name, said, err)
		}
		if err != nil && strings.Contains(err.Error(), "/put") {
			t.Errorf("%s: the error tells where: %v", name, err)
		}
		if tt.to.status != 201 {
			continue
		}
		put := tt.to.puts[0]
		if put.Method != http.MethodPut || tt.to.body != "content" || put.ContentLength != 7 || put.Header.Get("Authorization") != "ab" ||
			put.Header.Get("Host") != "" || put.Header.Get("Content-Type") != "text/plain" {
			t.Errorf("put was %+v with %q", put, tt.to.body)
		}
		if ask := h.asks[0]; ask.attr("filename") != "a.txt" || ask.attr("size") != "7" || ask.attr("content-type") != "text/plain" {
			t.Errorf("asked was %s", ask.bytes())
		}
	}
}

// A file that a user sent is fetched whole or not at all, and no error tells its address, which is a
// ticket to it.
func TestFilesAreFetched(t *testing.T) {
	const address = "https://files.test.example/secret/a.txt"
	for name, tt := range map[string]struct {
		at string
		to carrier
		ok bool
	}{"it is there": {address, carrier{status: 200}, true}, "it is gone": {address, carrier{status: 404}, false},
		"it is elsewhere": {address, carrier{status: 302}, false}, "the server is gone": {address, carrier{err: errors.New("gone")}, false},
		"no address": {"ftp://files.test.example/secret", carrier{status: 200}, false}} {
		f := newFiles(Options{}, jid{domain: "test.example"})
		f.client.Transport = &tt.to
		body, err := f.fetch(t.Context(), tt.at)
		if (err == nil) != tt.ok || (body != nil) != tt.ok || err != nil && strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: %v", name, err)
		}
		if name != "no address" && (len(tt.to.puts) != 1 || tt.to.puts[0].Method != http.MethodGet) {
			t.Errorf("%s: asked was %d times", name, len(tt.to.puts))
		}
	}
	for address, want := range map[string]string{"https://x/a/b.png": "b.png", "https://x/": "file", "https://x": "file", "%zz": "file",
		"https://x/a/b.png?c=d": "b.png"} {
		if got := nameOf(address); got != want {
			t.Errorf("%s is called %q", address, got)
		}
	}
}

// A message that does not get into the queue is not acknowledged, and neither is what came behind it.
func TestAMarkIsTakenBack(t *testing.T) {
	m := marks{reached: map[string]position{}}
	m.forget() // there is none
	m.add(mark{archive: "a", at: position{ID: "1"}})
	m.add(mark{archive: "a", at: position{ID: "2"}})
	m.forget()
	m.taken()
	if p, _ := m.place("a"); p.ID != "1" || len(m.waiting) != 0 {
		t.Errorf("it was read up to %q, %d wait", p.ID, len(m.waiting))
	}
	m.free(mark{archive: "a", at: position{ID: "3"}})
	m.forget()
	if p, _ := m.place("a"); p.ID != "3" {
		t.Errorf("then up to %q", p.ID)
	}
}

// Users who are allowed may see that we are here, and learn what we have read; others may not. What they
// encrypt is answered once, and only to them.
func TestWhatIsBesideMessages(t *testing.T) {
	s, e := newServer(t, canary), &connectortest.Taker{}
	c := testConnector(t, s, Options{}, chat.Host{Waiting: &connectortest.Keeper{}}, slog.New(slog.DiscardHandler))
	stop := connectortest.Serve(t, c, e.Deliver)
	secret := func(from string) string {
		return strings.Replace(speech(from, "x"+from, "[encrypted]"), "</message>", "<encrypted xmlns='"+nsOMEMO+"'/></message>", 1)
	}
	asking := func(from string) string { // for a receipt
		return strings.Replace(speech(from, "1", "one"), "</message>", "<request xmlns='"+nsReceipt+"'/></message>", 1)
	}
	subscribe := func(from string) string { return "<presence type='subscribe' from='" + from + "'/>" }
	s.tell(t.Context(), subscribe(eveJID), subscribe(adaJID), secret(eveJID), secret(adaJID), secret(adaJID),
		"<presence from='@'/>", "<presence type='unavailable' from='"+adaJID+"'/>", asking(eveJID), asking(adaJID),
		speech(bobJID, "1", "two"))
	if got := e.Until(t, 2); !slices.Equal(got, []string{"one", "two"}) {
		t.Errorf("it got %q", got)
	}
	if err := c.Typing(t.Context(), message.Address{ChannelID: adaJID}); err != nil {
		t.Error(err)
	}
	if err := c.React(t.Context(), message.Address{ChannelID: adaJID}, "1", "👍"); err != nil {
		t.Error(err)
	}
	if to, ok := c.Direct(adaJID); !ok || to.ChannelID != adaJID {
		t.Errorf("the chat with a user is %+v, %v", to, ok)
	}
	for range 2 { // the server says when it has all
		if err := c.Say(t.Context(), message.Address{ChannelID: bobJID}, "said", "done"); err != nil {
			t.Error(err)
		}
	}
	if err := stop(); err != nil {
		t.Error(err)
	}
	if err := c.Typing(t.Context(), message.Address{ChannelID: adaJID}); err != nil {
		t.Errorf("typing while nothing is connected: %v", err)
	}

	var presences, told, typing, receipts []string
	reaction := ""
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, one := range s.stanzas {
		body, _ := one.kid(nsClient, "body")
		switch {
		case one.XMLName.Local == "presence" && one.attr("to") != "":
			presences = append(presences, one.attr("type")+" "+one.attr("to"))
		case strings.Contains(body.Text, "encrypted"):
			told = append(told, one.attr("to"))
		case one.has(nsStates, "composing"):
			typing = append(typing, one.attr("to"))
		}
		if r, ok := one.kid(nsReceipt, "received"); ok {
			receipts = append(receipts, one.attr("to")+" "+r.attr("id"))
		}
		if r, ok := one.kid(nsReact, "reactions"); ok {
			what, _ := r.kid(nsReact, "reaction")
			reaction = r.attr("id") + " " + what.Text
		}
	}
	if !slices.Equal(presences, []string{"subscribed " + adaJID, "subscribe " + adaJID}) || !slices.Equal(told, []string{adaJID}) ||
		!slices.Equal(typing, []string{adaJID}) || reaction != "1 👍" || !slices.Equal(receipts, []string{adaJID + " 1"}) {
		t.Errorf("presences %q, told %q, typing %q, reaction %q, receipts %q", presences, told, typing, reaction, receipts)
	}
}

// A server without stream management says by a ping what it has.
func TestWithoutStreamManagement(t *testing.T) {
	s := newServer(t, canary)
	s.features = ""
	c := testConnector(t, s, Options{}, chat.Host{}, slog.New(slog.DiscardHandler))
	if _, err := c.Send(t.Context(), message.Outgoing{ID: "out", To: message.Address{ChannelID: adaJID}, Text: "a", Parts: 1}); err != nil {
		t.Error(err)
	}
	s.misbehave(connectortest.Gone)
	_, err := c.Send(t.Context(), message.Outgoing{ID: "out2", To: message.Address{ChannelID: adaJID}, Text: "b", Parts: 1})
	if err == nil || !strings.Contains(err.Error(), "item-not-found") {
		t.Errorf("what comes back is sent: %v", err)
	}
	if got := s.received(); len(got) != 1 {
		t.Errorf("said was %+v", got)
	}
}

// A test of the connector says what the server can do.
func TestProbeSaysWhatTheServerCan(t *testing.T) {
	s := newServer(t, canary)
	c := testConnector(t, s, Options{}, chat.Host{}, slog.New(slog.DiscardHandler))
	for _, want := range []string{"; the server has no archive, so a long absence can lose messages",
		"; the server keeps messages while daycare is away; files go over " + fileJID} {
		got, err := c.Probe(t.Context())
		if err != nil || got != botJID+" logs in with PLAIN"+want {
			t.Errorf("Probe = %q, %v", got, err)
		}
		newHouse(s).slot = "<slot/>"
	}
	s.answers(func(p *peer, e element) bool {
		if e.XMLName.Local == "enable" {
			p.raw("<enabled xmlns='" + nsSM + "' id='session' resume='true'/>")
			return true
		}
		return false
	})
	if got, err := c.Probe(t.Context()); err != nil || !strings.Contains(got, "; sessions can be resumed; ") {
		t.Errorf("Probe = %q, %v", got, err)
	}
	s.answers(func(_ *peer, e element) bool { return e.has(nsPing, "ping") })
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	if got, err := c.Probe(ctx); err == nil || !strings.Contains(err.Error(), "does not arrive") {
		t.Errorf("Probe = %q, %v", got, err)
	}
}

// A place that could not be saved is saved with the next one.
func TestPlacesThatCannotBeSaved(t *testing.T) {
	k := &failing{Keeper: &connectortest.Keeper{}, left: 1}
	c := testConnector(t, newServer(t, canary), Options{}, chat.Host{Waiting: k}, slog.New(slog.DiscardHandler))
	c.marks.start(botJID, position{ID: "7"})
	for range 2 {
		c.save(true)
	}
	if place := kept(t, k.Keeper, botJID); place != "7" || k.left != 0 {
		t.Errorf("saved is %q", place)
	}
}

// failing is a keeper that fails at first.
type failing struct {
	*connectortest.Keeper
	left int
}

func (f *failing) Save(connector, name string, data []byte) error {
	if f.left--; f.left >= 0 {
		return errors.New("disk full")
	}
	f.left = 0
	return f.Keeper.Save(connector, name, data)
}

// The newest pairs of names are remembered, and no more than those.
func TestRecentNames(t *testing.T) {
	var r recent
	for i := range maxRecent {
		r.put(fmt.Sprint(i), "first")
	}
	r.put("0", "again") // it is no new one
	if value, ok := r.get("1"); !ok || value != "first" {
		t.Errorf("a name that is known already displaced another one: %q, %v", value, ok)
	}
	if value, _ := r.get("0"); value != "again" {
		t.Errorf("the older value is kept: %q", value)
	}
	r.put("new", "first")
	if _, ok := r.get("0"); ok || len(r.names) != maxRecent {
		t.Errorf("the oldest is kept, and %d names", len(r.names))
	}
}
