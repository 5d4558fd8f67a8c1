package matrix

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"daycare/connectors/chat"
	"daycare/connectors/connectortest"
	"daycare/engine/message"
)

// asIs are answers that most tests need.
var asIs = map[string]string{
	"GET /_matrix/client/v3/account/whoami":                  `200 {"user_id":"` + bot + `"}`,
	"GET /_matrix/client/v3/profile/" + bot + "/displayname": `200 {"displayname":"Daybot"}`,
}

// scripted is a connector to a homeserver with these answers.
func scripted(t *testing.T, says map[string]string) (*Connector, *connectortest.Script) {
	t.Helper()
	s := connectortest.NewScript(t, says, asIs)
	c, err := New(Options{Settings: chat.Settings{ID: "matrix", Allow: []string{ada}}, Homeserver: s.URL}, canary, chat.Host{},
		slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	c.pause = time.Millisecond
	return c, s
}

const (
	sending  = "PUT /_matrix/client/v3/rooms/" + adaRoom + "/send/"
	sendings = sending + "*"
	uploads  = "POST /_matrix/media/v3/upload"
)

// A file goes to the homeserver first, and is then a message of its kind in the thread.
func TestFilesAreSent(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a")
	if err := os.WriteFile(path, []byte("content"), 0o600); err != nil {
		t.Fatal(err)
	}
	for media, want := range map[string][2]string{"image/png": {"m.image", "image/png"}, "audio/ogg": {"m.audio", "audio/ogg"},
		"video/mp4": {"m.video", "video/mp4"}, "text/plain": {"m.file", "text/plain"}, "": {"m.file", "application/octet-stream"}} {
		c, s := scripted(t, map[string]string{uploads: `200 {"content_uri":"mxc://x/y"}`, sendings: `200 {"event_id":"$1"}`})
		out := message.Outgoing{ID: "o", Parts: 1, To: message.Address{ChannelID: adaRoom, ThreadID: "$t"}, Text: "look",
			Files: []message.File{{Name: "a b.bin", MimeType: media, Path: path, Size: 7}}}
		id, err := c.Send(t.Context(), out)
		if err != nil || id != "$1" {
			t.Errorf("%s: %s, %v", media, id, err)
		}
		if up := s.Of(uploads); len(up) != 1 || !strings.Contains(up[0], "filename=a+b.bin "+want[1]+" content") {
			t.Errorf("%s: uploaded %q", media, up)
		}
		sent := s.Of(sending)
		if len(sent) != 2 || !strings.Contains(sent[0], `"body":"look"`) || !strings.Contains(sent[1], `"msgtype":"`+want[0]+`"`) ||
			!strings.Contains(sent[1], `"url":"mxc://x/y"`) || !strings.Contains(sent[1], `"rel_type":"m.thread"`) ||
			!strings.Contains(sent[1], out.Key()+".f0") || !strings.Contains(sent[1], `"size":7`) {
			t.Errorf("%s: sent %q", media, sent)
		}
	}
}

// What cannot be sent is not tried again where the reason stays.
func TestFilesThatCannotBeSent(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a")
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for name, tt := range map[string]struct {
		path, upload, send string
		final              bool
	}{
		"no such file":        {path + "2", "200 {}", "200 {}", true},
		"too large":           {path, `413 {"errcode":"M_TOO_LARGE"}`, "200 {}", true},
		"a broken server":     {path, "502 a page", "200 {}", false},
		"refused in the room": {path, "200 {}", `403 {"errcode":"M_FORBIDDEN"}`, true},
		"busy":                {path, "200 {}", "429", false},
	} {
		c, s := scripted(t, map[string]string{uploads: tt.upload, sendings: tt.send})
		_, err := c.Send(t.Context(), message.Outgoing{ID: "o", Parts: 1, To: message.Address{ChannelID: adaRoom},
			Files: []message.File{{Name: "a", Path: tt.path}}})
		var no *message.NotSent
		if err == nil || (errors.As(err, &no) && no.Final) != tt.final {
			t.Errorf("%s: %v, want that it is final: %v", name, err, tt.final)
		}
		if name == "busy" && (no == nil || no.After != 3*time.Second) {
			t.Errorf("%s: %+v", name, no)
		}
		if (name == "no such file" || tt.upload != "200 {}") && len(s.Of(sending)) > 0 {
			t.Errorf("%s: sent %q", name, s.Of(sending))
		}
	}
}

// A message that may have arrived is looked for: one of ours with its key is the one.
func TestWhatMayHaveArrived(t *testing.T) {
	out := message.Outgoing{ID: "o", Parts: 1, Retry: true, To: message.Address{ChannelID: adaRoom}, Text: "hi"}
	page := "GET /_matrix/client/v3/rooms/" + adaRoom + "/messages"
	event := func(sender, key string) string {
		return fmt.Sprintf(`200 {"chunk":[{"event_id":"$0","sender":%q,"content":{}},`+
			`{"event_id":"$old","sender":%q,"content":{"daycare.key":%q}}]}`, bot, sender, key)
	}
	for name, tt := range map[string]struct{ page, want string }{
		"it did":              {event(bot, out.Key()), "$old"},
		"of somebody else":    {event(eve, out.Key()), "$new"},
		"another one":         {event(bot, "other"), "$new"},
		"nothing":             {`200 {"chunk":[]}`, "$new"},
		"it cannot be looked": {"500", "$new"},
	} {
		c, s := scripted(t, map[string]string{page: tt.page, sendings: `200 {"event_id":"$new"}`})
		id, err := c.Send(t.Context(), out)
		if err != nil || id != tt.want || len(s.Of(sending)) != map[string]int{"$old": 0, "$new": 1}[tt.want] {
			t.Errorf("%s: %s, %v, sent %q", name, id, err, s.Of(sending))
		}
		if looked := s.Of(page); len(looked) != 1 || !strings.Contains(looked[0], "dir=b") {
			t.Errorf("%s: looked for by %q", name, looked)
		}
	}
	out.Retry = false
	c, s := scripted(t, map[string]string{sendings: `200 {"event_id":"$new"}`})
	if id, err := c.Send(t.Context(), out); err != nil || id != "$new" || len(s.Of(page)) > 0 {
		t.Errorf("the first try: %s, %v, looked for by %q", id, err, s.Of(page))
	}
}

// A file is downloaded with the token, from servers of before that, too; what is no address of a file
// is not asked for.
func TestDownloads(t *testing.T) {
	now, before := "GET /_matrix/client/v1/media/download/x/y", "GET /_matrix/media/v3/download/x/y"
	for name, tt := range map[string]struct {
		address string
		says    map[string]string
		want    string
	}{
		"now":            {"mxc://x/y", map[string]string{now: "200 new"}, "new"},
		"before":         {"mxc://x/y", map[string]string{before: "200 old"}, "old"},
		"neither":        {"mxc://x/y", nil, ""},
		"without a file": {"mxc://x", map[string]string{now: "200 new"}, ""},
		"an empty one":   {"mxc://x/", map[string]string{now: "200 new"}, ""},
		"no server":      {"mxc:///y", map[string]string{now: "200 new"}, ""},
		"a web address":  {"https://x/y", map[string]string{now: "200 new"}, ""},
	} {
		c, s := scripted(t, tt.says)
		body, err := c.api.download(t.Context(), tt.address)
		got := ""
		if err == nil {
			data, rerr := io.ReadAll(body)
			got, err = string(data), errors.Join(rerr, body.Close())
		}
		if got != tt.want || (err == nil) != (tt.want != "") {
			t.Errorf("%s: %q, %v", name, got, err)
		}
		if (tt.address != "mxc://x/y") && len(s.Of("GET")) > 0 {
			t.Errorf("%s: asked %q", name, s.Of("GET"))
		}
	}
}

// Who a message of a group is for, what it answers, and the file that it is.
func TestWhatAMessageOfAGroupIs(t *testing.T) {
	at := "GET /_matrix/client/v3/rooms/!team:x/event/$0"
	reply := `"m.relates_to":{"m.in_reply_to":{"event_id":"$0"}}`
	for name, tt := range map[string]struct {
		content, before, quote, files string
		addressed                     bool
	}{
		"to nobody":    {`{"msgtype":"m.text","body":"hi"}`, "", "", "", false},
		"by name":      {`{"msgtype":"m.text","body":"Daybot: hi"}`, "", "", "", true},
		"by a mention": {`{"msgtype":"m.text","body":"hi","m.mentions":{"user_ids":["` + bot + `"]}}`, "", "", "", true},
		"of another":   {`{"msgtype":"m.text","body":"hi","m.mentions":{"user_ids":["` + bob + `"]}}`, "", "", "", false},
		"an answer to us": {`{"msgtype":"m.text","body":"hi",` + reply + `}`, `200 {"sender":"` + bot +
			`","content":{"body":"was"}}`, "was", "", true},
		"an answer to another": {`{"msgtype":"m.text","body":"hi",` + reply + `}`, `200 {"sender":"` + bob +
			`","content":{"body":"was"}}`, "was", "", false},
		"an answer with a quote": {`{"msgtype":"m.text","body":"> <@x:y> said\n\nhi",` + reply + `}`,
			`200 {"sender":"` + bot + `","content":{"body":"was"}}`, "said", "", true},
		"an answer to what is gone": {`{"msgtype":"m.text","body":"hi",` + reply + `}`, "404", "", "", false},
		"a file":                    {`{"msgtype":"m.file","body":"a.txt","url":"mxc://x/y","info":{"size":7}}`, "", "", "a.txt 7", false},
		"a file with words":         {`{"msgtype":"m.file","body":"look","filename":"b.txt","url":"mxc://x/y"}`, "", "", "b.txt 0", false},
		"an edit that names us": {`{"msgtype":"m.text","body":"* x","m.new_content":{"msgtype":"m.text","body":"Daybot: x",` +
			`"m.mentions":{"user_ids":["` + bot + `"]}},"m.relates_to":{"rel_type":"m.replace","event_id":"$0"},"url":"mxc://x/y"}`, "",
			"", "", true},
	} {
		c, _ := scripted(t, map[string]string{at: tt.before})
		if err := c.introduce(t.Context()); err != nil {
			t.Fatal(err)
		}
		e := roomEvent{ID: "$1", Type: "m.room.message", Sender: ada}
		if err := json.Unmarshal([]byte(tt.content), &e.Content); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		p, ok := post("!team:x", e)
		f := follower{sealed{c}}
		f.meant(t.Context(), &p, e.Content)
		f.files(&p, e.Content)
		files := ""
		for _, one := range p.Files {
			files += fmt.Sprint(one.Name, " ", one.Size)
		}
		if !ok || p.Addressed != tt.addressed || p.Quote != tt.quote || files != tt.files {
			t.Errorf("%s: for us %v, quote %q, files %q", name, p.Addressed, p.Quote, files)
		}
	}
}

// Only of a room of which the homeserver says that it is not encrypted is anything sent in the clear.
func TestUnknownEncryption(t *testing.T) {
	at := "GET /_matrix/client/v3/rooms/" + adaRoom + "/state/m.room.encryption"
	for says, sent := range map[string]int{`404 {"errcode":"M_NOT_FOUND"}`: 1, `403 {"errcode":"M_FORBIDDEN"}`: 0, "502": 0} {
		c, s := scripted(t, map[string]string{at: says, sendings: `200 {"event_id":"$1"}`})
		out := message.Outgoing{ID: "o", Parts: 1, To: message.Address{ChannelID: adaRoom}, Text: "secret"}
		if _, err := c.Send(t.Context(), out); (err == nil) != (sent == 1) {
			t.Errorf("%s: %v", says, err)
		}
		if all := s.Of(sending); len(all) != sent {
			t.Errorf("%s: sent %q", says, all)
		}
	}
}

// How many are in a room is asked once; of one that we are not in any more nothing is for us alone.
func TestWhoIsInARoom(t *testing.T) {
	at := "GET /_matrix/client/v3/rooms/" + adaRoom + "/joined_members"
	for says, want := range map[string][2]bool{`200 {"joined":{"a":{},"b":{}}}`: {false, true},
		`200 {"joined":{"a":{},"b":{},"c":{}}}`: {true, true},
		`403 {"errcode":"M_FORBIDDEN"}`:         {true, true},
		`404 {"errcode":"M_NOT_FOUND"}`:         {true, true}, `400 {"errcode":"M_BAD"}`: {false,
			false}, "502": {false, false}} {
		c, s := scripted(t, map[string]string{at: says})
		for range 2 {
			got, err := follower{sealed{c}}.group(t.Context(), adaRoom)
			if got != want[0] || (err == nil) != want[1] {
				t.Errorf("%s: a group %v, %v", says, got, err)
			}
		}
		if asked := len(s.Of(at)); strings.HasPrefix(says, "200") != (asked == 1) {
			t.Errorf("%s: asked %d times", says, asked)
		}
		three, joins := 3, joined{}
		joins.Summary.Members = &three
		follower{sealed{c}}.counted(adaRoom, joins)
		if got, err := (follower{sealed{c}}).group(t.Context(), adaRoom); !got || err != nil {
			t.Errorf("of three: %v, %v", got, err)
		}
		came := joined{}
		came.Timeline.Events = []roomEvent{{Type: "m.room.member"}}
		follower{sealed{c}}.counted(adaRoom, came)
		if got, err := (follower{sealed{c}}).group(t.Context(), adaRoom); got != want[0] || (err == nil) != want[1] {
			t.Errorf("%s: after somebody came: %v, %v", says, got, err)
		}
	}
}

// A reaction that is there already is one; any other refusal is an error.
func TestReactions(t *testing.T) {
	for says, ok := range map[string]bool{`200 {"event_id":"$r"}`: true, `400 {"errcode":"M_DUPLICATE_ANNOTATION"}`: true,
		`400 {"errcode":"M_BAD_JSON"}`: false, "502": false} {
		c, s := scripted(t, map[string]string{sendings: says})
		err := c.React(t.Context(), message.Address{ChannelID: adaRoom}, "$0", "👍")
		if (err == nil) != ok {
			t.Errorf("%s: %v", says, err)
		}
		if sent := s.Of(sending + "m.reaction/"); len(sent) != 1 || !strings.Contains(sent[0], `"event_id":"$0"`) {
			t.Errorf("%s: sent %q", says, sent)
		}
	}
}

// Before it knows who it is an account shows nobody that it types.
func TestTypingBeforeItBegins(t *testing.T) {
	c, s := scripted(t, map[string]string{"PUT /_matrix/client/v3/rooms/" + adaRoom + "/typing/" + bot: "200 {}"})
	to := message.Address{ChannelID: adaRoom}
	if err := c.Typing(t.Context(), to); err != nil || len(s.Of("")) > 0 {
		t.Errorf("%v, %q", err, s.Of(""))
	}
	if err := errors.Join(c.introduce(t.Context()), c.Typing(t.Context(), to)); err != nil || len(s.Of("PUT")) != 1 {
		t.Errorf("%v, %q", err, s.Of("PUT"))
	}
}

// Notices, and answers that are written bit by bit: what cannot be shown is not sent.
func TestNoticesAndEdits(t *testing.T) {
	c, s := scripted(t, map[string]string{sendings: `200 {"event_id":"$1"}`})
	w, to := pen{Connector: c}, message.Address{ChannelID: adaRoom}
	if id, err := w.Post(t.Context(), to, "", "$0", "hi"); err != nil || id != "$1" || !strings.Contains(s.Of(sending)[0],
		`"m.in_reply_to":{"event_id":"$0"}`) {
		t.Errorf("%s, %v, %q", id, err, s.Of(sending))
	}
	if err := w.Edit(t.Context(), to, "$1", "more"); err != nil || !strings.Contains(s.Of(sending)[1], `"rel_type":"m.replace"`) ||
		!strings.Contains(s.Of(sending)[1], `"body":"* more"`) {
		t.Errorf("%v, %q", err, s.Of(sending))
	}
	if id, err := w.Post(t.Context(), to, "", "", " "); err != nil || id != "" {
		t.Errorf("%q, %v", id, err)
	}
	if err := w.Edit(t.Context(), to, "$1", " "); err != nil || len(s.Of(sending)) != 2 {
		t.Errorf("%v, %q", err, s.Of(sending))
	}
	c, _ = scripted(t, map[string]string{sendings: `403 {"errcode":"M_FORBIDDEN"}`})
	w = pen{Connector: c}
	var no *message.NotSent
	if err := w.Edit(t.Context(), to, "$1", "more"); !errors.As(err, &no) || !no.Final {
		t.Error(err)
	}
	if _, err := w.Post(t.Context(), to, "", "", "hi"); err == nil {
		t.Error("a notice that is refused is no error")
	}
	if err := c.Say(t.Context(), to, "", "hi"); err == nil {
		t.Error("words that are refused are no error")
	}
}

// What the homeserver says of an account, and what is done about it.
func TestWhoWeAre(t *testing.T) {
	who, name := "GET /_matrix/client/v3/account/whoami", "GET /_matrix/client/v3/profile/"+bot+"/displayname"
	rooms := "GET /_matrix/client/v3/joined_rooms"
	for what, tt := range map[string]struct {
		says map[string]string
		want string // of the verdict, or of the error
	}{
		"all":            {map[string]string{rooms: `200 {"joined_rooms":["a","b"]}`}, bot + " is in 2 rooms"},
		"without a name": {map[string]string{name: "404", rooms: `200 {"joined_rooms":[]}`}, bot + " is in 0 rooms"},
		"revoked":        {map[string]string{who: `401 {"errcode":"M_UNKNOWN_TOKEN"}`}, "daycare auth set matrix"},
		"nobody":         {map[string]string{who: `200 {"user_id":"bot"}`}, "does not say who we are"},
		"no JSON":        {map[string]string{who: "200 <html>"}, "not the JSON that was expected"},
		"no rooms":       {map[string]string{rooms: "500 " + canary}, "500 M_UNKNOWN"},
	} {
		c, _ := scripted(t, tt.says)
		verdict, err := c.Probe(t.Context())
		if err != nil {
			verdict = err.Error()
		}
		if !strings.Contains(verdict, tt.want) || strings.Contains(verdict, canary) || (err == nil) != strings.HasPrefix(tt.want, bot) {
			t.Errorf("%s: %q, %v", what, verdict, err)
		}
	}
}

// Each step of the test of an account that fails is reported, and the room is left.
func TestEachStepOfALoop(t *testing.T) {
	room := "/_matrix/client/v3/rooms/!own:x/"
	all := map[string]string{"POST /_matrix/client/v3/createRoom": `200 {"room_id":"!own:x"}`, "PUT " + room +
		"send/*": `200 {"event_id":"$1"}`,
		"GET " + room + "event/$1": `200 {"sender":"` + bot + `","content":{"body":"hello"}}`, "POST " + room + "leave": "200 {}",
		"POST " + room + "forget": "200 {}"}
	for at, answers := range map[string][]string{"": {""}, "POST /_matrix/client/v3/createRoom": {"500"}, "PUT " + room + "send/*": {"500"},
		"GET " + room + "event/$1": {"500", `200 {"sender":"` + eve + `","content":{"body":"hello"}}`, `200 {"sender":"` + bot +
			`","content":{"body":"bye"}}`},
		"POST " + room + "leave": {"500"}, "POST " + room + "forget": {"500"}, "GET /_matrix/client/v3/account/whoami": {"500"}} {
		for _, answer := range answers {
			says := map[string]string{}
			for k, v := range all {
				says[k] = v
			}
			if at != "" {
				says[at] = answer
			}
			c, s := scripted(t, says)
			_, err := pen{Connector: c}.Loop(t.Context())
			if (err == nil) != (at == "") {
				t.Errorf("%s %s: %v", at, answer, err)
			}
			made := len(s.Of("POST /_matrix/client/v3/createRoom")) > 0 && !strings.HasSuffix(at, "createRoom")
			if made != (len(s.Of("POST "+room+"leave")) == 1) || made != (len(s.Of("POST "+room+"forget")) == 1) {
				t.Errorf("%s %s: heard %q", at, answer, s.Of("POST"))
			}
		}
	}
}

// What a homeserver refuses is said in its words, without the token; a page of a proxy by its status.
func TestRefusals(t *testing.T) {
	for answer, want := range map[string]apiError{
		`403 {"errcode":"M_FORBIDDEN","error":"no ` + canary + `"}`: {Name: "x", Status: 403, Code: "M_FORBIDDEN"},
		"502 <html>": {Name: "x", Status: 502, Code: "M_UNKNOWN", Text: "Bad Gateway"},
		"429":        {Name: "x", Status: 429, Code: "M_UNKNOWN", Text: "Too Many Requests", RetryAfter: 3 * time.Second},
		`429 {"errcode":"M_LIMIT_EXCEEDED","retry_after_ms":7000}`: {Name: "x", Status: 429, Code: "M_LIMIT_EXCEEDED",
			RetryAfter: 7 * time.Second, Millis: 7000},
	} {
		c, _ := scripted(t, map[string]string{"GET /x": answer})
		err := c.api.do(t.Context(), call{name: "x", method: http.MethodGet, path: "/x"}, nil)
		var no *apiError
		if !errors.As(err, &no) || strings.Contains(err.Error(), canary) {
			t.Errorf("%s: %v", answer, err)
			continue
		}
		if want.Text == "" {
			want.Text = no.Text
		}
		if *no != want || !is(err, "M_OTHER", want.Code) || is(err, "M_OTHER") || is(io.EOF, want.Code) {
			t.Errorf("%s: %+v", answer, no)
		}
	}
	if err := judge(io.EOF); !errors.Is(err, io.EOF) {
		t.Error(err)
	}
	c, _ := scripted(t, nil)
	for name, try := range map[string]call{"a body that is none": {name: "x", method: http.MethodPut, path: "/x", body: make(chan int)},
		"a method that is none": {name: "x", method: "GET IT", path: "/x"}} {
		if err := c.api.do(t.Context(), try, nil); err == nil || strings.Contains(err.Error(), canary) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A page of what happened that cannot be fetched is asked for again: nothing is passed over.
func TestPagesThatCannotBeFetched(t *testing.T) {
	page := "GET /_matrix/client/v3/rooms/" + adaRoom + "/messages"
	var limited joined
	limited.Timeline.Limited = true
	limited.Timeline.Events = []roomEvent{{ID: "$2", Type: "m.room.message", Sender: ada, Content: content{Kind: "m.text", Body: "two"}}}
	members := "GET /_matrix/client/v3/rooms/" + adaRoom + "/joined_members"
	for says, want := range map[string][]string{
		"502": nil,
		`200 {"chunk":[{"event_id":"$1","type":"m.room.message","sender":"` + ada +
			`","content":{"msgtype":"m.text","body":"one"}},{"event_id":"$2"}],"end":"e"}`: {"one", "two"},
		`200 {"chunk":[],"end":"e"}`: {"two"},
	} {
		c, s := scripted(t, map[string]string{page: says, members: `200 {"joined":{"a":{},"b":{}}}`})
		if err := c.introduce(t.Context()); err != nil {
			t.Fatal(err)
		}
		var got []string
		err := follower{sealed{c}}.room(t.Context(), func(_ context.Context, in message.Incoming) (message.Receipt, error) {
			got = append(got, in.Text)
			return message.Receipt{}, nil
		}, adaRoom, "s", limited)
		if (err == nil) != (want != nil) || !slices.Equal(got, want) || len(s.Of(page)) != 1 {
			t.Errorf("%.30s: %q, %v after %d pages", says, got, err, len(s.Of(page)))
		}
	}
}

// ending keeps files, the first of which ends the work.
type ending struct {
	*connectortest.Keeper
	end func()
}

func (e ending) Save(connector, name string, data []byte) error {
	defer e.end()
	return e.Keeper.Save(connector, name, data)
}

// The place moves on when all before it was taken; where a user is alone with us is known from there.
func TestThePlaceOfASync(t *testing.T) {
	page := "GET /_matrix/client/v3/rooms/" + adaRoom + "/messages"
	members := "GET /_matrix/client/v3/rooms/" + adaRoom + "/joined_members"
	says := `200 {"next_batch":"new","rooms":{"join":{"` + adaRoom + `":{"timeline":{"limited":true,"events":[{"event_id":"$1",` +
		`"type":"m.room.message","sender":"` + ada + `","content":{"msgtype":"m.text","body":"hi"}}]}}}}}`
	for name, tt := range map[string]struct {
		page, joined, since string
		direct              bool
	}{
		"all taken":      {`200 {"chunk":[]}`, `{"a":{},"b":{}}`, "new", true},
		"of a group":     {`200 {"chunk":[]}`, `{"a":{},"b":{},"c":{}}`, "new", false},
		"a page refused": {"502", `{"a":{},"b":{}}`, "old", false},
	} {
		c, _ := scripted(t, map[string]string{"GET /_matrix/client/v3/sync": says, page: tt.page, members: `200 {"joined":` + tt.joined +
			`}`})
		if err := c.introduce(t.Context()); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		c.host.Waiting, c.place.Since = ending{&connectortest.Keeper{}, cancel}, "old"
		err := follower{sealed{c}}.follow(ctx, func(context.Context, message.Incoming) (message.Receipt, error) {
			return message.Receipt{Agent: "a"}, nil
		})
		cancel()
		if (err == nil) != (tt.since == "new") || c.place.Since != tt.since {
			t.Errorf("%s: %v, at %s", name, err, c.place.Since)
		}
		if to, ok := c.Direct(ada); ok != tt.direct || ok && (to.ChannelID != adaRoom || to.UserID != ada) {
			t.Errorf("%s: alone in %+v, %v", name, to, ok)
		}
		if _, ok := c.Direct(eve); ok {
			t.Errorf("%s: a stranger is alone with us", name)
		}
	}
}

// Where it cannot be read how far was read the connector ends, and is begun again; of a broken file
// nothing is known.
func TestAPlaceThatCannotBeRead(t *testing.T) {
	sync := "GET /_matrix/client/v3/sync"
	for name, tt := range map[string]struct {
		data  string
		err   error
		want  bool
		since string
	}{"unreadable": {"", syscall.EMFILE, false, ""}, "broken": {"{", nil, true, "timeout=0"}, "none": {"", fs.ErrNotExist, true,
		"timeout=0"},
		"kept": {`{"since":"s7"}`, nil, true, "since=s7"}} {
		c, s := scripted(t, map[string]string{sync: "502"})
		c.host.Waiting = unreadable{tt.data, tt.err}
		err := c.Run(t.Context(), nil)
		asked := s.Of(sync)
		if errors.Is(err, syscall.EMFILE) == tt.want || (len(asked) == 1) != tt.want || tt.want && !strings.Contains(asked[0], tt.since) {
			t.Errorf("%s: %v, asked %q", name, err, asked)
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
