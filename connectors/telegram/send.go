package telegram

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strconv"
	"strings"

	"daycare/connectors/chat"
	"daycare/connectors/format"
	"daycare/engine/message"
)

const (
	maxCaption = 1024     // UTF-16 units
	maxPhoto   = 10 << 20 // bytes; what is larger goes as a document
)

// Send delivers one part: its text, then its files. Telegram knows no idempotency
// key; what of a part was sent is remembered, so that a second try continues there.
func (c *Connector) Send(ctx context.Context, out message.Outgoing) (remoteID string, err error) {
	base, err := outgoingTo(out.To)
	if err != nil {
		return "", &message.NotSent{Final: true, Err: err}
	}
	if id, err := strconv.ParseInt(out.ReplyTo, 10, 64); err == nil && out.Part == 0 {
		base.Reply = &replyTo{id, true}
	}

	remoteID, shown, err := c.desk.Finish(ctx, out)
	if err != nil {
		return "", judge(err)
	}
	if shown {
		out.Text, base.Reply = "", nil
	}
	var steps []func() error
	for _, step := range c.out.steps(out, base) {
		steps = append(steps, func() error {
			id, err := step(ctx)
			if remoteID == "" && id != 0 {
				remoteID = decimal(id)
			}
			return err
		})
	}

	if err := c.sent.Send(out.Key(), steps); err != nil {
		return "", judge(err)
	}

	return remoteID, nil
}

type step func(context.Context) (id int64, err error)

// A sender makes the calls that send messages.
type sender struct{ api *api }

// steps are the messages that make up one part.
func (s sender) steps(out message.Outgoing, base outgoing) []step {
	var all []step
	files := out.Files
	if len(files) > 0 && format.Length(out.Text, format.UTF16) <= maxCaption {
		first, caption := files[0], out.Text
		all = append(all, func(ctx context.Context) (int64, error) { return s.file(ctx, base, first, caption) })
		files = files[1:]
	} else {
		all = append(all, func(ctx context.Context) (int64, error) { return s.text(ctx, base, out.Text) })
	}

	for _, f := range files {
		all = append(all, func(ctx context.Context) (int64, error) { return s.file(ctx, base, f, "") })
	}

	return all
}

func outgoingTo(to message.Address) (outgoing, error) {
	id, err := strconv.ParseInt(to.ChannelID, 10, 64)
	if err != nil {
		return outgoing{}, fmt.Errorf("%q is not a Telegram chat id", to.ChannelID)
	}
	thread, _ := strconv.ParseInt(to.ThreadID, 10, 64) // "": none

	return outgoing{Chat: id, Thread: thread}, nil
}

// text sends Markdown, without its marks where Telegram does not take them.
func (s sender) text(ctx context.Context, o outgoing, text string) (int64, error) {
	o.Preview = &linkPreview{true}
	o.Text, o.Mode = format.Telegram(text), "HTML"
	var m incoming
	var err error
	if o.Text != "" {
		err = s.adapt(&o, func() error { return s.api.call(ctx, "sendMessage", o, &m) })
	}
	if o.Text == "" || is(err, http.StatusBadRequest, "can't parse entities", "text is empty", "message is too long", "entity") {
		if o.Text, o.Mode = format.Plain(text), ""; o.Text == "" {
			return 0, nil // nothing that could be shown
		}
		err = s.adapt(&o, func() error { return s.api.call(ctx, "sendMessage", o, &m) })
	}
	if err == nil && m.ID == 0 {
		err = errors.New("telegram accepted a message and did not keep it")
	}

	return m.ID, err
}

// adapt calls f again with what Telegram told: the group's new id, no topic.
func (s sender) adapt(o *outgoing, f func() error) error {
	err := f()
	var no *apiError
	if errors.As(err, &no) && no.MigrateTo != 0 {
		o.Chat = no.MigrateTo
		err = f()
	}
	if o.Thread != 0 && is(err, http.StatusBadRequest, "thread not found") {
		o.Thread = 0
		err = f()
	}

	return err
}

// file sends a file with a caption; a picture that Telegram does not take as one, such as a very
// long one, as a document.
func (s sender) file(ctx context.Context, o outgoing, f message.File, caption string) (id int64, err error) {
	content, err := os.Open(f.Path)
	if err != nil {
		return 0, &message.NotSent{Final: true, Err: fmt.Errorf("open file %s to send: %w", f.Name, err)}
	}
	defer content.Close()
	a := attachment{content, f.Name, caption}
	if strings.HasPrefix(f.MimeType, "image/") && f.MimeType != "image/svg+xml" && f.MimeType != "image/gif" && f.Size <= maxPhoto {
		if id, err = s.attach(ctx, &o, "sendPhoto", "photo", a); !is(err, http.StatusBadRequest, "photo", "image") {
			return id, err
		}
	}

	return s.attach(ctx, &o, "sendDocument", "document", a)
}

// An attachment is a file that is being sent.
type attachment struct {
	content       io.ReadSeeker
	name, caption string
}

// attach sends a file with a method, its caption without marks where Telegram does not take them.
func (s sender) attach(ctx context.Context, o *outgoing, method, field string, a attachment) (int64, error) {
	var m incoming
	o.Text, o.Mode = format.Telegram(a.caption), "HTML"
	post := func() error {
		if _, err := a.content.Seek(0, io.SeekStart); err != nil {
			return fmt.Errorf("read file %s to send: %w", a.name, err)
		}
		return s.api.upload(ctx, method, o.fields(), field, a.name, a.content, &m)
	}
	err := s.adapt(o, post)
	if is(err, http.StatusBadRequest, "can't parse entities", "caption is too long", "entity") {
		o.Text, o.Mode = format.Plain(a.caption), ""
		err = s.adapt(o, post)
	}

	return m.ID, err
}

// fields are the parameters beside a file.
func (o outgoing) fields() map[string]string {
	all := map[string]string{"chat_id": decimal(o.Chat)}
	if o.Thread != 0 {
		all["message_thread_id"] = decimal(o.Thread)
	}
	if o.Text != "" {
		all["caption"], all["parse_mode"] = o.Text, o.Mode
	}
	if o.Reply != nil {
		data, _ := json.Marshal(o.Reply) // a number and a flag
		all["reply_parameters"] = string(data)
	}

	return all
}

// judge says what the engine is to do about an error.
func judge(err error) error {
	var done *message.NotSent
	var no *apiError
	if errors.As(err, &done) || !errors.As(err, &no) || no.Code == http.StatusNotFound { // 404: the token is not known
		return err
	}

	return chat.Judge(err, no.Code, no.RetryAfter)
}

// Say sends a notice.
func (c *Connector) Say(ctx context.Context, to message.Address, reply, text string) error {
	o, err := outgoingTo(to)
	if err != nil {
		return err
	}
	if id, err := strconv.ParseInt(reply, 10, 64); err == nil {
		o.Reply = &replyTo{id, true}
	}

	_, err = c.out.text(ctx, o, text)

	return err
}

// A pen writes messages that can be changed later, and long answers as files.
type pen struct {
	*Connector
	chat.Attaching
	chat.Named
}

// Post says something that can be edited. Telegram knows no keys.
func (c pen) Post(ctx context.Context, to message.Address, _, reply, text string) (string, error) {
	o, err := outgoingTo(to)
	if err != nil {
		return "", err
	}
	if id, err := strconv.ParseInt(reply, 10, 64); err == nil {
		o.Reply = &replyTo{id, true}
	}
	id, err := c.out.text(ctx, o, text)

	return decimal(id), err
}

// Edit replaces the text of a message of ours.
func (c pen) Edit(ctx context.Context, to message.Address, id, text string) error {
	err := c.Settle(ctx, to, id, text)
	if is(err, http.StatusBadRequest, "message is not modified") {
		return nil
	}

	return judge(err)
}

// React puts an emoji under a message, in the place of the one before.
func (c *Connector) React(ctx context.Context, to message.Address, messageID, emoji string) error {
	o, err := outgoingTo(to)
	if err != nil {
		return err
	}
	if o.Message, err = strconv.ParseInt(messageID, 10, 64); err != nil {
		return fmt.Errorf("%q is not a Telegram message id, which is a number", messageID)
	}

	// Telegram knows its emoji without the mark that asks for a coloured one.
	o.Thread, o.Reaction = 0, []symbol{{"emoji", strings.ReplaceAll(emoji, "\uFE0F", "")}}
	err = c.out.adapt(&o, func() error { return c.api.call(ctx, "setMessageReaction", o, nil) })
	if is(err, http.StatusBadRequest, "reaction_invalid") {
		return fmt.Errorf("telegram has no reaction %s; some it has: 👍 👎 ❤ 🔥 🎉 👏 🙏 👌 🤔 😁 😢 👀 🤝 💯", emoji)
	}

	return err
}

// Typing shows "typing" for about five seconds.
func (c *Connector) Typing(ctx context.Context, to message.Address) error {
	o, err := outgoingTo(to)
	if err != nil {
		return err
	}
	o.Action = "typing"

	return c.out.adapt(&o, func() error { return c.api.call(ctx, "sendChatAction", o, nil) })
}

// Card shows a question with buttons under it.
func (c *Connector) Card(ctx context.Context, to message.Address, _, text string, choices []chat.Choice) (string, error) {
	o, err := outgoingTo(to)
	if err != nil {
		return "", err
	}
	var row []button
	for _, k := range choices {
		row = append(row, button{k.Label, k.Data})
	}

	o.Keyboard = &keyboard{[][]button{row}}
	id, err := c.out.text(ctx, o, text)

	return decimal(id), err
}

// Settle replaces a card by a text.
func (c *Connector) Settle(ctx context.Context, to message.Address, remoteID, text string) error {
	o, err := outgoingTo(to)
	if err != nil {
		return err
	}
	if o.Message, err = strconv.ParseInt(remoteID, 10, 64); err != nil {
		return fmt.Errorf("update buttons: %q is not a message id", remoteID)
	}

	o.Thread, o.Text, o.Mode, o.Preview = 0, format.Telegram(text), "HTML", &linkPreview{true}

	return c.out.adapt(&o, func() error { return c.api.call(ctx, "editMessageText", o, nil) })
}

// Direct is the private chat with a user, which has the user's number.
func (c *Connector) Direct(userID string) (message.Address, bool) {
	return message.Address{ChannelID: userID, UserID: userID}, true
}
