package platforms

import (
	"fmt"
	"net/http"
	"sync/atomic"

	"daycare/connectors/telegram/telegramtest"
)

const telegramUser = 5550001

// A bot is a Telegram bot.
type bot struct {
	*site
	api    *telegramtest.Server
	newest atomic.Int64 // id of a message
}

func newTelegram(at *site) (Platform, http.Handler) {
	b := &bot{site: at, api: telegramtest.Handler(token)}
	return b, b.api
}

func (b *bot) Settings(string) string {
	return fmt.Sprintf("id: telegram, type: telegram, allow: [\"%d\"], tokenEnv: %s, baseURL: %q", telegramUser, tokenEnv, b.base)
}

func (b *bot) Once() bool { return false }

func (b *bot) Write(text string, received func()) {
	said := telegramtest.Message(telegramUser, text)
	said["message_id"] = b.newest.Add(1)
	b.api.PushTold(map[string]any{"message": said}, received)
}

func (b *bot) Press(card string, received func()) {
	b.api.PushTold(map[string]any{"callback_query": map[string]any{"id": "1", "data": card,
		"from": map[string]any{"id": telegramUser, "first_name": "Ada"}}}, received)
}

// Said leaves out messages that were changed.
func (b *bot) Said() (all []Said) {
	for _, m := range b.api.Sent() {
		if m.Method != "sendMessage" {
			continue
		}
		one := Said{Text: m.Text}
		if len(m.Buttons) > 0 {
			one.Card = m.Buttons[0]
		}
		all = append(all, one)
	}

	return all
}
