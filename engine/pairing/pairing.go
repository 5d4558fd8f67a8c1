// Package pairing keeps the requests of strangers to be let in by a connector. Each has a code
// that an owner approves within an hour.
//
// Everything is bounded by the entries of one small file: somebody is given a code, and so is
// answered, at most once an hour, and at most ten people of a connector are. What they write
// is not kept. The file is read whenever it is needed, so that it survives a restart and an
// edit by hand applies.
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
	// Most is how many people of one connector have a code at a time.
	Most = 10

	mostAll    = 50
	codeLength = 8   // of 32 letters and digits: 40 bits
	maxID      = 500 // bytes of an id; those of platforms are shorter
)

// ErrUnknown: no request waits that has the code.
var ErrUnknown = fault.NoPairing

// A Request is somebody who asks to be let in.
type Request struct {
	Code string          `json:"code" check:"required" pattern:"^[A-Z2-7]{8}$"`
	From message.Address `json:"from"`
	Name string          `json:"name,omitempty"` // that they chose
	At   disk.Stamp      `json:"at"`
	// Decision is how it was answered; "": it waits. It stays until it expires, so that nobody
	// asks again at once, and an answer that is given twice is no error.
	Decision Decision `json:"decision,omitempty" allow:"|approved|rejected"`
}

// A Decision is an owner's answer.
type Decision string

// The answers.
const (
	Approved Decision = "approved"
	Rejected Decision = "rejected"
)

// Expires is when its code is no longer valid.
func (r Request) Expires() time.Time { return r.At.Add(Lifetime) }

// same reports whether two requests are of one person.
func (r Request) same(from message.Address) bool {
	return r.From.Connector == from.Connector && r.From.UserID == from.UserID
}

// A Book is the requests of a workspace. Its methods may be called from any goroutine.
type Book struct {
	root string
	vol  *disk.Volume // nil: it is only read
	mu   sync.Mutex
}

// Open returns the requests that are kept in a .daycare directory.
func Open(root string, vol *disk.Volume) *Book { return &Book{root: root, vol: vol} }

// Ask keeps that somebody asks to be let in. It returns the code that they are to be told now;
// "": they have one, it was answered, or too many wait.
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

// List are the requests that wait, oldest first.
func (b *Book) List() ([]Request, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	all, err := b.live()
	return slices.DeleteFunc(all, func(r Request) bool { return r.Decision != "" }), err
}

// Find returns the request that has a code, answered or not, or ErrUnknown.
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

// Decide keeps how a request was answered.
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
		return fmt.Errorf("keep pairing requests: %w", err)
	}
	path, err := place(b.root)
	if err == nil {
		err = b.vol.WriteFile("pairing", path, append(data, '\n'))
	}
	if err != nil {
		return fmt.Errorf("keep pairing requests: %w", err)
	}
	return nil
}
