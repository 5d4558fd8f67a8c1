package mattermost

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"daycare/connectors/chat"
	"daycare/engine/message"
)

// A post is a message.
type post struct {
	ID      string `json:"id,omitempty"`
	Channel string `json:"channel_id,omitempty"`
	User    string `json:"user_id,omitempty"`
	Root    string `json:"root_id,omitempty"` // of a reply: the first message of its thread
	Text    string `json:"message"`
	Type    string `json:"type,omitempty"` // "": a user wrote it
	stamps
	Pending string         `json:"pending_post_id,omitempty"`
	Props   map[string]any `json:"props,omitempty"`
	FileIDs []string       `json:"file_ids,omitempty"`
	Meta    *metadata      `json:"metadata,omitempty"`
}

// The stamps are when something happened to a post, in ms since 1970; 0: it did not.
type stamps struct {
	Created int64 `json:"create_at,omitempty"`
	Edited  int64 `json:"edit_at,omitempty"`
	Deleted int64 `json:"delete_at,omitempty"`
}

type metadata struct {
	Files []file `json:"files"`
}

type file struct {
	ID   string `json:"id"`
	Name string `json:"name"`
	Size int64  `json:"size"`
}

// A reaction is an emoji under a post.
type reaction struct {
	User    string `json:"user_id"`
	Post    string `json:"post_id"`
	Emoji   string `json:"emoji_name"`
	Channel string `json:"channel_id"`
	Created int64  `json:"create_at"`
}

// take takes one event.
func (c *Connector) take(ctx context.Context, deliver message.Deliver, a chat.Arrival[event]) error {
	p, ok, err := c.in.read(ctx, a.What)
	if err != nil || !ok {
		return err
	}

	return c.desk.Take(ctx, deliver, p)
}

// A reader makes posts of what the server tells.
type reader struct {
	*rooms
	o Options
}

// read makes a chat's post of what the server tells; false: there is nothing in it for an
// agent.
func (r reader) read(ctx context.Context, e event) (p chat.Post, ok bool, err error) {
	writer := e.post.User
	if e.Event == "reaction_added" {
		writer = e.reaction.User
	}
	if !slices.Contains(r.o.Allow, writer) && e.Event != "posted" || writer == r.self().ID || writer == "" {
		return p, false, nil
	}
	deleted := e.Event == "post_deleted"
	if e.post.Type != "" || e.post.Deleted > 0 && !deleted || e.post.Props["from_bot"] == "true" || e.post.Props["from_webhook"] == "true" {
		return p, false, nil // a program's, or that someone joined
	}
	direct, err := r.direct(ctx, e.post.Channel)
	if status(err, http.StatusForbidden, http.StatusNotFound) {
		return p, false, nil // the bot was removed from it
	}
	if err != nil {
		return p, false, err
	}

	p = chat.Post{Sender: strings.TrimPrefix(e.Data.Sender, "@"), Group: !direct, From: message.Address{ChannelID: e.post.Channel,
		UserID: writer}}
	switch e.Event {
	case "reaction_added":
		p.Key, p.Note = fmt.Sprint("reaction/", e.reaction.Post, "/", e.reaction.User, "/", e.reaction.Emoji, "/", e.reaction.Created),
			true
		p.Reaction = chat.Reaction{To: e.reaction.Post, Emoji: ":" + e.reaction.Emoji + ":"}
		p.Text = fmt.Sprintf("The person reacted to message %s with :%s:", e.reaction.Post, e.reaction.Emoji)
		return p, true, nil
	case "post_edited":
		if e.post.Edited == 0 {
			return p, false, nil // the server added a preview
		}
		p.Key, p.Amends = fmt.Sprint(e.post.ID, "/", e.post.Edited), e.post.ID
	case "post_deleted":
		p.Key, p.Amended = e.post.ID+"/deleted", chat.Amended{Amends: e.post.ID, Deleted: true}
	default:
		p.Key = e.post.ID
	}

	p.MessageID, p.From.ThreadID = e.post.ID, e.post.Root
	if p.Group && p.From.ThreadID == "" {
		p.From.ThreadID = e.post.ID // a channel is answered in a thread
	}
	p.Text, p.Addressed = mentioned(e.post.Text, r.self().Name)
	p.Addressed = p.Addressed || r.o.Groups == "always"
	if p.Deleted {
		p.Text = ""
	}
	if p.Amends != "" {
		return p, true, nil
	}
	p.Files, err = r.files(ctx, e.post)

	return p, true, err
}

// mentioned looks for the bot's name in a text, and takes it off its beginning.
func mentioned(text, name string) (rest string, forUs bool) {
	text, mark := strings.TrimSpace(text), "@"+name
	lower := strings.ToLower(text)
	for at := 0; name != ""; {
		i := strings.Index(lower[at:], mark)
		if i < 0 {
			break
		}
		end := at + i + len(mark)
		if !inName(lower, at+i-1) && !inName(strings.TrimRight(lower, ".-_"), end) {
			if at+i == 0 {
				return strings.TrimLeft(text[min(end, len(text)):], " ,:\n"), true
			}
			return text, true
		}
		at = end
	}

	return text, false
}

// inName reports whether the byte at i belongs to a name.
func inName(text string, i int) bool {
	return i >= 0 && i < len(text) && (text[i] >= 'a' && text[i] <= 'z' || text[i] >= '0' && text[i] <= '9' ||
		strings.ContainsRune("-_.", rune(text[i])))
}

// files are the attachments of a post, not yet downloaded.
func (r reader) files(ctx context.Context, p post) (all []chat.File, err error) {
	var known []file
	if p.Meta != nil {
		known = p.Meta.Files
	}
	if len(known) == 0 && len(p.FileIDs) > 0 {
		err = r.api.call(ctx, "look up files", http.MethodGet, "/posts/"+p.ID+"/files/info", nil, &known)
		if status(err, http.StatusForbidden, http.StatusNotFound) {
			return nil, nil
		}
	}
	for _, f := range known {
		all = append(all, chat.File{Name: f.Name, Size: f.Size, Open: func(ctx context.Context) (io.ReadCloser, error) {
			if !userID.MatchString(f.ID) {
				return nil, errors.New("download file: its id is not one of Mattermost's")
			}
			return r.api.Download(ctx, r.api.Base+"/api/v4/files/"+url.PathEscape(f.ID), r.api.token)
		}})
	}

	return all, err
}
