package whatsapp

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"daycare/connectors/chat"
	"daycare/connectors/connectortest"
	"daycare/engine/message"
)

const (
	messages = "POST /" + numberID + "/messages"
	uploads  = "POST /" + numberID + "/media"
)

// asIs are answers that most tests need.
var asIs = map[string]string{messages: `200 {"messages":[{"id":"wamid.1"}]}`, uploads: `200 {"id":"77"}`,
	"GET /" + numberID: `200 {"display_phone_number":"+49","verified_name":"Bot"}`}

// scripted is a connector to an API with these answers.
func scripted(t *testing.T, o Options, host chat.Host, says map[string]string) (*Connector, *connectortest.Script) {
	t.Helper()
	s := connectortest.NewScript(t, says, asIs)
	o.ID, o.Number, o.BaseURL, o.Listen, o.Allow = "whatsapp", numberID, s.URL, "127.0.0.1:0", []string{ada}
	c, err := New(o, token, secret, host, quiet())
	if err != nil {
		t.Fatal(err)
	}
	c.pause = time.Millisecond
	return c, s
}

// failure is an error of Meta's.
func failure(status, code int) string {
	return fmt.Sprintf(`%d {"error":{"message":"no %s","code":%d,"error_data":{"details":"no %s"}}}`, status, token, code, token)
}

// What cannot be sent is not tried again where the reason stays.
func TestWhatCannotBeSent(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a")
	if err := os.WriteFile(path, []byte("content"), 0o600); err != nil {
		t.Fatal(err)
	}
	file := message.File{Name: "a", MimeType: "text/plain", Path: path, Size: 7}
	for name, tt := range map[string]struct {
		says  map[string]string
		file  message.File
		final bool
		after time.Duration
	}{
		"no such file":        {nil, message.File{Name: "a", Path: path + "2"}, true, 0},
		"a folder":            {nil, message.File{Name: "a", Path: filepath.Dir(path)}, false, 0},
		"a larger file":       {nil, message.File{Name: "a", Path: path, Size: maxDocument + 1}, true, 0},
		"the upload refused":  {map[string]string{uploads: failure(400, badParameter)}, file, true, 0},
		"a page of a proxy":   {map[string]string{uploads: "502 <html>"}, file, false, 0},
		"no number":           {map[string]string{messages: failure(400, undeliverable)}, file, true, 0},
		"not in the list":     {map[string]string{messages: failure(400, notInTestList)}, file, true, 0},
		"an unknown type":     {map[string]string{messages: failure(400, unknownType)}, file, true, 0},
		"a bad message":       {map[string]string{messages: failure(400, badMessage)}, file, true, 0},
		"busy":                {map[string]string{messages: "429"}, file, false, 3 * time.Second},
		"too many to one":     {map[string]string{messages: failure(400, pairLimit)}, file, false, 0},
		"not kept":            {map[string]string{messages: "200 {}"}, file, false, 0},
		"kept without an id":  {map[string]string{messages: `200 {"messages":[{"id":""}]}`}, file, false, 0},
		"no JSON":             {map[string]string{messages: "200 <html>"}, file, false, 0},
		"the token is broken": {map[string]string{messages: failure(401, badToken)}, file, false, 0},
		"the window closed":   {map[string]string{messages: failure(400, windowClosed)}, file, true, 0},
	} {
		c, _ := scripted(t, Options{}, chat.Host{}, tt.says)
		_, err := c.Send(t.Context(), message.Outgoing{ID: "o", Parts: 1, Text: "hi", To: message.Address{ChannelID: ada},
			Files: []message.File{tt.file}})
		var no *message.NotSent
		final := errors.As(err, &no) && no.Final
		if err == nil || final != tt.final || strings.Contains(err.Error(), token) || no != nil && no.After != tt.after {
			t.Errorf("%s: %v, %+v", name, err, no)
		}
		if broken := len(c.out.broken) == 1; broken != (name == "the token is broken") {
			t.Errorf("%s: the connector ends: %v", name, broken)
		}
		if name == "a page of a proxy" && !strings.Contains(err.Error(), "Bad Gateway") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// What Meta says that it sent is not sent again, text and files.
func TestWhatMetaConfirmedIsNotSentAgain(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a")
	if err := os.WriteFile(path, []byte("content"), 0o600); err != nil {
		t.Fatal(err)
	}
	out := message.Outgoing{ID: "o", Parts: 1, Text: "hi", To: message.Address{ChannelID: ada}, ReplyTo: "wamid.0",
		Files: []message.File{{Name: "a.png", MimeType: "image/png", Path: path, Size: maxImage},
			{Name: "b.png", MimeType: "image/png", Path: path, Size: maxImage + 1}, {Name: "c.txt", MimeType: "text/plain", Path: path}}}
	for _, retry := range []bool{false, true} {
		c, s := scripted(t, Options{}, chat.Host{}, nil)
		c.state.confirm(out.Key()+"/0", "wamid.text")
		c.state.confirm(out.Key()+"/2", "wamid.b")
		out.Retry = retry
		id, err := c.Send(t.Context(), out)
		sent := s.Of(messages)
		if want := map[bool]string{false: "wamid.1", true: "wamid.text"}[retry]; err != nil || id != want ||
			len(sent) != map[bool]int{false: 4, true: 2}[retry] || len(s.Of(uploads)) != map[bool]int{false: 3, true: 2}[retry] {
			t.Fatalf("again %v: %s, %v, %d uploads, sent %q", retry, id, err, len(s.Of(uploads)), sent)
		}
		if retry {
			continue
		}
		for i, want := range []string{`"context":{"message_id":"wamid.0"}`, `"image":{"id":"77"}`,
			`"document":{"filename":"b.png","id":"77"}`,
			`"document":{"filename":"c.txt","id":"77"}`} {
			if !strings.Contains(sent[i], want) || !strings.Contains(sent[i], fmt.Sprint(`"biz_opaque_callback_data":"`, out.Key(), "/",
				i)) {
				t.Errorf("message %d is %s", i, sent[i])
			}
		}
		if up := s.Of(uploads)[0]; !strings.Contains(up, "image/png") || !strings.Contains(up, `filename="a.png"`) ||
			!strings.Contains(up, "content") {
			t.Errorf("uploaded %s", up)
		}
	}
	out = message.Outgoing{ID: "p", Parts: 2, Part: 1, Text: "hi", To: message.Address{ChannelID: ada}, ReplyTo: "wamid.0"}
	c, s := scripted(t, Options{}, chat.Host{}, nil)
	if _, err := c.Send(t.Context(), out); err != nil || strings.Contains(s.Of(messages)[0], "wamid.0") {
		t.Errorf("the second part: %v, %q", err, s.Of(messages))
	}
	out.Part, out.ReplyTo = 0, "another"
	if _, err := c.Send(t.Context(), out); err != nil || strings.Contains(s.Of(messages)[1], "another") {
		t.Errorf("an answer to no message of WhatsApp: %v, %q", err, s.Of(messages))
	}
}

// Whoever did not write for long is asked to with the template, once, and in which language.
func TestTemplates(t *testing.T) {
	for name, tt := range map[string]struct {
		template Template
		answer   string
		final    bool
		asked    string
		tries    int
	}{
		"none":             {Template{}, "", true, "", 0},
		"in English":       {Template{Name: "hello"}, asIs[messages], false, `"language":{"code":"en"}`, 1},
		"in German":        {Template{Name: "hello", Language: "de"}, asIs[messages], false, `"language":{"code":"de"}`, 1},
		"not there":        {Template{Name: "hello"}, failure(404, noTemplate), true, `"name":"hello"`, 2},
		"not approved yet": {Template{Name: "hello"}, failure(400, notYetApproved), true, `"name":"hello"`, 2},
		"not now":          {Template{Name: "hello"}, "502", false, `"name":"hello"`, 2},
	} {
		c, s := scripted(t, Options{Template: tt.template}, chat.Host{}, map[string]string{messages: tt.answer})
		c.state.wrote(ada, "wamid.0", time.Now().Add(-25*time.Hour))
		for range 2 {
			_, err := c.Send(t.Context(), message.Outgoing{ID: "o", Parts: 1, Text: "hi", To: message.Address{ChannelID: ada}})
			var no *message.NotSent
			if final := errors.As(err, &no) && no.Final; err == nil || final != tt.final || strings.HasPrefix(name, "in ") &&
				no.After != afterAsking {
				t.Errorf("%s: %v, %+v", name, err, no)
			}
			if tt.template.Name == "" && !strings.Contains(err.Error(), "set template") {
				t.Errorf("%s: %v", name, err)
			}
		}
		if sent := s.Of(messages); len(sent) != tt.tries || tt.tries > 0 && !strings.Contains(sent[0], tt.asked) {
			t.Errorf("%s: sent %q", name, sent)
		}
		if _, err := c.Card(t.Context(), message.Address{ChannelID: ada}, "", "?", nil); err == nil {
			t.Errorf("%s: a card was sent", name)
		}
	}
}

// A file of a message is found by its id, and fetched from Meta alone.
func TestDownloads(t *testing.T) {
	for name, tt := range map[string]struct{ id, found, want string }{
		"a file":              {"1234567", `200 {"url":"BASE/file"}`, "content"},
		"an id that is none":  {"../me", `200 {"url":"BASE/file"}`, ""},
		"gone":                {"1234567", failure(404, 100), ""},
		"elsewhere":           {"1234567", `200 {"url":"https://evil.example/file"}`, ""},
		"as if of Meta":       {"1234567", `200 {"url":"https://evilfbsbx.com/file"}`, ""},
		"no address":          {"1234567", `200 {"url":"%zz"}`, ""},
		"of Meta without TLS": {"1234567", `200 {"url":"http://x.fbsbx.com/file"}`, ""},
	} {
		says := map[string]string{"GET /file": "200 content"}
		c, s := scripted(t, Options{}, chat.Host{}, says)
		says["GET /1234567"] = strings.Replace(tt.found, "BASE", s.URL, 1)
		body, err := c.api.open(t.Context(), tt.id)
		got := ""
		if err == nil {
			data, rerr := io.ReadAll(body)
			got, err = string(data), errors.Join(rerr, body.Close())
		}
		if got != tt.want || (err == nil) != (tt.want != "") {
			t.Errorf("%s: %q, %v", name, got, err)
		}
		if err != nil && strings.Contains(err.Error(), token) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// What is beside answers and is refused is an error, and so is what Meta says of the number.
func TestRefusals(t *testing.T) {
	where := message.Address{ChannelID: ada}
	for what, do := range map[string]func(c *Connector) error{
		"Say":   func(c *Connector) error { return c.Say(context.Background(), where, "x", "hi") },
		"React": func(c *Connector) error { return c.React(context.Background(), where, "wamid.1", "👍") },
		"Typing": func(c *Connector) error {
			c.state.wrote(ada, "wamid.9", time.Now())
			return c.Typing(context.Background(), where)
		},
		"Card": func(c *Connector) error {
			_, err := c.Card(context.Background(), where, "", "?", []chat.Choice{{Label: "yes", Data: "y"}})
			return err
		},
		"a long Card": func(c *Connector) error {
			_, err := c.Card(context.Background(), where, "", strings.Repeat("x", maxBodyText+1), []chat.Choice{{Label: "yes", Data: "y"}})
			return err
		},
		"Settle": func(c *Connector) error { return c.Settle(context.Background(), where, "wamid.1", "?\ndone") },
	} {
		for _, answer := range []string{asIs[messages], "502", failure(400, badParameter)} {
			c, s := scripted(t, Options{}, chat.Host{}, map[string]string{messages: answer})
			err := do(c)
			if (err == nil) != (answer == asIs[messages]) || err != nil && strings.Contains(err.Error(), token) ||
				len(s.Of(messages)) == 0 {
				t.Errorf("%s %.20s: %v", what, answer, err)
			}
			if what == "Settle" && !strings.Contains(s.Of(messages)[0], `"body":"done"`) || what == "Say" &&
				strings.Contains(s.Of(messages)[0], "context") {
				t.Errorf("%s: sent %q", what, s.Of(messages))
			}
			if what == "a long Card" && err == nil && (len(s.Of(messages)) != 2 || !strings.Contains(s.Of(messages)[1],
				"Your answer to the request above")) {
				t.Errorf("%s: sent %q", what, s.Of(messages))
			}
		}
	}
	c, s := scripted(t, Options{}, chat.Host{}, nil)
	if err := c.Typing(t.Context(), where); err != nil || len(s.Of("POST")) > 0 {
		t.Errorf("typing to somebody who never wrote: %v, %q", err, s.Of("POST"))
	}
	for answer, want := range map[string]string{failure(401, badToken): "daycare auth set whatsapp", "502": "Bad Gateway"} {
		c, _ := scripted(t, Options{}, chat.Host{}, map[string]string{"GET /" + numberID: answer})
		if _, err := c.Probe(t.Context()); err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), token) {
			t.Errorf("Probe: %v, want %s", err, want)
		}
	}
}

// broken is a keeper that cannot keep.
type broken struct{ connectortest.Keeper }

func (*broken) Save(string, string, []byte) error { return fs.ErrPermission }

// A command that cannot be remembered is posted again; what is known of others is as before.
func TestWhatCannotBeRemembered(t *testing.T) {
	c, _ := scripted(t, Options{}, chat.Host{Waiting: &broken{}}, nil)
	if err := c.state.did("1"); !errors.Is(err, fs.ErrPermission) {
		t.Errorf("did: %v", err)
	}
	now := time.Now()
	c.state.wrote(ada, "new", now)
	c.state.wrote(ada, "old", now.Add(-time.Hour)) // comes late
	c.state.asked(ada)
	if c.state.message(ada) != "new" || !c.state.open(ada) || c.state.asks(ada) {
		t.Errorf("%+v", c.state.kept)
	}
	c.state.wrote(ada, "newer", now.Add(time.Second))
	if c.state.message(ada) != "newer" || !c.state.asks(ada) {
		t.Errorf("%+v", c.state.kept)
	}

	keeper := &connectortest.Keeper{}
	if err := keeper.Save("whatsapp", stateFile, []byte("{")); err != nil {
		t.Fatal(err)
	}
	c, _ = scripted(t, Options{}, chat.Host{Waiting: keeper}, nil)
	if c.state.done("1") {
		t.Error("of a broken file something is known")
	}
	for i := range maxCommands + 1 {
		if err := c.state.did(fmt.Sprint(i)); err != nil {
			t.Fatal(err)
		}
	}
	again, _ := scripted(t, Options{}, chat.Host{Waiting: keeper}, nil)
	if again.state.done("0") || !again.state.done("1") || !again.state.done(fmt.Sprint(maxCommands)) {
		t.Errorf("%d commands are remembered", len(again.state.kept.Commands))
	}
	for i := range maxUsers + 1 {
		again.state.kept.Wrote[fmt.Sprint(i)] = now
	}
	if again.state.wrote("one more", "x", now); again.state.message("one more") != "" {
		t.Error("there is no end to who is remembered")
	}
	for i := range maxConfirmed + 1 {
		again.state.confirm(fmt.Sprint(i), "id")
	}
	again.state.confirm("1", "id")
	if again.state.sent("0") != "" || again.state.sent("1") != "id" || len(again.state.confirmed) != maxConfirmed {
		t.Errorf("%d parts are confirmed", len(again.state.confirmed))
	}
}
