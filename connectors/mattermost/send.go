package mattermost

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"time"

	"daycare/connectors/chat"
	"daycare/connectors/format"
	"daycare/engine/message"
)

const (
	maxFiles   = 5                 // of one post: what all versions take
	maxFile    = 100 << 20         // bytes: what a server takes unless it is set otherwise
	uploadTime = 100 * time.Second // the engine gives a part two minutes
	// recent is how many posts are looked at for one that was sent before.
	recent = 100
)

// keyProp is the property of a post that says which part of which answer it is.
const keyProp = "daycare_part"

// Send delivers one part: its text with its files. The server knows a post that comes again
// within half a minute; later the channel is searched for it.
func (c *Connector) Send(ctx context.Context, out message.Outgoing) (remoteID string, err error) {
	channel, err := c.rooms.channel(ctx, out.To.ChannelID)
	if err != nil {
		return "", judge(err)
	}
	remoteID, shown, err := c.desk.Finish(ctx, out)
	if err != nil {
		return "", judge(err)
	}
	if shown {
		out.Text = ""
	}
	var steps []func() error
	for n := 0; n == 0 || n*maxFiles < len(out.Files); n++ {
		p := post{Channel: channel, Root: out.To.ThreadID}
		if n == 0 {
			p.Text = format.Mattermost(out.Text)
		}

		files := out.Files[min(n*maxFiles, len(out.Files)):min((n+1)*maxFiles, len(out.Files))]
		if p.Text == "" && len(files) == 0 {
			continue // nothing that could be shown
		}
		steps = append(steps, func() error {
			id, err := c.once(ctx, fmt.Sprint(out.Key(), "/", n), out.Retry, p, files)
			if remoteID == "" {
				remoteID = id
			}
			return err
		})
	}

	if err := c.sent.Send(out.Key(), steps); err != nil {
		return "", judge(err)
	}

	return remoteID, nil
}

// once posts under a key, unless it was posted before; "": each time.
func (c *Connector) once(ctx context.Context, key string, retry bool, p post, files []message.File) (string, error) {
	if key == "" {
		return c.create(ctx, p)
	}
	sum := sha256.Sum256([]byte(key))
	mark := hex.EncodeToString(sum[:16])
	if retry {
		before, err := c.rooms.list(ctx, p.Channel, fmt.Sprint("per_page=", recent))
		if err != nil && !errors.Is(err, chat.ErrNoChannel) {
			return "", err
		}
		for _, other := range before {
			if other.Props[keyProp] == mark && other.User == c.rooms.self().ID {
				return other.ID, nil
			}
		}
	}
	for _, f := range files {
		id, err := c.upload(ctx, p.Channel, f)
		if err != nil {
			return "", err
		}
		p.FileIDs = append(p.FileIDs, id)
	}
	if p.Props == nil {
		p.Props = map[string]any{}
	}
	p.Pending, p.Props[keyProp] = mark, mark

	return c.create(ctx, p)
}

func (c *Connector) create(ctx context.Context, p post) (string, error) {
	var made post
	err := c.api.call(ctx, "send a message", http.MethodPost, "/posts", p, &made)
	if err == nil && made.ID == "" {
		err = errors.New("the server accepted a message and did not keep it")
	}

	return made.ID, err
}

func (c *Connector) upload(ctx context.Context, channel string, f message.File) (string, error) {
	if f.Size > maxFile {
		return "", &message.NotSent{Final: true, Err: fmt.Errorf("file %s is larger than 100 MB", f.Name)}
	}
	content, err := os.Open(f.Path)
	if err != nil {
		return "", &message.NotSent{Final: true, Err: fmt.Errorf("open file %s to send: %w", f.Name, err)}
	}
	defer content.Close()
	var done struct {
		Files []file `json:"file_infos"`
	}
	query := url.Values{"channel_id": {channel}, "filename": {f.Name}}.Encode()
	err = c.api.send(ctx, chat.Call{Name: "upload a file", Path: "/files?" + query, Media: "application/octet-stream", Body: content,
		Within: uploadTime}, &done)
	if err != nil {
		return "", err
	}
	if len(done.Files) == 0 {
		return "", errors.New("upload a file: the server did not keep it")
	}

	return done.Files[0].ID, nil
}

// judge says what the engine is to do about an error.
func judge(err error) error {
	var done *message.NotSent
	var no *apiError
	if errors.As(err, &done) || !errors.As(err, &no) {
		return err
	}
	if no.ID == "api.post.deduplicate_create_post.pending" {
		return err // the first try is still at work
	}

	return chat.Judge(err, no.Status, no.RetryAfter)
}

// Say sends a notice.
func (c *Connector) Say(ctx context.Context, to message.Address, _, text string) error {
	channel, err := c.rooms.channel(ctx, to.ChannelID)
	if err != nil {
		return err
	}
	for _, part := range c.Split(text) {
		if _, err := c.create(ctx, post{Channel: channel, Root: to.ThreadID, Text: format.Mattermost(part)}); err != nil {
			return err
		}
	}

	return nil
}

// A pen writes messages that can be changed later, and long answers as files.
type pen struct {
	*Connector
	chat.Attaching
	chat.Named
}

// Post says something that can be edited, and reacted to.
func (c pen) Post(ctx context.Context, to message.Address, key, _, text string) (string, error) {
	channel, err := c.rooms.channel(ctx, to.ChannelID)
	if err != nil {
		return "", err
	}

	return c.once(ctx, key, true, post{Channel: channel, Root: to.ThreadID, Text: format.Mattermost(text)}, nil)
}

// Edit replaces the text of a message of ours.
func (c pen) Edit(ctx context.Context, _ message.Address, id, text string) error {
	return judge(c.api.call(ctx, "edit a message", http.MethodPut, "/posts/"+id+"/patch",
		map[string]any{"message": format.Mattermost(text)}, nil))
}

// React puts an emoji under a post, beside those that are there.
func (c *Connector) React(ctx context.Context, _ message.Address, messageID, emoji string) error {
	name, ok := chat.EmojiName(emoji)
	if !ok {
		return fmt.Errorf("mattermost needs emoji names, and daycare does not know the name of %s: write :eyes: or the like", emoji)
	}
	err := c.api.call(ctx, "react", http.MethodPost, "/reactions",
		map[string]string{"user_id": c.rooms.self().ID, "post_id": messageID, "emoji_name": name}, nil)
	if status(err, http.StatusBadRequest, http.StatusNotFound) {
		return fmt.Errorf("there is no emoji :%s: or no such message: %w", name, err)
	}

	return err
}

// Typing shows "typing" for some seconds.
func (c *Connector) Typing(ctx context.Context, to message.Address) error {
	channel, err := c.rooms.channel(ctx, to.ChannelID)
	if err != nil {
		return err
	}
	return c.api.call(ctx, "show typing", http.MethodPost, "/users/me/typing", map[string]string{"channel_id": channel,
		"parent_id": to.ThreadID}, nil)
}

// Direct is the direct channel with a user, which is opened when something is sent.
func (c *Connector) Direct(userID string) (message.Address, bool) {
	return message.Address{ChannelID: userPrefix + userID, UserID: userID}, true
}
