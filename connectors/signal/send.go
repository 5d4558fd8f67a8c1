package signal

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"daycare/connectors/chat"
	"daycare/connectors/format"
	"daycare/engine/message"
)

// A sent is what the daemon says of a message that it sent.
type sent struct {
	Timestamp int64 `json:"timestamp"`
	Results   []struct {
		Type       string `json:"type"`
		RetryAfter int64  `json:"retryAfterSeconds"`
	} `json:"results"`
}

// Send delivers one part. Signal knows no idempotency key for bots: a part whose
// answer is lost may come twice.
func (c *Connector) Send(ctx context.Context, out message.Outgoing) (remoteID string, err error) {
	params := map[string]any{}
	if author, stamp, ok := strings.Cut(out.ReplyTo, "/"); ok && out.Part == 0 {
		if n, err := strconv.ParseInt(stamp, 10, 64); err == nil && author != "" {
			params["quoteAuthor"], params["quoteTimestamp"] = author, n
		}
	}

	var files []string
	for _, f := range out.Files {
		uri, err := dataURI(f)
		if err != nil {
			return "", &message.NotSent{Final: true, Err: err}
		}
		files = append(files, uri)
	}

	if len(files) > 0 {
		params["attachments"] = files
	}

	return c.say(ctx, out.To, out.Text, params)
}

// Say sends a notice.
func (c *Connector) Say(ctx context.Context, to message.Address, _, text string) error {
	_, err := c.Post(ctx, to, "", "", text)
	return err
}

// A pen writes messages that can be changed later, and long answers as files.
type pen struct {
	*Connector
	chat.Attaching
	chat.Named
}

// Post says something that can be reacted to. Signal knows no keys.
func (c pen) Post(ctx context.Context, to message.Address, _, _, text string) (string, error) {
	return c.say(ctx, to, text, map[string]any{})
}

func (c *Connector) say(ctx context.Context, to message.Address, text string, params map[string]any) (string, error) {
	shown, styles := format.Signal(text)
	if shown == "" && params["attachments"] == nil {
		return "", nil // nothing that could be shown
	}
	params["message"] = shown
	var ranges []string
	for _, s := range styles {
		ranges = append(ranges, fmt.Sprintf("%d:%d:%s", s.Start, s.Length, s.Name))
	}

	if len(ranges) > 0 {
		params["textStyle"] = ranges
	}
	addressee(params, to.ChannelID)
	var done sent
	if err := c.call(ctx, "send", params, &done); err != nil {
		return "", judge(err)
	}
	if err := done.classify(nil); err != nil {
		return "", err
	}
	if done.Timestamp == 0 && len(done.Results) == 0 {
		return "", errors.New("signal-cli accepted a message and did not send it")
	}

	return strconv.FormatInt(done.Timestamp, 10), nil
}

// addressee is whom a call is about.
func addressee(params map[string]any, channel string) {
	if group, ok := strings.CutPrefix(channel, groupPrefix); ok {
		params["groupId"] = group
		return
	}
	params["recipient"] = channel
}

// dataURI carries a file inside the call: the daemon may not see our files.
func dataURI(f message.File) (string, error) {
	content, err := os.ReadFile(f.Path)
	if err != nil {
		return "", fmt.Errorf("read file %s to send: %w", f.Name, err)
	}
	name := strings.Map(func(r rune) rune {
		if strings.ContainsRune(`;,="'`, r) || r < ' ' {
			return '_'
		}
		return r
	}, f.Name)

	return "data:" + f.MimeType + ";filename=" + name + ";base64," + base64.StdEncoding.EncodeToString(content), nil
}

// classify says what the engine is to do about an error of the daemon.
func judge(err error) error {
	var no *rpcError
	if !errors.As(err, &no) {
		return err
	}
	var detail struct {
		Response sent `json:"response"`
	}
	if json.Unmarshal(no.Data, &detail) == nil {
		if told := detail.Response.classify(err); told != nil {
			return told
		}
	}

	switch {
	case no.Code == rateLimit:
		return &message.NotSent{Err: err}
	case no.Code == userError && !strings.Contains(strings.ToLower(no.Message), "network"):
		return &message.NotSent{Final: true, Err: err} // no such group, not a member, not a number
	}

	return err
}

// classify reads the result of each recipient; nil: at least one has it, or nothing
// is known. cause is the error that it came with, nil for none.
func (s sent) classify(cause error) error {
	if len(s.Results) == 0 {
		return nil
	}
	r := s.Results[0]

	for _, each := range s.Results {
		if each.Type == "SUCCESS" {
			return nil
		}
	}

	if cause == nil {
		cause = fmt.Errorf("signal-cli send: %s", r.Type)
	}

	switch r.Type {
	case "UNREGISTERED_FAILURE":
		return &message.NotSent{Final: true, Err: cause}
	case "RATE_LIMIT_FAILURE":
		return &message.NotSent{After: time.Duration(r.RetryAfter) * time.Second, Err: cause}
	}

	return cause // a network that is down, an identity that a user has to trust
}

// React puts an emoji under a message, in the place of the one before.
func (c *Connector) React(ctx context.Context, to message.Address, messageID, emoji string) error {
	author, stamp, _ := strings.Cut(messageID, "/")
	n, err := strconv.ParseInt(stamp, 10, 64)
	if err != nil || author == "" {
		return fmt.Errorf("%q is not a Signal message id (its sender and a number): leave it out for the "+
			"message that you answer", messageID)
	}

	params := map[string]any{"emoji": emoji, "targetAuthor": author, "targetTimestamp": n}
	addressee(params, to.ChannelID)

	return c.call(ctx, "sendReaction", params, nil)
}

// Typing shows "typing" for some seconds.
func (c *Connector) Typing(ctx context.Context, to message.Address) error {
	params := map[string]any{}
	addressee(params, to.ChannelID)
	return c.call(ctx, "sendTyping", params, nil)
}

// Direct is the chat with a user, which has the user's id.
func (c *Connector) Direct(userID string) (message.Address, bool) {
	return message.Address{ChannelID: userID, UserID: userID}, true
}
