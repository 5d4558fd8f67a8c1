//go:build goolm

package e2ee

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"go.mau.fi/util/dbutil"
	"maunium.net/go/mautrix/crypto"
	"maunium.net/go/mautrix/crypto/olm"
	"maunium.net/go/mautrix/event"
	"maunium.net/go/mautrix/id"
)

// A store is what the library keeps, in a ledger. Nothing of it is durable before the next flush.
type store struct {
	*ledger
	sessions
	groups
	outbound
	devices
	signatures
}

func newStore(l *ledger, secret []byte, verified []string) *store {
	return &store{ledger: l, sessions: sessions{ledger: l, secret: secret, open: map[id.SenderKey]map[id.SessionID]*crypto.OlmSession{}},
		groups: groups{l, secret}, outbound: outbound{ledger: l, secret: secret, open: map[id.RoomID]*crypto.OutboundGroupSession{}},
		devices: devices{l, verified}, signatures: signatures{l}}
}

// Flush makes all of it durable.
func (s *store) Flush(context.Context) error { return s.flush() }

// has reports whether there is a value.
func (l *ledger) has(shelf, key string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	_, ok := l.values[shelf][key]
	return ok
}

// groups are the sessions that messages of rooms are decrypted with.
type groups struct {
	*ledger
	secret []byte
}

type keptGroup struct {
	Pickle  []byte       `json:"pickle"`
	Signing id.Ed25519   `json:"signing"`
	Sender  id.SenderKey `json:"sender"`
	Chains  []string     `json:"chains,omitempty"`

	At          time.Time    `json:"at"`
	MaxAge      int64        `json:"maxAge"`
	MaxMessages int          `json:"maxMessages"`
	Source      id.KeySource `json:"source"`
	User        id.UserID    `json:"user"`
	Shared      *bool        `json:"shared,omitempty"`
}

func groupShelf(room id.RoomID) string  { return "in " + room.String() }
func indexShelf(of id.SessionID) string { return "index " + of.String() }

func (g groups) PutGroupSession(_ context.Context, s *crypto.InboundGroupSession) error {
	pickle, err := s.Internal.Pickle(g.secret)
	if err != nil {
		return err
	}
	return g.put(groupShelf(s.RoomID), s.ID().String(), keptGroup{pickle, s.SigningKey, s.SenderKey, s.ForwardingChains, s.ReceivedAt,
		s.MaxAge, s.MaxMessages, s.KeySource, s.SourceUser, s.SharedHistory})
}

func (g groups) GetGroupSession(_ context.Context, room id.RoomID, session id.SessionID) (*crypto.InboundGroupSession, error) {
	var kept keptGroup
	ok, err := g.get(groupShelf(room), session.String(), &kept)
	if err != nil || !ok {
		return nil, err
	}
	s := &crypto.InboundGroupSession{Internal: olm.NewBlankInboundGroupSession(), SigningKey: kept.Signing, SenderKey: kept.Sender,
		RoomID: room, ForwardingChains: kept.Chains, ReceivedAt: kept.At, MaxAge: kept.MaxAge, MaxMessages: kept.MaxMessages,
		SharedHistory: kept.Shared, KeySource: kept.Source, SourceUser: kept.User}

	return s, s.Internal.Unpickle(kept.Pickle, g.secret)
}

// errUnused is returned by what no part of the library calls as daycare uses it.
var errUnused = errors.New("not kept by daycare")

func (groups) RedactGroupSession(context.Context, id.RoomID, id.SessionID, string) error {
	return errUnused
}

func (groups) RedactGroupSessions(context.Context, id.RoomID, id.SenderKey, string) ([]id.SessionID, error) {
	return nil, errUnused
}

func (groups) RedactExpiredGroupSessions(context.Context) ([]id.SessionID, error) {
	return nil, errUnused
}

func (groups) RedactOutdatedGroupSessions(context.Context) ([]id.SessionID, error) {
	return nil, errUnused
}

// PutWithheldGroupSession does nothing: a key that is withheld is one that is missing. The library would not take
// the key if it came after all.
func (groups) PutWithheldGroupSession(context.Context, event.RoomKeyWithheldEventContent) error {
	return nil
}

func (groups) GetWithheldGroupSession(context.Context, id.RoomID, id.SessionID) (*event.RoomKeyWithheldEventContent, error) {
	return nil, nil
}

func (groups) GetGroupSessionsForRoom(context.Context, id.RoomID) dbutil.RowIter[*crypto.InboundGroupSession] {
	return dbutil.NewSliceIter[*crypto.InboundGroupSession](nil)
}

func (groups) GetAllGroupSessions(context.Context) dbutil.RowIter[*crypto.InboundGroupSession] {
	return dbutil.NewSliceIter[*crypto.InboundGroupSession](nil)
}

func (groups) GetGroupSessionsWithoutKeyBackupVersion(context.Context, id.KeyBackupVersion) dbutil.RowIter[*crypto.InboundGroupSession] {
	return dbutil.NewSliceIter[*crypto.InboundGroupSession](nil)
}

type keptIndex struct {
	Event id.EventID `json:"event"`
	At    int64      `json:"at"`
}

// ValidateMessageIndex reports whether a message of a session is the first, or the same again.
func (g groups) ValidateMessageIndex(_ context.Context, session id.SessionID, event id.EventID, index uint, at int64) (bool, error) {
	var kept keptIndex
	ok, err := g.get(indexShelf(session), indexKey(index), &kept)
	if err != nil || ok {
		return kept == keptIndex{event, at}, err
	}

	return true, g.put(indexShelf(session), indexKey(index), keptIndex{event, at})
}

// outbound are the sessions that messages are encrypted with, one a room.
type outbound struct {
	*ledger
	secret []byte

	mu   sync.Mutex
	open map[id.RoomID]*crypto.OutboundGroupSession
}

type keptOutbound struct {
	Pickle      []byte        `json:"pickle"`
	Shared      bool          `json:"shared"`
	MaxMessages int           `json:"maxMessages"`
	Messages    int           `json:"messages"`
	MaxAge      time.Duration `json:"maxAge"`
	History     *bool         `json:"history,omitempty"`
	Created     time.Time     `json:"created"`
	Used        time.Time     `json:"used"`
}

const outShelf = "out"

func (o *outbound) AddOutboundGroupSession(ctx context.Context, s *crypto.OutboundGroupSession) error {
	o.mu.Lock()
	o.open[s.RoomID] = s
	o.mu.Unlock()

	return o.keep(s)
}

// UpdateOutboundGroupSession does nothing for one that was removed meanwhile.
func (o *outbound) UpdateOutboundGroupSession(ctx context.Context, s *crypto.OutboundGroupSession) error {
	o.mu.Lock()
	current := o.open[s.RoomID] == s
	o.mu.Unlock()
	if !current {
		return nil
	}

	return o.keep(s)
}

func (o *outbound) keep(s *crypto.OutboundGroupSession) error {
	pickle, err := s.Internal.Pickle(o.secret)
	if err != nil {
		return err
	}
	return o.put(outShelf, s.RoomID.String(), keptOutbound{pickle, s.Shared, s.MaxMessages, s.MessageCount, s.MaxAge, s.SharedHistory,
		s.CreationTime, s.LastEncryptedTime})
}

func (o *outbound) GetOutboundGroupSession(_ context.Context, room id.RoomID) (*crypto.OutboundGroupSession, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if s := o.open[room]; s != nil {
		return s, nil
	}
	var kept keptOutbound
	if ok, err := o.get(outShelf, room.String(), &kept); err != nil || !ok {
		return nil, err
	}
	s := &crypto.OutboundGroupSession{Internal: olm.NewBlankOutboundGroupSession(), RoomID: room, Shared: kept.Shared,
		MaxMessages: kept.MaxMessages, MessageCount: kept.Messages, SharedHistory: kept.History,
		Users: map[crypto.UserDevice]crypto.OGSState{}}
	s.MaxAge, s.CreationTime, s.LastEncryptedTime = kept.MaxAge, kept.Created, kept.Used
	if err := s.Internal.Unpickle(kept.Pickle, o.secret); err != nil {
		return nil, err
	}
	o.open[room] = s

	return s, nil
}

func (o *outbound) RemoveOutboundGroupSession(_ context.Context, room id.RoomID) error {
	o.mu.Lock()
	delete(o.open, room)
	o.mu.Unlock()
	o.drop(outShelf, room.String())

	return nil
}

// Which devices a session went to is not needed: daycare gives keys to none that asks.
func (*outbound) MarkOutboundGroupSessionShared(context.Context, id.UserID, id.IdentityKey, id.SessionID) error {
	return nil
}

func (*outbound) IsOutboundGroupSessionShared(context.Context, id.UserID, id.IdentityKey, id.SessionID) (bool, error) {
	return false, nil
}

// devices are those of users, and which users are watched for others.
type devices struct {
	*ledger
	verified []string // fingerprints; none: all are as good as verified
}

const (
	trackedShelf  = "tracked"  // users whose devices are known
	outdatedShelf = "outdated" // users whose devices must be asked for
)

func deviceShelf(user id.UserID) string { return "devices " + user.String() }

func (d devices) GetDevices(_ context.Context, user id.UserID) (map[id.DeviceID]*id.Device, error) {
	if !d.has(trackedShelf, user.String()) {
		return nil, nil
	}
	all := map[id.DeviceID]*id.Device{}
	for _, name := range d.keys(deviceShelf(user)) {
		one, err := d.GetDevice(context.Background(), user, id.DeviceID(name))
		if err != nil {
			return nil, err
		}
		all[one.DeviceID] = one
	}

	return all, nil
}

// GetDevice has the device verified if its fingerprint is one of the settings.
func (d devices) GetDevice(_ context.Context, user id.UserID, device id.DeviceID) (*id.Device, error) {
	var one id.Device
	if ok, err := d.get(deviceShelf(user), device.String(), &one); err != nil || !ok {
		return nil, err
	}
	if one.Trust = id.TrustStateUnset; slices.Contains(d.verified, one.SigningKey.String()) {
		one.Trust = id.TrustStateVerified
	}

	return &one, nil
}

func (d devices) PutDevice(_ context.Context, user id.UserID, one *id.Device) error {
	return d.put(deviceShelf(user), one.DeviceID.String(), one)
}

func (d devices) PutDevices(ctx context.Context, user id.UserID, all map[id.DeviceID]*id.Device) error {
	for _, name := range d.keys(deviceShelf(user)) {
		if all[id.DeviceID(name)] == nil {
			d.drop(deviceShelf(user), name)
		}
	}
	for _, one := range all {
		if err := d.PutDevice(ctx, user, one); err != nil {
			return err
		}
	}
	d.drop(outdatedShelf, user.String())

	return d.put(trackedShelf, user.String(), true)
}

func (d devices) FindDeviceByKey(ctx context.Context, user id.UserID, key id.IdentityKey) (*id.Device, error) {
	for _, name := range d.keys(deviceShelf(user)) {
		if one, err := d.GetDevice(ctx, user, id.DeviceID(name)); err != nil || one.IdentityKey == key {
			return one, err
		}
	}

	return nil, nil
}

func (d devices) FilterTrackedUsers(_ context.Context, users []id.UserID) ([]id.UserID, error) {
	return slices.DeleteFunc(slices.Clone(users), func(u id.UserID) bool { return !d.has(trackedShelf, u.String()) }), nil
}

func (d devices) MarkTrackedUsersOutdated(ctx context.Context, users []id.UserID) error {
	users, _ = d.FilterTrackedUsers(ctx, users)
	for _, u := range users {
		if err := d.put(outdatedShelf, u.String(), true); err != nil {
			return err
		}
	}

	return nil
}

func (d devices) GetOutdatedTrackedUsers(context.Context) (users []id.UserID, err error) {
	for _, u := range d.keys(outdatedShelf) {
		users = append(users, id.UserID(u))
	}
	return users, nil
}

// signatures are the cross-signing keys of users and what they signed.
type signatures struct{ *ledger }

func crossShelf(user id.UserID) string { return "cross " + user.String() }

func signedShelf(user id.UserID, key id.Ed25519) string {
	return "signed " + user.String() + " " + key.String()
}

func (s signatures) PutCrossSigningKey(_ context.Context, user id.UserID, usage id.CrossSigningUsage, key id.Ed25519) error {
	kept := id.CrossSigningKey{First: key}
	if _, err := s.get(crossShelf(user), string(usage), &kept); err != nil {
		return err
	}
	kept.Key = key
	return s.put(crossShelf(user), string(usage), kept)
}

func (s signatures) GetCrossSigningKeys(_ context.Context, user id.UserID) (map[id.CrossSigningUsage]id.CrossSigningKey, error) {
	all := map[id.CrossSigningUsage]id.CrossSigningKey{}
	for _, usage := range s.keys(crossShelf(user)) {
		var kept id.CrossSigningKey
		if _, err := s.get(crossShelf(user), usage, &kept); err != nil {
			return nil, err
		}
		all[id.CrossSigningUsage(usage)] = kept
	}

	return all, nil
}

func (signatures) ResetMasterKeyTOFU(context.Context, id.UserID, id.Ed25519) error { return errUnused }

func (s signatures) PutSignature(_ context.Context, user id.UserID, key id.Ed25519, signer id.UserID, with id.Ed25519, text string) error {
	return s.put(signedShelf(user, key), signer.String()+" "+with.String(), text)
}

func (s signatures) GetSignaturesForKeyBy(_ context.Context, user id.UserID, key id.Ed25519, signer id.UserID) (map[id.Ed25519]string,
	error) {
	all := map[id.Ed25519]string{}
	for _, name := range s.keys(signedShelf(user, key)) {
		with, ok := strings.CutPrefix(name, signer.String()+" ")
		var text string
		if !ok {
			continue
		}
		if _, err := s.get(signedShelf(user, key), name, &text); err != nil {
			return nil, err
		}
		all[id.Ed25519(with)] = text
	}

	return all, nil
}

func (s signatures) IsKeySignedBy(_ context.Context, user id.UserID, key id.Ed25519, signer id.UserID, with id.Ed25519) (bool, error) {
	return s.has(signedShelf(user, key), signer.String()+" "+with.String()), nil
}

func (s signatures) DropSignaturesByKey(_ context.Context, signer id.UserID, with id.Ed25519) (n int64, err error) {
	suffix := signer.String() + " " + with.String()
	s.mu.Lock()
	shelves := slices.Collect(maps.Keys(s.values))
	s.mu.Unlock()
	for _, shelf := range shelves {
		if strings.HasPrefix(shelf, "signed ") && s.has(shelf, suffix) {
			s.drop(shelf, suffix)
			n++
		}
	}

	return n, nil
}

// daycare has no secrets of its account: it does not sign for others.
func (signatures) PutSecret(context.Context, id.Secret, string) error   { return errUnused }
func (signatures) GetSecret(context.Context, id.Secret) (string, error) { return "", nil }
func (signatures) DeleteSecret(context.Context, id.Secret) error        { return nil }
