package apitoken

import (
	"cmp"
	"context"
	"crypto/subtle"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"sync"
	"time"

	"daycare/engine/beneath"
	"daycare/engine/crash"
	"daycare/engine/disk"
	"daycare/engine/finding"
)

// UsedName is the file that says when each token was used last. It is written at most
// once per usedEvery and token, and losing it loses nothing else.
const (
	UsedName  = "tokens.used.json"
	usedEvery = time.Minute
)

// A Store holds the tokens that are active: those of the last good version of the file. It looks
// at the file with every request, so a token that was revoked is refused from then on.
type Store struct {
	root   string
	vol    *disk.Volume
	report func(file string, found []finding.Finding)

	mu     sync.Mutex
	seen   beneath.Stamp // of the file that was read last; zero: it was missing
	young  bool          // it had just been written: another save might leave the same stamp
	active map[string]*entry
	used   map[string]time.Time
	saved  map[string]time.Time // what UsedName says
}

// An entry is a token with the requests that it was used for.
type entry struct {
	Token
	gone chan struct{} // closed when it is revoked or changed
}

// A Holder is who a request is from. Done is closed when the token is revoked or changed.
type Holder struct {
	Name    string
	Rights  Rights
	Expires *time.Time
	Done    <-chan struct{}

	via string // of the token
}

// Open reads the tokens of a .daycare directory. report gets all that is wrong with the
// file at each reading.
func Open(root string, vol *disk.Volume, report func(file string, found []finding.Finding)) *Store {
	s := &Store{root: root, vol: vol, report: report, active: map[string]*entry{}, used: Used(root)}
	s.saved = maps.Clone(s.used)
	s.reload()
	return s
}

// Refresh reads the file again if it was changed, and ends what revoked tokens still do.
func (s *Store) Refresh() {
	s.mu.Lock()
	info, err := os.Stat(s.path())
	same := err == nil && !s.young && beneath.StampOf(info) == s.seen ||
		errors.Is(err, fs.ErrNotExist) && s.seen == (beneath.Stamp{})
	s.mu.Unlock()
	if !same {
		s.reload()
	}
}

func (s *Store) path() string { return filepath.Join(s.root, Name) }

// reload takes what is in the file now, unless it is broken.
func (s *Store) reload() {
	s.mu.Lock()
	looked := time.Now()
	s.seen, s.young = beneath.Stamp{}, false
	if info, err := os.Stat(s.path()); err == nil { // before it is read: a change meanwhile is seen at the next look
		s.seen = beneath.StampOf(info)
		s.young = !s.seen.Lasts(looked)
	}

	tokens, found := read(s.root)
	if finding.Join(found) == nil {
		s.replace(tokens)
	}

	s.mu.Unlock()
	s.report(s.path(), found)
}

// replace ends the tokens that are gone or changed. The lock is held.
func (s *Store) replace(tokens map[string]Token) {
	for name, e := range s.active {
		if now, ok := tokens[name]; !ok || !reflect.DeepEqual(now, e.Token) {
			close(e.gone)
			delete(s.active, name)
		}
	}

	for name, t := range tokens {
		if s.active[name] == nil {
			s.active[name] = &entry{Token: t, gone: make(chan struct{})}
		}
	}
}

// Find returns whose token it is. The comparison takes as long for a wrong token as for
// one that is nearly right.
func (s *Store) Find(secret string) (Holder, bool) { return s.find(secret, "") }

// FindSession is Find for the cookie of a browser.
func (s *Store) FindSession(secret string) (Holder, bool) { return s.find(secret, viaWeb) }

// HasSessions reports whether a browser is logged in.
func (s *Store) HasSessions() bool {
	s.Refresh()
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, e := range s.active {
		if e.Via == viaWeb && !e.Expired(crash.Now()) {
			return true
		}
	}

	return false
}

// find looks for a secret among the tokens of one kind.
func (s *Store) find(secret, via string) (Holder, bool) {
	s.Refresh()
	now := crash.Now()
	sum := []byte(hash(secret))
	s.mu.Lock()
	defer s.mu.Unlock()
	var h Holder
	found := false
	for name, e := range s.active {
		if subtle.ConstantTimeCompare([]byte(e.Hash), sum) == 1 && e.Via == via {
			h, found = Holder{Name: name, Rights: e.rights(), Expires: e.Expires, Done: e.gone, via: e.Via}, !e.Expired(now)
		}
	}

	if !found {
		return Holder{}, false
	}
	s.use(h.Name, now)
	return h, true
}

// use notes that a token was used. The lock is held.
func (s *Store) use(name string, now time.Time) {
	s.used[name] = now
	if now.Sub(s.saved[name]) < usedEvery {
		return
	}
	maps.DeleteFunc(s.used, func(name string, _ time.Time) bool { return s.active[name] == nil })
	data, err := json.Marshal(s.used)
	if err == nil {
		err = s.vol.WriteDraft("tokens.used", filepath.Join(s.root, UsedName), append(data, '\n'))
	}
	if err == nil {
		s.saved = maps.Clone(s.used)
	}
}

// Within is ctx until the token expires or is revoked.
func (h Holder) Within(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	var expired <-chan time.Time
	if h.Expires != nil {
		expired = time.After(time.Until(*h.Expires))
	}

	done := make(chan struct{})
	go func() {
		defer close(done)
		select {
		case <-h.Done:
		case <-expired:
		case <-ctx.Done():
		}
		cancel()
	}()

	return ctx, func() {
		cancel()
		<-done
	}
}

// List returns the tokens of a .daycare directory.
func List(root string) (map[string]Token, error) {
	tokens, found := read(root)
	return tokens, finding.Join(found)
}

// Used returns when each token was used last, to the minute; of a file that cannot be
// read, nothing.
func Used(root string) map[string]time.Time {
	used := map[string]time.Time{}
	data, _, err := beneath.Own(filepath.Join(root, UsedName), maxFile)
	if err != nil {
		return used
	}
	if err := json.Unmarshal(data, &used); err != nil || used == nil {
		return map[string]time.Time{}
	}

	return used
}

// String names the holder where a decision is recorded: token:phone, web:web-firefox-1c9e04.
func (h Holder) String() string { return fmt.Sprintf("%s:%s", cmp.Or(h.via, "token"), h.Name) }
