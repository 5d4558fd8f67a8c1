package discord

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"daycare/connectors/chat"
)

// A room is a channel of a server, or a thread in one.
type room struct {
	ID     string `json:"id"`
	Type   int    `json:"type"`
	Guild  string `json:"guild_id"`
	Parent string `json:"parent_id"` // of a thread its channel, else a category
	Owner  string `json:"owner_id"`  // of a thread: who began it
	Last   string `json:"last_message_id"`
	Topic  struct {
		Archived bool `json:"archived"`
	} `json:"thread_metadata"`
}

// thread reports whether it is a thread.
func (r room) thread() bool { return r.Type >= 10 && r.Type <= 12 }

// rooms are the channels that the bot can see, and who it is.
type rooms struct {
	api *api

	mu       sync.Mutex
	all      map[string]room
	private  map[string]string   // user -> their private chat
	roles    map[string]bool     // roles that are the bot itself, one a server
	awaited  map[string]struct{} // servers whose channels are not known yet
	openings bool                // private chats are not known yet
	me       application
}

func newRooms(a *api) *rooms {
	return &rooms{api: a, all: map[string]room{}, private: map[string]string{}, roles: map[string]bool{}, awaited: map[string]struct{}{}}
}

// setSelf notes who the bot is, and reports whether that was known.
func (r *rooms) setSelf(me application) (known bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	known = r.me.ID == me.ID
	r.me = me

	return known
}

func (r *rooms) self() application {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.me
}

// ready reads which servers will be told of.
func (r *rooms) ready(data json.RawMessage) error {
	var ready struct {
		User   user                  `json:"user"`
		Guilds []struct{ ID string } `json:"guilds"`
	}
	if err := json.Unmarshal(data, &ready); err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.me.Bot, r.openings = ready.User, true
	clear(r.awaited)
	for _, g := range ready.Guilds {
		r.awaited[g.ID] = struct{}{}
	}

	return nil
}

// guild reads the channels of a server, and returns the newest message of each.
func (r *rooms) guild(data json.RawMessage) (newest map[string]int64, err error) {
	var g struct {
		ID       string `json:"id"`
		Gone     bool   `json:"unavailable"`
		Channels []room `json:"channels"`
		Threads  []room `json:"threads"`
		Roles    []struct {
			ID   string `json:"id"`
			Tags struct {
				Bot string `json:"bot_id"`
			} `json:"tags"`
		} `json:"roles"`
	}
	if err := json.Unmarshal(data, &g); err != nil || g.Gone {
		return nil, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.awaited, g.ID)
	newest = map[string]int64{}
	for _, room := range slices.Concat(g.Channels, g.Threads) {
		room.Guild = g.ID
		r.all[room.ID] = room
		if id := number(room.Last); id > 0 {
			newest[room.ID] = id
		}
	}

	for _, role := range g.Roles {
		if role.Tags.Bot != "" && role.Tags.Bot == r.me.Bot.ID {
			r.roles[role.ID] = true
		}
	}

	return newest, nil
}

// leave forgets a server, or waits until it is back.
func (r *rooms) leave(data json.RawMessage) error {
	var g struct {
		ID   string `json:"id"`
		Gone bool   `json:"unavailable"` // for a while; else the bot was removed
	}
	if err := json.Unmarshal(data, &g); err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.awaited, g.ID)
	if g.Gone {
		r.awaited[g.ID] = struct{}{}
		return nil
	}
	for id, room := range r.all {
		if room.Guild == g.ID {
			delete(r.all, id)
		}
	}

	return nil
}

// learn reads one channel.
func (r *rooms) learn(data json.RawMessage) error {
	var one room
	if err := json.Unmarshal(data, &one); err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if delete(r.all, one.ID); !one.Topic.Archived {
		r.all[one.ID] = one
	}

	return nil
}

// known reports whether all channels are known.
func (r *rooms) known() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.awaited) == 0 && !r.openings
}

func (r *rooms) directsKnown() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.openings = false
}

// seen is a channel if it is known.
func (r *rooms) seen(id string) (room, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	one, ok := r.all[id]
	return one, ok
}

// ours reports whether one of these roles is the bot itself.
func (r *rooms) ours(roles []string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.ContainsFunc(roles, func(id string) bool { return r.roles[id] })
}

// room is a channel of a server.
func (r *rooms) room(ctx context.Context, id string) (one room, err error) {
	if one, ok := r.seen(id); ok {
		return one, nil
	}
	err = r.api.call(ctx, request{name: "look up a channel", method: http.MethodGet, path: "/channels/" + id}, &one)
	if status(err, http.StatusForbidden, http.StatusNotFound) {
		return room{ID: id}, nil
	}
	if err == nil {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.all[id] = one
	}

	return one, err
}

// direct is the private chat with a user, and its newest message.
func (r *rooms) direct(ctx context.Context, user string) (channel string, newest int64, err error) {
	var got room
	err = r.api.call(ctx, request{name: "open a private chat", method: http.MethodPost, path: "/users/@me/channels",
		params: map[string]string{"recipient_id": user}}, &got)
	if err != nil {
		return "", 0, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.private[user] = got.ID

	return got.ID, max(number(got.Last), 1), nil
}

// user is whose private chat a channel is; "": nobody's.
func (r *rooms) user(channel string) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	for user, private := range r.private {
		if private == channel {
			return user
		}
	}

	return ""
}

// userPrefix tells a user, whose private chat is meant, from a channel.
const userPrefix = "user:"

// place is the channel that an address means.
func (r *rooms) place(ctx context.Context, channel string) (string, error) {
	user, ok := strings.CutPrefix(channel, userPrefix)
	if !ok {
		return channel, nil
	}
	r.mu.Lock()
	channel, ok = r.private[user]
	r.mu.Unlock()
	if ok {
		return channel, nil
	}
	channel, _, err := r.direct(ctx, user)

	return channel, err
}

// maxPage is how many messages are fetched at once, the most that Discord gives.
const maxPage = 100

// fetch reads messages of a channel after an id, oldest first.
func (r *rooms) fetch(ctx context.Context, channel string, after int64) (page []chat.Arrival[incoming], more bool, err error) {
	server, err := r.server(ctx, channel)
	if err != nil {
		return nil, false, err
	}
	var got []incoming
	for {
		err = r.api.call(ctx, request{name: "fetch missed messages", method: http.MethodGet,
			path: fmt.Sprintf("/channels/%s/messages?limit=%d&after=%d", channel, maxPage, after)}, &got)
		wait := retryAfter(err)
		if wait == 0 || ctx.Err() != nil {
			break
		}
		chat.Rest(ctx, wait, 0)
	}
	switch {
	case status(err, http.StatusForbidden, http.StatusNotFound):
		return nil, false, fmt.Errorf("%w: %w", chat.ErrNoChannel, err)
	case err != nil:
		return nil, false, err
	}

	slices.SortFunc(got, func(a, b incoming) int { return int(min(max(number(a.ID)-number(b.ID), -1), 1)) })
	for _, m := range got {
		m.kind, m.Channel, m.Guild = "MESSAGE_CREATE", channel, server
		page = append(page, chat.Arrival[incoming]{Channel: channel, At: number(m.ID), What: m})
	}

	return page, len(got) == maxPage, nil
}

// server is the server of a channel; "": it is a private chat.
func (r *rooms) server(ctx context.Context, channel string) (string, error) {
	r.mu.Lock()
	private := slices.Contains(slices.Collect(maps.Values(r.private)), channel)
	r.mu.Unlock()
	if private {
		return "", nil
	}
	one, err := r.room(ctx, channel)
	if err == nil && one.Guild == "" && one.Type != privateChat {
		err = chat.ErrNoChannel // one of which nothing may be known
	}

	return one.Guild, err
}

// privateChat is the type of a channel with one user.
const privateChat = 1

// retryAfter is how long Discord asks to wait; 0: it does not.
func retryAfter(err error) time.Duration {
	if no, ok := err.(*apiError); ok {
		return no.RetryAfter
	}
	return 0
}

// number is an id as a number; 0: it is none.
func number(id string) int64 {
	n, _ := strconv.ParseInt(id, 10, 64)
	return max(n, 0)
}
