package chat

import "testing"

func TestEmojiName(t *testing.T) {
	for emoji, want := range map[string]string{"👍": "+1", "❤\uFE0F": "heart", ":eyes:": "eyes", "thumbs up": ""} {
		if name, ok := EmojiName(emoji); ok != (want != "") || ok && name != want {
			t.Errorf("%s is called %q (%v), want %q", emoji, name, ok, want)
		}
	}
}
