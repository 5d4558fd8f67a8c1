package slack

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"strconv"

	"daycare/connectors/chat"
	"daycare/connectors/format"
	"daycare/engine/message"
)

// A posting are the parameters of the methods that send text.
type posting struct {
	Channel string  `json:"channel"`
	Thread  string  `json:"thread_ts,omitempty"`
	TS      string  `json:"ts,omitempty"` // of chat.update
	Text    string  `json:"text"`
	Links   bool    `json:"unfurl_links"`
	Media   bool    `json:"unfurl_media"`
	Blocks  []block `json:"blocks,omitempty"`
}

type block struct {
	Type     string    `json:"type"` // section, actions
	Text     *text     `json:"text,omitempty"`
	Elements []element `json:"elements,omitempty"`
}

type text struct {
	Type string `json:"type"` // mrkdwn, plain_text
	Text string `json:"text"`
}

type element struct {
	Type  string `json:"type"` // button
	Text  text   `json:"text"`
	Value string `json:"value"`
	ID    string `json:"action_id"`
}

// Send delivers one part: its text, then its files. Slack knows no idempotency key
// for messages; what of a part was sent is remembered, so that a second try goes
// on there.
func (c *Connector) Send(ctx context.Context, out message.Outgoing) (remoteID string, err error) {
	remoteID, shown, err := c.desk.Finish(ctx, out)
	if err != nil {
		return "", judge(err)
	}
	var steps []func() error
	if !shown {
		steps = append(steps, func() (err error) {
			remoteID, err = c.say(ctx, out.To, out.Text)
			return err
		})
	}
	for _, f := range out.Files {
		steps = append(steps, func() error { return c.upload(ctx, out.To, f) })
	}

	if err := c.sent.Send(out.Key(), steps); err != nil {
		return "", judge(err)
	}

	return remoteID, nil
}

func (c *Connector) say(ctx context.Context, to message.Address, markdown string) (ts string, err error) {
	shown := format.Slack(markdown)
	if shown == "" {
		return "", nil // nothing that could be shown
	}
	var done struct {
		TS string `json:"ts"`
	}
	err = c.api.call(ctx, "chat.postMessage", posting{Channel: to.ChannelID, Thread: to.ThreadID, Text: shown}, &done)
	if err == nil && done.TS == "" {
		err = errors.New("slack accepted a message and did not keep it")
	}

	return done.TS, err
}

// upload sends a file in Slack's three steps.
func (c *Connector) upload(ctx context.Context, to message.Address, f message.File) error {
	content, err := os.ReadFile(f.Path)
	if err != nil {
		return &message.NotSent{Final: true, Err: fmt.Errorf("read file %s to send: %w", f.Name, err)}
	}
	var place struct {
		URL string `json:"upload_url"`
		ID  string `json:"file_id"`
	}
	if err := c.api.form(ctx, "files.getUploadURLExternal",
		url.Values{"filename": {f.Name}, "length": {strconv.Itoa(len(content))}}, &place); err != nil {
		return err
	}

	req, err := http.NewRequestWithContext(ctx, http.MethodPost, place.URL, bytes.NewReader(content))
	if err != nil {
		return errors.New("upload file: slack returned an invalid address")
	}
	req.Header.Set("Content-Type", "application/octet-stream")
	resp, err := c.api.HTTP.Do(req)
	if err != nil {
		return fmt.Errorf("upload file: %w", c.api.Clean(err)) // the address is a ticket
	}

	resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("upload file: slack answers %d", resp.StatusCode)
	}
	done := map[string]any{"files": []map[string]string{{"id": place.ID, "title": f.Name}}, "channel_id": to.ChannelID}
	if to.ThreadID != "" {
		done["thread_ts"] = to.ThreadID
	}

	return c.api.call(ctx, "files.completeUploadExternal", done, nil)
}

// judge says what the engine is to do about an error.
func judge(err error) error {
	var no *apiError
	if !errors.As(err, &no) {
		return err
	}

	switch no.Word {
	case "ratelimited", "rate_limited":
		return &message.NotSent{After: no.RetryAfter, Err: err}
	case "channel_not_found", "not_in_channel", "is_archived", "user_not_found", "users_not_found", "msg_too_long", "no_text",
		"restricted_action", "restricted_action_read_only_channel", "restricted_action_thread_only_channel", "cannot_reply_to_message",
		"messages_tab_disabled", "user_disabled", "invalid_blocks", "invalid_arguments", "thread_not_found":
		return &message.NotSent{Final: true, Err: err}
	}

	return err // Slack is not well, or our token: that may be mended within the day
}

// Say sends a notice.
func (c *Connector) Say(ctx context.Context, to message.Address, _, markdown string) error {
	_, err := c.say(ctx, to, markdown)
	return err
}

// A pen writes messages that can be changed later, and long answers as files.
type pen struct {
	*Connector
	chat.Attaching
	chat.Named
}

// Post says something that can be edited. Slack knows no keys.
func (c pen) Post(ctx context.Context, to message.Address, _, _, markdown string) (string, error) {
	return c.say(ctx, to, markdown)
}

// Edit replaces the text of a message of ours.
func (c pen) Edit(ctx context.Context, to message.Address, id, markdown string) error {
	err := c.api.call(ctx, "chat.update", posting{Channel: to.ChannelID, TS: id, Text: format.Slack(markdown)}, nil)
	if is(err, "message_not_found", "cant_update_message") {
		return &message.NotSent{Final: true, Err: err}
	}

	return judge(err)
}

// maxSection is the longest text of a block, in characters.
const maxSection = 3000

func section(markdown string) block {
	shown := []rune(format.Slack(markdown))
	return block{Type: "section", Text: &text{"mrkdwn", string(shown[:min(len(shown), maxSection)])}}
}

// Card shows a question with buttons under it.
func (c *Connector) Card(ctx context.Context, to message.Address, _, markdown string, choices []chat.Choice) (string, error) {
	var row []element
	for i, k := range choices {
		row = append(row, element{Type: "button", Text: text{"plain_text", k.Label}, Value: k.Data, ID: "choice" + strconv.Itoa(i)})
	}
	var done struct {
		TS string `json:"ts"`
	}
	err := c.api.call(ctx, "chat.postMessage", posting{Channel: to.ChannelID, Thread: to.ThreadID, Text: format.Slack(markdown),
		Blocks: []block{section(markdown), {Type: "actions", Elements: row}}}, &done)

	return done.TS, err
}

// Settle replaces a card by a text.
func (c *Connector) Settle(ctx context.Context, to message.Address, remoteID, markdown string) error {
	return c.api.call(ctx, "chat.update",
		posting{Channel: to.ChannelID, TS: remoteID, Text: format.Slack(markdown), Blocks: []block{section(markdown)}}, nil)
}

// Direct is the conversation with a user: Slack opens it for their id.
func (c *Connector) Direct(userID string) (message.Address, bool) {
	return message.Address{ChannelID: userID, UserID: userID}, true
}

// React puts an emoji under a message, beside those that are there.
func (c *Connector) React(ctx context.Context, to message.Address, messageID, emoji string) error {
	name, ok := chat.EmojiName(emoji)
	if !ok {
		return fmt.Errorf("slack needs emoji names, and daycare does not know the name of %s: write :eyes: or the like", emoji)
	}
	err := c.api.call(ctx, "reactions.add", map[string]string{"channel": to.ChannelID, "timestamp": messageID, "name": name}, nil)
	switch {
	case is(err, "already_reacted"):
		return nil
	case is(err, "invalid_name"):
		return fmt.Errorf("there is no emoji :%s: in this workspace", name)
	case is(err, "missing_scope"):
		return fmt.Errorf("%w: the app needs the scope reactions:write", err)
	}

	return err
}
