package discord

import (
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"strings"
	"sync"

	"daycare/connectors/chat"
	"daycare/engine/message"
)

// maxTalks bounds the interactions that are handled at once.
const maxTalks = 16

// Kinds of interactions, of answers to them, and of commands.
const (
	slashCommand = 2
	button       = 3

	answerLater = 5 // "thinking…"

	textOption = 3

	onlyThem = 1 << 6 // flag: nobody else sees it
)

// decisions are the commands that answer an approval.
var decisions = []chat.Command{
	{Name: "once", About: "allow a request once: /once CODE"}, {Name: "always", About: "allow a request from now on: /always CODE"},
	{Name: "deny", About: "deny a request: /deny CODE"}, {Name: "pair", About: "grant access by code: /pair CODE"},
}

// menu is what Discord offers to who types a slash.
func menu() (all []map[string]any) {
	for _, k := range append(append([]chat.Command(nil), chat.Commands...), decisions...) {
		all = append(all, map[string]any{"name": k.Name, "description": k.About, "type": 1, "contexts": []int{0, 1},
			"integration_types": []int{0},
			"options":           []map[string]any{{"type": textOption, "name": "text", "description": "what the command is about"}}})
	}

	return all
}

// An interaction is a pressed button or a slash command.
type interaction struct {
	ID      string `json:"id"`
	App     string `json:"application_id"`
	Type    int    `json:"type"`
	Token   string `json:"token"`
	Channel string `json:"channel_id"`
	Guild   string `json:"guild_id"`
	Member  struct {
		User user `json:"user"`
	} `json:"member"`
	User user `json:"user"`
	Room room `json:"channel"`
	Data struct {
		Name    string `json:"name"`
		Button  string `json:"custom_id"`
		Options []struct {
			Value any `json:"value"`
		} `json:"options"`
	} `json:"data"`
}

func (i interaction) who() user {
	if i.Member.User.ID != "" {
		return i.Member.User
	}
	return i.User
}

// from is where it happened.
func (i interaction) from() message.Address {
	from := message.Address{ChannelID: i.Channel, UserID: i.who().ID}
	if i.Room.thread() && i.Room.Parent != "" {
		from.ChannelID, from.ThreadID = i.Room.Parent, i.Channel
	}

	return from
}

// talks are the interactions that are being answered.
type talks struct {
	api  *api
	desk *chat.Desk
	log  *slog.Logger
	busy chan struct{}

	mu   sync.Mutex
	open map[string]*talk
}

// A talk is one of them. Its token is good for answers for a quarter of an hour.
type talk struct {
	app, token string
	answered   bool
}

const talkPrefix = "interaction/"

// begin handles an interaction beside all else: Discord gives up one that is not answered
// within 3 seconds.
func (t *talks) begin(ctx context.Context, deliver message.Deliver, beside *sync.WaitGroup, data json.RawMessage) error {
	var i interaction
	if err := json.Unmarshal(data, &i); err != nil {
		return err
	}
	select {
	case t.busy <- struct{}{}:
	default:
		return nil // they are told that the app did not respond
	}
	beside.Go(func() {
		defer func() { <-t.busy }()
		t.handle(ctx, deliver, i)
	})

	return nil
}

func (t *talks) handle(ctx context.Context, deliver message.Deliver, i interaction) {
	err := t.api.call(ctx, request{name: "acknowledge", method: http.MethodPost, path: "/interactions/" + i.ID + "/" + i.Token +
		"/callback",
		params: map[string]any{"type": answerLater, "data": map[string]int{"flags": onlyThem}}}, nil)
	if err != nil {
		t.log.Warn("cannot acknowledge a button or command", "err", err)
		return
	}
	id := talkPrefix + i.ID
	t.mu.Lock()
	t.open[id] = &talk{app: i.App, token: i.Token}
	t.mu.Unlock()
	defer func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		delete(t.open, id)
	}()

	text := "Done."
	strikes := chat.Strikes{Log: t.log}
	err = strikes.Guard(id, func() error {
		switch i.Type {
		case button:
			text = t.desk.Answer(ctx, i.from(), i.Data.Button)
		case slashCommand:
			return t.desk.Take(ctx, deliver, i.post(id))
		}
		return nil
	})
	if err != nil {
		t.log.Warn("command not accepted", "err", err)
		text = "I could not do that now. Try again later."
	}
	t.mu.Lock()
	answered := t.open[id].answered
	t.mu.Unlock()
	if !answered {
		if _, err := t.say(ctx, id, text); err != nil {
			t.log.Warn("cannot answer a button or command", "err", err)
		}
	}
}

// post is a slash command as it would be typed.
func (i interaction) post(id string) chat.Post {
	text := "/" + i.Data.Name
	for _, o := range i.Data.Options {
		if s, ok := o.Value.(string); ok {
			text += " " + strings.ReplaceAll(s, "\n", " ")
		}
	}

	return chat.Post{Key: id, MessageID: id, From: i.from(), Sender: i.who().name(), Text: text, Group: i.Guild != "", Addressed: true}
}

// say answers an interaction, for those eyes only; false: there is none with this id.
func (t *talks) say(ctx context.Context, id, shown string) (bool, error) {
	t.mu.Lock()
	k := t.open[id]
	if k == nil {
		t.mu.Unlock()
		return false, nil
	}
	first := !k.answered
	k.answered = true
	t.mu.Unlock()
	r := request{name: "answer", method: http.MethodPost, path: "/webhooks/" + k.app + "/" + k.token,
		params: map[string]any{"content": shown, "flags": onlyThem | noPreview, "allowed_mentions": nobody}}
	if first {
		r.method, r.path = http.MethodPatch, r.path+"/messages/@original"
		r.params = map[string]any{"content": shown, "allowed_mentions": nobody}
	}

	return true, t.api.call(ctx, r, nil)
}
