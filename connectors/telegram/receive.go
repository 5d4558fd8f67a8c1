package telegram

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"path"
	"slices"
	"strconv"
	"strings"
	"sync"
	"unicode/utf16"

	"daycare/connectors/chat"
	"daycare/engine/message"
)

// read makes a post of an update; false: there is nothing in it for an agent.
// A reader makes posts of updates.
type reader struct {
	api *api

	mu     sync.Mutex
	me     user
	albums []string // the newest that were for us in groups, as chat/album
}

// maxAlbums bounds how many albums are remembered.
const maxAlbums = 32

// album reports whether a message of an album is for us: it is, or one before it was. Each picture
// is a message, and only one of them has the words.
func (r *reader) album(chat int64, id string, forUs bool) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	at := decimal(chat) + "/" + id
	switch known := slices.Contains(r.albums, at); {
	case known || !forUs:
		return known
	case len(r.albums) == maxAlbums:
		r.albums = slices.Delete(r.albums, 0, 1)
	}
	r.albums = append(r.albums, at)

	return true
}

func (r *reader) read(u update) (chat.Post, bool) {
	key := strconv.FormatInt(u.ID, 10)
	switch {
	case u.Message != nil:
		return r.message(key, u.Message)
	case u.Edited != nil:
		p, ok := r.message(key, u.Edited)
		p.Amends, p.Files = p.MessageID, nil
		return p, ok
	case u.Reaction != nil && u.Reaction.User != nil:
		return r.reacted(key, u.Reaction)
	}

	return chat.Post{}, false
}

func (r *reader) message(key string, m *incoming) (chat.Post, bool) {
	if m.From == nil || m.Chat.Type == "channel" {
		return chat.Post{}, false // nobody's, or everybody's
	}
	p := chat.Post{Key: key, MessageID: decimal(m.ID), Sender: name(m.From), Group: m.Chat.Type != "private",
		From: message.Address{ChannelID: decimal(m.Chat.ID), UserID: decimal(m.From.ID)}}
	if m.InTopic {
		p.From.ThreadID = decimal(m.Thread)
	}

	text, entities := m.Text, m.Entities
	if text == "" {
		text, entities = m.Caption, m.InCaps
	}
	p.Text, p.Addressed = r.addressed(text, entities)
	if to := m.ReplyTo; to != nil && !(m.InTopic && to.ID == m.Thread) { // a topic's first message is no quotation
		p.ReplyTo = decimal(to.ID)
		if p.Quote = to.Text; p.Quote == "" {
			p.Quote = to.Caption
		}
		p.Addressed = p.Addressed || to.From != nil && to.From.ID == r.self().ID
	}
	if m.Album != "" {
		p.Addressed = r.album(m.Chat.ID, m.Album, p.Addressed)
	}
	if from := forwarded(m.Forward); from != "" {
		p.Text = "[forwarded from " + from + "]\n" + p.Text
	}
	if more := m.described(); more != "" {
		p.Text = strings.TrimSpace(p.Text + "\n" + more)
	}

	p.Files = r.files(m.media)
	return p, true
}

func (r *reader) self() user {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.me
}

// addressed looks for the bot's name in a text and takes it off its beginning and
// off commands (/stop@bot). A command for another bot is not for us.
func (r *reader) addressed(text string, entities []entity) (rest string, forUs bool) {
	me := r.self()
	units := utf16.Encode([]rune(text))
	for _, e := range entities {
		if e.Offset < 0 || e.Length < 0 || e.Offset+e.Length > len(units) {
			continue
		}
		said := string(utf16.Decode(units[e.Offset : e.Offset+e.Length]))
		switch e.Type {
		case "mention":
			forUs = forUs || strings.EqualFold(said, "@"+me.Username)
		case "text_mention":
			forUs = forUs || e.User != nil && e.User.ID == me.ID
		case "bot_command":
			if e.Offset != 0 {
				continue
			}
			command, bot, named := strings.Cut(said, "@")
			if !named || strings.EqualFold(bot, me.Username) {
				return command + string(utf16.Decode(units[e.Length:])), true
			}
			return text, false
		}
	}

	if head := "@" + me.Username; forUs && len(text) > len(head) && strings.EqualFold(text[:len(head)], head) {
		text = strings.TrimLeft(text[len(head):], " ,:")
	}

	return text, forUs
}

func (r *reader) reacted(key string, change *reaction) (chat.Post, bool) {
	var emoji []string
	for _, s := range change.New {
		if s.Emoji != "" {
			emoji = append(emoji, s.Emoji)
		}
	}

	p := chat.Post{Key: key, Note: true, Sender: name(change.User), Group: change.Chat.Type != "private",
		From: message.Address{ChannelID: decimal(change.Chat.ID), UserID: decimal(change.User.ID)}}
	p.Text = fmt.Sprintf("The person reacted to message %d with %s", change.ID, strings.Join(emoji, " "))
	if len(emoji) > 0 {
		p.Reaction = chat.Reaction{To: decimal(change.ID), Emoji: emoji[len(emoji)-1]}
	}
	if len(emoji) == 0 {
		p.Text = fmt.Sprintf("The person took their reaction off message %d", change.ID)
	}

	return p, true
}

func decimal(n int64) string { return strconv.FormatInt(n, 10) }

func name(u *user) string {
	full := strings.TrimSpace(u.FirstName + " " + u.LastName)
	if full == "" {
		full = u.Username
	}

	return full
}

func forwarded(o *origin) string {
	switch {
	case o == nil:
		return ""
	case o.Sender != nil:
		return name(o.Sender)
	case o.SenderName != "":
		return o.SenderName
	case o.Chat != nil:
		return o.Chat.Title
	}

	return "someone"
}

// described returns what a message holds beside text and files, in words; "" for nothing.
func (m media) described() string {
	switch {
	case m.Venue != nil && m.Location != nil:
		return fmt.Sprintf("[place: %s, %s (%.6f, %.6f)]", m.Venue.Title, m.Venue.Address, m.Location.Latitude, m.Location.Longitude)
	case m.Location != nil:
		return fmt.Sprintf("[location: %.6f, %.6f]", m.Location.Latitude, m.Location.Longitude)
	case m.Contact != nil:
		return fmt.Sprintf("[contact: %s %s, %s]", m.Contact.FirstName, m.Contact.LastName, m.Contact.Phone)
	case m.Poll != nil:
		return fmt.Sprintf("[poll: %s]", m.Poll.Question)
	case m.Sticker != nil && m.Sticker.Emoji != "":
		return m.Sticker.Emoji
	}

	return ""
}

// files are the attachments of a message, not yet downloaded.
func (r *reader) files(m media) []chat.File {
	var all []chat.File
	add := func(f *file, fallback string) {
		if f == nil {
			return
		}
		name := f.Name
		if name == "" {
			name = fallback
		}
		all = append(all, chat.File{Name: name, Size: f.Size,
			Open: func(ctx context.Context) (io.ReadCloser, error) { return r.open(ctx, f.ID) }})
	}
	if n := len(m.Photo); n > 0 {
		add(&m.Photo[n-1], "photo.jpg")
	}
	if m.Animation != nil { // it comes as a document, too
		add(m.Animation, "animation.mp4")
	} else {
		add(m.Document, "document")
	}

	add(m.Voice, "voice.ogg")
	add(m.Audio, "audio.mp3")
	add(m.Video, "video.mp4")
	add(m.VideoNote, "video.mp4")
	return all
}

func (r *reader) open(ctx context.Context, id string) (io.ReadCloser, error) {
	var f file
	err := r.api.call(ctx, "getFile", map[string]string{"file_id": id}, &f)
	if is(err, http.StatusBadRequest, "too big") {
		return nil, chat.TooLarge
	}
	if err != nil {
		return nil, err
	}
	if path.Clean("/"+f.Path) != "/"+f.Path {
		return nil, fmt.Errorf("download file: telegram returned an invalid path")
	}

	return r.api.download(ctx, f.Path)
}

// pressed takes a pressed button. Telegram shows a spinner on it until it hears
// something.
func (c *Connector) pressed(ctx context.Context, q *callback) {
	from, shown := message.Address{ChannelID: decimal(q.From.ID), UserID: decimal(q.From.ID)}, ""
	if q.Message != nil {
		from.ChannelID, shown = decimal(q.Message.Chat.ID), decimal(q.Message.ID)
	}
	text := c.desk.Pressed(ctx, from, q.Data, shown)
	if err := c.api.call(ctx, "answerCallbackQuery", map[string]string{"callback_query_id": q.ID, "text": text}, nil); err != nil {
		c.log.Debug("cannot answer a pressed button", "err", err)
	}
}
