package discord

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/base32"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"daycare/connectors/chat"
	"daycare/connectors/format"
	"daycare/engine/message"
)

const (
	maxFile   = 10 << 20 // bytes: what Discord takes of a bot in a server without boosts
	maxFiles  = 10       // of one message
	noPreview = 1 << 2   // flag: addresses in the text are not fetched
)

// nobody is that a text notifies none of those it names: not everyone, no roles, no users.
var nobody = mentions{Parse: []string{}}

type mentions struct {
	Parse   []string `json:"parse"`
	Replied bool     `json:"replied_user"`
}

// A posting are the parameters of a message.
type posting struct {
	Content    string      `json:"content"`
	Nonce      string      `json:"nonce,omitempty"`
	Enforce    bool        `json:"enforce_nonce,omitempty"`
	Mentions   mentions    `json:"allowed_mentions"`
	Reply      *reference  `json:"message_reference,omitempty"`
	Flags      int         `json:"flags,omitempty"`
	Embeds     []embed     `json:"embeds,omitempty"`
	Components *[]row      `json:"components,omitempty"` // empty: those that were there go
	Files      []fileEntry `json:"attachments,omitempty"`
}

type reference struct {
	Message string `json:"message_id"`
	Must    bool   `json:"fail_if_not_exists"`
}

type embed struct {
	Text string `json:"description"`
}

// A row is one of buttons.
type row struct {
	Type    int         `json:"type"` // 1
	Buttons []component `json:"components"`
}

type component struct {
	Type  int    `json:"type"`  // 2: a button
	Style int    `json:"style"` // 2: grey
	Label string `json:"label"`
	Data  string `json:"custom_id"`
}

type fileEntry struct {
	ID   int    `json:"id"`
	Name string `json:"filename"`
}

// nonce is a key as Discord takes one: at most 25 characters. A message that comes again
// with the same one within some minutes is not sent twice.
func nonce(key string) string {
	sum := sha256.Sum256([]byte(key))
	return base32.StdEncoding.EncodeToString(sum[:])[:25]
}

// under is a message that Discord takes once under a key; "": each time.
func (p posting) under(key string) posting {
	if key != "" {
		p.Nonce, p.Enforce = nonce(key), true
	}
	return p
}

// Send delivers one part: its text with its files.
func (c *Connector) Send(ctx context.Context, out message.Outgoing) (remoteID string, err error) {
	text, files := fitting(out)
	out.Text = text
	remoteID, shown, err := c.desk.Finish(ctx, out)
	if err != nil {
		return "", judge(err)
	}
	if shown {
		text = ""
	}
	var steps []func() error
	for n := 0; n == 0 || n*maxFiles < len(files); n++ {
		p := posting{Mentions: nobody, Flags: noPreview}.under(fmt.Sprint(out.Key(), "/", n))
		if n == 0 {
			p.Content = format.Discord(text)
			if snowflake.MatchString(out.ReplyTo) && out.Part == 0 && out.To.ThreadID != out.ReplyTo {
				p.Reply, p.Mentions.Replied = &reference{Message: out.ReplyTo}, true
			}
		}

		some := files[min(n*maxFiles, len(files)):min((n+1)*maxFiles, len(files))]
		if p.Content == "" && len(some) == 0 {
			continue // nothing that could be shown
		}
		steps = append(steps, func() error {
			id, err := c.out.deliver(ctx, out.To, p, some)
			remoteID = cmp.Or(remoteID, id)
			return err
		})
	}

	if err := c.sent.Send(out.Key(), steps); err != nil {
		return "", judge(err)
	}

	return remoteID, nil
}

// fitting is what Discord takes of a part: files that are too large are said to be missing.
func fitting(out message.Outgoing) (text string, files []message.File) {
	text = out.Text
	for _, f := range out.Files {
		if f.Size > maxFile {
			text += fmt.Sprintf("\n\n[the file %s is missing: it is larger than 10 MB, the most that Discord accepts]", f.Name)
			continue
		}
		files = append(files, f)
	}

	return text, files
}

// A sender makes the calls that send messages.
type sender struct{ *rooms }

// deliver sends one message, into a thread that it begins if there is none.
func (s sender) deliver(ctx context.Context, to message.Address, p posting, files []message.File) (id string, err error) {
	for i, f := range files {
		p.Files = append(p.Files, fileEntry{i, f.Name})
	}
	channel, err := s.place(ctx, to.ChannelID)
	if err != nil {
		return "", err
	}
	if to.ThreadID == "" {
		return s.create(ctx, channel, p, files)
	}
	id, err = s.create(ctx, to.ThreadID, p, files)
	if !code(err, unknownChannel) {
		return id, err
	}
	err = s.api.call(ctx, request{name: "begin a thread", method: http.MethodPost,
		path: "/channels/" + channel + "/messages/" + to.ThreadID + "/threads", params: map[string]string{"name": titleOf(p.Content)}},
		nil)
	if err != nil && !code(err, hasThread) {
		return "", err
	}

	return s.create(ctx, to.ThreadID, p, files)
}

// titleOf is the name of a thread that begins with a text.
func titleOf(text string) string {
	const marks = "#*_` \n"
	line, _, _ := strings.Cut(strings.TrimLeft(text, marks), "\n")
	if r := []rune(strings.TrimRight(line, marks)); len(r) > 80 {
		return string(r[:79]) + "…"
	} else if len(r) > 0 {
		return string(r)
	}

	return "answer"
}

func (s sender) create(ctx context.Context, channel string, p posting, files []message.File) (string, error) {
	var made struct {
		ID string `json:"id"`
	}
	err := s.api.call(ctx, request{name: "send a message", method: http.MethodPost, path: "/channels/" + channel + "/messages",
		params: p, files: files}, &made)
	if err == nil && made.ID == "" {
		err = errors.New("discord accepted a message and did not keep it")
	}

	return made.ID, err
}

// judge says what the engine is to do about an error.
func judge(err error) error {
	var done *message.NotSent
	var no *apiError
	if errors.As(err, &done) || !errors.As(err, &no) {
		return err
	}

	return chat.Judge(err, no.Status, no.RetryAfter)
}

// Say sends a notice.
func (c *Connector) Say(ctx context.Context, to message.Address, reply, text string) error {
	for _, part := range c.Split(text) {
		shown := format.Discord(part)
		if shown == "" {
			continue
		}
		if ok, err := c.talks.say(ctx, reply, shown); ok {
			if err != nil {
				return err
			}
			continue
		}
		p := posting{Content: shown, Mentions: nobody, Flags: noPreview}
		if snowflake.MatchString(reply) && to.ThreadID != reply {
			p.Reply = &reference{Message: reply}
		}
		if _, err := c.out.deliver(ctx, to, p, nil); err != nil {
			return err
		}
		reply = ""
	}

	return nil
}

// A pen writes messages that can be changed later, and long answers as files.
type pen struct {
	*Connector
	chat.Attaching
	chat.Named
}

// Post says something that can be edited.
func (c pen) Post(ctx context.Context, to message.Address, key, reply, text string) (string, error) {
	p := posting{Content: format.Discord(text), Mentions: nobody, Flags: noPreview}.under(key)
	if snowflake.MatchString(reply) && to.ThreadID != reply {
		p.Reply = &reference{Message: reply}
	}

	return c.out.deliver(ctx, to, p, nil)
}

// Edit replaces the text of a message of ours.
func (c pen) Edit(ctx context.Context, to message.Address, id, text string) error {
	channel, err := c.out.where(ctx, to)
	if err != nil {
		return err
	}
	err = c.api.call(ctx, request{name: "edit a message", method: http.MethodPatch, path: "/channels/" + channel + "/messages/" + id,
		params: posting{Content: format.Discord(text), Mentions: nobody, Flags: noPreview}}, nil)

	return judge(err)
}

// where is the channel or thread of an address.
func (s sender) where(ctx context.Context, to message.Address) (string, error) {
	if to.ThreadID != "" {
		return to.ThreadID, nil
	}
	return s.place(ctx, to.ChannelID)
}

// React puts an emoji under a message, beside those that are there.
func (c *Connector) React(ctx context.Context, to message.Address, messageID, emoji string) error {
	if !snowflake.MatchString(messageID) {
		return fmt.Errorf("%q is not a Discord message id, which is a number", messageID)
	}
	channel, err := c.out.where(ctx, to)
	if err == nil {
		err = c.out.react(ctx, channel, messageID, emoji)
	}
	if to.ThreadID != "" && status(err, http.StatusNotFound) { // a thread begins under a message of its channel
		err = c.out.react(ctx, to.ChannelID, messageID, emoji)
	}
	if status(err, http.StatusBadRequest) {
		return fmt.Errorf("discord has no emoji %s: use a Unicode emoji such as 👍", emoji)
	}

	return err
}

func (s sender) react(ctx context.Context, channel, messageID, emoji string) error {
	return s.api.call(ctx, request{name: "react", method: http.MethodPut, path: "/channels/" + channel + "/messages/" + messageID +
		"/reactions/" + url.PathEscape(emoji) + "/@me"}, nil)
}

// Typing shows "typing" for about ten seconds.
func (c *Connector) Typing(ctx context.Context, to message.Address) error {
	channel, err := c.out.where(ctx, to)
	if err != nil {
		return err
	}

	return c.api.call(ctx, request{name: "show typing", method: http.MethodPost, path: "/channels/" + channel + "/typing"}, nil)
}

// maxEmbed is the longest text of a card, in UTF-16 units; the longest request is shorter.
const maxEmbed = 4096

func card(text string) []embed {
	shown := format.Discord(text)
	for format.UTF16(shown) > maxEmbed {
		r := []rune(shown)
		shown = string(r[:len(r)*9/10])
	}

	return []embed{{shown}}
}

// Card shows a question with buttons under it.
func (c *Connector) Card(ctx context.Context, to message.Address, key, text string, choices []chat.Choice) (string, error) {
	buttons := row{Type: 1}
	for _, k := range choices {
		buttons.Buttons = append(buttons.Buttons, component{Type: 2, Style: 2, Label: k.Label, Data: k.Data})
	}

	return c.out.deliver(ctx, to, posting{Mentions: nobody, Embeds: card(text), Components: &[]row{buttons}}.under(key), nil)
}

// Settle replaces a card by a text.
func (c *Connector) Settle(ctx context.Context, to message.Address, remoteID, text string) error {
	channel, err := c.out.where(ctx, to)
	if err != nil {
		return err
	}
	return c.api.call(ctx, request{name: "update a card", method: http.MethodPatch, path: "/channels/" + channel + "/messages/" +
		remoteID,
		params: posting{Mentions: nobody, Embeds: card(text), Components: &[]row{}}}, nil)
}

// Direct is the private chat with a user, which is opened when something is sent.
func (c *Connector) Direct(userID string) (message.Address, bool) {
	return message.Address{ChannelID: userPrefix + userID, UserID: userID}, true
}
