package chat

import (
	"context"
	"errors"
	"path/filepath"
	"slices"
	"strings"

	"daycare/engine/message"
)

// A Voice is a recording that someone sent.
type Voice struct {
	From      message.Address
	MessageID string
	File      message.File
}

// ErrDeaf: nothing is set up that could read voice messages.
var ErrDeaf = errors.New("nothing reads voice messages")

// sounds are the names that recordings end with whose content does not say what they are.
var sounds = []string{".aac", ".amr", ".m4a", ".mp3", ".oga", ".ogg", ".opus", ".wav", ".weba"}

// recorded reports whether a file is a voice message: sound that comes without words.
func recorded(p Post, f message.File) bool {
	return strings.TrimSpace(p.Text) == "" &&
		(strings.HasPrefix(f.MimeType, "audio/") || slices.Contains(sounds, strings.ToLower(filepath.Ext(f.Name))))
}

// hear returns what is said in a voice message, as the agent reads it.
func (d *Desk) hear(ctx context.Context, v Voice) string {
	if d.host.Hear == nil {
		return ""
	}
	text, err := d.host.Hear(ctx, v)
	switch {
	case errors.Is(err, ErrDeaf):
		return ""
	case err != nil:
		d.log.Warn("voice message not transcribed", "user", v.From.UserID, "err", err)
		return "[the voice message could not be transcribed: " + err.Error() + "]"
	case text == "":
		return "[nothing is said in the voice message]"
	}

	return "[voice message, transcribed] " + text
}
