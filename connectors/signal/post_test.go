package signal

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"daycare/connectors/chat"
)

// What Signal hands over becomes a message: of whom, where, and whether it is meant for us;
// what is not a message, of ourselves, or too old is none.
func TestWhatAnEnvelopeBecomes(t *testing.T) {
	c := testConnector(t, newDaemon(t), chat.Host{}, slog.New(slog.DiscardHandler))
	now := time.Now().UnixMilli()
	by := func(fields string) string {
		return fmt.Sprintf(`{"sourceUuid":%q,"sourceNumber":"+49","sourceName":"Ada","timestamp":%d,%s}`, ada, now, fields)
	}
	id := fmt.Sprintf("%s/%d", ada, now)
	for name, tt := range map[string]struct {
		envelope string
		want     string // text; "-": there is no message
		check    func(p chat.Post) bool
	}{
		"a message": {by(`"dataMessage":{"message":" hi "}`), "hi", func(p chat.Post) bool {
			return p.Key == id && p.MessageID == id && p.Sender == "Ada" && p.From.ChannelID == ada && !p.Group && !p.Note
		}},
		"in a group": {by(`"dataMessage":{"message":"hi","groupInfo":{"groupId":"g="}}`), "hi",
			func(p chat.Post) bool { return p.Group && !p.Addressed && p.From.ChannelID == "group:g=" }},
		"to us in a group": {by(`"dataMessage":{"message":"\uFFFC hi","groupInfo":{"groupId":"g="},"mentions":[{"number":"` + account +
			`","start":0,"length":1}]}`), "hi",
			func(p chat.Post) bool { return p.Addressed }},
		"an answer to us": {by(`"dataMessage":{"message":"hi","groupInfo":{"groupId":"g="},"quote":{"id":7,"authorNumber":"` + account +
			`","authorUuid":"u","text":"before"}}`), "hi",
			func(p chat.Post) bool { return p.Addressed && p.Quote == "before" && p.ReplyTo == "u/7" }},
		"an answer to another": {by(`"dataMessage":{"message":"hi","groupInfo":{"groupId":"g="},"quote":{"id":7,"authorNumber":"+1",` +
			`"text":"before"}}`), "hi",
			func(p chat.Post) bool { return !p.Addressed }},
		"an edit": {by(`"editMessage":{"targetSentTimestamp":7,"dataMessage":{"message":"hi","attachments":[{"id":"a"}]}}`),
			"hi", func(p chat.Post) bool { return strings.HasSuffix(p.Amends, "/7") && len(p.Files) == 0 }},
		"a deletion": {by(`"dataMessage":{"remoteDelete":{"timestamp":7}}`), "",
			func(p chat.Post) bool { return strings.HasSuffix(p.Amends, "/7") }},
		"a reaction": {by(`"dataMessage":{"reaction":{"emoji":"+","targetSentTimestamp":7}}`),
			"The person reacted to message 7 with +", func(p chat.Post) bool { return p.Note }},
		"a reaction less": {by(`"dataMessage":{"reaction":{"emoji":"+","targetSentTimestamp":7,"isRemove":true}}`),
			"The person took their reaction off message 7", func(p chat.Post) bool { return p.Note }},
		"files": {by(`"dataMessage":{"attachments":[{"id":"a","size":3},{"id":"b","filename":"b.txt"}]}`), "", func(p chat.Post) bool {
			return len(p.Files) == 2 && p.Files[0].Name == "a" && p.Files[0].Size == 3 && p.Files[1].Name == "b.txt"
		}},
		"by number alone": {fmt.Sprintf(`{"sourceNumber":"+49","timestamp":%d,"dataMessage":{"message":"hi"}}`, now), "hi",
			func(p chat.Post) bool { return p.From.ChannelID == "+49" }},
		"of nobody": {fmt.Sprintf(`{"timestamp":%d,"dataMessage":{"message":"hi"}}`, now), "-", nil},
		"of ourselves": {fmt.Sprintf(`{"sourceUuid":"u","sourceNumber":%q,"timestamp":%d,"dataMessage":{"message":"hi"}}`, account,
			now), "-", nil},
		"a receipt": {by(`"receiptMessage":{}`), "-", nil},
		"too old": {fmt.Sprintf(`{"sourceUuid":"u","timestamp":%d,"dataMessage":{"message":"hi"}}`,
			now-(oldest+time.Minute).Milliseconds()), "-", nil},
		"that waited at Signal": {fmt.Sprintf(`{"sourceUuid":"u","timestamp":%d,"serverDeliveredTimestamp":%d,`+
			`"dataMessage":{"message":"hi"}}`, now-(4*oldest).Milliseconds(), now), "hi", func(chat.Post) bool { return true }},
		"that waited, and is repeated too late": {fmt.Sprintf(`{"sourceUuid":"u","timestamp":%d,"serverDeliveredTimestamp":%d,`+
			`"dataMessage":{"message":"hi"}}`, now-(4*oldest).Milliseconds(), now-(oldest+time.Minute).Milliseconds()), "-", nil},
		"nearly too old": {fmt.Sprintf(`{"sourceUuid":"u","timestamp":%d,"dataMessage":{"message":"hi"}}`,
			now-(oldest-time.Minute).Milliseconds()), "hi", func(chat.Post) bool { return true }},
	} {
		var e envelope
		if err := json.Unmarshal([]byte(tt.envelope), &e); err != nil {
			t.Fatal(name, err)
		}
		p, ok := c.post(e)
		if ok != (tt.want != "-") || ok && (p.Text != tt.want || !tt.check(p)) {
			t.Errorf("%s becomes %+v (%v), want %q", name, p, ok, tt.want)
		}
	}
}

// Names stand where Signal has placeholders; a place that is not in the text is left alone.
func TestWhereMentionsStand(t *testing.T) {
	c := testConnector(t, newDaemon(t), chat.Host{}, slog.New(slog.DiscardHandler))
	const most = 1<<63 - 1
	for _, tt := range []struct {
		text   string
		places [][2]int // start and length
		want   string
	}{
		{"hi *!", [][2]int{{3, 1}}, "hi @N0!"}, {"* and *", [][2]int{{0, 1}, {6, 1}}, "@N0 and @N1"}, {"😀 *", [][2]int{{3, 1}}, "😀 @N0"},
		{"x", [][2]int{{1, 0}}, "x@N0"},
		{"x", [][2]int{{1, 1}}, "x"}, {"x", [][2]int{{2, 0}}, "x"}, {"x", [][2]int{{-1, 1}}, "x"}, {"x", [][2]int{{0, -1}}, "x"},
		{"x", [][2]int{{most, 1}}, "x"}, {"x", [][2]int{{1, most}}, "x"},
		{"x", [][2]int{{most, most}}, "x"},
	} {
		var mentions []string
		for i, p := range tt.places {
			mentions = append(mentions, fmt.Sprintf(`{"name":"N%d","number":"+1","start":%d,"length":%d}`, i, p[0], p[1]))
		}
		var d data
		if err := json.Unmarshal(fmt.Appendf(nil, `{"message":%q,"mentions":[%s]}`, tt.text, strings.Join(mentions, ",")), &d); err != nil {
			t.Fatal(err)
		}
		if got, forUs := c.mentioned(&d); got != tt.want || forUs {
			t.Errorf("%q with mentions at %v is %q (%v), want %q", tt.text, tt.places, got, forUs, tt.want)
		}
	}
}
