package permission

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/tidwall/btree"
)

// waiting is the requests that wait for an answer, found by their token, by their agent
// and by when they end, so that one agent's request costs no look at those of all others.
type waiting struct {
	byToken map[string]Pending
	ofAgent map[string]map[string]bool // tokens
	ending  *btree.BTreeG[end]
}

// An end is when an unanswered request expires.
type end struct {
	at    time.Time
	token string
}

func newWaiting() waiting {
	return waiting{byToken: map[string]Pending{}, ofAgent: map[string]map[string]bool{},
		ending: btree.NewBTreeGOptions(func(a, b end) bool {
			return cmp.Or(a.at.Compare(b.at), strings.Compare(a.token, b.token)) < 0
		}, btree.Options{NoLocks: true})}
}

func (w *waiting) add(p Pending) {
	w.remove(p.Token)
	w.byToken[p.Token] = p
	if w.ofAgent[p.Agent] == nil {
		w.ofAgent[p.Agent] = map[string]bool{}
	}
	w.ofAgent[p.Agent][p.Token] = true
	w.ending.Set(end{p.ExpiresAt, p.Token})
}

// find returns the request of an agent with that hash.
func (w *waiting) find(agent, sha string) (Pending, bool) {
	for token := range w.ofAgent[agent] {
		if p := w.byToken[token]; p.SHA256 == sha {
			return p, true
		}
	}

	return Pending{}, false
}

func (w *waiting) remove(token string) {
	p := w.byToken[token] // nothing of one that is not there is in the others
	delete(w.byToken, token)
	if delete(w.ofAgent[p.Agent], token); len(w.ofAgent[p.Agent]) == 0 {
		delete(w.ofAgent, p.Agent)
	}
	w.ending.Delete(end{p.ExpiresAt, token})
}

// of returns the requests of one agent, oldest first.
func (w *waiting) of(agent string) []Pending {
	return w.sorted(slices.Collect(maps.Keys(w.ofAgent[agent])))
}

// due returns the requests that have ended by now, oldest first.
func (w *waiting) due(now time.Time) []Pending {
	var tokens []string
	w.ending.Scan(func(e end) bool {
		if now.Before(e.at) {
			return false
		}
		tokens = append(tokens, e.token)
		return true
	})

	return w.sorted(tokens)
}

// sorted returns the requests with these tokens that wait, oldest first.
func (w *waiting) sorted(tokens []string) (list []Pending) {
	for _, token := range tokens {
		if p, ok := w.byToken[token]; ok {
			list = append(list, p)
		}
	}

	slices.SortFunc(list, func(a, b Pending) int {
		return cmp.Or(a.AskedAt.Compare(b.AskedAt), cmp.Compare(a.Token, b.Token))
	})

	return list
}
