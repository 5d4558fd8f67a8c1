package email

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"html"
	"io"
	"strings"

	"github.com/emersion/go-message"
	_ "github.com/emersion/go-message/charset" // mails in other encodings than UTF-8
	"github.com/emersion/go-message/mail"

	"daycare/connectors/chat"
	"daycare/engine/lazyregexp"
	engine "daycare/engine/message"
)

// maxText bounds the text of a mail, in bytes; what is longer is an attachment in
// all but name.
const maxText = 512 << 10

// errIgnored is why a mail is not passed on.
var errIgnored = errors.New("not sent by a person")

// read makes a post of a mail. uid names it where it has no Message-ID.
func (c *Connector) read(raw []byte, uid string) (chat.Post, error) {
	r, err := mail.CreateReader(bytes.NewReader(raw))
	if err != nil && !message.IsUnknownCharset(err) {
		return chat.Post{}, fmt.Errorf("read mail: %w", err)
	}
	defer r.Close()
	from, err := r.Header.AddressList("From")
	if err != nil || len(from) != 1 {
		return chat.Post{}, fmt.Errorf("%w: %d addresses in From", errIgnored, len(from))
	}

	address := strings.ToLower(from[0].Address)
	switch {
	case automatic(r.Header):
		return chat.Post{}, fmt.Errorf("%w: sent by a program", errIgnored)
	case address == strings.ToLower(c.o.Address):
		return chat.Post{}, fmt.Errorf("%w: our own", errIgnored)
	case !c.o.TrustFrom && !vouched(r.Header, c.o.Authserv, address):
		return chat.Post{}, fmt.Errorf("%w: %s does not vouch for %s", errIgnored, c.o.Authserv, address)
	}

	p := chat.Post{Sender: from[0].Name, From: engine.Address{ChannelID: address, UserID: address}}
	if p.Sender == "" {
		p.Sender = address
	}
	c.thread(&p, r.Header, uid)
	plain, markup := c.parts(r, &p)
	if p.Text = unquoted(plain); strings.TrimSpace(plain) == "" {
		p.Text = unquoted(textOf(markup))
	}
	if subject, _ := r.Header.Subject(); p.ReplyTo == "" && subject != "" && !strings.HasPrefix(p.Text, "/") {
		p.Text = "Subject: " + subject + "\n\n" + p.Text
	}

	return p, nil
}

// thread fills in which mail this is and which conversation it belongs to. The
// thread carries the subject, too, because mail programs want it in the answer.
func (c *Connector) thread(p *chat.Post, h mail.Header, uid string) {
	id, _ := h.MessageID()
	p.MessageID, p.Key = id, id
	if id == "" {
		p.Key = uid
	}
	if len(p.Key) > 200 {
		sum := sha256.Sum256([]byte(p.Key))
		p.Key = hex.EncodeToString(sum[:])
	}

	root := id
	if refs, err := h.MsgIDList("In-Reply-To"); err == nil && len(refs) > 0 {
		p.ReplyTo, root = refs[0], refs[0]
	}
	if refs, err := h.MsgIDList("References"); err == nil && len(refs) > 0 {
		root = refs[0]
	}

	subject, _ := h.Subject()
	p.From.ThreadID = root + " " + strings.Join(strings.Fields(bare(subject)), " ")
}

// bare takes Re: and its kin off a subject.
func bare(subject string) string {
	for {
		head, rest, ok := strings.Cut(subject, ":")
		switch strings.ToLower(strings.TrimSpace(head)) {
		case "re", "aw", "sv", "fwd", "fw", "wg":
			if ok {
				subject = strings.TrimSpace(rest)
				continue
			}
		}
		return subject
	}
}

// parts reads the texts of a mail and puts its files into the post.
func (c *Connector) parts(r *mail.Reader, p *chat.Post) (plain, markup string) {
	for {
		part, err := r.NextPart()
		if err != nil && !message.IsUnknownCharset(err) {
			if !errors.Is(err, io.EOF) {
				plain += "\n[a part of this mail could not be read]"
			}
			return plain, markup
		}

		name, media := "", ""
		switch h := part.Header.(type) {
		case *mail.InlineHeader:
			var params map[string]string
			media, params, _ = h.ContentType()
			name = params["name"]
		case *mail.AttachmentHeader:
			media, _, _ = h.ContentType()
			if name, _ = h.Filename(); name == "" {
				name = "attachment"
			}
		}

		body, err := io.ReadAll(io.LimitReader(part.Body, maxMail))
		if err != nil {
			continue
		}
		_, inline := part.Header.(*mail.InlineHeader)
		switch {
		case inline && media == "text/plain" && len(body) <= maxText:
			plain += string(body)
		case inline && media == "text/html" && len(body) <= maxText:
			markup += string(body)
		default:
			if name == "" {
				name = "part-" + strings.ReplaceAll(media, "/", ".")
			}
			p.Files = append(p.Files, chat.File{Name: name, Size: int64(len(body)), Open: func(context.Context) (io.ReadCloser, error) {
				return io.NopCloser(bytes.NewReader(body)), nil
			}})
		}
	}
}

// unquoted takes the quotation off the end of an answer: the agent knows what it
// said.
func unquoted(text string) string {
	lines := strings.Split(strings.ReplaceAll(text, "\r\n", "\n"), "\n")
	end := len(lines)
	for end > 0 && (strings.HasPrefix(lines[end-1], ">") || strings.TrimSpace(lines[end-1]) == "") {
		end--
	}

	quoted := false
	for _, l := range lines[end:] {
		quoted = quoted || strings.HasPrefix(l, ">")
	}

	if quoted && end > 0 && strings.HasSuffix(strings.TrimSpace(lines[end-1]), ":") {
		end-- // "On Friday Ada wrote:", perhaps on two lines
		if end > 0 && strings.HasPrefix(lines[end-1], "On ") {
			end--
		}
	}

	return strings.TrimSpace(strings.Join(lines[:end], "\n"))
}

var (
	hidden = lazyregexp.New(`(?is)<(script|style|head|title)\b.*?</(script|style|head|title)\s*>|<!--.*?-->`)
	breaks = lazyregexp.New(`(?i)<(br|/p|/div|/tr|/h[1-6]|/li|/blockquote)\b[^>]*>`)
	tags   = lazyregexp.New(`<[^>]*>`)
	spaces = lazyregexp.New(`\n[ \t]*\n\s*`)
)

// textOf is the text of an HTML mail, roughly: it is read by a model, never shown.
func textOf(markup string) string {
	text := hidden.ReplaceAllString(markup, "")
	text = tags.ReplaceAllString(breaks.ReplaceAllString(text, "\n"), "")
	return strings.TrimSpace(spaces.ReplaceAllString(html.UnescapeString(text), "\n\n"))
}
