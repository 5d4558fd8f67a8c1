package xmpp

import (
	"context"
	"encoding/xml"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"daycare/connectors/chat"
	"daycare/engine/message"
)

// An arrival is how a message came.
type arrival struct {
	archive string // it was read from there; "": it came live
	at      position
}

// intake is a session that takes messages.
type intake struct{ *session }

// message deals with a message stanza; false: the session ends.
func (s intake) message(n uint32, e element) bool {
	s.repeated(e)
	switch {
	case e.attr("type") == "error":
		why := failure(e)
		if refusedFor(e, "not-acceptable") && (rooms{s.session}).lost(bareOf(e.attr("from"))) {
			why = &message.NotSent{Err: fmt.Errorf("the room %s lost us", bareOf(e.attr("from")))} // it is entered again
		}
		if !s.flow.refuse(e.attr("id"), why) {
			s.c.log.Warn("a message came back", "from", e.attr("from"), "err", condition(e))
		}
	case e.has(nsMAM, "result"):
		return archives{s.session}.result(n, e)
	case e.has(nsCarbons, "received"):
		// Only our own server may say what others wrote to us (CVE-2017-5589).
		if from := e.attr("from"); from != "" && from != s.flow.me.bare() {
			s.c.log.Warn("ignored a forged copy of a message", "from", from)
			break
		}
		copied := e.down(xml.Name{Space: nsCarbons, Local: "received"}, xml.Name{Space: nsForward, Local: "forwarded"})
		if m, ok := copied.kid(nsClient, "message"); ok && bareOf(m.attr("to")) == s.flow.me.bare() && m.attr("type") != "groupchat" {
			return s.take(n, m, arrival{})
		}
	case e.has(nsCarbons, "sent"): // of another client of our account
	case bareOf(e.attr("from")) == s.flow.me.bare() && s.echoed(e):
	default:
		return s.take(n, e, arrival{})
	}

	return s.pass(n)
}

// repeated notes that a room has a message of ours: it says it to everybody in it.
func (s intake) repeated(m element) {
	from, err := parseJID(m.attr("from"))
	if err == nil && m.attr("type") == "groupchat" && from.resource != "" && from.resource == s.nickIn(from.bare()) {
		s.flow.heard(m.attr("id"))
	}
}

// pass is done with a stanza.
func (s intake) pass(n uint32) bool {
	s.c.marks.free(mark{flow: s.flow, n: n})
	return true
}

// take hands a message on; false: the session ends.
func (s intake) take(n uint32, m element, by arrival) bool {
	from, err := parseJID(m.attr("from"))
	if err != nil {
		return s.pass(n)
	}
	live, k := by.archive == "", mark{flow: s.flow, n: n}
	address := by.archive
	if live {
		if address = s.flow.me.bare(); m.attr("type") == "groupchat" {
			address = from.bare()
		}
		s.flow.state.Lock()
		a := s.flow.archives[address]
		s.flow.state.Unlock()
		switch {
		case a == nil: // who keeps nothing numbers nothing
		case a.busy:
			a.missed = true
			return s.pass(n)
		default:
			by.at = position{ID: stanzaID(m, address), At: time.Now().UTC().Truncate(time.Second)}
		}
	}
	k.archive, k.at = address, by.at

	p, ok := s.post(from, m, !live)
	if !ok {
		s.c.marks.free(k)
		return true
	}
	if p.Key = address + "/" + by.at.ID; by.at.ID == "" {
		if p.Key = from.String() + "/" + m.attr("id"); m.attr("id") == "" {
			p.Key = from.String() + "/at" + strconv.FormatInt(time.Now().UnixNano(), 36)
		}
	}
	if live && m.has(nsReceipt, "request") && !p.Group && slices.Contains(s.c.allow, p.From.UserID) {
		k.then = func() {
			_ = s.put(node(nsClient, "message", "to", m.attr("from"), "type", "chat").with(
				node(nsReceipt, "received", "id", m.attr("id")), node(nsHints, "store")))
		}
	}

	s.c.marks.add(k)
	if !s.c.arrived.Put(s.stopped, p) {
		s.c.marks.forget()
		return false
	}

	return true
}

// stanzaID is the number that an archive gave a message; "": it did not. Servers take out
// what others claim in their name.
func stanzaID(m element, by string) string {
	for _, k := range m.Kids {
		if k.is(nsSID, "stanza-id") && bareOf(k.attr("by")) == by {
			return k.attr("id")
		}
	}

	return ""
}

// post makes a post of a message; false: there is nothing in it for an agent.
func (s intake) post(from jid, m element, archived bool) (p chat.Post, ok bool) {
	p = chat.Post{Sender: from.local, MessageID: m.attr("id"), From: message.Address{ChannelID: from.bare(), UserID: from.bare()}}
	body, spoken := m.kid(nsClient, "body")
	p.Text = strings.TrimSpace(body.Text)
	switch m.attr("type") {
	case "groupchat":
		if !s.speech(&p, from, m, archived) {
			return p, false
		}
	case "", "normal", "chat":
		// Somebody in a room who writes to us alone may be anybody.
		if p.From.UserID == s.flow.me.bare() || from.local == "" || m.has(nsMUCUser, "x") || contains(s.c.o.Rooms, p.From.UserID) {
			return p, false
		}
	default:
		return p, false
	}
	if m.has(nsOMEMO, "encrypted") || m.has(nsOMEMO2, "encrypted") {
		s.cannotRead(p)
		return p, false
	}

	if p.ReplyTo = m.down(xml.Name{Space: nsReply, Local: "reply"}).attr("id"); p.ReplyTo != "" {
		p.Quote, p.Text = replied(m, body.Text)
		if p.Group {
			p.Text, _ = chat.Mentioned(p.Text, s.nickIn(p.From.ChannelID))
		}
	}
	if url := strings.TrimSpace(m.down(xml.Name{Space: nsOOB, Local: "x"}, xml.Name{Space: nsOOB, Local: "url"}).Text); url != "" {
		if p.Text == url {
			p.Text = ""
		}
		p.Files = append(p.Files, chat.File{Name: nameOf(url), Open: func(ctx context.Context) (io.ReadCloser, error) {
			return s.c.files.fetch(ctx, url)
		}})
	}

	return s.changes(p, m, spoken)
}

func (s intake) nickIn(room string) string {
	_, nick := rooms{s.session}.room(room)
	return nick
}

// speech deals with what is said in a room.
func (s intake) speech(p *chat.Post, from jid, m element, archived bool) bool {
	r, nick := rooms{s.session}.room(from.bare())
	if r == nil || from.resource == "" || from.resource == nick || from.resource == s.c.nick {
		return false // the room itself, or we
	}
	p.Group, p.Sender = true, from.resource
	if p.From.UserID = (rooms{s.session}).who(r, from.resource, m, archived); p.From.UserID == "" {
		p.From.UserID = from.String() // a nick proves nothing: allow cannot name it
	}
	if p.From.UserID == s.flow.me.bare() {
		return false
	}
	if id := stanzaID(m, from.bare()); id != "" {
		s.c.said.put(p.From.ChannelID+" "+p.MessageID, id)
		p.MessageID = id
	}

	var mentioned bool
	p.Text, mentioned = chat.Mentioned(p.Text, nick)
	to, err := parseJID(m.down(xml.Name{Space: nsReply, Local: "reply"}).attr("to"))
	p.Addressed = mentioned || contains(s.c.o.Always, from.bare()) ||
		err == nil && to.bare() == from.bare() && (to.resource == nick || to.resource == s.c.nick)

	return true
}

// changes deals with what a message does to others: it corrects, deletes, or is a reaction.
func (s intake) changes(p chat.Post, m element, spoken bool) (chat.Post, bool) {
	earlier := func(id string) string { // rooms number messages, corrections name them as their sender did
		if n, ok := s.c.said.get(p.From.ChannelID + " " + id); ok {
			return n
		}
		return id
	}
	retract := m.down(xml.Name{Space: nsRetract, Local: "retract"}).attr("id")
	if old, ok := m.kid(nsFasten, "apply-to"); ok && retract == "" {
		for _, k := range old.Kids {
			if k.XMLName.Local == "retract" {
				retract = old.attr("id")
			}
		}
	}
	if retract != "" {
		p.Amended, p.Text, p.Files = chat.Amended{Amends: earlier(retract), Deleted: true}, "", nil
		return p, true
	}
	if replaces := m.down(xml.Name{Space: nsCorrect, Local: "replace"}).attr("id"); replaces != "" && spoken {
		p.Amends, p.Files = earlier(replaces), nil
		return p, true
	}

	if r, ok := m.kid(nsReact, "reactions"); ok {
		var emoji []string
		for _, k := range r.Kids {
			emoji = append(emoji, strings.TrimSpace(k.Text))
		}
		p.Note, p.Text = true, fmt.Sprintf("The person reacted to message %s with %s", r.attr("id"), strings.Join(emoji, " "))
		if len(emoji) > 0 {
			p.Reaction = chat.Reaction{To: r.attr("id"), Emoji: emoji[len(emoji)-1]}
		}
		if len(emoji) == 0 {
			p.Text = fmt.Sprintf("The person took their reaction off message %s", r.attr("id"))
		}
		return p, true
	}

	return p, p.Text != "" || len(p.Files) > 0
}

// replied takes the quotation, which clients that know no replies show, off a text.
func replied(m element, body string) (quote, rest string) {
	for _, k := range m.Kids {
		if !k.is(nsFall, "fallback") || k.attr("for") != nsReply {
			continue
		}
		part, _ := k.kid(nsFall, "body")
		text := []rune(body)
		start, err := strconv.Atoi(part.attr("start"))
		end, endErr := strconv.Atoi(part.attr("end"))
		if err != nil || endErr != nil || start < 0 || end > len(text) || start > end {
			break
		}
		var quoted strings.Builder
		for line := range strings.Lines(string(text[start:end])) {
			quoted.WriteString(strings.TrimPrefix(strings.TrimPrefix(line, ">"), " "))
		}
		return strings.TrimSpace(quoted.String()), strings.TrimSpace(string(text[:start]) + string(text[end:]))
	}

	return "", strings.TrimSpace(body)
}

// cannotRead tells a user once that what they encrypt cannot be read.
func (s intake) cannotRead(p chat.Post) {
	s.flow.state.Lock()
	told := s.flow.told[p.From.UserID]
	s.flow.told[p.From.UserID] = true
	s.flow.state.Unlock()
	if told || p.Group || !slices.Contains(s.c.allow, p.From.UserID) {
		return
	}
	_ = s.put(node(nsClient, "message", "to", p.From.UserID, "type", "chat").with(node(nsClient, "body").saying(
		"I cannot read encrypted messages. Switch off encryption (OMEMO) for this chat and send it again.")))
}

// save keeps how far archives were read, durably, at most once a second: what is read twice
// is dropped by its key, and without a place reading begins with what is said next.
func (c *Connector) save(now bool) {
	if c.host.Waiting == nil || !now && time.Since(c.saved) < time.Second {
		return
	}
	c.saved = time.Now()
	data, err := c.marks.unsaved()
	if err == nil && len(data) > 0 {
		if err = c.host.Waiting.Save(c.o.ID, archivesFile, data); err != nil {
			c.marks.again()
		}
	}
	if err != nil {
		c.log.Warn("cannot save how far archives were read", "err", err)
	}
}
