package email

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"time"

	"github.com/emersion/go-message/mail"
	"github.com/emersion/go-sasl"
	"github.com/emersion/go-smtp"

	"daycare/connectors/format"
	"daycare/engine/message"
)

// Send sends one answer as a mail. Its Message-ID follows from the promise, so
// that mail servers and programs which drop repeated mails can.
func (c *Connector) Send(ctx context.Context, out message.Outgoing) (remoteID string, err error) {
	id := out.Key() + "@" + domain(c.o.Address)
	body, err := c.compose(id, out)
	if err != nil {
		return "", &message.NotSent{Final: true, Err: err}
	}
	if err := c.post(ctx, out.To.ChannelID, body); err != nil {
		return "", judge(c.clean(err))
	}

	return id, nil
}

// Say sends a notice.
func (c *Connector) Say(ctx context.Context, to message.Address, replyTo, text string) error {
	id := fmt.Sprintf("notice.%d@%s", time.Now().UnixNano(), domain(c.o.Address))
	body, err := c.compose(id, message.Outgoing{To: to, ReplyTo: replyTo, Text: text, Parts: 1})
	if err != nil {
		return err
	}

	return c.clean(c.post(ctx, to.ChannelID, body))
}

// compose makes the mail: plain text and HTML of the same words, and the files.
func (c *Connector) compose(id string, out message.Outgoing) ([]byte, error) {
	var b bytes.Buffer
	w, err := mail.CreateWriter(&b, c.o.header(id, out))
	if err != nil {
		return nil, fmt.Errorf("compose mail: %w", err)
	}

	texts, err := w.CreateInline()
	if err != nil {
		return nil, fmt.Errorf("compose mail: %w", err)
	}

	for _, t := range []struct{ media, text string }{{"text/plain", format.Plain(out.Text)}, {"text/html", format.HTML(out.Text)}} {
		var h mail.InlineHeader
		h.SetContentType(t.media, map[string]string{"charset": "utf-8"})
		part, err := texts.CreatePart(h)
		if err == nil {
			_, err = io.WriteString(part, strings.ReplaceAll(t.text, "\n", "\r\n"))
		}
		if err == nil {
			err = part.Close()
		}
		if err != nil {
			return nil, fmt.Errorf("compose mail: %w", err)
		}
	}

	err = texts.Close()
	for _, f := range out.Files {
		if err == nil {
			err = attach(w, f)
		}
	}

	if err == nil {
		err = w.Close()
	}
	if err != nil {
		return nil, fmt.Errorf("compose mail: %w", err)
	}

	return b.Bytes(), nil
}

func (o Options) header(id string, out message.Outgoing) mail.Header {
	var h mail.Header
	h.SetDate(time.Now())
	h.SetAddressList("From", []*mail.Address{{Name: "daycare", Address: o.Address}})
	h.SetAddressList("To", []*mail.Address{{Address: out.To.ChannelID}})
	h.SetMessageID(id)
	h.Set("Auto-Submitted", "auto-replied") // no program is to answer this
	root, subject, _ := strings.Cut(out.To.ThreadID, " ")
	switch {
	case subject != "":
		h.SetSubject("Re: " + subject)
	case out.ReplyTo != "":
		h.SetSubject("Re: your mail")
	default:
		h.SetSubject("A message from your agent")
	}

	if out.ReplyTo != "" {
		h.SetMsgIDList("In-Reply-To", []string{out.ReplyTo})
	}
	var refs []string
	for _, ref := range []string{root, out.ReplyTo} {
		if ref != "" && (len(refs) == 0 || refs[0] != ref) {
			refs = append(refs, ref)
		}
	}

	if len(refs) > 0 {
		h.SetMsgIDList("References", refs)
	}

	return h
}

func attach(w *mail.Writer, f message.File) error {
	content, err := os.Open(f.Path)
	if err != nil {
		return fmt.Errorf("open file %s to send: %w", f.Name, err)
	}
	defer content.Close()
	var h mail.AttachmentHeader
	h.SetFilename(f.Name)
	h.Set("Content-Type", f.MimeType)
	part, err := w.CreateAttachment(h)
	if err != nil {
		return err
	}
	if _, err := io.Copy(part, content); err != nil {
		return err
	}

	return part.Close()
}

// dial connects to the SMTP server and logs in.
func (c *Connector) dial(ctx context.Context) (*smtp.Client, error) {
	host, port, _ := net.SplitHostPort(c.o.SMTP)
	conn, err := c.call(ctx, c.o.SMTP, port == "465")
	if err != nil {
		return nil, err
	}
	if deadline, ok := ctx.Deadline(); ok {
		_ = conn.SetDeadline(deadline)
	}

	// Ends with the connection, which a Close of the client ends.
	stop := context.AfterFunc(ctx, func() { conn.Close() })
	defer stop()
	var client *smtp.Client
	if c.o.Plaintext || port == "465" {
		client = smtp.NewClient(conn)
	} else if client, err = smtp.NewClientStartTLS(conn, &tls.Config{ServerName: host}); err != nil {
		return nil, fmt.Errorf("secure the connection to %s: %w", c.o.SMTP, err)
	}
	if ok, _ := client.Extension("AUTH"); ok || !c.o.Plaintext {
		if err := client.Auth(sasl.NewPlainClient("", c.o.User, c.password)); err != nil {
			client.Close()
			return nil, fmt.Errorf("log in to %s: %w", c.o.SMTP, c.clean(err))
		}
	}

	return client, nil
}

// post hands a mail to the SMTP server.
func (c *Connector) post(ctx context.Context, to string, body []byte) error {
	client, err := c.dial(ctx)
	if err != nil {
		return err
	}
	defer client.Close()
	defer context.AfterFunc(ctx, func() { client.Close() })()
	if err := client.SendMail(c.o.Address, []string{to}, bytes.NewReader(body)); err != nil {
		if ctx.Err() != nil {
			return fmt.Errorf("send mail: %w", ctx.Err())
		}
		return fmt.Errorf("send mail: %w", err)
	}

	_ = client.Quit() // it was taken
	return nil
}

// judge says what the engine is to do about an error: a code of 500 and above is
// permanent, except if it is about us and not about the mail.
func judge(err error) error {
	var no *smtp.SMTPError
	if !errors.As(err, &no) || no.Code < 500 {
		return err
	}

	switch no.Code {
	case 500, 501, 502, 503, 504, 530, 534, 535, 538:
		return err
	}

	return &message.NotSent{Final: true, Err: err}
}
