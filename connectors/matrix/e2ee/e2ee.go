package e2ee

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"

	"daycare/engine/disk"
)

// Errors of Open.
var (
	// ErrAbsent means that this build has no encryption.
	ErrAbsent = errors.New("this build of daycare cannot encrypt: it was built without the tag goolm")
	// ErrUnsupported means that the homeserver keeps no keys, or the token has no device.
	ErrUnsupported = errors.New("the homeserver offers no encryption to this token")
	// ErrForeign means that the device of the token has keys that are not ours.
	ErrForeign = errors.New("another client has set up keys for the device of this access token, or daycare has lost its keys")
)

// Errors of Decrypt.
var (
	// ErrNoKey means that the key of a message is not here (yet).
	ErrNoKey = errors.New("the key of this message is missing")
	// ErrRefused means that a message must not be read: it is broken, it is a repetition, or what it
	// was encrypted with is not of a device of its sender that may be read.
	ErrRefused = errors.New("encrypted message refused")
)

// Options say whose keys they are.
type Options struct {
	Base         string // of the homeserver
	HTTP         *http.Client
	Token        string
	User, Device string
	// Verified are the fingerprints of the devices of others that are read and get keys;
	// none: all devices.
	Verified []string
	File     *disk.Log // where the keys are; the caller closes it
	Log      *slog.Logger
}

// News is what an answer of sync has beside rooms, as JSON.
type News struct {
	ToDevice json.RawMessage `json:"to_device"`
	Lists    json.RawMessage `json:"device_lists"`
	Counts   json.RawMessage `json:"device_one_time_keys_count"`
}

// A Held is a message whose key is missing. It is kept durably until it can be read.
type Held struct {
	Room  string          `json:"room"`
	Event json.RawMessage `json:"event"`
	At    int64           `json:"at"`   // when it came, in milliseconds of Unix
	Told  bool            `json:"told"` // its sender knows
}

// An Opened is a message that was decrypted.
type Opened struct {
	Type    string
	Content json.RawMessage
}

// A Machine encrypts and decrypts with the keys of one device. Its methods may be called from many
// goroutines.
type Machine interface {
	// Synced takes the keys out of an answer of sync. They are durable when it returns: the
	// homeserver forgets them when it is asked for what came after.
	Synced(ctx context.Context, n News) error
	// Decrypt opens an event of a room.
	Decrypt(ctx context.Context, room string, event json.RawMessage) (Opened, error)
	// Encrypt closes a message for the devices of the members of a room. When it returns, the key
	// that it used is durable and will not be used again.
	Encrypt(ctx context.Context, room, kind string, content json.RawMessage, members func(context.Context) ([]string, error)) (any, error)
	// Flush makes durable what changed.
	Flush() error
	// Close ends what runs in the background.
	Close()
	// Fingerprint is the public key that others verify the device by.
	Fingerprint() string

	// Room reports whether a room is known to be encrypted. Encryption cannot be switched off.
	Room(room string) bool
	// SetRoom keeps what a room says of its encryption.
	SetRoom(room string, content json.RawMessage) error
	// MembersChanged has the next message of a room encrypted with a new key.
	MembersChanged(ctx context.Context, room string) error

	// Hold keeps a message whose key is missing, Release forgets it, and Waiting are all, by
	// the ids of their events.
	Hold(eventID string, h Held) error
	Release(eventID string)
	Waiting() map[string]Held
	// Ask asks the devices of the sender of a message, and our own others, for its key.
	Ask(ctx context.Context, room string, event json.RawMessage) error
}
