//go:build goolm

package e2ee

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/rs/zerolog"
	"maunium.net/go/mautrix"
	"maunium.net/go/mautrix/crypto"
	"maunium.net/go/mautrix/crypto/olm"
	"maunium.net/go/mautrix/event"
	"maunium.net/go/mautrix/id"
)

// Built reports whether this build can encrypt.
const Built = true

// machine is a Machine on mautrix.
type machine struct {
	o     Options
	store *store
	lib   *crypto.OlmMachine
	end   context.CancelFunc

	// gate is closed while the keys of an answer of sync are taken out of it. What was taken of
	// a message to the device, and the key that it brought, become durable together: the
	// message would be refused as a repetition if it came again.
	gate sync.RWMutex
	send sync.Mutex // one message is encrypted at a time
}

const (
	roomShelf = "room" // what encrypted rooms say of their encryption
	heldFor   = "held" // messages whose keys are missing
)

// Open reads the keys of the device, or makes and publishes them.
func Open(ctx context.Context, o Options) (Machine, error) {
	if o.Device == "" {
		return nil, ErrUnsupported
	}
	l, err := openLedger(o.File)
	if err != nil {
		return nil, err
	}
	client, err := mautrix.NewClient(o.Base, id.UserID(o.User), o.Token)
	if err != nil {
		return nil, fmt.Errorf("speak to the homeserver: %w", err)
	}
	m := &machine{o: o}
	client.DeviceID, client.Log = id.DeviceID(o.Device), zerolog.Nop()
	carrier := *o.HTTP
	carrier.Transport, carrier.Timeout = durable{m, o.HTTP.Transport}, time.Minute
	client.Client = &carrier

	// The token is a secret already, and it is of this device alone.
	secret := hmac.New(sha256.New, []byte(o.Token))
	fmt.Fprintf(secret, "keys of the Matrix device %s of %s", o.Device, o.User)
	m.store = newStore(l, secret.Sum(nil), o.Verified)
	m.lib = crypto.NewOlmMachine(client, nil, m.store, rooms{m})
	background, end := context.WithCancel(context.WithoutCancel(ctx))
	m.lib.SetBackgroundCtx(background)
	m.end = end
	m.lib.DisableDecryptKeyFetching = true // nothing is asked for while the gate is closed
	m.lib.DisableSharedGroupSessionTracking, m.lib.DisableRatchetTracking = true, true
	m.lib.IgnorePostDecryptionParseErrors = true
	m.lib.AllowKeyShare = func(context.Context, *id.Device, event.RequestedKeyInfo) *crypto.KeyShareRejection {
		return &crypto.KeyShareRejectNoResponse
	}
	if len(o.Verified) > 0 {
		m.lib.SendKeysMinTrust = id.TrustStateVerified
	}
	if err := m.begin(ctx); err != nil {
		end()
		return nil, err
	}

	return m, nil
}

// begin compares our keys with those that the homeserver has, and publishes ours.
func (m *machine) begin(ctx context.Context) error {
	if err := m.lib.Load(ctx); err != nil {
		return fmt.Errorf("read the keys of the device: %w", err)
	}
	user, device := id.UserID(m.o.User), id.DeviceID(m.o.Device)
	resp, err := m.lib.Client.QueryKeys(ctx, &mautrix.ReqQueryKeys{DeviceKeys: mautrix.DeviceKeysRequest{user: {device}}})
	if errors.Is(err, mautrix.MUnrecognized) || errors.Is(err, mautrix.MNotFound) {
		return ErrUnsupported
	}
	if err != nil {
		return fmt.Errorf("ask for the keys of the device: %w", err)
	}
	account := m.lib.GetAccount()
	published, there := resp.DeviceKeys[user][device]
	if there && published.Keys.GetEd25519(device) != account.SigningKey() {
		return ErrForeign
	}
	if account.Shared && there {
		return nil
	}
	account.Shared = false
	if err := m.lib.ShareKeys(ctx, 0); err != nil {
		return fmt.Errorf("publish the keys of the device: %w", err)
	}

	return m.Flush()
}

// Close ends what runs in the background.
func (m *machine) Close() { m.end() }

// Flush makes durable what changed.
func (m *machine) Flush() error {
	m.gate.RLock()
	defer m.gate.RUnlock()
	return m.store.flush()
}

// Fingerprint is the public key that others verify the device by.
func (m *machine) Fingerprint() string { return m.lib.GetAccount().SigningKey().String() }

// durable sends requests when the keys that they were made with are durable: a key must not be
// used for two messages, and a kill must not take one away that others know.
type durable struct {
	*machine
	next http.RoundTripper
}

func (d durable) RoundTrip(r *http.Request) (*http.Response, error) {
	if err := d.Flush(); err != nil {
		return nil, err
	}
	return d.next.RoundTrip(r)
}

// Synced takes the keys out of an answer of sync. They are durable when it returns: the
// homeserver forgets them when it is asked for what came after.
func (m *machine) Synced(ctx context.Context, n News) error {
	var lists mautrix.DeviceLists
	if len(n.Lists) > 0 {
		if err := json.Unmarshal(n.Lists, &lists); err != nil {
			m.o.Log.Warn("cannot read which devices changed", "err", err)
		}
	}
	var to struct {
		Events []*event.Event `json:"events"`
	}
	if len(n.ToDevice) > 0 {
		if err := json.Unmarshal(n.ToDevice, &to); err != nil {
			m.o.Log.Warn("cannot read messages to the device", "err", err)
		}
	}
	if err := m.store.MarkTrackedUsersOutdated(ctx, lists.Changed); err != nil {
		return err
	}

	m.take(ctx, to.Events)
	if err := m.Flush(); err != nil {
		return err
	}
	if len(n.Counts) > 0 {
		var count mautrix.OTKCount
		if err := json.Unmarshal(n.Counts, &count); err == nil {
			m.lib.HandleOTKCounts(ctx, &count)
		}
	}

	return m.Flush()
}

// take takes the keys that others sent to the device.
func (m *machine) take(ctx context.Context, events []*event.Event) {
	m.gate.Lock()
	defer m.gate.Unlock()
	for _, e := range events {
		e.Type.Class = event.ToDeviceEventType
		if err := e.Content.ParseRaw(e.Type); err != nil {
			m.o.Log.Debug("ignored a message to the device", "type", e.Type.Type, "err", err)
			continue
		}
		m.lib.HandleToDeviceEvent(ctx, e)
	}
	m.lib.MarkOlmHashSavePoint(ctx)
}

// refresh asks for the devices of users that have others now.
func (m *machine) refresh(ctx context.Context) error {
	users, err := m.store.GetOutdatedTrackedUsers(ctx)
	if err != nil || len(users) == 0 {
		return err
	}
	if _, err := m.lib.FetchKeys(ctx, users, true); err != nil {
		return fmt.Errorf("ask which devices changed: %w", err)
	}

	return nil
}

// Decrypt opens a message of a room.
func (m *machine) Decrypt(ctx context.Context, room string, raw json.RawMessage) (Opened, error) {
	var e event.Event
	if err := json.Unmarshal(raw, &e); err != nil {
		return Opened{}, fmt.Errorf("%w: %w", ErrRefused, err)
	}
	e.RoomID, e.Type.Class = id.RoomID(room), event.MessageEventType
	if err := e.Content.ParseRaw(event.EventEncrypted); err != nil {
		return Opened{}, fmt.Errorf("%w: %w", ErrRefused, err)
	}

	plain, err := m.lib.DecryptMegolmEvent(ctx, &e)
	if err == nil && plain.Mautrix.TrustState == id.TrustStateUnknownDevice {
		// A device that is new to us. One that is not its sender's stays unknown.
		if _, err := m.lib.FetchKeys(ctx, []id.UserID{e.Sender}, true); err != nil {
			return Opened{}, fmt.Errorf("ask for the devices of %s: %w", e.Sender, err)
		}
		plain, err = m.lib.DecryptMegolmEvent(ctx, &e)
	}
	switch {
	case errors.Is(err, crypto.ErrNoSessionFound), errors.Is(err, olm.ErrUnknownMessageIndex):
		return Opened{}, fmt.Errorf("%w: %w", ErrNoKey, err)
	case ctx.Err() != nil:
		return Opened{}, ctx.Err()
	case err != nil:
		return Opened{}, fmt.Errorf("%w: %w", ErrRefused, err)
	}
	trust := plain.Mautrix.TrustState
	known := trust == id.TrustStateUnset || trust >= id.TrustStateCrossSignedUntrusted
	if !known || len(m.o.Verified) > 0 && trust != id.TrustStateVerified {
		return Opened{}, fmt.Errorf("%w: its device is %s", ErrRefused, trust.String())
	}

	return Opened{plain.Type.Type, plain.Content.VeryRaw}, nil
}

// Encrypt closes a message for the devices of the members of a room. When it returns, the key that
// it used is durable and will not be used again.
func (m *machine) Encrypt(ctx context.Context, room, kind string, content json.RawMessage,
	members func(context.Context) ([]string, error)) (any, error) {
	m.send.Lock()
	defer m.send.Unlock()
	if err := m.refresh(ctx); err != nil {
		return nil, err
	}
	is := event.Type{Type: kind, Class: event.MessageEventType}
	sealed, err := m.lib.EncryptMegolmEvent(ctx, id.RoomID(room), is, content)
	if crypto.IsShareError(err) {
		if err = m.share(ctx, room, members); err == nil {
			sealed, err = m.lib.EncryptMegolmEvent(ctx, id.RoomID(room), is, content)
		}
	}
	if err == nil {
		err = m.Flush()
	}
	if err != nil {
		return nil, fmt.Errorf("encrypt: %w", err)
	}

	return sealed, nil
}

// share gives the key of what is sent in a room to the devices of its members.
func (m *machine) share(ctx context.Context, room string, members func(context.Context) ([]string, error)) error {
	names, err := members(ctx)
	if err != nil {
		return err
	}
	users := make([]id.UserID, len(names))
	for i, name := range names {
		users[i] = id.UserID(name)
	}

	return m.lib.ShareGroupSession(ctx, id.RoomID(room), users)
}

// MembersChanged has the next message of a room encrypted with a new key.
func (m *machine) MembersChanged(ctx context.Context, room string) error {
	return m.store.RemoveOutboundGroupSession(ctx, id.RoomID(room))
}

// Room reports whether a room is known to be encrypted. Encryption cannot be switched off.
func (m *machine) Room(room string) bool { return m.store.has(roomShelf, room) }

// SetRoom keeps what a room says of its encryption.
func (m *machine) SetRoom(room string, content json.RawMessage) error {
	return m.store.put(roomShelf, room, content)
}

// Hold keeps a message whose key is missing.
func (m *machine) Hold(eventID string, h Held) error { return m.store.put(heldFor, eventID, h) }

// Release forgets one.
func (m *machine) Release(eventID string) { m.store.drop(heldFor, eventID) }

// Waiting are the messages whose keys are missing, by their ids.
func (m *machine) Waiting() map[string]Held {
	all := map[string]Held{}
	for _, key := range m.store.keys(heldFor) {
		var h Held
		if _, err := m.store.get(heldFor, key, &h); err == nil {
			all[key] = h
		}
	}

	return all
}

// Ask asks the devices of the sender of a message, and our own others, for its key.
func (m *machine) Ask(ctx context.Context, room string, raw json.RawMessage) error {
	var e event.Event
	if err := json.Unmarshal(raw, &e); err != nil {
		return err
	}
	if err := e.Content.ParseRaw(event.EventEncrypted); err != nil {
		return err
	}
	c := e.Content.AsEncrypted()
	return m.lib.SendRoomKeyRequest(ctx, id.RoomID(room), c.SenderKey, c.SessionID, "",
		map[id.UserID][]id.DeviceID{e.Sender: {"*"}, id.UserID(m.o.User): {"*"}})
}

// rooms is what the library asks about rooms.
type rooms struct{ *machine }

func (r rooms) IsEncrypted(_ context.Context, room id.RoomID) (bool, error) {
	return r.Room(room.String()), nil
}

func (r rooms) GetEncryptionEvent(_ context.Context, room id.RoomID) (*event.EncryptionEventContent, error) {
	var c event.EncryptionEventContent
	if ok, err := r.store.get(roomShelf, room.String(), &c); err != nil || !ok {
		return nil, err
	}

	return &c, nil
}

func (rooms) GetHistoryVisibility(context.Context, id.RoomID) (*event.HistoryVisibilityEventContent, error) {
	return nil, nil
}

// FindSharedRooms returns all encrypted rooms: a new key where none was needed harms nobody.
func (r rooms) FindSharedRooms(context.Context, id.UserID) (all []id.RoomID, err error) {
	for _, room := range r.store.keys(roomShelf) {
		all = append(all, id.RoomID(room))
	}
	return all, nil
}
