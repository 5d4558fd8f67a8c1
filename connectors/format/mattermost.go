package format

import (
	"strings"

	"daycare/engine/lazyregexp"
)

var (
	// everyone are the words that notify everyone in a channel.
	everyone = lazyregexp.New(`(?i)@(all|channel|here)\b`)
	// picture is an image, which a reader's client or the server would fetch.
	picture = lazyregexp.New(`!+\[`)
)

// Mattermost is Markdown as Mattermost shows it: nearly all of it is Mattermost's own. Words
// that notify everyone have a space without width in them, and images are links.
func Mattermost(source string) string {
	text := strings.ToValidUTF8(source, "\uFFFD")
	text = everyone.ReplaceAllString(text, "@\u200b$1")
	text = picture.ReplaceAllString(text, "[")
	if strings.TrimSpace(text) == "" {
		return ""
	}

	return strings.TrimRight(text, " \n")
}
