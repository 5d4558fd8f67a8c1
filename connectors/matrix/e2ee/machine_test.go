//go:build goolm

package e2ee

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"maunium.net/go/mautrix/event"

	"daycare/engine/disk"
)

const room = "!room:test.example"

// homeserver keeps keys and carries messages between devices.
type homeserver struct {
	*httptest.Server
	mu      sync.Mutex
	devices map[string]map[string]json.RawMessage // by user and device
	once    map[string]map[string]json.RawMessage // one-time keys, by user and device
	to      map[string][]json.RawMessage          // messages to devices, by user and device
	asked   []string                              // for keys, by users
}

func newHomeserver(t *testing.T) *homeserver {
	t.Helper()
	h := &homeserver{devices: map[string]map[string]json.RawMessage{}, once: map[string]map[string]json.RawMessage{},
		to: map[string][]json.RawMessage{}}
	h.Server = httptest.NewServer(http.HandlerFunc(h.serve))
	t.Cleanup(h.Close)
	return h
}

func (h *homeserver) serve(w http.ResponseWriter, r *http.Request) {
	h.mu.Lock()
	defer h.mu.Unlock()
	user, device, _ := strings.Cut(strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer "), " ")
	body, _ := io.ReadAll(r.Body)
	var answer any = struct{}{}
	switch p := strings.TrimPrefix(r.URL.Path, "/_matrix/client/v3"); {
	case p == "/keys/upload":
		var req struct {
			Device json.RawMessage            `json:"device_keys"`
			Once   map[string]json.RawMessage `json:"one_time_keys"`
		}
		_ = json.Unmarshal(body, &req)
		if len(req.Device) > 4 {
			if h.devices[user] == nil {
				h.devices[user] = map[string]json.RawMessage{}
			}
			h.devices[user][device] = req.Device
		}
		if h.once[user+device] == nil {
			h.once[user+device] = map[string]json.RawMessage{}
		}
		maps.Copy(h.once[user+device], req.Once)
		answer = map[string]any{"one_time_key_counts": map[string]int{"signed_curve25519": len(h.once[user+device])}}
	case p == "/keys/query":
		var req struct {
			Users map[string]any `json:"device_keys"`
		}
		_ = json.Unmarshal(body, &req)
		all := map[string]any{}
		for u := range req.Users {
			all[u] = h.devices[u]
			if h.devices[u] == nil {
				all[u] = struct{}{}
			}
		}
		answer = map[string]any{"device_keys": all}
	case p == "/keys/claim":
		var req struct {
			Once map[string]map[string]string `json:"one_time_keys"`
		}
		_ = json.Unmarshal(body, &req)
		all := map[string]map[string]map[string]json.RawMessage{}
		for u, devices := range req.Once {
			all[u] = map[string]map[string]json.RawMessage{}
			for d := range devices {
				for id, key := range h.once[u+d] {
					all[u][d] = map[string]json.RawMessage{id: key}
					delete(h.once[u+d], id)
					break
				}
			}
		}
		answer = map[string]any{"one_time_keys": all}
	case strings.HasPrefix(p, "/sendToDevice/"):
		var req struct {
			Messages map[string]map[string]json.RawMessage `json:"messages"`
		}
		_ = json.Unmarshal(body, &req)
		kind := strings.Split(p, "/")[2]
		for u, devices := range req.Messages {
			if kind == "m.room_key_request" {
				h.asked = append(h.asked, u)
			}
			for d, content := range devices {
				e, _ := json.Marshal(map[string]any{"type": kind, "sender": user, "content": content})
				h.to[u+d] = append(h.to[u+d], e)
			}
		}
	default:
		w.WriteHeader(http.StatusNotFound)
		answer = map[string]string{"errcode": "M_UNRECOGNIZED"}
	}
	_ = json.NewEncoder(w).Encode(answer)
}

// news is what sync has for a device, again and again until it is forgotten.
func (h *homeserver) news(user, device string, changed ...string) News {
	h.mu.Lock()
	defer h.mu.Unlock()
	events, _ := json.Marshal(map[string]any{"events": h.to[user+device]})
	lists, _ := json.Marshal(map[string]any{"changed": changed})
	return News{ToDevice: events, Lists: lists}
}

func (h *homeserver) forget(user, device string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.to, user+device)
}

// machine opens the keys of a device, as a process that starts does.
func (h *homeserver) machine(t *testing.T, dir, user, device string, verified ...string) (*machine, error) {
	t.Helper()
	path := filepath.Join(dir, "keys-"+device+".jsonl")
	file, _, err := disk.NewVolume(dir).OpenLog(path, disk.LogOptions{Name: "ledger", Valid: json.Valid})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = file.Close() })
	opened, err := Open(t.Context(), Options{Base: h.URL, HTTP: h.Client(), Token: user + " " + device, User: user, Device: device,
		Verified: verified, File: file, Log: slog.New(slog.DiscardHandler)})
	m, _ := opened.(*machine)
	if err == nil {
		t.Cleanup(m.Close)
		if err := m.SetRoom(room, json.RawMessage(`{"algorithm": "m.megolm.v1.aes-sha2"}`)); err != nil {
			t.Fatal(err)
		}
	}

	return m, err
}

// events are the messages to a device.
func events(t *testing.T, n News) []*event.Event {
	t.Helper()
	var to struct {
		Events []*event.Event `json:"events"`
	}
	must(t, json.Unmarshal(n.ToDevice, &to))
	return to.Events
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

const (
	ada = "@ada:test.example"
	bot = "@bot:test.example"
)

// seal is an event with a text, encrypted for ada and the bot.
func seal(t *testing.T, m *machine, id, text string) json.RawMessage {
	t.Helper()
	sealed, err := m.Encrypt(t.Context(), room, "m.room.message", json.RawMessage(fmt.Sprintf(`{"msgtype": "m.text", "body": %q}`, text)),
		func(context.Context) ([]string, error) { return []string{ada, bot}, nil })
	must(t, err)
	e, err := json.Marshal(map[string]any{"type": "m.room.encrypted", "event_id": id, "sender": m.o.User, "room_id": room,
		"origin_server_ts": 1000, "content": sealed})
	must(t, err)
	return e
}

// text is what an event says.
func text(t *testing.T, m *machine, e json.RawMessage) (string, error) {
	t.Helper()
	opened, err := m.Decrypt(t.Context(), room, e)
	if err != nil {
		return "", err
	}
	var said struct {
		Body string `json:"body"`
	}
	must(t, json.Unmarshal(opened.Content, &said))
	return said.Body, nil
}

// A process that is killed before, between and after its writes reads each message: sync brings
// the keys again until they are durable.
func TestKilledBetweenKeys(t *testing.T) {
	t.Parallel()
	h := newHomeserver(t)
	theirs, err := h.machine(t, t.TempDir(), ada, "PHONE")
	must(t, err)
	dir := t.TempDir()
	ours, err := h.machine(t, dir, bot, "DAYCARE")
	must(t, err)
	before := ours.Fingerprint()
	for n := range 12 {
		if n%4 == 3 { // a key for each message from now on
			must(t, theirs.MembersChanged(t.Context(), room))
		}
		id, word := fmt.Sprint("$", n), fmt.Sprint("word ", n)
		e := seal(t, theirs, id, word)
		if n%3 > 0 { // killed after the keys were taken, and before or after they were durable
			ours.take(t.Context(), events(t, h.news(bot, "DAYCARE")))
			if n%3 == 2 {
				must(t, ours.Flush())
			}
			ours, err = h.machine(t, dir, bot, "DAYCARE")
			must(t, err)
		}
		must(t, ours.Synced(t.Context(), h.news(bot, "DAYCARE")))
		h.forget(bot, "DAYCARE")
		for range 2 { // a second time after a kill before the place was kept
			got, err := text(t, ours, e)
			if err != nil || got != word {
				t.Fatalf("message %d is %q, %v", n, got, err)
			}
			must(t, ours.Flush())
			ours, err = h.machine(t, dir, bot, "DAYCARE")
			must(t, err)
		}

		// An answer before and after a kill: never twice with the same key.
		for i := range 2 {
			answer := seal(t, ours, fmt.Sprint("$answer", n, i), "heard "+word)
			must(t, theirs.Synced(t.Context(), h.news(ada, "PHONE")))
			h.forget(ada, "PHONE")
			if got, err := text(t, theirs, answer); err != nil || got != "heard "+word {
				t.Fatalf("answer %d is %q, %v", n, got, err)
			}
			ours, err = h.machine(t, dir, bot, "DAYCARE")
			must(t, err)
		}
	}
	if ours.Fingerprint() != before {
		t.Error("the device has other keys than before the kills")
	}
}

// What does not come from a device of its sender is refused, and so is what came before.
func TestForgedAndRepeated(t *testing.T) {
	t.Parallel()
	h := newHomeserver(t)
	theirs, err := h.machine(t, t.TempDir(), ada, "PHONE")
	must(t, err)
	eve, err := h.machine(t, t.TempDir(), "@eve:test.example", "LAPTOP")
	must(t, err)
	ours, err := h.machine(t, t.TempDir(), bot, "DAYCARE")
	must(t, err)
	good, forged := seal(t, theirs, "$1", "hello"), seal(t, eve, "$2", "give me everything")
	must(t, ours.Synced(t.Context(), h.news(bot, "DAYCARE")))

	forged = bytes.Replace(forged, []byte("@eve:test.example"), []byte(ada), 1)
	if got, err := text(t, ours, forged); !errors.Is(err, ErrRefused) {
		t.Errorf("a message with the keys of somebody else was read: %q, %v", got, err)
	}
	if got, err := text(t, ours, good); err != nil || got != "hello" {
		t.Errorf("the message is %q, %v", got, err)
	}
	again := bytes.Replace(good, []byte(`"$1"`), []byte(`"$3"`), 1)
	if got, err := text(t, ours, again); !errors.Is(err, ErrRefused) {
		t.Errorf("a message was read under a second id: %q, %v", got, err)
	}
	broken := bytes.Replace(good, []byte(`"ciphertext":"AwgA`), []byte(`"ciphertext":"AwgB`), 1)
	if got, err := text(t, ours, broken); err == nil {
		t.Errorf("a broken message was read: %q", got)
	}
}

// With a list of verified devices the others are not read, and get no keys.
func TestVerifiedDevices(t *testing.T) {
	t.Parallel()
	h := newHomeserver(t)
	phone, err := h.machine(t, t.TempDir(), ada, "PHONE")
	must(t, err)
	laptop, err := h.machine(t, t.TempDir(), ada, "LAPTOP")
	must(t, err)
	ours, err := h.machine(t, t.TempDir(), bot, "DAYCARE", phone.Fingerprint())
	must(t, err)
	known, other := seal(t, phone, "$1", "from the phone"), seal(t, laptop, "$2", "from the laptop")
	must(t, ours.Synced(t.Context(), h.news(bot, "DAYCARE")))
	if got, err := text(t, ours, known); err != nil || got != "from the phone" {
		t.Errorf("the verified device said %q, %v", got, err)
	}
	if got, err := text(t, ours, other); !errors.Is(err, ErrRefused) {
		t.Errorf("the other device was read: %q, %v", got, err)
	}
	answer := seal(t, ours, "$3", "secret")
	must(t, phone.Synced(t.Context(), h.news(ada, "PHONE")))
	must(t, laptop.Synced(t.Context(), h.news(ada, "LAPTOP")))
	if got, err := text(t, phone, answer); err != nil || got != "secret" {
		t.Errorf("the verified device reads %q, %v", got, err)
	}
	if got, err := text(t, laptop, answer); !errors.Is(err, ErrNoKey) {
		t.Errorf("the other device reads %q, %v", got, err)
	}
}

// A message whose key is missing is kept over a restart, its key is asked for, and it is read when the
// key comes.
func TestKeyThatComesLate(t *testing.T) {
	t.Parallel()
	h := newHomeserver(t)
	theirs, err := h.machine(t, t.TempDir(), ada, "PHONE")
	must(t, err)
	dir := t.TempDir()
	ours, err := h.machine(t, dir, bot, "DAYCARE")
	must(t, err)
	e := seal(t, theirs, "$1", "hello")
	if _, err := text(t, ours, e); !errors.Is(err, ErrNoKey) {
		t.Fatalf("read without a key: %v", err)
	}
	must(t, ours.Hold("$1", Held{Room: room, Event: e, At: 7}))
	must(t, ours.Ask(t.Context(), room, e))
	must(t, ours.Flush())

	// Its device does not want to give it, and does so after all.
	var is struct {
		Content struct {
			Sender  string `json:"sender_key"`
			Session string `json:"session_id"`
		} `json:"content"`
	}
	must(t, json.Unmarshal(e, &is))
	must(t, ours.Synced(t.Context(), News{ToDevice: fmt.Appendf(nil, `{"events":[{"sender":%q,"type":"m.room_key.withheld","content":
		{"room_id":%q,"algorithm":"m.megolm.v1.aes-sha2","session_id":%q,"sender_key":%q,"code":"m.unauthorised"}}]}`,
		ada, room, is.Content.Session, is.Content.Sender)}))
	if _, err := text(t, ours, e); !errors.Is(err, ErrNoKey) {
		t.Errorf("read without a key: %v", err)
	}
	if !slices.Contains(h.asked, ada) || !slices.Contains(h.asked, bot) {
		t.Errorf("asked were %v", h.asked)
	}
	ours, err = h.machine(t, dir, bot, "DAYCARE")
	must(t, err)
	must(t, ours.Synced(t.Context(), h.news(bot, "DAYCARE")))
	held := ours.Waiting()["$1"]
	if got, err := text(t, ours, held.Event); err != nil || got != "hello" || held.At != 7 {
		t.Errorf("the message is %q, %v, %+v", got, err, held)
	}
	ours.Release("$1")
	if n := len(ours.Waiting()); n != 0 {
		t.Errorf("%d messages wait", n)
	}
}

// A device that somebody else gave keys is left alone, and so is one whose keys were lost here.
func TestForeignKeys(t *testing.T) {
	t.Parallel()
	h := newHomeserver(t)
	_, err := h.machine(t, t.TempDir(), bot, "DAYCARE")
	must(t, err)
	if _, err := h.machine(t, t.TempDir(), bot, "DAYCARE"); !errors.Is(err, ErrForeign) {
		t.Errorf("keys that were not ours were taken over: %v", err)
	}
	if _, err := h.machine(t, t.TempDir(), bot, ""); !errors.Is(err, ErrUnsupported) {
		t.Errorf("a token without a device: %v", err)
	}
}

// A device that a user adds gets the keys of what is said from then on, and one that is gone does not.
func TestDevicesChange(t *testing.T) {
	t.Parallel()
	h := newHomeserver(t)
	phone, err := h.machine(t, t.TempDir(), ada, "PHONE")
	must(t, err)
	ours, err := h.machine(t, t.TempDir(), bot, "DAYCARE")
	must(t, err)
	seal(t, ours, "$1", "for the phone")
	laptop, err := h.machine(t, t.TempDir(), ada, "LAPTOP")
	must(t, err)
	must(t, ours.Synced(t.Context(), h.news(bot, "DAYCARE", ada)))
	e := seal(t, ours, "$2", "for both")
	for device, m := range map[string]*machine{"PHONE": phone, "LAPTOP": laptop} {
		must(t, m.Synced(t.Context(), h.news(ada, device)))
		if got, err := text(t, m, e); err != nil || got != "for both" {
			t.Errorf("%s reads %q, %v", device, got, err)
		}
	}

	h.mu.Lock()
	delete(h.devices[ada], "LAPTOP")
	h.mu.Unlock()
	h.forget(ada, "LAPTOP")
	must(t, ours.Synced(t.Context(), h.news(bot, "DAYCARE", ada)))
	e = seal(t, ours, "$3", "for the phone alone")
	must(t, laptop.Synced(t.Context(), h.news(ada, "LAPTOP")))
	if got, err := text(t, laptop, e); !errors.Is(err, ErrNoKey) {
		t.Errorf("a device that is gone reads %q, %v", got, err)
	}
}
