package discord

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"daycare/connectors/chat"
	"daycare/connectors/connectortest"
	"daycare/engine/message"
)

// Ids as Discord has them.
const (
	channelID = "800000000000000001"
	threadID  = "800000000000000002"
	messageID = "800000000000000003"
	posts     = "POST /channels/" + channelID + "/messages"
	inThread  = "POST /channels/" + threadID + "/messages"
	begins    = "POST /channels/" + channelID + "/messages/" + threadID + "/threads"
	opens     = "POST /users/@me/channels"
)

// asIs are answers that most tests need.
var asIs = map[string]string{posts: `200 {"id":"1"}`, inThread: `200 {"id":"2"}`, begins: "201 {}", opens: `200 {"id":"` + channelID + `"}`,
	"GET /applications/@me": `200 {"id":"app","bot":{"id":"9","username":"bot"}}`, "PUT /applications/app/commands": "200 []"}

// scripted is a connector to an API with these answers.
func scripted(t *testing.T, says map[string]string) (*Connector, *connectortest.Script) {
	t.Helper()
	s := connectortest.NewScript(t, says, asIs)
	c, err := New(Options{Settings: chat.Settings{ID: "discord", Allow: []string{ada}}, BaseURL: s.URL}, token, chat.Host{}, quiet())
	if err != nil {
		t.Fatal(err)
	}
	c.pause = time.Millisecond
	return c, s
}

// What cannot be sent is not tried again where the reason stays.
func TestWhatCannotBeSent(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a")
	if err := os.WriteFile(path, []byte("content"), 0o600); err != nil {
		t.Fatal(err)
	}
	file := message.File{Name: "a.txt", Path: path, Size: 7}
	for name, tt := range map[string]struct {
		says  map[string]string
		to    message.Address
		file  message.File
		ok    bool
		final bool
		after time.Duration
	}{
		"all is well":  {nil, message.Address{ChannelID: channelID}, file, true, false, 0},
		"a user":       {nil, message.Address{ChannelID: userPrefix + ada}, file, true, false, 0},
		"no such file": {nil, message.Address{ChannelID: channelID}, message.File{Name: "a", Path: path + "2"}, false, true, 0},
		"a folder": {nil, message.Address{ChannelID: channelID}, message.File{Name: "a", Path: filepath.Dir(path)}, false,
			false, 0},
		"forbidden": {map[string]string{posts: `403 {"message":"no ` + token + `"}`}, message.Address{ChannelID: channelID},
			file, false, true, 0},
		"too large":          {map[string]string{posts: "413 <html>"}, message.Address{ChannelID: channelID}, file, false, true, 0},
		"broken":             {map[string]string{posts: "502"}, message.Address{ChannelID: channelID}, file, false, false, 0},
		"busy":               {map[string]string{posts: "429"}, message.Address{ChannelID: channelID}, file, false, false, 3 * time.Second},
		"not kept":           {map[string]string{posts: "200 {}"}, message.Address{ChannelID: channelID}, file, false, false, 0},
		"no JSON":            {map[string]string{posts: "200 <html>"}, message.Address{ChannelID: channelID}, file, false, false, 0},
		"a user who blocked": {map[string]string{opens: "403"}, message.Address{ChannelID: userPrefix + ada}, file, false, true, 0},
	} {
		c, s := scripted(t, tt.says)
		id, err := c.Send(t.Context(), message.Outgoing{ID: "o", Parts: 1, Text: "hi", To: tt.to, ReplyTo: messageID,
			Files: []message.File{tt.file}})
		var no *message.NotSent
		final := errors.As(err, &no) && no.Final
		if (err == nil) != tt.ok || final != tt.final || tt.ok && id != "1" || err != nil && strings.Contains(err.Error(), token) ||
			no != nil && no.After != tt.after {
			t.Errorf("%s: %s, %v, %+v", name, id, err, no)
		}
		if sent := s.Of(posts); tt.ok && (len(sent) != 1 || !strings.Contains(sent[0], `filename="a.txt"`) || !strings.Contains(sent[0],
			"content") ||
			!strings.Contains(sent[0], `"message_reference":{"message_id":"`+messageID+`"`)) {
			t.Errorf("%s: sent %q", name, sent)
		}
		if name == "too large" && !strings.Contains(err.Error(), "Request Entity Too Large") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// An answer in a thread begins it where there is none; one that somebody else begins meanwhile is as
// good.
func TestThreadsThatAnAnswerBegins(t *testing.T) {
	missing := `404 {"code":10003,"message":"Unknown Channel"}`
	for name, tt := range map[string]struct {
		says    map[string]string
		ok      bool
		begun   int
		replies int
	}{
		"it is there":             {nil, true, 0, 1},
		"there is none":           {map[string]string{inThread: missing}, false, 1, 2},
		"it cannot be begun":      {map[string]string{inThread: missing, begins: "403"}, false, 1, 1},
		"another began it":        {map[string]string{inThread: missing, begins: `400 {"code":160004,"message":"x"}`}, false, 1, 2},
		"it is not for us":        {map[string]string{inThread: `403 {"code":50001,"message":"x"}`}, false, 0, 1},
		"the user cannot be told": {map[string]string{opens: "403"}, false, 0, 0},
	} {
		c, s := scripted(t, tt.says)
		to := message.Address{ChannelID: channelID, ThreadID: threadID}
		if name == "the user cannot be told" {
			to.ChannelID = userPrefix + ada
		}
		_, err := c.Send(t.Context(), message.Outgoing{ID: "o", Parts: 1, Text: "# a title\nand more", To: to, ReplyTo: threadID})
		if (err == nil) != tt.ok || len(s.Of(begins)) != tt.begun || len(s.Of(inThread)) != tt.replies {
			t.Errorf("%s: %v, %q", name, err, s.Of("POST"))
		}
		if tt.begun > 0 && !strings.Contains(s.Of(begins)[0], `"name":"a title"`) {
			t.Errorf("%s: begun with %q", name, s.Of(begins))
		}
		if tt.replies > 0 && strings.Contains(s.Of(inThread)[0], "message_reference") {
			t.Errorf("%s: a thread answers the message that it is under: %q", name, s.Of(inThread))
		}
	}
	for text, want := range map[string]string{"": "answer", "** \n": "answer", "# *one*\ntwo": "one", strings.Repeat("ä",
		81): strings.Repeat("ä", 79) + "…",
		strings.Repeat("ä", 80): strings.Repeat("ä", 80)} {
		if got := titleOf(text); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}

// What is beside answers and is refused is an error.
func TestRefusals(t *testing.T) {
	here, there := message.Address{ChannelID: channelID}, message.Address{ChannelID: userPrefix + ada}
	reacts := "PUT /channels/" + channelID + "/messages/" + messageID + "/reactions/👍/@me"
	edits := "PATCH /channels/" + channelID + "/messages/" + messageID
	for name, tt := range map[string]struct {
		at string
		do func(c *Connector, to message.Address) error
	}{
		"React": {reacts, func(c *Connector, to message.Address) error {
			return c.React(context.Background(), to, messageID, "👍")
		}},
		"Typing": {"POST /channels/" + channelID + "/typing", func(c *Connector,
			to message.Address) error {
			return c.Typing(context.Background(), to)
		}},
		"Edit": {edits, func(c *Connector, to message.Address) error {
			return pen{Connector: c}.Edit(context.Background(), to, messageID, "x")
		}},
		"Settle": {edits, func(c *Connector, to message.Address) error {
			return c.Settle(context.Background(), to, messageID, "x")
		}},
		"Say": {posts, func(c *Connector, to message.Address) error { return c.Say(context.Background(), to, messageID, "hi") }},
		"Post": {posts, func(c *Connector, to message.Address) error {
			_, err := pen{Connector: c}.Post(context.Background(), to, "", messageID, "hi")
			return err
		}},
		"Card": {posts, func(c *Connector, to message.Address) error {
			_, err := c.Card(context.Background(), to, "", "?", []chat.Choice{{Label: "yes", Data: "y"}})
			return err
		}},
	} {
		for answer, ok := range map[string]bool{`200 {"id":"1"}`: true, "400": false, "502": false} {
			for _, to := range []message.Address{here, there} {
				c, s := scripted(t, map[string]string{tt.at: answer})
				if err := tt.do(c, to); (err == nil) != ok || len(s.Of(tt.at)) != 1 {
					t.Errorf("%s to %s %s: %v after %q", name, to.ChannelID, answer, err, s.Of(""))
				}
				if said := s.Of(tt.at)[0]; (name == "Say" || name == "Post") && !strings.Contains(said, `"message_id":"`+messageID+`"`) {
					t.Errorf("%s answers nothing: %s", name, said)
				}
			}
		}
		c, _ := scripted(t, map[string]string{opens: "403"})
		if err := tt.do(c, there); err == nil {
			t.Errorf("%s to a user who cannot be written to is no error", name)
		}
	}
	c, s := scripted(t, map[string]string{reacts: "200 {}"})
	if err := c.React(t.Context(), message.Address{ChannelID: channelID, ThreadID: threadID}, messageID, "👍"); err != nil ||
		len(s.Of("PUT")) != 2 {
		t.Errorf("under the message that a thread begins with: %v, %q", err, s.Of("PUT"))
	}
	c, _ = scripted(t, map[string]string{reacts: "400"})
	if err := c.React(t.Context(), here, messageID, "👍"); err == nil || !strings.Contains(err.Error(), "Unicode emoji") {
		t.Error(err)
	}
	if err := c.React(t.Context(), here, "$1", "👍"); err == nil || !strings.Contains(err.Error(), "not a Discord message id") {
		t.Error(err)
	}
	if err := c.Say(t.Context(), here, "", " "); err != nil {
		t.Errorf("nothing to say: %v", err)
	}
}

// What channel it is is asked once; of one that is gone nothing is known, and it is asked again.
func TestChannelsThatAreLookedUp(t *testing.T) {
	at := "GET /channels/" + channelID
	page := at + "/messages"
	for name, tt := range map[string]struct {
		channel, page string
		want          error
		got           int
	}{
		"of a server":       {`200 {"id":"` + channelID + `","guild_id":"g"}`, `200 [{"id":"2"},{"id":"1"}]`, nil, 2},
		"a private chat":    {`200 {"id":"` + channelID + `","type":1}`, `200 [{"id":"2"},{"id":"1"}]`, nil, 2},
		"gone":              {"404", "200 []", chat.ErrNoChannel, 0},
		"forbidden":         {"403", "200 []", chat.ErrNoChannel, 0},
		"not to be read":    {`200 {"id":"` + channelID + `","guild_id":"g"}`, "403", chat.ErrNoChannel, 0},
		"broken":            {"502", "200 []", nil, -1},
		"broken in the end": {`200 {"id":"` + channelID + `","guild_id":"g"}`, "502", nil, -1},
		"no JSON":           {`200 {"id":"` + channelID + `","guild_id":"g"}`, "200 {}", nil, -1},
	} {
		c, s := scripted(t, map[string]string{at: tt.channel, page: tt.page})
		for range 2 {
			got, more, err := c.in.rooms.fetch(t.Context(), channelID, 0)
			if len(got) != max(tt.got, 0) || more || (err == nil) != (tt.want == nil && tt.got >= 0) || tt.want != nil && !errors.Is(err,
				tt.want) {
				t.Errorf("%s: %v, %v", name, got, err)
			}
			if len(got) == 2 && (got[0].At != 1 || got[1].At != 2) {
				t.Errorf("%s: %v", name, got)
			}
		}
		asked := len(s.Of(at)) - len(s.Of(page))
		if want := map[bool]int{true: 1, false: 2}[strings.HasPrefix(tt.channel, "200")]; asked != want {
			t.Errorf("%s: asked %d times", name, asked)
		}
	}
	c, s := scripted(t, map[string]string{page: "200 []"})
	if _, _, err := c.in.rooms.direct(t.Context(), ada); err != nil {
		t.Fatal(err)
	}
	if server, err := c.in.rooms.server(t.Context(), channelID); server != "" || err != nil || len(s.Of(at)) > 0 {
		t.Errorf("the private chat of a user: %q, %v, %q", server, err, s.Of(at))
	}
}

// What the gateway says of servers and channels, in the order in which it says it.
func TestWhatIsKnownOfServers(t *testing.T) {
	c, _ := scripted(t, nil)
	r := c.in.rooms
	say := func(name, data string) error {
		var beside sync.WaitGroup
		defer beside.Wait()
		ctx, cancel := context.WithCancel(t.Context())
		cancel() // nobody is asked for anything
		return c.happened(ctx, nil, &beside, name, json.RawMessage(data))
	}
	must := func(name, data string) {
		t.Helper()
		if err := say(name, data); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
	}
	for _, name := range []string{"READY", "GUILD_CREATE", "GUILD_DELETE", "CHANNEL_CREATE", "THREAD_UPDATE", "MESSAGE_CREATE",
		"INTERACTION_CREATE"} {
		if err := say(name, `"x"`); err == nil {
			t.Errorf("%s that cannot be read is no error", name)
		}
	}
	if err := say("TYPING_START", `"x"`); err != nil {
		t.Error(err)
	}

	must("READY", `{"user":{"id":"9"},"guilds":[{"id":"g1"},{"id":"g2"}]}`)
	must("READY", `{"user":{"id":"9"},"guilds":[{"id":"g1"},{"id":"g3"}]}`) // a new session: g2 is not waited for
	r.directsKnown()
	for i, step := range []struct{ name, data string }{
		{"GUILD_CREATE", `{"id":"g1","channels":[{"id":"c1","last_message_id":"7"},{"id":"c2"}],` +
			`"threads":[{"id":"t1","type":11,"parent_id":"c1"}],` +
			`"roles":[{"id":"r1","tags":{"bot_id":"9"}},{"id":"r2","tags":{"bot_id":"8"}},{"id":"r3"}]}`},
		{"GUILD_CREATE", `{"id":"g3","unavailable":true}`},
		{"GUILD_DELETE", `{"id":"g3","unavailable":true}`},
	} {
		if r.known() {
			t.Errorf("all is known before step %d", i)
		}
		must(step.name, step.data)
	}
	if r.known() {
		t.Error("a server that is away for a while is not waited for")
	}
	must("GUILD_CREATE", `{"id":"g3","channels":[{"id":"c3"}]}`)
	if !r.known() || !r.ours([]string{"r3", "r1"}) || r.ours([]string{"r2", "r3"}) || r.ours(nil) {
		t.Errorf("known %v, ours %v", r.known(), r.roles)
	}
	has := func() (all []string) {
		for _, id := range []string{"c1", "c2", "c3", "c4", "t1"} {
			if one, ok := r.seen(id); ok {
				all = append(all, id+" of "+one.Guild+fmt.Sprint(" ", one.thread()))
			}
		}
		return all
	}
	if got := has(); !slices.Equal(got, []string{"c1 of g1 false", "c2 of g1 false", "c3 of g3 false", "t1 of g1 true"}) {
		t.Errorf("channels: %q", got)
	}
	must("CHANNEL_CREATE", `{"id":"c4","guild_id":"g3"}`)
	must("THREAD_UPDATE", `{"id":"t1","type":11,"thread_metadata":{"archived":true}}`)
	must("GUILD_DELETE", `{"id":"g1"}`)
	if got := has(); !slices.Equal(got, []string{"c3 of g3 false", "c4 of g3 false"}) || !r.known() {
		t.Errorf("channels: %q, known %v", got, r.known())
	}
	newest, err := r.guild(json.RawMessage(`{"id":"g1","channels":[{"id":"c1","last_message_id":"7"},{"id":"c2"},` +
		`{"id":"c5","last_message_id":"x"}]}`))
	if err != nil || len(newest) != 1 || newest["c1"] != 7 {
		t.Errorf("newest messages: %v, %v", newest, err)
	}
}

// A bot introduces itself once, and goes on without its menu; what Discord says of it is explained.
func TestIntroductions(t *testing.T) {
	who, menus := "GET /applications/@me", "PUT /applications/app/commands"
	for answer, want := range map[string]int{asIs[menus]: 1, "500": 1} {
		c, s := scripted(t, map[string]string{menus: answer})
		for range 2 {
			if err := c.introduce(t.Context()); err != nil {
				t.Error(err)
			}
		}
		if len(s.Of(menus)) != want {
			t.Errorf("the menu was set %d times", len(s.Of(menus)))
		}
	}
	guilds, starts := "GET /users/@me/guilds", "GET /gateway/bot"
	begins := `200 {"url":"wss://x","session_start_limit":{"remaining":5}}`
	for name, tt := range map[string]struct {
		says map[string]string
		want string
	}{
		"well": {map[string]string{guilds: "200 [{}]", starts: begins},
			"bot answers; it is in 1 servers; it can connect 5 more times today"},
		"nowhere": {map[string]string{guilds: "200 []", starts: begins},
			"invite it: https://discord.com/oauth2/authorize?client_id=app"},
		"revoked":        {map[string]string{who: "401"}, "daycare auth set discord"},
		"no servers":     {map[string]string{guilds: "502", starts: begins}, "list servers"},
		"no connections": {map[string]string{guilds: "200 []", starts: "502"}, "502"},
	} {
		c, _ := scripted(t, tt.says)
		verdict, err := c.Probe(t.Context())
		if err != nil {
			verdict = err.Error()
		}
		if !strings.Contains(verdict, tt.want) || (err == nil) != (name == "well" || name == "nowhere") {
			t.Errorf("%s: %q, %v", name, verdict, err)
		}
	}
}

// Whom the bot cannot write to is passed over; all else is asked again.
func TestPrivateChatsOfTheAllowList(t *testing.T) {
	for _, answer := range []string{asIs[opens], "400", "403", "404"} {
		c, s := scripted(t, map[string]string{opens: answer})
		c.in.rooms.openings = true
		c.directs(t.Context())
		if len(s.Of(opens)) != 1 || c.in.rooms.openings {
			t.Errorf("%s: asked %d times, known %v", answer, len(s.Of(opens)), !c.in.rooms.openings)
		}
	}
	says := map[string]string{opens: "502"}
	c, s := scripted(t, says)
	c.in.rooms.openings = true
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { c.directs(ctx); close(done) }()
	for len(s.Of(opens)) < 3 {
		time.Sleep(time.Millisecond)
	}
	cancel()
	<-done
	if !c.in.rooms.openings {
		t.Error("private chats that could not be asked for are known")
	}
}

// Interactions that Discord does not take any more are dropped, and one that cannot be done says so.
func TestInteractionsThatFail(t *testing.T) {
	ack, first := "POST /interactions/1/tok/callback", "PATCH /webhooks/app/tok/messages/@original"
	later := "POST /webhooks/app/tok"
	i := interaction{ID: "1", App: "app", Token: "tok", Type: button, Channel: channelID, User: user{ID: ada}}
	for name, tt := range map[string]struct {
		says map[string]string
		want int // answers
	}{"well": {map[string]string{ack: "204", first: "200 {}"}, 1}, "too late": {map[string]string{ack: "404"}, 0},
		"not answered": {map[string]string{ack: "204", first: "404"}, 1}} {
		c, s := scripted(t, tt.says)
		c.talks.handle(t.Context(), nil, i)
		if len(s.Of(ack)) != 1 || len(s.Of(first)) != tt.want || len(c.talks.open) != 0 {
			t.Errorf("%s: %q, open %v", name, s.Of(""), c.talks.open)
		}
	}
	c, s := scripted(t, map[string]string{ack: "204", first: "200 {}", later: "200 {}"})
	c.talks.open[talkPrefix+"1"] = &talk{app: "app", token: "tok"}
	for range 2 {
		if ok, err := c.talks.say(t.Context(), talkPrefix+"1", "hi"); !ok || err != nil {
			t.Error(ok, err)
		}
	}
	if len(s.Of(first)) != 1 || len(s.Of(later+" ")) != 1 || !strings.Contains(s.Of(later + " ")[0], `"flags":68`) {
		t.Errorf("%q", s.Of(""))
	}
	if ok, err := c.talks.say(t.Context(), messageID, "hi"); ok || err != nil {
		t.Errorf("what is no interaction was answered: %v, %v", ok, err)
	}
	var beside sync.WaitGroup
	if err := c.talks.begin(t.Context(), nil, &beside, json.RawMessage("{")); err == nil {
		t.Error("what cannot be read is no error")
	}

	for want, i := range map[message.Address]interaction{
		{ChannelID: "c", UserID: "u"}: {Channel: "c", User: user{ID: "u"}},
		{ChannelID: "c", UserID: "m"}: {Channel: "c", User: user{ID: "u"}, Member: struct {
			User user `json:"user"`
		}{user{ID: "m"}}},
		{ChannelID: "p", ThreadID: "c", UserID: "u"}: {Channel: "c", User: user{ID: "u"}, Room: room{Type: 11, Parent: "p"}},
		{ChannelID: "t", UserID: "u"}:                {Channel: "t", User: user{ID: "u"}, Room: room{Type: 11}},
		{ChannelID: "d", UserID: "u"}:                {Channel: "d", User: user{ID: "u"}, Room: room{Type: 0, Parent: "category"}},
	} {
		if got := i.from(); got != want {
			t.Errorf("%+v is from %+v, want %+v", i, got, want)
		}
	}
}

// Files of messages come from Discord alone.
func TestDownloads(t *testing.T) {
	says := map[string]string{"GET /file": "200 content", "GET /gone": "404"}
	c, s := scripted(t, says)
	for address, want := range map[string]string{s.URL + "/file": "content", s.URL + "/gone": "", "https://evil.example/x": "", "%zz": "",
		"http://cdn.discordapp.com/x": "", "https://evildiscordapp.com/x": ""} {
		body, err := c.api.download(t.Context(), address)
		got := ""
		if err == nil {
			data, rerr := io.ReadAll(body)
			got, err = string(data), errors.Join(rerr, body.Close())
		}
		if got != want || (err == nil) != (want != "") {
			t.Errorf("%s: %q, %v", address, got, err)
		}
	}
}

// Attachments are fetched from every host of Discord's, and from no host that only ends like one.
func TestHostsOfAttachments(t *testing.T) {
	c, _ := scripted(t, nil)
	ctx, cancel := context.WithCancel(t.Context())
	cancel() // nothing is fetched
	for address, want := range map[string]bool{"https://cdn.discordapp.com/a": true, "https://media.discordapp.net/a": true,
		"https://discordapp.com.evil.example/a": false, "https://evildiscordapp.net/a": false, "ftp://cdn.discordapp.com/a": false} {
		_, err := c.api.download(ctx, address)
		if err == nil || strings.Contains(err.Error(), "not Discord's") == want {
			t.Errorf("%s: %v", address, err)
		}
	}
}

// A rate limit holds its own route back, and a global one all of them; a route that has used up what
// it may is not asked before its time.
func TestRateLimitsHoldRoutesBack(t *testing.T) {
	call := func(c *Connector, path string) time.Duration {
		t.Helper()
		return retryAfter(c.api.call(t.Context(), request{name: "x", method: http.MethodGet, path: path}, nil))
	}
	for body, global := range map[string]bool{`{"message":"slow","retry_after":60,"global":true}`: true,
		`{"message":"slow","retry_after":60}`: false} {
		c, s := scripted(t, map[string]string{"GET /one": "429 " + body, "GET /two": "200 {}"})
		if wait := call(c, "/one"); wait != time.Minute {
			t.Errorf("%s: wait %v", body, wait)
		}
		if wait := call(c, "/two"); (wait > 50*time.Second) != global || (len(s.Of("GET /two")) == 0) != global {
			t.Errorf("%s: another route waits %v, asked %q", body, wait, s.Of(""))
		}
		if wait := call(c, "/one"); wait < 50*time.Second || len(s.Of("GET /one")) != 1 {
			t.Errorf("%s: the same waits %v, asked %q", body, wait, s.Of(""))
		}
	}
}

// A message whose channel cannot be looked up now is not taken for one that says nothing: it is
// tried again.
func TestMessagesOfUnknownChannels(t *testing.T) {
	c, _ := scripted(t, map[string]string{"GET /channels/" + channelID: "502"})
	m := incoming{kind: "MESSAGE_CREATE", ID: messageID, Channel: channelID, Guild: "g"}
	m.Author.ID, m.Content = ada, "hi"
	c.in.rooms.me.Bot.ID = "9"
	m.Mentions = []user{{ID: "9"}}
	e := &connectortest.Taker{}
	err := c.take(t.Context(), e.Deliver, chat.Arrival[incoming]{What: m})
	if err == nil || len(e.Texts()) > 0 {
		t.Errorf("%v, %q", err, e.Texts())
	}
}

// A session is continued after the newest event that came.
func TestTheNewestEventIsKnown(t *testing.T) {
	c, _ := scripted(t, nil)
	var told []string
	c.gate.dispatch = func(name string, _ json.RawMessage) { told = append(told, name) }
	l, one, two := &link{gateway: c.gate}, int64(1), int64(2)
	if err := l.event(frame{Name: "EARLY", Seq: &one}); err != nil {
		t.Fatal(err) // without a session
	}
	s := &session{id: "1"}
	c.gate.session.Store(s)
	for _, f := range []frame{{Name: "A", Seq: &one}, {Name: "B", Seq: &two}, {Name: "C"}} {
		if err := l.event(f); err != nil {
			t.Fatal(err)
		}
	}
	if s.last.Load() != 2 || len(told) != 4 {
		t.Errorf("the newest is %d, told %q", s.last.Load(), told)
	}
	if err := l.event(frame{Name: "READY", Data: json.RawMessage(`[]`)}); err == nil || c.gate.session.Load() != s {
		t.Errorf("a broken READY: %v", err)
	}
}

// A bot that Discord does not tell who it is connects to nothing.
func TestNoConnectionWithoutAnIntroduction(t *testing.T) {
	for answer, want := range map[string]string{"503": "503", "401": "daycare auth set discord"} {
		c, s := scripted(t, map[string]string{"GET /applications/@me": answer})
		err := c.Run(t.Context(), (&connectortest.Taker{}).Deliver)
		if err == nil || !strings.Contains(err.Error(), want) || len(s.Of("GET /gateway")) > 0 {
			t.Errorf("%s: %v, asked %q", answer, err, s.Of(""))
		}
	}
}
