//go:build goolm && !race

package main

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"maunium.net/go/mautrix"
	"maunium.net/go/mautrix/crypto"
	"maunium.net/go/mautrix/crypto/attachment"
	"maunium.net/go/mautrix/event"
	"maunium.net/go/mautrix/id"
)

// sealedPerson is somebody at a client that encrypts.
type sealedPerson struct {
	*matrixPerson
	room string
	lib  *crypto.OlmMachine

	mu    sync.Mutex
	since string
	said  []string // what others said, edits in place
	at    map[string]int
	last  string // the newest request's event
	files map[string]string
	deaf  bool // keys are not taken
}

func (p *matrixPerson) sealed() *sealedPerson {
	p.t.Helper()
	client, err := mautrix.NewClient(p.base, id.UserID(p.id), p.token)
	must(p.t, err)
	client.DeviceID = id.DeviceID(p.device)
	memory := crypto.NewMemoryStore(nil)
	indices := reflect.ValueOf(memory).Elem().FieldByName("MessageIndices") // which the library forgets to make
	indices.Set(reflect.MakeMap(indices.Type()))
	s := &sealedPerson{matrixPerson: p, at: map[string]int{}, files: map[string]string{}}
	s.lib = crypto.NewOlmMachine(client, nil, memory, s)
	s.lib.DisableRatchetTracking = true
	must(p.t, s.lib.Load(p.t.Context()))
	must(p.t, s.lib.ShareKeys(p.t.Context(), 0))

	return s
}

// What the library asks about rooms: all are encrypted.
func (s *sealedPerson) IsEncrypted(context.Context, id.RoomID) (bool, error) { return true, nil }
func (s *sealedPerson) GetEncryptionEvent(context.Context, id.RoomID) (*event.EncryptionEventContent, error) {
	return &event.EncryptionEventContent{Algorithm: id.AlgorithmMegolmV1}, nil
}
func (s *sealedPerson) GetHistoryVisibility(context.Context, id.RoomID) (*event.HistoryVisibilityEventContent, error) {
	return nil, nil
}
func (s *sealedPerson) FindSharedRooms(context.Context, id.UserID) ([]id.RoomID, error) {
	return []id.RoomID{id.RoomID(s.room)}, nil
}

// encryptedRoom makes an encrypted room and invites somebody.
func (s *sealedPerson) encryptedRoom(invited string) {
	s.t.Helper()
	var made struct {
		ID string `json:"room_id"`
	}
	s.call(http.MethodPost, "/createRoom", map[string]any{"preset": "private_chat", "invite": []string{invited},
		"initial_state": []any{map[string]any{"type": "m.room.encryption", "state_key": "",
			"content": map[string]any{"algorithm": "m.megolm.v1.aes-sha2"}}}}, &made)
	s.room = made.ID
}

// send encrypts an event for who is in the room, and returns its id.
func (s *sealedPerson) send(key, kind string, content any, readers ...string) string {
	s.t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.pull()
	data, err := json.Marshal(content)
	must(s.t, err)
	is := event.Type{Type: kind, Class: event.MessageEventType}
	sealed, err := s.lib.EncryptMegolmEvent(s.t.Context(), id.RoomID(s.room), is, json.RawMessage(data))
	if crypto.IsShareError(err) {
		users := []id.UserID{id.UserID(s.id)}
		for _, r := range readers {
			users = append(users, id.UserID(r))
		}
		must(s.t, s.lib.ShareGroupSession(s.t.Context(), id.RoomID(s.room), users))
		sealed, err = s.lib.EncryptMegolmEvent(s.t.Context(), id.RoomID(s.room), is, json.RawMessage(data))
	}
	must(s.t, err)
	var done struct {
		ID string `json:"event_id"`
	}
	s.call(http.MethodPut, "/rooms/"+url.PathEscape(s.room)+"/send/m.room.encrypted/"+key, sealed, &done)

	return done.ID
}

// pull takes what is new, keys first. mu is held.
func (s *sealedPerson) pull() {
	s.t.Helper()
	var resp mautrix.RespSync
	s.call(http.MethodGet, "/sync?timeout=0&since="+url.QueryEscape(s.since), nil, &resp)
	s.lib.ProcessSyncResponse(s.t.Context(), &resp, s.since)
	s.since = resp.NextBatch
	joined := resp.Rooms.Join[id.RoomID(s.room)]
	if joined == nil {
		return
	}
	for _, e := range joined.Timeline.Events {
		e.RoomID, e.Type.Class = id.RoomID(s.room), event.MessageEventType
		if e.Type.Type == "m.room.member" {
			must(s.t, s.lib.CryptoStore.RemoveOutboundGroupSession(s.t.Context(), e.RoomID))
		}
		if e.Sender == id.UserID(s.id) || e.Type.Type != "m.room.encrypted" {
			if e.Type.Type == "m.room.message" {
				s.t.Errorf("somebody said something in an encrypted room without encryption: %s", e.Content.VeryRaw)
			}
			continue
		}
		must(s.t, e.Content.ParseRaw(event.EventEncrypted))
		clear, err := s.lib.DecryptMegolmEvent(s.t.Context(), e)
		if err != nil {
			s.t.Errorf("the client cannot decrypt an event: %v", err)
			continue
		}
		s.take(e.ID.String(), clear.Content.VeryRaw)
	}
}

func (s *sealedPerson) take(eventID string, raw json.RawMessage) {
	var said struct {
		Kind string `json:"msgtype"`
		Body string `json:"body"`
		File *struct {
			attachment.EncryptedFile
			URL string `json:"url"`
		} `json:"file"`
		New *struct {
			Body string `json:"body"`
		} `json:"m.new_content"`
		Relates struct {
			ID string `json:"event_id"`
		} `json:"m.relates_to"`
	}
	must(s.t, json.Unmarshal(raw, &said))
	if said.New != nil {
		if i, ok := s.at[said.Relates.ID]; ok {
			s.said[i] = said.New.Body
		}
		return
	}
	if strings.Contains(said.Body, "Permission needed") {
		s.last = eventID
	}
	s.at[eventID] = len(s.said)
	s.said = append(s.said, said.Body)
	if said.File != nil {
		data := s.media(said.File.URL)
		must(s.t, said.File.DecryptInPlace(data))
		s.files[said.Body] = string(data)
	}
}

// react puts an emoji under an event, which is not encrypted.
func (s *sealedPerson) react(key, event, emoji string) {
	s.t.Helper()
	s.call(http.MethodPut, "/rooms/"+url.PathEscape(s.room)+"/send/m.reaction/"+key, map[string]any{
		"m.relates_to": map[string]any{"rel_type": "m.annotation", "event_id": event, "key": emoji}}, nil)
}

// media downloads a file.
func (s *sealedPerson) media(address string) []byte {
	s.t.Helper()
	req, err := http.NewRequest(http.MethodGet, s.base+"/_matrix/client/v1/media/download/"+strings.TrimPrefix(address, "mxc://"), nil)
	must(s.t, err)
	req.Header.Set("Authorization", "Bearer "+s.token)
	resp, err := http.DefaultClient.Do(req)
	must(s.t, err)
	defer resp.Body.Close()
	data, err := io.ReadAll(resp.Body)
	must(s.t, err)
	return data
}

// uploaded encrypts a file and is what a message says of it.
func (s *sealedPerson) uploaded(name, media, content string) map[string]any {
	s.t.Helper()
	f := attachment.NewEncryptedFile()
	data := []byte(content)
	f.EncryptInPlace(data)
	req, err := http.NewRequest(http.MethodPost, s.base+"/_matrix/media/v3/upload", bytes.NewReader(data))
	must(s.t, err)
	req.Header.Set("Authorization", "Bearer "+s.token)
	resp, err := http.DefaultClient.Do(req)
	must(s.t, err)
	defer resp.Body.Close()
	var done struct {
		URI string `json:"content_uri"`
	}
	must(s.t, json.NewDecoder(resp.Body).Decode(&done))
	keys := map[string]any{}
	text, err := json.Marshal(f)
	must(s.t, err)
	must(s.t, json.Unmarshal(text, &keys))
	keys["url"] = done.URI
	kind := "m.file"
	if strings.HasPrefix(media, "image/") {
		kind = "m.image"
	}
	if strings.HasPrefix(media, "audio/") {
		kind = "m.audio"
	}

	return map[string]any{"msgtype": kind, "body": name, "file": keys, "info": map[string]any{"mimetype": media, "size": len(content)}}
}

// heard is what others have said, decrypted.
func (s *sealedPerson) heard() string {
	s.t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.pull()
	return strings.Join(s.said, "\n")
}

// TestEncryptedRoom holds a conversation in an encrypted room of a real dendrite while the daemon is
// killed again and again, among them right after it joined: each message is read once and answered
// once, and nothing is said in the clear.
func TestEncryptedRoom(t *testing.T) {
	t.Parallel()
	server := newDendrite(t)
	bot, ada := server.person("daybot"), server.person("ada").sealed()
	ada.encryptedRoom(bot.id)
	d := &process{t: t, workspace: t.TempDir(), env: []string{"MATRIX_TOKEN=" + bot.token}}
	write(t, filepath.Join(d.workspace, home, "settings.yaml"), server.settings(ada.id, ""))
	converse(t, d, "encrypted dendrite", func(word string) {
		waitFor(t, "the bot in the room", func() bool { return strings.Contains(ada.members(ada.room), bot.id) })
		ada.send(word, "m.room.message", map[string]any{"msgtype": "m.text", "body": word}, bot.id)
	}, ada.heard)

	verify := exec.Command("daycare", "--workspace", d.workspace, "connectors", "verify", "matrix")
	verify.Env = append(os.Environ(), d.env...)
	out, err := verify.CombinedOutput()
	theirs := ada.lib.GetAccount().SigningKey().String()
	shown := strings.ReplaceAll(string(out), " ", "")
	if err != nil || !strings.Contains(shown, theirs) || !strings.Contains(shown, bot.device) || strings.Contains(shown, "WARNING") {
		t.Errorf("the fingerprints (mine is %s): %v\n%s", theirs, err, out)
	}
	d.start()
	defer d.kill()
	ada.keyComesLate(bot.id)
	waitFor(t, "the answer to the message whose key came late", func() bool { return strings.Contains(ada.heard(), "heard lost") })
	if n := strings.Count(ada.heard(), "heard lost"); n != 1 {
		t.Errorf("the message whose key came late was answered %d times, want once", n)
	}
}

// keyComesLate sends a message whose key the others do not get, waits until they say so, and sends the key.
func (s *sealedPerson) keyComesLate(reader string) {
	s.t.Helper()
	must(s.t, s.lib.CryptoStore.RemoveOutboundGroupSession(s.t.Context(), id.RoomID(s.room)))
	must(s.t, s.lib.ShareGroupSession(s.t.Context(), id.RoomID(s.room), []id.UserID{id.UserID(s.id)}))
	late, err := s.lib.CryptoStore.GetOutboundGroupSession(s.t.Context(), id.RoomID(s.room))
	must(s.t, err)
	late.ShareContent() // the key as it is before the message
	event := s.send("lost", "m.room.message", map[string]any{"msgtype": "m.text", "body": "lost"})
	began, n := time.Now(), 0
	for time.Since(began) < 45*time.Second && !strings.Contains(s.heard(), "could not decrypt a message from "+s.id) {
		n++ // something happens in the room, so that sync returns
		s.react(fmt.Sprint("wake", n), event, fmt.Sprint(n))
		time.Sleep(3 * time.Second)
	}
	if said := s.heard(); strings.Count(said, "could not decrypt a message from "+s.id) != 1 {
		s.t.Errorf("the sender of a message that cannot be decrypted was notified with:\n%s", said)
	}
	late.Shared = false
	must(s.t, s.lib.ShareGroupSession(s.t.Context(), id.RoomID(s.room), []id.UserID{id.UserID(reader)}))
}

// An approval by a reaction, a picture, a voice message, an edit and a deletion, all encrypted.
func TestPeopleInAnEncryptedRoom(t *testing.T) {
	t.Parallel()
	server := newDendrite(t)
	bot, ada := server.person("daybot"), server.person("ada").sealed()
	ada.encryptedRoom(bot.id)
	d := &process{t: t, workspace: t.TempDir(), env: []string{"MATRIX_TOKEN=" + bot.token}}
	write(t, filepath.Join(d.workspace, home, "settings.yaml"),
		server.settings(ada.id, "queue: followup, speak: voice, stream: true")+speechSettings(t))
	ids := map[string]string{}
	talkWithKills(t, d, chatting{
		say: func(word string) {
			waitFor(t, "the bot in the room", func() bool { return strings.Contains(ada.members(ada.room), bot.id) })
			ids[word] = ada.send(url.PathEscape(rand.Text()), "m.room.message", map[string]any{"msgtype": "m.text", "body": word}, bot.id)
		},
		react: func(emoji string) {
			ada.react("react", ada.last, emoji)
		},
		edit: func(word string) {
			text := map[string]any{"msgtype": "m.text", "body": "zwei"}
			ada.send("edit", "m.room.message", map[string]any{"msgtype": "m.text", "body": "* zwei", "m.new_content": text,
				"m.relates_to": map[string]any{"rel_type": "m.replace", "event_id": ids[word]}}, bot.id)
		},
		remove: func(word string) {
			ada.call(http.MethodPut, "/rooms/"+url.PathEscape(ada.room)+"/redact/"+url.PathEscape(ids[word])+"/delete", struct{}{}, nil)
		},
		file: func(key, name, media, content string) {
			ada.send(key, "m.room.message", ada.uploaded(name, media, content), bot.id)
		},
		heard: ada.heard,
	})
	ada.mu.Lock()
	defer ada.mu.Unlock()
	if len(ada.files["answer.ogg"]) == 0 {
		t.Errorf("the spoken answer is not a file that can be decrypted: %d files", len(ada.files))
	}
	keys, err := filepath.Glob(filepath.Join(d.workspace, home, "connectors", "matrix", "keys-*.jsonl"))
	if err != nil || len(keys) != 1 {
		t.Fatalf("%d files of keys, want one (%v)", len(keys), err)
	}
	if info, err := os.Stat(keys[0]); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the keys are open to others: %v, %v", info.Mode(), err)
	}
}
