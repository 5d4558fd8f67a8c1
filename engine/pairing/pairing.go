package pairing

import (
	"crypto/rand"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"daycare/engine/crash"
	"daycare/engine/disk"
	"daycare/engine/fault"
	"daycare/engine/message"
)

const (
	// Lifetime is how long a code is valid.
	Lifetime = time.Hour
	// Most is how many users of one connector can have a code at a time.
	Most = 10

	mostAll    = 50
	codeLength = 8   // of 32 letters and digits: 40 bits
	maxID      = 500 // bytes of an id; those of platforms are shorter
)

// ErrUnknown means that no pending request has the code.
var ErrUnknown = fault.NoPairing

// A Request is an unknown user's request for access.
type Request struct {
	Code string          `json:"code" check:"required" pattern:"^[A-Z2-7]{8}$"`
	From message.Address `json:"from"`
	Name string          `json:"name,omitempty"` // the name they chose
	At   disk.Stamp      `json:"at"`
	// Decision is the answer, "" while pending. An answered request stays until it expires,
	// so that the user cannot ask again at once, and a repeated answer is not an error.
	Decision Decision `json:"decision,omitempty" allow:"|approved|rejected"`
}

// A Decision is an owner's answer.
type Decision string

// The answers.
const (
	Approved Decision = "approved"
	Rejected Decision = "rejected"
)

// Expires returns when the code expires.
func (r Request) Expires() time.Time { return r.At.Add(Lifetime) }

// same reports whether the request is from this user.
func (r Request) same(from message.Address) bool {
	return r.From.Connector == from.Connector && r.From.UserID == from.UserID
}

// A Book contains the requests of a workspace. It is safe for concurrent use.
type Book struct {
	root string
	vol  *disk.Volume // nil: read-only
	mu   sync.Mutex
}

// Open returns the requests stored in a .daycare directory.
func Open(root string, vol *disk.Volume) *Book { return &Book{root: root, vol: vol} }

// Ask adds a request and returns its code. It returns "" if the user already has a request, or
// if too many requests are pending.
func (b *Book) Ask(from message.Address, name string) (code string, err error) {
	if from.UserID == "" || len(from.UserID)+len(from.ChannelID)+len(from.ThreadID) > maxID {
		return "", nil
	}
	err = b.change(func(all []Request) ([]Request, error) {
		here := 0
		for _, r := range all {
			if r.same(from) {
				return all, nil
			}
			if r.From.Connector == from.Connector {
				here++
			}
		}

		if here >= Most || len(all) >= mostAll {
			return all, nil
		}
		code = rand.Text()[:codeLength]
		return append(all, Request{Code: code, From: from, Name: strings.ToValidUTF8(name, ""), At: disk.StampOf(crash.Now())}), nil
	})
	if err != nil {
		return "", err
	}

	return code, nil
}

// List returns the pending requests, oldest first.
func (b *Book) List() ([]Request, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	all, err := b.live()
	return slices.DeleteFunc(all, func(r Request) bool { return r.Decision != "" }), err
}

// Find returns the request with a code, answered or not, or ErrUnknown.
func (b *Book) Find(code string) (Request, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	all, err := b.live()
	if err != nil {
		return Request{}, err
	}

	code = strings.ToUpper(strings.TrimSpace(code))
	i := slices.IndexFunc(all, func(r Request) bool { return r.Code == code })
	if i < 0 {
		return Request{}, fmt.Errorf("code %q: %w", code, ErrUnknown)
	}

	return all[i], nil
}

// Decide stores the answer to a request.
func (b *Book) Decide(r Request, d Decision) error {
	return b.change(func(all []Request) ([]Request, error) {
		i := slices.IndexFunc(all, func(other Request) bool { return other.Code == r.Code })
		if i < 0 {
			return nil, fmt.Errorf("code %q: %w", r.Code, ErrUnknown)
		}
		all[i].Decision = d

		return all, nil
	})
}

// live are the requests that have not expired. mu is held.
func (b *Book) live() ([]Request, error) {
	all, err := read(b.root)
	now := crash.Now()
	return slices.DeleteFunc(all, func(r Request) bool { return !now.Before(r.Expires()) || r.At.After(now.Add(time.Minute)) }), err
}

// change reads the requests, and keeps durably what edit makes of them. A file that cannot be
// read is not overwritten.
func (b *Book) change(edit func([]Request) ([]Request, error)) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	before, err := b.live()
	if err != nil {
		return err
	}

	after, err := edit(slices.Clone(before))
	if err != nil || slices.Equal(before, after) {
		return err
	}
	data, err := json.MarshalIndent(file{append([]Request{}, after...)}, "", "  ")
	if err != nil {
		return fmt.Errorf("save pairing requests: %w", err)
	}

	path, err := place(b.root)
	if err == nil {
		err = b.vol.WriteFile("pairing", path, append(data, '\n'))
	}
	if err != nil {
		return fmt.Errorf("save pairing requests: %w", err)
	}

	return nil
}
