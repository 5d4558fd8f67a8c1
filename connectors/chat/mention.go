package chat

import "strings"

// Mentioned looks for our name in what is said in a room without marks for mentions: at the
// beginning, which is taken off, so that a command behind it is one, and anywhere as a word.
func Mentioned(text, name string) (rest string, forUs bool) {
	if name == "" {
		return text, false
	}
	head := strings.TrimPrefix(text, "@")
	if len(head) > len(name) && strings.EqualFold(head[:len(name)], name) && strings.ContainsRune(":, ", rune(head[len(name)])) {
		return strings.TrimLeft(head[len(name):], ":, "), true
	}
	for word := range strings.FieldsFuncSeq(text, func(r rune) bool { return strings.ContainsRune(" ,.:;!?()\"'\n", r) }) {
		if strings.EqualFold(strings.TrimPrefix(word, "@"), name) {
			return text, true
		}
	}

	return text, false
}
