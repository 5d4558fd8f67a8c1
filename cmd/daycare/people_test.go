package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// A chatting is a chat of ada's with the agent over a real server.
type chatting struct {
	say          func(word string)
	react        func(emoji string) // to the newest request
	edit, remove func(word string)
	file         func(id, name, media, content string) // sends a file
	heard        func() string
}

// peopleScript asks for a permission when it is told to look, and repeats everything else.
const peopleScript = `rules:
  - { contains: "please look", round: 1, reply: [ { calls: [ { name: request_permission, arguments: { permission: "@web:box.example",
      reason: "to look" } } ] } ] }
  - { after: permission, round: 1, reply: [ { calls: [ { name: request_permission, arguments: { permission: "@web:box.example",
      reason: "to look" } } ] } ] }
  - { tool_result: request_permission, turn: 1, reply: [ { text: "I wait for an answer." } ] }
  - { tool_result: request_permission, reply: [ { text: "I have looked." } ] }
  - { reply: [ { delay: 1s, text: "heard {{.Text}}" } ] }
`

// talkWithKills asks for something that needs an approval, gives it by a reaction, sends a picture and
// a voice message, has queued messages edited and deleted, and kills the daemon in between: each
// message is answered once, with what it says in the end.
func talkWithKills(t *testing.T, d *process, k chatting) {
	t.Helper()
	kills := 0
	again := func() {
		d.kill()
		d.start()
		kills++
	}
	write(t, filepath.Join(d.workspace, "script.yaml"), peopleScript)
	d.start()
	defer d.kill()
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("heard:\n%s\nhistory:\n%s\ndaycare:\n%s", k.heard(), read(t, d, "history.jsonl"), d.said.String())
		}
	})
	k.say("please look")
	waitFor(t, "the request", func() bool { return strings.Contains(k.heard(), "Permission needed") })
	again() // perhaps before daycare has noted that it showed the request
	waitFor(t, "a note of it", func() bool {
		cards, err := filepath.Glob(filepath.Join(d.workspace, home, "connectors", "*", "cards.json"))
		if err != nil || len(cards) != 1 {
			return false
		}
		return strings.Contains(readOr(cards[0]), `"remote"`)
	})
	if n := strings.Count(k.heard(), "Permission needed"); n != 1 {
		t.Errorf("the request was shown %d times, want once", n)
	}
	k.react("👍")
	waitFor(t, "the work after the approval", func() bool { return strings.Contains(k.heard(), "I have looked.") })

	k.file("picture", "dot.png", "image/png", "\x89PNG\r\n\x1a\nrest")
	waitFor(t, "the picture", func() bool { return strings.Contains(read(t, d, "inbox.jsonl"), "dot.png") })
	k.file("voice", "voice.ogg", "audio/ogg", "the recording")
	waitFor(t, "the voice message", func() bool { return strings.Contains(read(t, d, "inbox.jsonl"), "words in the recording") })
	again()
	waitFor(t, "the spoken answer", func() bool { return strings.Contains(k.heard(), "answer.ogg") })

	k.say("one")
	waitFor(t, "the first turn", func() bool { return strings.Contains(read(t, d, "history.jsonl"), `"one"`) })
	for _, word := range []string{"two", "three", "four"} {
		k.say(word)
	}
	waitFor(t, "the queue", func() bool { return strings.Contains(read(t, d, "inbox.jsonl"), `"four"`) })
	again()
	k.edit("two")
	k.remove("three")
	waitFor(t, "the last answer", func() bool { return strings.Contains(k.heard(), "four") })
	k.say("five")
	waitFor(t, "the fifth message", func() bool { return strings.Contains(read(t, d, "inbox.jsonl"), `"five"`) })
	again()
	waitFor(t, "the answer to it", func() bool { return strings.Contains(k.heard(), "heard five") })

	said, history := k.heard(), read(t, d, "history.jsonl")
	for _, sent := range []string{`"dot.png"`, "words in the recording"} {
		messages := 0
		for line := range strings.Lines(history) {
			if strings.Contains(line, `"type":"user_message"`) && strings.Contains(line, sent) {
				messages++
			}
		}
		if messages != 1 {
			t.Errorf("%s is in history %d times, want once", sent, messages)
		}
	}
	for _, word := range []string{"I have looked.", "words in the recording", "heard one", "four", "heard five"} {
		answers := 0
		for line := range strings.Lines(history) {
			if strings.Contains(line, `"type":"assistant_message"`) && strings.Contains(line, word) {
				answers++
			}
		}
		// What reached the chat right before a kill may come again, with the same id.
		if answers != 1 || !strings.Contains(said, word) {
			t.Errorf("%q was answered %d times, want once, and said:\n%s", word, answers, said)
		}
	}
	// A change that comes while daycare starts finds a message queued, or read.
	for word, change := range map[string]string{"two": "edited message", "three": "deleted message"} {
		if strings.Contains(said, "heard "+word) && !strings.Contains(history, change) {
			t.Errorf("%q was answered as it was first, and the agent does not know of the change:\n%s", word, said)
		}
	}
	t.Logf("an approval by a reaction, a picture, a voice message, an edit and a deletion with %d kills: each message once", kills)
}

// Over a real prosody: a request is answered by a reaction to it.
func TestPeopleOverXMPP(t *testing.T) {
	t.Parallel()
	p := newProsody(t)
	ada := newXMPPPerson(t, p, "ada")
	d := &process{t: t, workspace: t.TempDir(), env: []string{"XMPP_PASSWORD=of the bot", "SSL_CERT_FILE=" + p.cert()}}
	write(t, filepath.Join(d.workspace, home, "settings.yaml"), p.settings("queue: followup, speak: voice, stream: true")+speechSettings(t))
	request := regexp.MustCompile(`id=['"](request-[a-f0-9]+)['"]`)
	n := 0
	talkWithKills(t, d, chatting{
		say: func(word string) {
			ada.send("<presence to='bot@localhost' type='subscribe'/>")
			ada.until("from='bot@localhost/daycare'")
			ada.say("bot@localhost", "chat", word, word)
		},
		react: func(emoji string) {
			ada.mu.Lock()
			before, _, _ := strings.Cut(ada.all, "Permission needed")
			ada.mu.Unlock()
			ids := request.FindAllStringSubmatch(before, -1)
			if len(ids) == 0 {
				t.Fatalf("the request has no id:\n%s", before)
			}
			ada.send(fmt.Sprintf("<message to='bot@localhost' type='chat' id='reaction'><reactions xmlns='urn:xmpp:reactions:0' id='%s'>"+
				"<reaction>%s</reaction></reactions><store xmlns='urn:xmpp:hints'/></message>", ids[len(ids)-1][1], emoji))
		},
		edit: func(word string) {
			n++
			ada.say("bot@localhost", "chat", fmt.Sprint("edit", n), "zwei", "<replace xmlns='urn:xmpp:message-correct:0' id='"+word+"'/>")
		},
		remove: func(word string) {
			n++
			ada.say("bot@localhost", "chat", fmt.Sprint("delete", n), "gone", "<retract xmlns='urn:xmpp:message-retract:1' id='"+word+"'/>")
		},
		file: func(id, name, media, content string) {
			at := ada.upload(p, name, media, content)
			ada.say("bot@localhost", "chat", id, at, "<x xmlns='jabber:x:oob'><url>"+at+"</url></x>")
		},
		heard: ada.bodies,
	})
	d.sendsToItself("xmpp")
}

// speechSettings are those of a server that hears and speaks.
func speechSettings(t *testing.T) string {
	return fmt.Sprintf("speech: { transcribe: { url: %q }, speak: { url: %q } }\n", speechServer(t), speechServer(t))
}

// speechServer is a server that knows what is said in a recording, and how a text sounds.
func speechServer(t *testing.T) string {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/v1/audio/speech" {
			_, _ = io.WriteString(w, "OggS sound")
			return
		}
		f, _, err := r.FormFile("file")
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		sound, _ := io.ReadAll(f)
		_ = json.NewEncoder(w).Encode(map[string]string{"text": "words in " + string(sound)})
	}))
	t.Cleanup(s.Close)
	return s.URL + "/v1"
}

// Over a real dendrite: the same.
func TestPeopleOverMatrix(t *testing.T) {
	t.Parallel()
	server := newDendrite(t)
	bot, ada := server.person("daybot"), server.person("ada")
	room := ada.room(bot.id)
	d := &process{t: t, workspace: t.TempDir(), env: []string{"MATRIX_TOKEN=" + bot.token}}
	write(t, filepath.Join(d.workspace, home, "settings.yaml"), server.settings(ada.id,
		"queue: followup, speak: voice, stream: true")+speechSettings(t))
	ids, n := map[string]string{}, 0
	talkWithKills(t, d, chatting{
		say: func(word string) {
			waitFor(t, "the bot in the room", func() bool { return strings.Contains(ada.members(room), bot.id) })
			ids[word] = ada.say(room, strings.ReplaceAll(word, " ", "-"), map[string]any{"msgtype": "m.text", "body": word})
		},
		react: func(emoji string) {
			request := ada.find(room, "Permission needed")
			ada.call(http.MethodPut, "/rooms/"+url.PathEscape(room)+"/send/m.reaction/r1", map[string]any{
				"m.relates_to": map[string]any{"rel_type": "m.annotation", "event_id": request, "key": emoji}}, nil)
		},
		edit: func(word string) {
			n++
			ada.say(room, fmt.Sprint("edit", n), map[string]any{"msgtype": "m.text", "body": "* zwei",
				"m.new_content": map[string]any{"msgtype": "m.text", "body": "zwei"},
				"m.relates_to":  map[string]any{"rel_type": "m.replace", "event_id": ids[word]}})
		},
		remove: func(word string) {
			ada.call(http.MethodPut, "/rooms/"+url.PathEscape(room)+"/redact/"+url.PathEscape(ids[word])+"/delete", map[string]any{}, nil)
		},
		file: func(id, name, media, content string) {
			kind := "m." + strings.Split(media, "/")[0]
			ada.say(room, id, map[string]any{"msgtype": kind, "body": name, "url": ada.upload(media, content)})
		},
		heard: func() string { return ada.heard(room) },
	})
	d.sendsToItself("matrix")
}

// upload puts a file on the homeserver.
func (p *matrixPerson) upload(media, content string) string {
	p.t.Helper()
	req, err := http.NewRequest(http.MethodPost, p.base+"/_matrix/media/v3/upload", strings.NewReader(content))
	must(p.t, err)
	req.Header.Set("Authorization", "Bearer "+p.token)
	req.Header.Set("Content-Type", media)
	resp, err := http.DefaultClient.Do(req)
	must(p.t, err)
	defer resp.Body.Close()
	var done struct {
		URL string `json:"content_uri"`
	}
	must(p.t, json.NewDecoder(resp.Body).Decode(&done))
	return done.URL
}

// find is the id of the newest message with a text.
func (p *matrixPerson) find(room, text string) (id string) {
	p.t.Helper()
	var page struct {
		Chunk []struct {
			ID      string `json:"event_id"`
			Content struct {
				Body string `json:"body"`
			} `json:"content"`
		} `json:"chunk"`
	}
	p.call(http.MethodGet, "/rooms/"+url.PathEscape(room)+"/messages?dir=b&limit=200", nil, &page)
	for _, e := range page.Chunk {
		if strings.Contains(e.Content.Body, text) {
			return e.ID
		}
	}
	p.t.Fatalf("nobody said %q", text)
	return ""
}
