package chat

import (
	"strings"
	"sync"

	"daycare/engine/lazyregexp"
)

// emojiNames are the names that Slack and Mattermost have of the emoji that models react
// with. Others can be given by their name.
var emojiNames = sync.OnceValue(func() map[string]string {
	m := map[string]string{}
	for _, pair := range strings.Fields(`👍:+1 👎:-1 ❤:heart 🎉:tada 😂:joy 👀:eyes ✅:white_check_mark ✔:heavy_check_mark ❌:x 🔥:fire 🙏:pray
👏:clap 🚀:rocket 💯:100 😀:grinning 😃:smiley 😄:smile 😁:grin 😊:blush 🙂:slightly_smiling_face 😉:wink 😅:sweat_smile
🤣:rolling_on_the_floor_laughing
😍:heart_eyes 😎:sunglasses 🥳:partying_face 😢:cry 😭:sob 😮:open_mouth 😱:scream 😡:rage 😞:disappointed 😕:confused 😬:grimacing 🙃:upside_down_face
🤔:thinking_face 🤯:exploding_head 🤷:shrug 🫡:saluting_face 🤖:robot_face 👋:wave 🤝:handshake 🙌:raised_hands 👌:ok_hand
💪:muscle ✌:v 🤞:crossed_fingers
🫶:heart_hands 💡:bulb ⚠:warning ⏳:hourglass_flowing_sand ⏰:alarm_clock ⭐:star 🌟:star2 ✨:sparkles 💔:broken_heart 🧡:orange_heart 💛:yellow_heart
💚:green_heart 💙:blue_heart 💜:purple_heart 🐛:bug 🔧:wrench 🔍:mag 📌:pushpin 📝:memo 📅:date 📈:chart_with_upwards_trend
☕:coffee 🍕:pizza 🎂:birthday
🎯:dart ❓:question ❗:exclamation 🏆:trophy 🎁:gift 🔒:lock 🟢:large_green_circle 🔴:red_circle 🆗:ok ➕:heavy_plus_sign`) {
		emoji, name, _ := strings.Cut(pair, ":")
		m[emoji] = name
	}

	return m
})

// plainName is what can be the name of an emoji.
var plainName = lazyregexp.New(`^[a-z0-9_+'-]+$`)

// EmojiName is the name of an emoji for platforms that know them by name. It may be given as
// one: eyes, :eyes:.
func EmojiName(emoji string) (string, bool) {
	if name, ok := emojiNames()[strings.ReplaceAll(emoji, "\uFE0F", "")]; ok {
		return name, true
	}
	name := strings.Trim(emoji, ":")
	return name, plainName.MatchString(name)
}
