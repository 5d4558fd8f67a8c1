package matrix

import (
	"context"
	"errors"
	"fmt"
	"mime"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"
	"time"

	"daycare/connectors/chat"
	"daycare/connectors/format"
	"daycare/engine/message"
)

// A said is the content of a message of ours.
type said struct {
	Kind      string         `json:"msgtype"`
	Body      string         `json:"body"`
	Format    string         `json:"format,omitempty"`
	Formatted string         `json:"formatted_body,omitempty"`
	URL       string         `json:"url,omitempty"`
	File      any            `json:"file,omitempty"` // instead of URL, in encrypted rooms
	Info      map[string]any `json:"info,omitempty"`
	Mentions  struct{}       `json:"m.mentions"` // nobody: without it clients look for names in the text
	Relates   map[string]any `json:"m.relates_to,omitempty"`
	New       *said          `json:"m.new_content,omitempty"`
	Key       string         `json:"daycare.key,omitempty"`
}

// Send delivers one part: its text, then its files. A message is sent under its key as the
// id of the transaction, so that the homeserver drops a second one; as it forgets that after
// a while, one that may have arrived is looked for in the room first.
func (c *Connector) Send(ctx context.Context, out message.Outgoing) (remoteID string, err error) {
	remoteID, shown, err := c.desk.Finish(ctx, out)
	if err != nil {
		return "", judge(err)
	}
	var steps []func() error
	if m, ok := spoken(out.Text); ok && !shown {
		steps = append(steps, func() (err error) {
			m.Relates = related(out)
			remoteID, err = c.post(ctx, out.To, out.Key(), out.Retry, m)
			return err
		})
	}
	for i, f := range out.Files {
		steps = append(steps, func() error {
			m, err := c.upload(ctx, out.To.ChannelID, f)
			if err != nil {
				return err
			}
			m.Relates = related(out)
			_, err = c.post(ctx, out.To, out.Key()+".f"+strconv.Itoa(i), out.Retry, m)
			return err
		})
	}
	if err := c.sent.Send(out.Key(), steps); err != nil {
		return "", judge(err)
	}

	return remoteID, nil
}

// spoken is Markdown as a message; false: nothing in it could be shown. What would ring for
// everyone in the room does not.
func spoken(markdown string) (said, bool) {
	quiet := strings.ReplaceAll(markdown, "@room", "@\u200broom")
	text := format.Plain(quiet)
	return said{Kind: "m.text", Body: text, Format: "org.matrix.custom.html", Formatted: format.HTML(quiet)}, text != ""
}

// related puts an answer into its thread, or under the message that it answers.
func related(out message.Outgoing) map[string]any {
	reply := map[string]any{"event_id": out.ReplyTo}
	switch {
	case out.To.ThreadID != "" && out.ReplyTo != "":
		return map[string]any{"rel_type": "m.thread", "event_id": out.To.ThreadID, "is_falling_back": true, "m.in_reply_to": reply}
	case out.To.ThreadID != "":
		return map[string]any{"rel_type": "m.thread", "event_id": out.To.ThreadID}
	case out.ReplyTo != "" && out.Part == 0 && strings.HasPrefix(out.ReplyTo, "$"):
		return map[string]any{"m.in_reply_to": reply}
	}

	return nil
}

// post sends a message under a key, once.
func (c *Connector) post(ctx context.Context, to message.Address, key string, retry bool, m said) (id string, err error) {
	m.Key = key
	if retry {
		if id := c.posted(ctx, to.ChannelID, key); id != "" {
			return id, nil
		}
	}

	return c.put(ctx, to.ChannelID, "m.room.message", key, m)
}

func (c *Connector) put(ctx context.Context, room, kind, key string, content any) (id string, err error) {
	var done struct {
		ID string `json:"event_id"`
	}
	if kind, content, err = (sealed{c}).seal(ctx, room, kind, content); err != nil {
		return "", err
	}
	at := path(client+"/rooms", room, "send", kind, key)
	err = c.api.do(ctx, call{name: "send", method: http.MethodPut, path: at, body: content}, &done)
	if err == nil && done.ID == "" {
		err = errors.New("the homeserver accepted a message and did not keep it")
	}

	return done.ID, err
}

// posted looks for a message of ours among the newest of a room.
func (c *Connector) posted(ctx context.Context, room, key string) (id string) {
	me, _ := c.self()
	if me == "" && c.introduce(ctx) == nil {
		me, _ = c.self()
	}
	var page struct {
		Chunk []roomEvent `json:"chunk"`
	}
	q := url.Values{"dir": {"b"}, "limit": {strconv.Itoa(pageSize)}}
	if err := c.api.do(ctx, call{name: "messages", method: http.MethodGet, path: path(client+"/rooms", room, "messages"), query: q},
		&page); err != nil {
		return "" // the id of the transaction is the other guard
	}
	for _, e := range page.Chunk {
		if e.Sender == me && (sealed{c}).peek(ctx, room, e).Content.Key == key { // anybody could write the key
			return e.ID
		}
	}

	return ""
}

// upload puts a file on the homeserver.
func (c *Connector) upload(ctx context.Context, room string, f message.File) (said, error) {
	content, err := os.Open(f.Path)
	if err != nil {
		return said{}, &message.NotSent{Final: true, Err: fmt.Errorf("open file %s to send: %w", f.Name, err)}
	}
	defer content.Close()
	media := f.MimeType
	if _, _, err := mime.ParseMediaType(media); err != nil {
		media = "application/octet-stream"
	}
	put := call{name: "upload", method: http.MethodPost, path: "/_matrix/media/v3/upload",
		query: url.Values{"filename": {f.Name}}, raw: content, media: media, within: 5 * time.Minute}
	keys, err := sealed{c}.sealFile(ctx, room, &put)
	if err != nil {
		return said{}, err
	}
	var done struct {
		URL string `json:"content_uri"`
	}
	if err := c.api.do(ctx, put, &done); err != nil {
		return said{}, err
	}
	kind := "m.file"
	for _, k := range []string{"image", "audio", "video"} {
		if strings.HasPrefix(media, k+"/") {
			kind = "m." + k
		}
	}

	m := said{Kind: kind, Body: f.Name, URL: done.URL, Info: map[string]any{"mimetype": media, "size": f.Size}}
	if keys != nil {
		m.URL, m.File = "", keys(done.URL)
	}

	return m, nil
}

// Say sends a notice.
func (c *Connector) Say(ctx context.Context, to message.Address, _, markdown string) error {
	_, err := c.Post(ctx, to, "", "", markdown)
	return err
}

// A pen writes messages that can be changed later, and long answers as files.
type pen struct {
	*Connector
	chat.Attaching
	chat.Named
}

// Post says something that can be edited, and reacted to.
func (c pen) Post(ctx context.Context, to message.Address, key, replyTo, markdown string) (string, error) {
	m, ok := spoken(markdown)
	if !ok {
		return "", nil
	}
	m.Relates = related(message.Outgoing{To: to, ReplyTo: replyTo})
	if key == "" {
		return c.put(ctx, to.ChannelID, "m.room.message", once("notice"), m)
	}

	return c.post(ctx, to, key, true, m)
}

// Edit replaces the text of a message of ours.
func (c pen) Edit(ctx context.Context, to message.Address, id, markdown string) error {
	now, ok := spoken(markdown)
	if !ok {
		return nil
	}
	m := now
	m.Body, m.Formatted, m.New = "* "+now.Body, "* "+now.Formatted, &now
	m.Relates = map[string]any{"rel_type": "m.replace", "event_id": id}
	_, err := c.put(ctx, to.ChannelID, "m.room.message", once("edit"), m)

	return judge(err)
}

// once is the id of a transaction that is tried once.
func once(what string) string { return what + "-" + strconv.FormatInt(time.Now().UnixNano(), 36) }

// Typing shows "typing" for about five seconds.
func (c *Connector) Typing(ctx context.Context, to message.Address) error {
	me, _ := c.self()
	if me == "" {
		return nil // we have not begun
	}
	return c.api.do(ctx, call{name: "typing", method: http.MethodPut, path: path(client+"/rooms", to.ChannelID, "typing", me),
		body: map[string]any{"typing": true, "timeout": 5000}}, nil)
}

// React puts an emoji under a message. The same one again changes nothing: the homeserver
// refuses it.
func (c *Connector) React(ctx context.Context, to message.Address, messageID, emoji string) error {
	_, err := c.put(ctx, to.ChannelID, "m.reaction", once("reaction"),
		map[string]any{"m.relates_to": map[string]any{"rel_type": "m.annotation", "event_id": messageID, "key": emoji}})
	if is(err, "M_DUPLICATE_ANNOTATION") {
		return nil
	}

	return err
}
