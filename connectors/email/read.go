package email

import (
	"bytes"
	"cmp"
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

const (
	// maxText bounds the text of a mail, in bytes; what is beyond it is an attachment in
	// all but name.
	maxText = 512 << 10
	// maxParts and maxDepth bound what is read of a mail: a few bytes make a part, and what is inside of others is read
	// through each of them.
	maxParts = 1000
	maxDepth = 20
)

var (
	// errIgnored is why a mail is not passed on.
	errIgnored = errors.New("not sent by a person")
	errParts   = errors.New("too many parts")
)

// read makes a post of a mail. uid names it where it has no Message-ID.
func (c *Connector) read(raw []byte, uid string) (chat.Post, error) {
	e, err := message.Read(bytes.NewReader(raw))
	if err != nil && !message.IsUnknownCharset(err) && !message.IsUnknownEncoding(err) { // else it is read as it is
		return chat.Post{}, fmt.Errorf("read mail: %w", err)
	}
	h := mail.Header{Header: e.Header}
	from, err := h.AddressList("From")
	if err != nil || len(from) != 1 {
		return chat.Post{}, fmt.Errorf("%w: %d addresses in From", errIgnored, len(from))
	}

	address := strings.ToLower(from[0].Address)
	switch {
	case automatic(h):
		return chat.Post{}, fmt.Errorf("%w: sent by a program", errIgnored)
	case address == strings.ToLower(c.o.Address):
		return chat.Post{}, fmt.Errorf("%w: our own", errIgnored)
	case !c.o.TrustFrom && !vouched(h, c.o.Authserv, address):
		return chat.Post{}, fmt.Errorf("%w: %s does not vouch for %s", errIgnored, c.o.Authserv, address)
	}

	p := chat.Post{Sender: from[0].Name, From: engine.Address{ChannelID: address, UserID: address}}
	if p.Sender == "" {
		p.Sender = address
	}
	c.thread(&p, h, uid)
	plain, markup, whole := parts(e, &p)
	if p.Text = unquoted(string(plain)); len(bytes.TrimSpace(plain)) == 0 {
		p.Text = unquoted(textOf(string(markup)))
	}
	if !whole {
		p.Text = strings.TrimSpace(p.Text + "\n[a part of this mail could not be read]")
	}
	if subject, _ := h.Subject(); p.ReplyTo == "" && subject != "" && !strings.HasPrefix(p.Text, "/") {
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

// parts reads the texts of a mail and puts its files into the post. A part in a charset or an
// encoding that is not known is read as it is; of one that breaks off, a text is kept as far as it
// goes. whole is false if something is missing.
func parts(e *message.Entity, p *chat.Post) (plain, markup []byte, whole bool) {
	whole = true
	n := 0
	err := e.Walk(func(path []int, part *message.Entity, _ error) error {
		if n++; n > maxParts || len(path) > maxDepth {
			return errParts
		}
		media, params, _ := part.Header.ContentType()
		if strings.HasPrefix(media, "multipart/") {
			return nil
		}
		body, err := io.ReadAll(io.LimitReader(part.Body, maxMail))
		whole = whole && err == nil
		disposition, _, _ := part.Header.ContentDisposition()
		inline := disposition == "inline" || disposition != "attachment" && strings.HasPrefix(media, "text/")
		switch {
		case inline && media == "text/plain" && len(plain)+len(body) <= maxText:
			plain = joined(plain, body)
		case inline && media == "text/html" && len(markup)+len(body) <= maxText:
			markup = joined(markup, body)
		case err == nil:
			h := mail.AttachmentHeader{Header: part.Header}
			name, _ := h.Filename()
			if inline {
				name = cmp.Or(params["name"], "part-"+strings.ReplaceAll(media, "/", "."))
			}
			p.Files = append(p.Files, chat.File{Name: cmp.Or(name, "attachment"), Size: int64(len(body)),
				Open: func(context.Context) (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(body)), nil }})
		}

		return nil
	})

	return plain, markup, whole && err == nil
}

// joined is a text with another part of it below.
func joined(text, more []byte) []byte {
	if len(text) > 0 && !bytes.HasSuffix(text, []byte("\n")) {
		text = append(text, '\n')
	}
	return append(text, more...)
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
	// As one expression with alternatives, they would look for the end of each of many that have none.
	hidden   = lazyregexp.New(`(?is)<(script|style|head|title)\b.*?</(script|style|head|title)\s*>`)
	comments = lazyregexp.New(`(?s)<!--.*?-->`)

	breaks = lazyregexp.New(`(?i)<(br|/p|/div|/tr|/h[1-6]|/li|/blockquote)\b[^>]*>`)
	tags   = lazyregexp.New(`<[^>]*>`)
	spaces = lazyregexp.New(`\n[ \t]*\n\s*`)
)

// textOf is the text of an HTML mail, roughly: it is read by a model, never shown.
func textOf(markup string) string {
	text := comments.ReplaceAllString(hidden.ReplaceAllString(markup, ""), "")
	text = tags.ReplaceAllString(breaks.ReplaceAllString(text, "\n"), "")
	return strings.TrimSpace(spaces.ReplaceAllString(html.UnescapeString(text), "\n\n"))
}
