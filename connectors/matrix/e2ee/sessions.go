//go:build goolm

package e2ee

import (
	"context"
	"encoding/hex"
	"maps"
	"slices"
	"strconv"
	"sync"
	"time"

	"maunium.net/go/mautrix/crypto"
	"maunium.net/go/mautrix/crypto/olm"
	"maunium.net/go/mautrix/id"
)

// sessions are the account and its sessions with single devices, by the key of the device. One
// session is one object as long as the program runs: two would each turn their own ratchet.
type sessions struct {
	*ledger
	secret []byte // that what is kept is encrypted with

	mu      sync.Mutex
	account *crypto.OlmAccount
	open    map[id.SenderKey]map[id.SessionID]*crypto.OlmSession
}

type keptAccount struct {
	Pickle []byte `json:"pickle"`
	Shared bool   `json:"shared"`
}

type keptSession struct {
	Pickle    []byte    `json:"pickle"`
	Created   time.Time `json:"created"`
	Encrypted time.Time `json:"encrypted"`
	Decrypted time.Time `json:"decrypted"`
}

const (
	accountShelf = "account"
	hashShelf    = "hash"
)

func olmShelf(key id.SenderKey) string { return "olm " + key.String() }

func (s *sessions) PutAccount(_ context.Context, a *crypto.OlmAccount) error {
	pickle, err := a.Internal.Pickle(s.secret)
	if err != nil {
		return err
	}
	s.mu.Lock()
	s.account = a
	s.mu.Unlock()

	return s.put(accountShelf, "", keptAccount{pickle, a.Shared})
}

func (s *sessions) GetAccount(context.Context) (*crypto.OlmAccount, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var kept keptAccount
	if s.account != nil {
		return s.account, nil
	}
	ok, err := s.get(accountShelf, "", &kept)
	if err != nil || !ok {
		return nil, err
	}
	a := &crypto.OlmAccount{Internal: olm.NewBlankAccount(), Shared: kept.Shared}
	if err := a.Internal.Unpickle(kept.Pickle, s.secret); err != nil {
		return nil, err
	}
	s.account = a

	return a, nil
}

func (s *sessions) AddSession(ctx context.Context, key id.SenderKey, one *crypto.OlmSession) error {
	s.mu.Lock()
	if s.open[key] == nil {
		s.open[key] = map[id.SessionID]*crypto.OlmSession{}
	}
	s.open[key][one.ID()] = one
	s.mu.Unlock()

	return s.UpdateSession(ctx, key, one)
}

func (s *sessions) UpdateSession(_ context.Context, key id.SenderKey, one *crypto.OlmSession) error {
	pickle, err := one.Internal.Pickle(s.secret)
	if err != nil {
		return err
	}

	return s.put(olmShelf(key), one.ID().String(), keptSession{pickle, one.CreationTime, one.LastEncryptedTime, one.LastDecryptedTime})
}

func (s *sessions) DeleteSession(_ context.Context, key id.SenderKey, one *crypto.OlmSession) error {
	s.mu.Lock()
	delete(s.open[key], one.ID())
	s.mu.Unlock()
	s.drop(olmShelf(key), one.ID().String())

	return nil
}

// GetSessions returns the one that a message was decrypted with last first.
func (s *sessions) GetSessions(_ context.Context, key id.SenderKey) (crypto.OlmSessionList, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.open[key] == nil {
		s.open[key] = map[id.SessionID]*crypto.OlmSession{}
	}
	for _, name := range s.keys(olmShelf(key)) {
		if s.open[key][id.SessionID(name)] != nil {
			continue
		}
		var kept keptSession
		if _, err := s.get(olmShelf(key), name, &kept); err != nil {
			return nil, err
		}
		one := &crypto.OlmSession{Internal: olm.NewBlankSession()}
		one.CreationTime, one.LastEncryptedTime, one.LastDecryptedTime = kept.Created, kept.Encrypted, kept.Decrypted
		if err := one.Internal.Unpickle(kept.Pickle, s.secret); err != nil {
			return nil, err
		}
		s.open[key][id.SessionID(name)] = one
	}

	return slices.SortedFunc(maps.Values(s.open[key]), func(a, b *crypto.OlmSession) int {
		return b.LastDecryptedTime.Compare(a.LastDecryptedTime)
	}), nil
}

func (s *sessions) HasSession(ctx context.Context, key id.SenderKey) bool {
	return len(s.keys(olmShelf(key))) > 0
}

func (s *sessions) GetLatestSession(ctx context.Context, key id.SenderKey) (*crypto.OlmSession, error) {
	all, err := s.GetSessions(ctx, key)
	if err != nil || len(all) == 0 {
		return nil, err
	}

	return all[0], nil
}

// GetNewestSessionCreationTS ignores sessions that were never used.
func (s *sessions) GetNewestSessionCreationTS(ctx context.Context, key id.SenderKey) (newest time.Time, err error) {
	all, err := s.GetSessions(ctx, key)
	for _, one := range all {
		used := !one.LastEncryptedTime.Equal(one.CreationTime) || !one.LastDecryptedTime.Equal(one.CreationTime)
		if used && one.CreationTime.After(newest) {
			newest = one.CreationTime
		}
	}

	return newest, err
}

func (s *sessions) PutOlmHash(_ context.Context, hash [32]byte, at time.Time) error {
	return s.put(hashShelf, hex.EncodeToString(hash[:]), at.UnixMilli())
}

func (s *sessions) GetOlmHash(_ context.Context, hash [32]byte) (time.Time, error) {
	var at int64
	ok, err := s.get(hashShelf, hex.EncodeToString(hash[:]), &at)
	if err != nil || !ok {
		return time.Time{}, err
	}

	return time.UnixMilli(at), nil
}

func (s *sessions) DeleteOldOlmHashes(_ context.Context, before time.Time) error {
	for _, key := range s.keys(hashShelf) {
		var at int64
		if ok, err := s.get(hashShelf, key, &at); err != nil {
			return err
		} else if ok && at < before.UnixMilli() {
			s.drop(hashShelf, key)
		}
	}

	return nil
}

// indexKey is where it is kept which event a message of a session was.
func indexKey(index uint) string { return strconv.FormatUint(uint64(index), 10) }
