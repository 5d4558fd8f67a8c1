package whatsapp

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"slices"
	"sync"
	"time"

	"daycare/connectors/chat"
)

// window is how long after a message of theirs a user may be written to.
const window = 24 * time.Hour

// Bounds of what is remembered.
const (
	maxCommands  = 500
	maxConfirmed = 1000
	maxUsers     = 10_000
	fresh        = 10 * time.Minute // a newer time of the same user is not saved
)

// stateFile is what has to be remembered over a restart, as a JSON object.
const stateFile = "state.json"

// brokenFile is where one is kept that cannot be understood.
const brokenFile = "state.broken.json"

// A state is who may be written to, and what must not be done twice.
type state struct {
	connector string
	keeper    chat.Keeper // nil: in memory only
	log       *slog.Logger

	mu        sync.Mutex
	kept      kept
	latest    map[string]string // user -> the id of their newest message
	confirmed []confirmation    // parts that Meta says it sent, the newest last
	unread    bool              // the file could not be read: it is not replaced before it was
}

type kept struct {
	Wrote    map[string]time.Time `json:"wrote"`    // when a user wrote last
	Asked    map[string]time.Time `json:"asked"`    // when the template was sent to a user
	Commands []string             `json:"commands"` // ids of commands and buttons that were done, the newest last
}

type confirmation struct{ key, id string }

func newState(connector string, k chat.Keeper, log *slog.Logger) *state {
	s := &state{connector: connector, keeper: k, log: log, latest: map[string]string{}}
	s.kept = kept{Wrote: map[string]time.Time{}, Asked: map[string]time.Time{}}
	if k != nil {
		s.unread = true
		if err := s.load(); err != nil {
			log.Warn("cannot read who wrote when; trying again when something is to be saved", "err", err)
		}
	}

	return s
}

// load adds what was saved to what is known since. A file that is not JSON is kept under another
// name. mu is held, or nobody else has s yet.
func (s *state) load() error {
	if !s.unread {
		return nil
	}
	data, err := s.keeper.Load(s.connector, stateFile)
	if errors.Is(err, fs.ErrNotExist) {
		s.unread = false
		return nil
	}
	if err != nil {
		return fmt.Errorf("read %s: %w", stateFile, err)
	}
	var old kept
	if err := json.Unmarshal(data, &old); err != nil {
		s.log.Error("cannot read who wrote when; the file is kept, and commands that are posted again are done again", "file", stateFile,
			"kept", brokenFile, "err", err)
		if err := s.keeper.Save(s.connector, brokenFile, data); err != nil {
			return fmt.Errorf("keep a broken %s: %w", stateFile, err)
		}
		old = kept{}
	}
	for _, both := range []struct{ now, old map[string]time.Time }{{s.kept.Wrote, old.Wrote}, {s.kept.Asked, old.Asked}} {
		for user, at := range both.old {
			if at.After(both.now[user]) {
				both.now[user] = at
			}
		}
	}
	s.kept.Commands = append(old.Commands, s.kept.Commands...)
	s.unread = false

	return nil
}

// save keeps what is remembered. mu is held.
func (s *state) save() error {
	if s.keeper == nil {
		return nil
	}
	if err := s.load(); err != nil {
		return err
	}
	data, err := json.MarshalIndent(s.kept, "", "  ")
	if err != nil {
		return err
	}

	return s.keeper.Save(s.connector, stateFile, append(data, '\n'))
}

// wrote notes that a user wrote.
func (s *state) wrote(user, id string, at time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	before, known := s.kept.Wrote[user]
	if !known && len(s.kept.Wrote) >= maxUsers || at.Before(before) {
		return
	}
	s.kept.Wrote[user], s.latest[user] = at, id
	delete(s.kept.Asked, user)
	if at.Sub(before) < fresh {
		return
	}
	if err := s.save(); err != nil {
		s.log.Warn("cannot save when a user wrote", "err", err)
	}
}

// open reports whether a user may be written to, as far as is known.
func (s *state) open(user string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	at, known := s.kept.Wrote[user]
	return !known || time.Since(at) < window
}

// close records that Meta does not allow messages to a user.
func (s *state) close(user string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if at, known := s.kept.Wrote[user]; !known || time.Since(at) < window {
		s.kept.Wrote[user] = time.Now().Add(-window)
	}
}

// asks reports whether the template is to be sent to a user: once until they write.
func (s *state) asks(user string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return time.Since(s.kept.Asked[user]) >= window
}

// asked notes that the template was sent.
func (s *state) asked(user string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.kept.Asked[user] = time.Now()
	if err := s.save(); err != nil {
		s.log.Warn("cannot save that a template was sent", "err", err)
	}
}

// message is the id of the newest message of a user; "": none is known.
func (s *state) message(user string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.latest[user]
}

// done reports whether a command was done before.
func (s *state) done(id string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Contains(s.kept.Commands, id)
}

// did notes durably that a command was done.
func (s *state) did(id string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.kept.Commands = append(s.kept.Commands, id)
	s.kept.Commands = s.kept.Commands[max(0, len(s.kept.Commands)-maxCommands):]
	return s.save()
}

// confirm notes that Meta sent a part.
func (s *state) confirm(key, id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if key != "" && !slices.Contains(s.confirmed, confirmation{key, id}) {
		s.confirmed = append(s.confirmed[max(0, len(s.confirmed)-maxConfirmed+1):], confirmation{key, id})
	}
}

// sent is the id of a part that Meta sent; "": it is not known that it did.
func (s *state) sent(key string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range s.confirmed {
		if c.key == key {
			return c.id
		}
	}

	return ""
}
