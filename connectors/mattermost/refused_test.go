package mattermost

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"daycare/connectors/chat"
	"daycare/connectors/connectortest"
	"daycare/engine/message"
)

const v4 = "/api/v4"

// asIs are answers that most tests need.
var asIs = map[string]string{
	"GET " + v4 + "/users/me":         `200 {"id":"` + me + `","username":"bot","is_bot":true}`,
	"POST " + v4 + "/posts":           `201 {"id":"post"}`,
	"POST " + v4 + "/files":           `201 {"file_infos":[{"id":"file"}]}`,
	"POST " + v4 + "/channels/direct": `201 {"id":"direct","type":"D"}`,
}

// scripted is a connector to a server with these answers.
func scripted(t *testing.T, says map[string]string) (*Connector, *connectortest.Script) {
	t.Helper()
	s := connectortest.NewScript(t, says, asIs)
	c, err := New(Options{Settings: chat.Settings{ID: "mattermost", Allow: []string{ada}}, URL: s.URL}, token, chat.Host{}, quiet())
	if err != nil {
		t.Fatal(err)
	}
	c.pause = time.Millisecond
	c.rooms.setSelf(user{ID: me})
	return c, s
}

// What cannot be sent is not tried again where the reason stays.
func TestWhatCannotBeSent(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a")
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	posts, files, direct := "POST "+v4+"/posts", "POST "+v4+"/files", "POST "+v4+"/channels/direct"
	file := message.File{Name: "a", Path: path}
	for name, tt := range map[string]struct {
		says  map[string]string
		to    string
		file  message.File
		final bool
		sent  int
	}{
		"no such file":         {nil, town, message.File{Name: "a", Path: path + "2"}, true, 0},
		"a file of 100 MB":     {nil, town, message.File{Name: "a", Path: path, Size: maxFile}, false, 1},
		"a larger one":         {nil, town, message.File{Name: "a", Path: path, Size: maxFile + 1}, true, 0},
		"the upload refused":   {map[string]string{files: "413"}, town, file, true, 0},
		"the upload forgotten": {map[string]string{files: `201 {"file_infos":[]}`}, town, file, false, 0},
		"a broken server":      {map[string]string{files: "502"}, town, file, false, 0},
		"not a member":         {map[string]string{posts: `403 {"id":"x","message":"no ` + token + `"}`}, town, file, true, 1},
		"busy":                 {map[string]string{posts: "429"}, town, file, false, 1},
		"not kept":             {map[string]string{posts: "201 {}"}, town, file, false, 1},
		"no direct channel":    {map[string]string{direct: "403"}, userPrefix + ada, file, true, 0},
		"no user":              {map[string]string{direct: "404"}, userPrefix + ada, file, true, 0},
	} {
		c, s := scripted(t, tt.says)
		_, err := c.Send(t.Context(), message.Outgoing{ID: "o", Parts: 1, Text: "hi", To: message.Address{ChannelID: tt.to},
			Files: []message.File{tt.file}})
		var no *message.NotSent
		final := errors.As(err, &no) && no.Final
		if (err == nil) != strings.HasPrefix(name, "a file of") || final != tt.final || len(s.Of(posts)) != tt.sent ||
			err != nil && strings.Contains(err.Error(), token) {
			t.Errorf("%s: %v, final %v, %d posts; want %v, %d", name, err, final, len(s.Of(posts)), tt.final, tt.sent)
		}
		if name == "busy" && (no == nil || no.After != 3*time.Second) {
			t.Errorf("%s: %+v", name, no)
		}
	}
}

// A message that may have arrived is looked for: one of ours with its mark is the one.
func TestWhatMayHaveArrived(t *testing.T) {
	page := "GET " + v4 + "/channels/" + town + "/posts"
	c, s := scripted(t, nil)
	out := message.Outgoing{ID: "o", Parts: 1, Text: "hi", To: message.Address{ChannelID: town}}
	if _, err := c.Send(t.Context(), out); err != nil || len(s.Of(page)) > 0 {
		t.Fatalf("%v, looked for by %q", err, s.Of(page))
	}
	_, rest, _ := strings.Cut(s.Of("POST " + v4 + "/posts")[0], `"daycare_part":"`)
	mark, _, _ := strings.Cut(rest, `"`)
	before := func(user, mark string) string {
		return fmt.Sprintf(`200 {"order":["x"],"posts":{"x":{"id":"x","user_id":%q,"props":{"daycare_part":%q}}}}`, user, mark)
	}
	for name, tt := range map[string]struct{ page, want string }{
		"it did": {before(me, mark), "x"}, "of somebody else": {before(stranger, mark), "post"}, "another": {before(me, "y"), "post"},
		"the channel is gone": {"404", "post"}, "it cannot be looked": {"502", ""},
	} {
		c, s := scripted(t, map[string]string{page: tt.page})
		out.Retry = true
		id, err := c.Send(t.Context(), out)
		if id != tt.want || (err == nil) != (tt.want != "") {
			t.Errorf("%s: %q, %v", name, id, err)
		}
		if sent := len(s.Of("POST " + v4 + "/posts")); sent != map[string]int{"post": 1}[tt.want] {
			t.Errorf("%s: %d posts", name, sent)
		}
	}
}

// Who a bot is, and that of a user's account, is asked where it is needed; what is not a server says so.
func TestDirectChannels(t *testing.T) {
	whoami := "GET " + v4 + "/users/me"
	for name, tt := range map[string]struct {
		says map[string]string
		want string
	}{"a channel": {nil, "direct"}, "nobody": {map[string]string{whoami: "200 {}"}, ""},
		"a page":  {map[string]string{whoami: "200 <html>"}, ""},
		"refused": {map[string]string{"POST " + v4 + "/channels/direct": "403"}, ""}} {
		c, s := scripted(t, tt.says)
		c.rooms.setSelf(user{})
		for range 2 {
			got, err := c.rooms.channel(t.Context(), userPrefix+ada)
			if got != tt.want || (err == nil) != (tt.want != "") {
				t.Errorf("%s: %q, %v", name, got, err)
			}
		}
		opened := s.Of("POST " + v4 + "/channels/direct")
		if tt.want != "" && (len(opened) != 1 || !strings.Contains(opened[0], `["`+me+`","`+ada+`"]`)) {
			t.Errorf("%s: opened %q", name, opened)
		}
		to := message.Address{ChannelID: userPrefix + ada}
		_, perr := pen{Connector: c}.Post(t.Context(), to, "", "", "hi")
		for what, err := range map[string]error{"Say": c.Say(t.Context(), to, "", "hi"), "Typing": c.Typing(t.Context(), to),
			"Post": perr} {
			if tt.want == "" && err == nil {
				t.Errorf("%s: %s is no error", name, what)
			}
		}
	}
}

// What kind of channel one is is asked once, and what cannot be asked is not known.
func TestKindsOfChannels(t *testing.T) {
	at := "GET " + v4 + "/channels/c"
	for says, want := range map[string][2]bool{`200 {"id":"c","type":"D"}`: {true, true}, `200 {"id":"c","type":"O"}`: {false, true},
		"502": {false, false}} {
		c, s := scripted(t, map[string]string{at: says})
		for range 2 {
			if got, err := c.rooms.direct(t.Context(), "c"); got != want[0] || (err == nil) != want[1] {
				t.Errorf("%s: %v, %v", says, got, err)
			}
		}
		if asked := len(s.Of(at)); (asked == 1) != want[1] {
			t.Errorf("%s: asked %d times", says, asked)
		}
	}
}

// Refusals of what is beside answers are errors; those of reactions say what may be wrong.
func TestRefusals(t *testing.T) {
	for at, do := range map[string]func(c *Connector) error{
		"POST " + v4 + "/posts": func(c *Connector) error {
			return c.Say(context.Background(), message.Address{ChannelID: town}, "", "hi")
		},
		"PUT " + v4 + "/posts/p/patch": func(c *Connector) error {
			return pen{Connector: c}.Edit(context.Background(), message.Address{}, "p", "x")
		},
		"POST " + v4 + "/users/me/typing": func(c *Connector) error {
			return c.Typing(context.Background(),
				message.Address{ChannelID: town})
		},
		"POST " + v4 + "/reactions": func(c *Connector) error { return c.React(context.Background(), message.Address{}, "p", "👍") },
	} {
		for answer, ok := range map[string]bool{`200 {"id":"x"}`: true, "400 <html>": false, `404 {"message":"no ` + token + `"}`: false,
			"500": false} {
			c, s := scripted(t, map[string]string{at: answer})
			err := do(c)
			if (err == nil) != ok || len(s.Of(at)) != 1 || !ok && strings.Contains(err.Error(), token) {
				t.Errorf("%s %s: %v after %q", at, answer, err, s.Of(""))
			}
			if strings.Contains(answer, "html") && !strings.Contains(err.Error(), "400 Bad Request") {
				t.Errorf("a page of a proxy: %v", err)
			}
			if strings.HasPrefix(answer, "404") && !strings.Contains(err.Error(), ": 404 no ") {
				t.Errorf("the server's own words: %v", err)
			}
			if strings.HasSuffix(at, "reactions") && strings.HasPrefix(answer, "4") != (err != nil && strings.Contains(err.Error(),
				"no emoji :+1:")) {
				t.Errorf("%s: %v", answer, err)
			}
		}
	}
}

// Each step of the test of an account that fails is reported, and what was posted is deleted.
func TestEachStepOfALoop(t *testing.T) {
	all := map[string]string{"GET " + v4 + "/posts/post": `200 {"id":"post"}`, "DELETE " + v4 + "/posts/post": "200 {}"}
	for at, answers := range map[string][]string{"": {""}, "GET " + v4 + "/users/me": {"500", "401"}, "POST " + v4 +
		"/channels/direct": {"500"},
		"POST " + v4 + "/posts": {"500", "201 {}"}, "GET " + v4 + "/posts/post": {"500", `200 {"id":"other"}`, "200 <html>"},
		"DELETE " + v4 + "/posts/post": {"500"}} {
		for _, answer := range answers {
			says := maps.Clone(all)
			says[at] = answer
			c, s := scripted(t, says)
			_, err := pen{Connector: c}.Loop(t.Context())
			if (err == nil) != (at == "") || answer == "401" && !strings.Contains(err.Error(), "auth set mattermost") {
				t.Errorf("%s %s: %v", at, answer, err)
			}
			posted := at == "" || strings.HasSuffix(at, "/posts/post")
			if posted != (len(s.Of("DELETE")) == 1) {
				t.Errorf("%s %s: %q", at, answer, s.Of(""))
			}
		}
	}
	c, _ := scripted(t, map[string]string{"GET " + v4 + "/users/me/channels": "502"})
	if _, err := c.Probe(t.Context()); err == nil {
		t.Error("channels that cannot be listed are no error")
	}
	c, _ = scripted(t, map[string]string{"GET " + v4 + "/users/me/channels": "200 []"})
	if _, err := c.Probe(t.Context()); err == nil || !strings.Contains(err.Error(), "@bot answers, but") || !strings.Contains(err.Error(),
		"proxy") {
		t.Errorf("a server without a websocket: %v", err)
	}
}

// What is written on the websocket that is not an event is passed over, and logged.
func TestEventsThatCannotBeRead(t *testing.T) {
	c, _ := scripted(t, nil)
	var log strings.Builder
	c.log = slog.New(slog.NewTextHandler(&log, nil))
	for _, e := range []event{{Event: "typing"}, {Event: "posted"}, {Event: "post_edited"}, {Event: "reaction_added"}} {
		for _, text := range []string{"", "{", "{}", "[]"} {
			e.Data.Post, e.Data.Reaction = text, text
			before := strings.Count(log.String(), "cannot read an event")
			c.happened(e) // which would panic, or wait, if it took it
			if said := strings.Count(log.String(), "cannot read an event") - before; (said == 1) != (e.Event != "typing") {
				t.Errorf("%s %q: logged %d times", e.Event, text, said)
			}
		}
	}
}

// A server that refuses the token on the websocket is one that refuses it, and does not say it on.
func TestATokenThatTheWebsocketRefuses(t *testing.T) {
	c := testConnector(t, newServer(t), Options{}, chat.Host{}, quiet())
	c.api.token = id("other")
	conn, err := c.dial(t.Context())
	if conn != nil || !status(err, http.StatusUnauthorized) || strings.Contains(err.Error(), c.api.token) {
		t.Errorf("%v, %v", conn, err)
	}
}

// Channels that cannot be listed end the connection: without them what was missed is not known.
func TestChannelsThatCannotBeListed(t *testing.T) {
	s := newServer(t)
	s.refuse, s.only = http.StatusInternalServerError, "/users/me/channels"
	up := false
	ctx, cancel := context.WithTimeout(message.WithUp(t.Context(), func() { up = true }), 10*time.Second)
	defer cancel()
	err := testConnector(t, s, Options{}, chat.Host{Waiting: &s.waiting}, quiet()).Run(ctx, (&connectortest.Taker{}).Deliver)
	if err == nil || !strings.Contains(err.Error(), "list channels") || up {
		t.Errorf("it ends with %v, connected before: %v", err, up)
	}
}

// A post as long as the server allows comes whole.
func TestALongEvent(t *testing.T) {
	s, e := newServer(t), &connectortest.Taker{}
	stop := connectortest.Serve(t, testConnector(t, s, Options{}, chat.Host{Waiting: &s.waiting}, quiet()), e.Deliver)
	s.connected(t)
	long := strings.Repeat("long ", 20_000)
	s.write("long", private(ada), ada, long)
	if got := e.Until(t, 1); got[0] != strings.TrimSpace(long) {
		t.Errorf("%d bytes came, want %d", len(got[0]), len(long)-1)
	}
	if err := stop(); err != nil {
		t.Error(err)
	}
}

// Buttons whose address is taken end the connector with that error, not with that of its end.
func TestButtonsThatCannotListen(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	s, e := newServer(t), &connectortest.Taker{}
	c := testConnector(t, s, Options{Buttons: Buttons{Listen: l.Addr().String(), URL: "http://127.0.0.1:1"}}, chat.Host{}, quiet())
	if err := c.Run(t.Context(), e.Deliver); !errors.Is(err, syscall.EADDRINUSE) {
		t.Errorf("it ends with %v", err)
	}
}

// A channel or files that the bot must not see any more are none; other refusals are errors.
func TestWhatTheBotWasRemovedFrom(t *testing.T) {
	channel, files := "GET "+v4+"/channels/c", "GET "+v4+"/posts/p/files/info"
	for answer, gone := range map[string]bool{"403": true, "404": true, "500": false, "502": false} {
		c, _ := scripted(t, map[string]string{channel: answer, files: answer})
		e := event{Event: "posted", post: post{ID: "p", Channel: "c", User: ada, Text: "hi"}}
		if _, ok, err := c.in.read(t.Context(), e); ok || (err == nil) != gone {
			t.Errorf("a channel, %s: %v, %v", answer, ok, err)
		}
		c.rooms.learn(room{ID: "c", Type: "D"})
		e.post.FileIDs = []string{"f"}
		if _, _, err := c.in.read(t.Context(), e); (err == nil) != gone {
			t.Errorf("a post with files, %s: %v", answer, err)
		}
		if list, err := c.in.files(t.Context(), post{ID: "p", FileIDs: []string{"f"}}); len(list) > 0 || (err == nil) != gone {
			t.Errorf("files, %s: %v, %v", answer, list, err)
		}
	}
}

// Posts of one millisecond have places of their own, in the order in which they came; those of
// another channel, or of a later time, count anew.
func TestPostsOfOneMillisecond(t *testing.T) {
	c, _ := scripted(t, nil)
	at := func(channel string, millis int64) int64 {
		return c.rooms.arrived(post{Channel: channel, stamps: stamps{Created: millis}})
	}
	first, second, third := at("c", 7), at("c", 7), at("c", 7)
	if other := at("d", 7); first != place(7, 0) || second != place(7, 1) || third != place(7, 2) || other != first {
		t.Errorf("places %d, %d, %d, and %d in another channel", first, second, third, other)
	}
	later, late, next := at("c", 8), at("c", 7), at("c", 8)
	if later != place(8, 0) || later <= third {
		t.Errorf("a later post is at %d, the one before at %d", later, third)
	}
	if late <= third || late >= later || next != place(8, 1) {
		t.Errorf("one that comes after it is at %d, the next at %d", late, next)
	}
}

// What was missed and cannot be asked for is an error, wherever it is asked from.
func TestMissedPostsThatCannotBeAskedFor(t *testing.T) {
	at := "GET " + v4 + "/channels/c/posts"
	c, s := scripted(t, map[string]string{at: "500"})
	c.rooms.fetched = map[string]anchor{"c": {"last", place(7, 0)}}
	for _, after := range []int64{place(7, 0), place(8, 0)} {
		if page, more, err := c.rooms.missed(t.Context(), "c", after); err == nil || len(page) > 0 || more {
			t.Errorf("after %d: %v, %v, %v", after, page, more, err)
		}
	}
	if asked := s.Of(at); len(asked) != 2 {
		t.Errorf("asked is %q", asked)
	}
	for answer, gone := range map[string]bool{"500": false, "403": true, "404": true, "200 <html>": false} {
		c, _ := scripted(t, map[string]string{at: answer})
		page, more, err := c.rooms.fetch(t.Context(), "c", place(7, 0))
		if err == nil || errors.Is(err, chat.ErrNoChannel) != gone || len(page) > 0 || more {
			t.Errorf("%s: %v, %v, %v", answer, page, more, err)
		}
		if strings.Contains(answer, "html") && !strings.Contains(err.Error(), "not what a Mattermost server says") {
			t.Errorf("%s: %v", answer, err)
		}
	}
}

// The files of a post that was edited were taken with it, and are not asked for again.
func TestFilesOfAnEditedPost(t *testing.T) {
	files := "GET " + v4 + "/posts/p/files/info"
	c, s := scripted(t, map[string]string{files: "500"})
	c.rooms.learn(room{ID: "c", Type: "D"})
	e := event{Event: "post_edited", post: post{ID: "p", Channel: "c", User: ada, Text: "new", FileIDs: []string{"f"},
		stamps: stamps{Edited: 5}}}
	p, ok, err := c.in.read(t.Context(), e)
	if err != nil || !ok || p.Text != "new" || p.Amends != "p" || len(s.Of(files)) > 0 {
		t.Errorf("%+v, %v, %v, asked %q", p, ok, err, s.Of(""))
	}
}

// What cannot be read of an event is an error, and what is nothing for an agent is not delivered.
func TestEventsAreTaken(t *testing.T) {
	var got []message.Incoming
	deliver := func(_ context.Context, in message.Incoming) (message.Receipt, error) {
		got = append(got, in)
		return message.Receipt{}, nil
	}
	for says, fails := range map[string]bool{`200 {"id":"c","type":"D"}`: false, "403": false, "500": true} {
		got = nil
		c, _ := scripted(t, map[string]string{"GET " + v4 + "/channels/c": says})
		for _, user := range []string{ada, me, ""} {
			a := chat.Arrival[event]{Channel: "c"}
			a.What = event{Event: "posted", post: post{ID: "p" + user, Channel: "c", User: user, Text: "hi"}}
			if err := c.take(t.Context(), deliver, a); (err != nil) != (fails && user == ada) {
				t.Errorf("%s, of %q: %v", says, user, err)
			}
		}
		if want := says[:1] == "2"; (len(got) == 1) != want || want && (got[0].Text != "hi" || got[0].From.UserID != ada) {
			t.Errorf("%s: delivered was %+v", says, got)
		}
	}
	c, _ := scripted(t, nil)
	if to, ok := c.Direct(ada); !ok || to.ChannelID != userPrefix+ada || to.UserID != ada {
		t.Errorf("the chat with a user is %+v, %v", to, ok)
	}
}
