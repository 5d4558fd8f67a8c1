package matrix

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"sync"
	"time"

	"daycare/connectors/chat"
	"daycare/connectors/matrix/e2ee"
	"daycare/engine/lazyregexp"
	"daycare/engine/message"
)

// Rooms that are encrypted from end to end.

const (
	patience = 30 * time.Second // for the key of a message, until its sender is notified
	memory   = 24 * time.Hour   // for a key that comes late
	maxHeld  = 100              // messages whose keys are missing

	deviceFile = "device.json"
)

// Device is what others see of our device, as it is kept in device.json.
type Device struct {
	User        string `json:"user"`
	Device      string `json:"device"`
	Fingerprint string `json:"fingerprint"`
}

var deviceRule = lazyregexp.New(`^[A-Za-z0-9_-]{1,80}$`)

// sealing is the encryption of our device.
type sealing struct {
	lock    sync.Mutex
	machine e2ee.Machine
	absent  error           // why there is none; nil without a machine: Run has not come that far
	clear   map[string]bool // rooms that are not encrypted
	told    map[string]bool // rooms that were told that we cannot read what is encrypted
}

func (s *sealing) sealer() (e2ee.Machine, error) {
	s.lock.Lock()
	defer s.lock.Unlock()
	return s.machine, s.absent
}

func (s *sealing) set(m e2ee.Machine, absent error) {
	s.lock.Lock()
	defer s.lock.Unlock()
	s.machine, s.absent, s.clear = m, absent, map[string]bool{}
}

// sealed is a connector that encrypts and decrypts.
type sealed struct{ *Connector }

// withKeys runs what reads and writes, with the keys of the device. A build, a homeserver or a token
// without any is no error: rooms that are not encrypted work.
func (c sealed) withKeys(ctx context.Context, run func() error) error {
	ledger, ok := c.host.Waiting.(chat.Ledger)
	c.mu.Lock()
	me := Device{User: c.me, Device: c.device}
	c.mu.Unlock()
	switch {
	case !e2ee.Built:
		c.set(nil, e2ee.ErrAbsent)
		return run()
	case !ok || !deviceRule.MatchString(me.Device):
		c.set(nil, e2ee.ErrUnsupported)
		return run()
	}
	file, err := ledger.Ledger(c.o.ID, "keys-"+me.Device+".jsonl")
	if err != nil {
		return fmt.Errorf("open the keys of the device: %w", err)
	}
	defer file.Close()
	m, err := e2ee.Open(ctx, e2ee.Options{Base: c.api.Base, HTTP: c.api.HTTP, Token: c.api.token, User: me.User, Device: me.Device,
		Verified: c.o.fingerprints(), File: file, Log: c.log})
	switch {
	case errors.Is(err, e2ee.ErrUnsupported), errors.Is(err, e2ee.ErrForeign):
		c.log.Warn("encrypted rooms cannot be read; make a token by a new login, as docs/connectors/matrix.md says", "err", err)
		c.set(nil, err)
		return run()
	case err != nil:
		return err
	}
	defer m.Close()
	me.Fingerprint = m.Fingerprint()
	if data, err := json.MarshalIndent(me, "", "  "); err == nil {
		err = c.host.Waiting.Save(c.o.ID, deviceFile, append(data, '\n'))
		if err != nil {
			return fmt.Errorf("keep the fingerprint of the device: %w", err)
		}
	}
	c.set(m, nil)
	defer c.set(nil, nil)

	return run()
}

// keys takes the keys out of an answer of sync, and notes which rooms are encrypted.
func (c follower) keys(ctx context.Context, b batch) error {
	m, _ := c.sealer()
	if m != nil {
		if err := m.Synced(ctx, b.News); err != nil {
			return err
		}
	}
	for room, j := range b.Rooms.Join {
		for _, e := range slices.Concat(j.State.Events, j.Timeline.Events) {
			if e.Type != "m.room.encryption" || e.StateKey == nil {
				continue
			}
			c.lock.Lock()
			delete(c.clear, room)
			c.lock.Unlock()
			if m == nil {
				continue
			}
			var is struct {
				Content json.RawMessage `json:"content"`
			}
			if err := json.Unmarshal(e.raw, &is); err != nil {
				return fmt.Errorf("read how a room is encrypted: %w", err)
			}
			if err := m.SetRoom(room, is.Content); err != nil {
				return err
			}
		}
	}

	return nil
}

// kept makes durable what decrypting changed.
func (c follower) kept() error {
	if m, _ := c.sealer(); m != nil {
		return m.Flush()
	}
	return nil
}

// moved has the next message of a room encrypted anew: who left must not read it, and who came must.
func (c follower) moved(ctx context.Context, room string) error {
	if m, _ := c.sealer(); m != nil {
		return m.MembersChanged(ctx, room)
	}
	return nil
}

// open decrypts an event; false: it is not for an agent, or waits for its key.
func (c follower) open(ctx context.Context, room string, e roomEvent) (roomEvent, bool, error) {
	m, absent := c.sealer()
	known := slices.Contains(c.o.Allow, e.Sender)
	if m == nil {
		if known {
			c.notify(ctx, room, room, "I cannot read encrypted rooms: "+absent.Error()+". Create a room without encryption, "+
				"and invite me there.")
		}
		return e, false, nil
	}
	opened, err := c.decrypt(ctx, m, room, e)
	switch {
	case errors.Is(err, e2ee.ErrNoKey):
		if !known || len(m.Waiting()) >= maxHeld {
			c.log.Warn("ignored an encrypted message without a key", "room", room, "user", e.Sender, "err", err)
			return e, false, nil
		}
		if err := m.Hold(e.ID, e2ee.Held{Room: room, Event: e.raw, At: time.Now().UnixMilli()}); err != nil {
			return e, false, err
		}
		if err := m.Ask(ctx, room, e.raw); err != nil {
			c.log.Warn("cannot ask for the key of a message", "room", room, "event", e.ID, "err", err)
		}
		return e, false, nil
	case errors.Is(err, e2ee.ErrRefused):
		c.log.Warn("ignored an encrypted message", "room", room, "user", e.Sender, "err", err)
		if known && len(c.o.Verified) > 0 {
			c.notify(ctx, room, room+e.Sender, "I ignored an encrypted message from "+e.Sender+": I am not allowed to read "+
				"messages from its device. The owner of daycare can add it: daycare connectors verify "+c.o.ID)
		}
		return e, false, nil
	}

	return opened, err == nil, err
}

// notify tells a room something once.
func (c sealed) notify(ctx context.Context, room, about, text string) {
	c.lock.Lock()
	told := c.told[about]
	if c.told == nil {
		c.told = map[string]bool{}
	}
	c.told[about] = true
	c.lock.Unlock()
	if told {
		return
	}
	m, ok := spoken(text)
	if !ok {
		return
	}
	m.Kind = "m.notice"
	if _, err := c.put(ctx, room, "m.room.message", once("notice"), m); err != nil && ctx.Err() == nil {
		c.log.Warn("cannot tell a room about its encryption", "room", room, "err", err)
	}
}

// decrypt returns what an event was before it was encrypted.
func (c sealed) decrypt(ctx context.Context, m e2ee.Machine, room string, e roomEvent) (roomEvent, error) {
	opened, err := m.Decrypt(ctx, room, e.raw)
	if err != nil {
		return e, err
	}
	clear := roomEvent{ID: e.ID, Sender: e.Sender, Type: opened.Type, raw: e.raw}
	if err := json.Unmarshal(opened.Content, &clear.Content); err != nil {
		return e, fmt.Errorf("%w: %w", e2ee.ErrRefused, err)
	}

	return clear, nil
}

// peek is an event decrypted, if that can be done.
func (c sealed) peek(ctx context.Context, room string, e roomEvent) roomEvent {
	m, _ := c.sealer()
	if m == nil || e.Type != "m.room.encrypted" {
		return e
	}
	clear, err := c.decrypt(ctx, m, room, e)
	if err != nil {
		return e
	}

	return clear
}

// overdue tries the messages again whose keys were missing, the oldest first. Of one that cannot be
// read for half a minute its sender is notified; it is kept for a day, as its key may still come.
func (c follower) overdue(ctx context.Context, deliver message.Deliver) error {
	m, _ := c.sealer()
	if m == nil {
		return nil
	}
	all := m.Waiting()
	ids := make([]string, 0, len(all))
	for id := range all {
		ids = append(ids, id)
	}
	slices.SortFunc(ids, func(a, b string) int { return cmp.Or(cmp.Compare(all[a].At, all[b].At), cmp.Compare(a, b)) })
	for _, id := range ids {
		h := all[id]
		var e roomEvent
		if err := json.Unmarshal(h.Event, &e); err != nil {
			return fmt.Errorf("read a message that waits for its key: %w", err)
		}
		_, err := c.decrypt(ctx, m, h.Room, e)
		switch age := time.Since(time.UnixMilli(h.At)); {
		case err == nil, errors.Is(err, e2ee.ErrRefused):
			if !c.take(ctx, deliver, h.Room, e) {
				return nil
			}
			m.Release(id)
		case !errors.Is(err, e2ee.ErrNoKey):
			return err
		case age > memory:
			m.Release(id)
		case age > patience && !h.Told:
			at := time.UnixMilli(h.At).Format("15:04")
			c.notify(ctx, h.Room, session(e), fmt.Sprintf("I could not decrypt a message from %s (%s): its key did not reach me. "+
				"I asked for it. If no answer comes, please send the message again.", e.Sender, at))
			h.Told = true
			if err := m.Hold(id, h); err != nil {
				return err
			}
		}
	}

	return nil
}

// session is the key that an encrypted event needs: of several whose key is missing the sender is
// notified once.
func session(e roomEvent) string {
	var is struct {
		Content struct {
			ID string `json:"session_id"`
		} `json:"content"`
	}
	if err := json.Unmarshal(e.raw, &is); err != nil || is.Content.ID == "" {
		return e.ID
	}

	return is.Content.ID
}

// encrypted reports whether a room is encrypted. The homeserver cannot take it back once it said so.
func (c sealed) encrypted(ctx context.Context, room string) (bool, error) {
	m, _ := c.sealer()
	if m != nil && m.Room(room) {
		return true, nil
	}
	c.lock.Lock()
	clear := c.clear[room]
	c.lock.Unlock()
	if clear {
		return false, nil
	}
	var how json.RawMessage
	at := path(client+"/rooms", room, "state", "m.room.encryption")
	err := c.api.do(ctx, call{name: "encryption", method: http.MethodGet, path: at}, &how)
	var no *apiError
	switch {
	case errors.As(err, &no) && no.Status == http.StatusNotFound:
		c.lock.Lock()
		defer c.lock.Unlock()
		if c.clear != nil {
			c.clear[room] = true
		}
		return false, nil
	case err != nil || m == nil:
		return err == nil, err
	}

	return true, errors.Join(m.SetRoom(room, how), m.Flush())
}

// seal encrypts an event for the members of a room that is encrypted. What cannot be encrypted is
// not sent, but for notices, which say that.
func (c sealed) seal(ctx context.Context, room, kind string, said any) (string, any, error) {
	if kind == "m.reaction" { // which no client encrypts: homeservers count them
		return kind, said, nil
	}
	on, err := c.encrypted(ctx, room)
	if err != nil || !on {
		return kind, said, err
	}
	m, absent := c.sealer()
	if m == nil {
		return kind, said, unsealed(said, absent)
	}
	data, err := json.Marshal(said)
	if err != nil {
		return kind, said, fmt.Errorf("encode a message: %w", err)
	}
	closed, err := m.Encrypt(ctx, room, kind, data, func(ctx context.Context) ([]string, error) { return c.readers(ctx, room) })

	return "m.room.encrypted", closed, err
}

// unsealed is why a message cannot be sent to an encrypted room.
func unsealed(content any, absent error) error {
	if m, ok := content.(said); ok && m.Kind == "m.notice" && absent != nil {
		return nil
	}
	if absent == nil {
		return &message.NotSent{After: 2 * time.Second, Err: errors.New("the keys of the device are not open yet")}
	}

	return &message.NotSent{Final: true, Err: fmt.Errorf("the room is encrypted: %w", absent)}
}

// readers are the members of a room, and who is invited to it.
func (c sealed) readers(ctx context.Context, room string) (users []string, err error) {
	var in struct {
		Chunk []struct {
			StateKey string `json:"state_key"`
			Content  struct {
				Membership string `json:"membership"`
			} `json:"content"`
		} `json:"chunk"`
	}
	if err := c.api.do(ctx, call{name: "members", method: http.MethodGet, path: path(client+"/rooms", room, "members")}, &in); err != nil {
		return nil, err
	}
	for _, e := range in.Chunk {
		if e.Content.Membership == "join" || e.Content.Membership == "invite" {
			users = append(users, e.StateKey)
		}
	}

	return users, nil
}

// openFile downloads a file that is encrypted.
func (c sealed) openFile(ctx context.Context, keys json.RawMessage) (io.ReadCloser, error) {
	var at struct {
		URL string `json:"url"`
	}
	if err := json.Unmarshal(keys, &at); err != nil {
		return nil, fmt.Errorf("download file: %w", err)
	}
	body, err := c.api.download(ctx, at.URL)
	if err != nil {
		return nil, err
	}
	defer body.Close()
	clear, err := e2ee.OpenFile(keys, body)

	return io.NopCloser(clear), err
}

// sealFile encrypts what a call uploads to a room that is encrypted; keys is what the message says
// of it then, and nil elsewhere.
func (c sealed) sealFile(ctx context.Context, room string, put *call) (keys func(address string) any, err error) {
	on, err := c.encrypted(ctx, room)
	if err != nil || !on {
		return nil, err
	}
	if m, absent := c.sealer(); m == nil {
		return nil, unsealed(nil, absent)
	}
	data, err := io.ReadAll(put.raw)
	if err != nil {
		return nil, &message.NotSent{Final: true, Err: fmt.Errorf("read file to send: %w", err)}
	}
	closed, keys := e2ee.SealFile(data)
	put.raw, put.media, put.query = bytes.NewReader(closed), "application/octet-stream", nil

	return keys, nil
}
