package mattermost

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"

	"daycare/connectors/chat"
)

// rooms are the channels that the bot is in, and who it is.
type rooms struct {
	api *api

	mu      sync.Mutex
	me      user
	kinds   map[string]string // channel -> its type
	private map[string]string // user -> the channel with them
	newest  map[string]tie
	fetched map[string]anchor
}

// An anchor is the newest post that was fetched of a channel.
type anchor struct {
	id string
	at int64
}

// A tie counts the posts of a channel that came in the same millisecond.
type tie struct {
	at int64
	n  int64
}

func newRooms(a *api) *rooms {
	return &rooms{api: a, kinds: map[string]string{}, private: map[string]string{}, newest: map[string]tie{},
		fetched: map[string]anchor{}}
}

// tieBits are how many posts of one channel may come in a millisecond, in bits.
const (
	tieBits = 8
	lastTie = 1<<tieBits - 1
)

// place is the position of the nth post of a millisecond.
func place(millis, n int64) int64 { return millis<<tieBits | min(n, lastTie) }

// arrived is the position of a post that came just now.
func (r *rooms) arrived(p post) int64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	t, before := tie{at: p.Created}, r.newest[p.Channel]
	switch {
	case p.Created < before.at: // newer ones came first
		return place(p.Created, lastTie)
	case p.Created == before.at:
		t.n = before.n + 1
	}
	r.newest[p.Channel] = t

	return place(t.at, t.n)
}

func (r *rooms) setSelf(me user) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.me = me
}

func (r *rooms) self() user {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.me
}

func (r *rooms) learn(one room) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if one.ID != "" && one.Type != "" {
		r.kinds[one.ID] = one.Type
	}
}

// direct reports whether a channel is a conversation with one user.
func (r *rooms) direct(ctx context.Context, channel string) (bool, error) {
	r.mu.Lock()
	kind := r.kinds[channel]
	r.mu.Unlock()
	if kind == "" {
		var one room
		if err := r.api.call(ctx, "look up a channel", http.MethodGet, "/channels/"+channel, nil, &one); err != nil {
			return false, err
		}
		r.learn(one)
		kind = one.Type
	}

	return kind == "D", nil
}

// userPrefix tells a user, whose direct channel is meant, from a channel.
const userPrefix = "user:"

// channel is the channel that an address means.
func (r *rooms) channel(ctx context.Context, id string) (string, error) {
	other, ok := strings.CutPrefix(id, userPrefix)
	if !ok {
		return id, nil
	}
	r.mu.Lock()
	known, me := r.private[other], r.me.ID
	r.mu.Unlock()
	if known != "" {
		return known, nil
	}
	if me == "" {
		self, err := r.api.self(ctx)
		if err != nil {
			return "", err
		}
		me = self.ID
	}
	var one room
	if err := r.api.call(ctx, "open a direct channel", http.MethodPost, "/channels/direct", []string{me, other}, &one); err != nil {
		return "", err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.private[other] = one.ID

	return one.ID, nil
}

const (
	maxSince = 1000 // posts: what a server says at most of what is new since a time, the newest
	maxPage  = 200  // posts of a page
)

// A list is how the API gives posts: the newest first.
type list struct {
	Order []string        `json:"order"`
	Posts map[string]post `json:"posts"`
}

// sorted are the posts of a list, the oldest first.
func (l list) sorted() (all []post) {
	for _, id := range slices.Backward(l.Order) {
		if p, ok := l.Posts[id]; ok {
			all = append(all, p)
		}
	}
	slices.SortStableFunc(all, func(a, b post) int { return cmp.Compare(a.Created, b.Created) })
	return all
}

func (r *rooms) list(ctx context.Context, channel, query string) ([]post, error) {
	var l list
	err := r.api.call(ctx, "fetch missed messages", http.MethodGet, "/channels/"+channel+"/posts?"+query, nil, &l)
	if status(err, http.StatusForbidden, http.StatusNotFound) {
		err = fmt.Errorf("%w: %w", chat.ErrNoChannel, err)
	}

	return l.sorted(), err
}

// fetch reads posts of a channel after a position, oldest first.
func (r *rooms) fetch(ctx context.Context, channel string, after int64) (page []chat.Arrival[event], more bool, err error) {
	all, more, err := r.missed(ctx, channel, after)
	if err != nil {
		return nil, false, err
	}

	t := tie{at: -1}
	for _, p := range all {
		if t.n++; p.Created != t.at {
			t = tie{at: p.Created}
		}
		at := place(t.at, t.n)
		r.mu.Lock()
		r.fetched[channel] = anchor{p.ID, at}
		r.mu.Unlock()
		if at > after { // else it was edited since
			page = append(page, chat.Arrival[event]{Channel: channel, At: at, What: event{Event: "posted", post: p}})
		}
	}

	return page, more, nil
}

// missed are the oldest posts of a channel after a position, and perhaps some before.
func (r *rooms) missed(ctx context.Context, channel string, after int64) (all []post, more bool, err error) {
	r.mu.Lock()
	last := r.fetched[channel]
	r.mu.Unlock()
	if last.at == after {
		all, err = r.list(ctx, channel, fmt.Sprintf("after=%s&per_page=%d", last.id, maxPage))
		return all, len(all) >= maxPage, err
	}
	since := after >> tieBits
	all, err = r.list(ctx, channel, fmt.Sprint("since=", since-1))
	if err != nil || len(all) < maxSince {
		return all, false, err
	}
	all, err = r.oldest(ctx, channel, since, all[:maxPage]) // there may be older ones

	return all, true, err
}

// oldest goes back from a page, a page at a time, to the first posts since a time.
func (r *rooms) oldest(ctx context.Context, channel string, since int64, page []post) ([]post, error) {
	for page[0].Created >= since {
		before, err := r.list(ctx, channel, fmt.Sprintf("before=%s&per_page=%d", page[0].ID, maxPage))
		if err != nil || len(before) == 0 {
			return page, err
		}
		page = before
	}

	// The page goes over the time: what is after its newest post that is older comes next.
	last := page[0]
	for _, p := range page {
		if p.Created < since {
			last = p
		}
	}

	return r.list(ctx, channel, fmt.Sprintf("after=%s&per_page=%d", last.ID, maxPage))
}
