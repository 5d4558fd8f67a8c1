package whatsapp

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	"daycare/connectors/chat"
	"daycare/connectors/format"
	"daycare/engine/message"
)

// Limits of messages, in characters and bytes.
const (
	maxBodyText = 1024 // above buttons
	maxButtons  = 3
	maxButton   = 20
	maxRow      = 24
	maxRowText  = 72
	maxImage    = 5 << 20
	maxDocument = 100 << 20
)

// afterAsking is how often an answer is tried that waits for the user to write.
const afterAsking = time.Minute

const windowText = "WhatsApp lets a business write to a person only within 24 hours of their last message (131047)"

// A sender makes the calls that send messages.
type sender struct {
	api      *api
	state    *state
	template Template
	settled  atomic.Int64 // cards
	broken   chan error   // the token is not accepted any more
}

// body are the parameters of a message.
type body map[string]any

func to(user, kind string, content any) body {
	return body{"messaging_product": "whatsapp", "recipient_type": "individual", "to": user, "type": kind, kind: content}
}

func textTo(user, shown, reply string) body {
	b := to(user, "text", map[string]any{"body": shown, "preview_url": false})
	if reply != "" {
		b["context"] = map[string]string{"message_id": reply}
	}

	return b
}

// Send delivers one part: its text, then its files. Meta knows no idempotency key, but says
// of each message that it was sent: what is known to be, is not sent again.
func (c *Connector) Send(ctx context.Context, out message.Outgoing) (remoteID string, err error) {
	if err := c.out.permitted(ctx, out.To.ChannelID); err != nil {
		return "", err
	}
	steps := []func() error{func() (err error) {
		reply := ""
		if out.Part == 0 && strings.HasPrefix(out.ReplyTo, "wamid.") {
			reply = out.ReplyTo
		}
		if shown := format.WhatsApp(out.Text); shown != "" {
			remoteID, err = c.out.once(ctx, out.Key()+"/0", out.Retry, textTo(out.To.ChannelID, shown, reply))
		}
		return err
	}}
	for i, f := range out.Files {
		steps = append(steps, func() error {
			key := fmt.Sprint(out.Key(), "/", i+1)
			if out.Retry && c.state.sent(key) != "" {
				return nil
			}
			b, err := c.out.file(ctx, out.To.ChannelID, f)
			if err == nil {
				_, err = c.out.once(ctx, key, out.Retry, b)
			}
			return err
		})
	}

	if err := c.sent.Send(out.Key(), steps); err != nil {
		return "", c.out.judge(ctx, out.To.ChannelID, err)
	}

	return remoteID, nil
}

// permitted refuses what Meta would refuse later, without saying so at once.
func (s *sender) permitted(ctx context.Context, user string) error {
	if s.state.open(user) {
		return nil
	}
	return s.closed(ctx, user, errors.New(windowText))
}

// closed asks the user to write, with the template, so that the answer can follow.
func (s *sender) closed(ctx context.Context, user string, cause error) error {
	if s.template.Name == "" {
		return &message.NotSent{Final: true, Err: fmt.Errorf("%w\n%s", cause, s.advice())}
	}
	if s.state.asks(user) {
		language := s.template.Language
		if language == "" {
			language = "en"
		}
		_, err := s.post(ctx, to(user, "template", map[string]any{"name": s.template.Name,
			"language": map[string]string{"code": language}}))
		if code(err, noTemplate, notYetApproved) {
			return &message.NotSent{Final: true,
				Err: fmt.Errorf("%w\ncheck template in the settings: its name, its language %q, and that "+
					"Meta has approved it", err, language)}
		}
		if err != nil {
			return s.judge(ctx, "", err)
		}
		s.state.asked(user)
	}

	return &message.NotSent{After: afterAsking, Err: fmt.Errorf("%w; the template %s asked them to write", cause, s.template.Name)}
}

// advice is what to do about a user who did not write for long.
func (s *sender) advice() string {
	if s.template.Name != "" {
		return "the template " + s.template.Name + " asks them to write"
	}
	return "set template in the settings, and it asks them to write: docs/connectors/whatsapp.md"
}

// once sends a message under a key, unless Meta said that it was sent.
func (s *sender) once(ctx context.Context, key string, retry bool, b body) (string, error) {
	if retry {
		if id := s.state.sent(key); id != "" {
			return id, nil
		}
	}
	b["biz_opaque_callback_data"] = key
	return s.post(ctx, b)
}

func (s *sender) post(ctx context.Context, b body) (string, error) {
	var done struct {
		Messages []struct {
			ID string `json:"id"`
		} `json:"messages"`
	}
	err := s.api.call(ctx, "send a message", http.MethodPost, "/"+s.api.number+"/messages", b, &done)
	if code(err, badToken) {
		select {
		case s.broken <- err:
		default:
		}
	}
	if err != nil {
		return "", err
	}
	if len(done.Messages) == 0 || done.Messages[0].ID == "" {
		return "", errors.New("meta accepted a message and did not keep it")
	}

	return done.Messages[0].ID, nil
}

// file uploads a file and is the message that shows it.
func (s *sender) file(ctx context.Context, user string, f message.File) (body, error) {
	if f.Size > maxDocument {
		return nil, &message.NotSent{Final: true, Err: fmt.Errorf("file %s is larger than 100 MB, the most that WhatsApp accepts",
			f.Name)}
	}
	id, err := s.api.upload(ctx, f)
	if err != nil {
		return nil, err
	}
	if (f.MimeType == "image/jpeg" || f.MimeType == "image/png") && f.Size <= maxImage {
		return to(user, "image", map[string]string{"id": id}), nil
	}

	return to(user, "document", map[string]string{"id": id, "filename": f.Name}), nil
}

// judge says what the engine is to do about an error.
func (s *sender) judge(ctx context.Context, user string, err error) error {
	var done *message.NotSent
	var no *apiError
	if errors.As(err, &done) || !errors.As(err, &no) {
		return err
	}

	switch {
	case no.Code == windowClosed && user != "":
		s.state.close(user)
		return s.closed(ctx, user, errors.New(windowText))
	case no.Status == http.StatusTooManyRequests, code(err, appLimit, businessLimit, numberLimit, pairLimit, spamLimit):
		return &message.NotSent{After: no.RetryAfter, Err: err}
	case code(err, undeliverable, notInTestList, unknownType, badParameter, badMessage):
		return &message.NotSent{Final: true, Err: err}
	}

	return err // the token may be mended within the day; Meta is not well
}

// Say sends a notice.
func (c *Connector) Say(ctx context.Context, where message.Address, reply, text string) error {
	if !strings.HasPrefix(reply, "wamid.") {
		reply = ""
	}
	for _, part := range c.Split(text) {
		if shown := format.WhatsApp(part); shown != "" {
			if _, err := c.out.post(ctx, textTo(where.ChannelID, shown, reply)); err != nil {
				return err
			}
		}
	}

	return nil
}

// React puts an emoji under a message, in the place of the one before.
func (c *Connector) React(ctx context.Context, where message.Address, messageID, emoji string) error {
	_, err := c.out.post(ctx, to(where.ChannelID, "reaction", map[string]string{"message_id": messageID, "emoji": emoji}))
	return err
}

// seen marks a message as read; typing shows that an answer is written, for 25 seconds.
func (s *sender) seen(ctx context.Context, id string, typing bool) error {
	b := body{"messaging_product": "whatsapp", "status": "read", "message_id": id}
	if typing {
		b["typing_indicator"] = map[string]string{"type": "text"}
	}

	return s.api.call(ctx, "mark as read", http.MethodPost, "/"+s.api.number+"/messages", b, nil)
}

// Typing shows that an answer is written.
func (c *Connector) Typing(ctx context.Context, where message.Address) error {
	id := c.state.message(where.ChannelID)
	if id == "" {
		return nil // WhatsApp shows it under a message of theirs
	}

	return c.out.seen(ctx, id, true)
}

// Card shows a question with buttons under it, after its text where that is long.
func (c *Connector) Card(ctx context.Context, where message.Address, key, text string, choices []chat.Choice) (string, error) {
	if err := c.out.permitted(ctx, where.ChannelID); err != nil {
		return "", err
	}
	shown := format.WhatsApp(text)
	if len([]rune(shown)) > maxBodyText {
		if err := c.Say(ctx, where, "", text); err != nil {
			return "", err
		}
		shown = "Your answer to the request above:"
	}

	b := to(where.ChannelID, "interactive", interactive(shown, choices))
	if key == "" {
		return c.out.post(ctx, b)
	}

	return c.out.once(ctx, key, true, b)
}

// interactive is a text with buttons, or with a list where there are too many.
func interactive(shown string, choices []chat.Choice) map[string]any {
	var buttons, rows []map[string]any
	short := len(choices) <= maxButtons
	for _, k := range choices {
		short = short && len([]rune(k.Label)) <= maxButton
		buttons = append(buttons, map[string]any{"type": "reply", "reply": map[string]string{"id": k.Data, "title": k.Label}})
		rows = append(rows, map[string]any{"id": k.Data, "title": clip(k.Label, maxRow), "description": clip(k.Label, maxRowText)})
	}
	kind, action := "button", map[string]any{"buttons": buttons}
	if !short {
		kind, action = "list", map[string]any{"button": "Answer", "sections": []map[string]any{{"rows": rows}}}
	}

	return map[string]any{"type": kind, "body": map[string]string{"text": shown}, "action": action}
}

func clip(text string, most int) string {
	if r := []rune(text); len(r) > most {
		return string(r[:most-1]) + "…"
	}
	return text
}

// Settle answers a card with its outcome: WhatsApp does not change what was sent.
func (c *Connector) Settle(ctx context.Context, where message.Address, remoteID, text string) error {
	c.out.settled.Add(1)
	return c.Say(ctx, where, remoteID, text[strings.LastIndex(text, "\n")+1:])
}

// Direct is the chat with a user, which has the user's number.
func (c *Connector) Direct(userID string) (message.Address, bool) {
	return message.Address{ChannelID: userID, UserID: userID}, true
}
