package telegram

// The parts of the Bot API's objects that are read here.

type update struct {
	ID            int64     `json:"update_id"`
	Message       *incoming `json:"message"`
	Edited        *incoming `json:"edited_message"`
	CallbackQuery *callback `json:"callback_query"`
	Reaction      *reaction `json:"message_reaction"`
}

// allowedUpdates are the kinds of updates that are asked for.
var allowedUpdates = []string{"message", "edited_message", "callback_query", "message_reaction"}

type user struct {
	ID        int64  `json:"id"`
	FirstName string `json:"first_name"`
	LastName  string `json:"last_name"`
	Username  string `json:"username"`
}

type room struct {
	ID   int64  `json:"id"`
	Type string `json:"type"` // private, group, supergroup, channel
}

type incoming struct {
	ID   int64 `json:"message_id"`
	From *user `json:"from"`
	Chat room  `json:"chat"`
	part
	ReplyTo  *incoming `json:"reply_to_message"`
	Forward  *origin   `json:"forward_origin"`
	Text     string    `json:"text"`
	Entities []entity  `json:"entities"`
	Caption  string    `json:"caption"`
	InCaps   []entity  `json:"caption_entities"`
	media
}

// A part says what a message is a part of.
type part struct {
	Thread  int64  `json:"message_thread_id"`
	InTopic bool   `json:"is_topic_message"`
	Album   string `json:"media_group_id"` // a picture each
}

// media is what a message holds beside its text. The first seven are files.
type media struct {
	Photo     []file    `json:"photo"` // one picture in several sizes, smallest first
	Document  *file     `json:"document"`
	Voice     *file     `json:"voice"`
	Audio     *file     `json:"audio"`
	Video     *file     `json:"video"`
	VideoNote *file     `json:"video_note"`
	Animation *file     `json:"animation"`
	Sticker   *sticker  `json:"sticker"`
	Location  *location `json:"location"`
	Venue     *venue    `json:"venue"`
	Contact   *contact  `json:"contact"`
	Poll      *poll     `json:"poll"`
}

type entity struct {
	Type   string `json:"type"`
	Offset int    `json:"offset"` // UTF-16 units
	Length int    `json:"length"`
	User   *user  `json:"user"` // of text_mention
}

type file struct {
	ID       string `json:"file_id"`
	Size     int64  `json:"file_size"`
	Name     string `json:"file_name"`
	MimeType string `json:"mime_type"`
	Path     string `json:"file_path"` // of getFile
}

type sticker struct {
	Emoji string `json:"emoji"`
}

type location struct {
	Latitude  float64 `json:"latitude"`
	Longitude float64 `json:"longitude"`
}

type venue struct {
	Title   string `json:"title"`
	Address string `json:"address"`
}

type contact struct {
	Phone     string `json:"phone_number"`
	FirstName string `json:"first_name"`
	LastName  string `json:"last_name"`
}

type poll struct {
	Question string `json:"question"`
}

type origin struct {
	Sender     *user  `json:"sender_user"`
	SenderName string `json:"sender_user_name"`
	Chat       *struct {
		Title string `json:"title"`
	} `json:"chat"`
}

type callback struct {
	ID      string    `json:"id"`
	From    user      `json:"from"`
	Message *incoming `json:"message"`
	Data    string    `json:"data"`
}

type reaction struct {
	Chat room     `json:"chat"`
	ID   int64    `json:"message_id"`
	User *user    `json:"user"`
	New  []symbol `json:"new_reaction"`
}

type symbol struct {
	Type  string `json:"type"` // emoji, custom_emoji, paid
	Emoji string `json:"emoji"`
}

// outgoing are the parameters of the methods that send.
type outgoing struct {
	Chat     int64        `json:"chat_id"`
	Thread   int64        `json:"message_thread_id,omitempty"`
	Text     string       `json:"text,omitempty"`
	Mode     string       `json:"parse_mode,omitempty"`
	Reply    *replyTo     `json:"reply_parameters,omitempty"`
	Preview  *linkPreview `json:"link_preview_options,omitempty"`
	Keyboard *keyboard    `json:"reply_markup,omitempty"`
	Message  int64        `json:"message_id,omitempty"` // of editMessageText
	Action   string       `json:"action,omitempty"`     // of sendChatAction
	Reaction []symbol     `json:"reaction,omitempty"`   // of setMessageReaction
}

type replyTo struct {
	Message int64 `json:"message_id"`
	Anyway  bool  `json:"allow_sending_without_reply"`
}

type linkPreview struct {
	Disabled bool `json:"is_disabled"`
}

type keyboard struct {
	Rows [][]button `json:"inline_keyboard"`
}

type button struct {
	Text string `json:"text"`
	Data string `json:"callback_data"`
}
