package prompt

import (
	"strings"
	"time"

	"daycare/agents/providers"
	"daycare/engine/record"
)

// A saying is one thing said to the model: a record, or several that the sender
// wrote in one breath.
type saying struct {
	items  []string // inbox items that it came from
	notice []string // what varies, rendered when it was recorded
	clock  string
	tag    string   // with attributes; "": text stands alone, made by this package
	text   []string // escaped; put together when it is sent, as there may be thousands
	files  []string
	media  []providers.Part // pictures and documents
}

// alone is a saying of the runtime, complete as it stands.
func alone(text string) saying { return saying{text: []string{text}} }

// fromUser renders a User record, without its files.
func fromUser(at time.Time, u *record.User) saying {
	s := saying{items: []string{u.Item}, clock: clock(at, u.Zone), tag: "message", text: []string{escape(u.Text)}}
	if u.Preface != "" {
		s.notice = []string{escape(u.Preface)}
	}
	if u.Origin != "" {
		s.tag = `system_message origin="` + escapeAttr.Replace(clean(u.Origin)) + `"`
	}
	if u.Silent { // to know, not to answer
		s.tag += ` silent="true"`
	}
	if u.Untrusted {
		s.tag += ` untrusted="true"`
	}

	return s
}

// join appends what the same sender wrote directly after s, which is not used any more. The time is that of
// the last message: it is how old the whole is.
func (s saying) join(next saying) saying {
	s.items, s.clock = append(s.items, next.items...), next.clock
	s.notice = append(s.notice, next.notice...)
	s.text = append(s.text, next.text...)
	s.files = append(s.files, next.files...)
	s.media = append(s.media, next.media...)

	return s
}

// parts is what is sent of it: one text, then the pictures and documents.
func (s saying) parts() []providers.Part {
	said := strings.Join(s.text, "\n")
	text := s.clock + said // the usual one, of just its size: it is kept
	if s.tag != "" {
		name, _, _ := strings.Cut(s.tag, " ")
		text = s.clock + "<" + s.tag + ">" + said + "</" + name + ">"
	}
	if len(s.notice) > 0 {
		text = "<notice>" + strings.Join(s.notice, "\n") + "</notice>\n" + text
	}
	if len(s.files) > 0 {
		text += "\n" + strings.Join(s.files, "\n")
	}

	return append([]providers.Part{providers.Text{Text: text}}, s.media...)
}
