package chat

import (
	"encoding/json"
	"errors"
	"io/fs"
	"log/slog"
	"maps"
	"slices"
	"sync"

	"daycare/engine/disk"
	"daycare/engine/message"
)

// A Keeper keeps what a connector has to remember over a restart.
type Keeper interface {
	// Load returns what was saved last; fs.ErrNotExist: nothing was.
	Load(connector, name string) ([]byte, error)
	Save(connector, name string, data []byte) error
}

// A Ledger is a Keeper that also keeps what changes often: lines that are added to a file, which is
// put together now and then.
type Ledger interface {
	Ledger(connector, name string) (*disk.Log, error)
}

// cardsFile is where the requests that were shown are kept, as a JSON object by token.
const cardsFile = "cards.json"

// cards are the requests that were shown here and are not settled yet. They are kept
// over a restart, so that a request is shown once, and its card is settled however
// long the answer takes.
type cards struct {
	connector string
	keeper    Keeper // nil: in memory only
	log       *slog.Logger

	mu    sync.Mutex
	shown map[string]card // by token
}

// A card is one request as shown in a chat.
type card struct {
	To     message.Address `json:"to"`
	Remote string          `json:"remote,omitempty"` // the platform's id of it, "" where nothing can be replaced
	Text   string          `json:"text"`
	// Begun: it was about to be shown, and it is not known that it was.
	Begun bool `json:"begun,omitempty"`
}

func newCards(connector string, k Keeper, log *slog.Logger) *cards {
	c := &cards{connector: connector, keeper: k, log: log, shown: map[string]card{}}
	c.load()
	return c
}

// load adds what was shown before, by another process or on another machine.
func (c *cards) load() {
	if c.keeper == nil {
		return
	}
	var shown map[string]card
	data, err := c.keeper.Load(c.connector, cardsFile)
	if err == nil {
		err = json.Unmarshal(data, &shown)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		c.log.Warn("cannot read which requests were shown; showing open ones again", "file", cardsFile, "err", err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	maps.Copy(c.shown, shown)
}

// save keeps the cards. c.mu is held, so the newest state is written last.
func (c *cards) save() {
	if c.keeper == nil {
		return
	}
	data, err := json.MarshalIndent(c.shown, "", "  ")
	if err == nil {
		err = c.keeper.Save(c.connector, cardsFile, append(data, '\n'))
	}
	if err != nil {
		c.log.Warn("cannot save that a request was shown", "err", err)
	}
}

// has reports whether a request was shown.
func (c *cards) has(token string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	k, ok := c.shown[token]
	return ok && !k.Begun
}

// begin notes that a request is about to be shown, and reports whether that was noted before: it
// may be in the chat already then.
func (c *cards) begin(token string, k card) (again bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	again = c.shown[token].Begun
	k.Begun = true
	c.shown[token] = k
	c.save()

	return again
}

// shownAs is the request that a message shows; "": none.
func (c *cards) shownAs(channel, remote string) (token string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for token, k := range c.shown {
		if k.Remote != "" && k.Remote == remote && k.To.ChannelID == channel {
			return token
		}
	}

	return ""
}

func (c *cards) put(token string, k card) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.shown[token] = k
	c.save()
}

// take removes a card, if it is there.
func (c *cards) take(token string) (card, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	k, ok := c.shown[token]
	if ok {
		delete(c.shown, token)
		c.save()
	}

	return k, ok
}

func (c *cards) tokens() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Sorted(maps.Keys(c.shown))
}
