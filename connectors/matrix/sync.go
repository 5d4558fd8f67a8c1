package matrix

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"time"

	"daycare/connectors/chat"
	"daycare/connectors/matrix/e2ee"
	"daycare/engine/message"
)

const (
	holdTime = 30 * time.Second // how long the server holds a question for what happened
	holdMore = 30 * time.Second // for the way there and back, and a first sync
	pageSize = 50               // events of one room in an answer
)

// filter leaves out what is not read, and bounds what is.
const filter = `{"presence":{"types":[]},"account_data":{"types":[]},"room":{"ephemeral":{"types":[]},"account_data":{"types":[]},` +
	`"state":{"types":["m.room.encryption"]},"timeline":{"limit":50}}}`

// placeFile is where the place of the sync is kept.
const placeFile = "sync.json"

// A place is how far what happened is durable here.
type place struct {
	Since  string            `json:"since"`
	Direct map[string]string `json:"direct,omitempty"` // the room of a user alone
}

// A batch is an answer to the question what happened.
type batch struct {
	Next string `json:"next_batch"`
	e2ee.News
	Rooms struct {
		Join   map[string]joined  `json:"join"`
		Invite map[string]invited `json:"invite"`
	} `json:"rooms"`
}

type joined struct {
	Summary struct {
		Members *int `json:"m.joined_member_count"`
	} `json:"summary"`
	Timeline struct {
		Events  []roomEvent `json:"events"`
		Limited bool        `json:"limited"`
	} `json:"timeline"`
	State struct {
		Events []roomEvent `json:"events"`
	} `json:"state"`
}

type invited struct {
	State struct {
		Events []roomEvent `json:"events"`
	} `json:"invite_state"`
}

// A follower is a connector that reads what happens.
type follower struct{ sealed }

// follow asks what happened until ctx ends. The place moves on when everything before it is
// durable; what comes twice after a crash is dropped by the ids of its events.
func (c follower) follow(ctx context.Context, deliver message.Deliver) error {
	if err := c.remember(); err != nil {
		return err
	}
	for ctx.Err() == nil {
		since := c.place.Since
		q := url.Values{"filter": {filter}, "timeout": {strconv.FormatInt(holdTime.Milliseconds(), 10)}}
		if since == "" {
			q.Set("timeout", "0")
		} else {
			q.Set("since", since)
		}
		var b batch
		if err := c.api.do(ctx, call{name: "sync", method: http.MethodGet, path: client + "/sync", query: q, within: holdTime + holdMore},
			&b); err != nil {
			return err
		}
		if err := c.keys(ctx, b); err != nil {
			return err
		}
		if since == "" { // what is said from here on is for us, so the place must be kept
			if err := c.reached(b.Next); err != nil {
				return err
			}
		}
		message.Up(ctx)
		c.invitations(ctx, b.Rooms.Invite)
		if err := c.overdue(ctx, deliver); err != nil {
			return err
		}
		for _, room := range slices.Sorted(maps.Keys(b.Rooms.Join)) {
			j := b.Rooms.Join[room]
			if c.counted(room, j); since == "" {
				continue // what was said before we came is not for us
			}
			if err := c.room(ctx, deliver, room, since, j); err != nil {
				return err
			}
		}
		if err := c.kept(); err != nil {
			return err
		}
		if ctx.Err() == nil && b.Next != "" {
			if err := c.reached(b.Next); err != nil {
				c.log.Warn("messages will be read again after a restart", "err", err)
			}
		}
	}

	return nil
}

// room takes what happened in a room, in order. Of much that happened the answer has only the
// end: what is before it is fetched, a page at a time.
func (c follower) room(ctx context.Context, deliver message.Deliver, room, since string, j joined) error {
	end := map[string]bool{}
	for _, e := range j.Timeline.Events {
		end[e.ID] = true
	}
	for from := since; j.Timeline.Limited && from != "" && ctx.Err() == nil; {
		var page struct {
			Chunk []roomEvent `json:"chunk"`
			End   string      `json:"end"`
		}
		q := url.Values{"dir": {"f"}, "from": {from}, "limit": {strconv.Itoa(pageSize)}}
		if err := c.api.do(ctx, call{name: "messages", method: http.MethodGet, path: path(client+"/rooms", room, "messages"), query: q},
			&page); err != nil {
			return err
		}
		for _, e := range page.Chunk {
			if end[e.ID] {
				page.End = ""
				break
			}
			if !c.take(ctx, deliver, room, e) {
				return nil
			}
		}
		if from = page.End; len(page.Chunk) == 0 {
			break
		}
	}
	for _, e := range j.Timeline.Events {
		if !c.take(ctx, deliver, room, e) {
			return nil
		}
	}

	return nil
}

// take takes one event, however often that needs to be tried; false: ctx ended.
func (c follower) take(ctx context.Context, deliver message.Deliver, room string, e roomEvent) bool {
	for n := 0; ctx.Err() == nil; n++ {
		err := c.strikes.Guard(e.ID, func() error { return c.event(ctx, deliver, room, e) })
		if err == nil {
			return true
		}
		if ctx.Err() == nil {
			c.log.Warn("message not accepted; retrying", "event", e.ID, "err", err)
			chat.Rest(ctx, c.pause, n)
		}
	}

	return false
}

// invitations accepts those of users who have access, and of nobody else.
func (c follower) invitations(ctx context.Context, all map[string]invited) {
	me, _ := c.self()
	for _, room := range slices.Sorted(maps.Keys(all)) {
		for _, e := range all[room].State.Events {
			if e.Type != "m.room.member" || e.StateKey == nil || *e.StateKey != me {
				continue
			}
			if !slices.Contains(c.o.Allow, e.Sender) {
				c.log.Warn("ignored an invitation of a user who is not in allow", "room", room, "user", e.Sender)
				continue
			}
			err := c.api.do(ctx, call{name: "join", method: http.MethodPost, path: path(client+"/join", room), body: struct{}{}}, nil)
			if err != nil && ctx.Err() == nil {
				c.log.Warn("cannot join a room", "room", room, "err", err)
			}
		}
	}
}

// counted notes how many are in a room.
func (c follower) counted(room string, j joined) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if j.Summary.Members != nil {
		c.members[room] = *j.Summary.Members
		return
	}
	for _, e := range j.Timeline.Events {
		if e.Type == "m.room.member" {
			delete(c.members, room) // asked for when it matters
		}
	}
}

// group reports whether more than one user is in a room beside us.
func (c follower) group(ctx context.Context, room string) (bool, error) {
	c.mu.Lock()
	n, ok := c.members[room]
	c.mu.Unlock()
	if ok {
		return n > 2, nil
	}
	var in struct {
		Joined map[string]json.RawMessage `json:"joined"`
	}
	if err := c.api.do(ctx, call{name: "joined_members", method: http.MethodGet, path: path(client+"/rooms", room, "joined_members")},
		&in); err != nil {
		if is(err, "M_FORBIDDEN", "M_NOT_FOUND") {
			return true, nil // we are not in it any more
		}
		return false, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.members[room] = len(in.Joined)

	return len(in.Joined) > 2, nil
}

// remember reads how far the process before had come. Where that cannot be read now it is an error:
// to go on with new messages would be to miss those that came meanwhile.
func (c follower) remember() error {
	if c.host.Waiting == nil || c.place.Since != "" {
		return nil
	}
	data, err := c.host.Waiting.Load(c.o.ID, placeFile)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("read how far messages were read: %w", err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := json.Unmarshal(data, &c.place); err != nil {
		c.log.Warn("cannot read how far messages were read; continuing with new ones", "err", err)
	}

	return nil
}

// reached keeps how far we have come, durably: without a place a process begins with what is
// said after its start, and what was said before would be lost.
func (c follower) reached(next string) error {
	c.mu.Lock()
	if next == c.place.Since {
		c.mu.Unlock()
		return nil
	}
	before := c.place.Since
	c.place.Since = next
	data, err := json.MarshalIndent(c.place, "", "  ")
	c.mu.Unlock()
	if err == nil && c.host.Waiting != nil {
		err = c.host.Waiting.Save(c.o.ID, placeFile, append(data, '\n'))
	}
	if err != nil {
		if before == "" { // the next run begins again
			c.mu.Lock()
			c.place.Since = ""
			c.mu.Unlock()
		}
		return fmt.Errorf("save how far messages were read: %w", err)
	}

	return nil
}
