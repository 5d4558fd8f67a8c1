package mattermost

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
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
	c, err := New(Options{ID: "mattermost", URL: s.URL, Allow: []string{ada}}, token, chat.Host{}, quiet())
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

// What is written on the websocket that is not an event is passed over.
func TestEventsThatCannotBeRead(t *testing.T) {
	c, _ := scripted(t, nil)
	for _, e := range []event{{Event: "typing"}, {Event: "posted"}, {Event: "post_edited"}, {Event: "reaction_added"}} {
		for _, text := range []string{"", "{", "{}", "[]"} {
			e.Data.Post, e.Data.Reaction = text, text
			c.happened(e) // which would panic, or wait, if it took it
		}
	}
}
