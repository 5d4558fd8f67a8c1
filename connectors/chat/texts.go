package chat

import (
	_ "embed"
	"encoding/json"
	"sync"
)

// table is the file of all fixed texts of chats: by the English one, by language. What an agent asks
// to be allowed is not among them: it is shown as it is.
//
//go:embed texts.json
var table []byte

// texts is the table, which is read when a connector speaks another language than English.
var texts = sync.OnceValue(func() map[string]map[string]string {
	all := map[string]map[string]string{}
	if err := json.Unmarshal(table, &all); err != nil {
		panic("texts.json: " + err.Error()) // a test reads it
	}
	return all
})

// Translated returns a fixed text in a language, "de", "zh" or "es"; as it is, if it is not in the
// table, or the language is another one. Texts for fmt have the same verbs in each language, in the
// same order.
func Translated(language, text string) string {
	if language == "" || language == "en" {
		return text
	}
	if t, ok := texts()[text][language]; ok {
		return t
	}

	return text
}
