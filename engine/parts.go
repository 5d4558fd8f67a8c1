package engine

import (
	"slices"
	"strings"
	"time"

	"daycare/engine/message"
)

// longParts is how many messages an answer may have. A longer one is sent as its beginning, with
// the whole as a file.
const longParts = 3

// parts cuts an answer into what Send is called with, the same at every attempt, and returns the
// files that go with the first part.
func (s *senders) parts(conn Connector, p *promise) (parts []string, files []message.File) {
	parts, files = []string{p.Text}, slices.Clip(p.Files)
	sp, splits := conn.(Splitter)
	if splits {
		parts = sp.Split(p.Text)
	}
	if s.outlet.Speak != nil && p.Outgoing.Report == nil && !p.Done[0] {
		if sound, ok := s.outlet.Speak(p.ctx, p.Outgoing); ok {
			files = append(files, sound)
		}
	}
	a, can := conn.(Attacher)
	if splits && can && len(parts) > longParts && len(p.Done) == 0 && s.outlet.Keep != nil {
		if rest := a.Rest(); rest != "" {
			whole, err := s.outlet.Keep(p.ID, "answer.md", []byte(p.Text))
			if err == nil {
				return []string{beginningWith(parts[0], rest, sp)}, append(files, whole)
			}
			s.log.Warn("a long answer is sent in parts, because it could not be stored as a file", "out", p.ID, "err", err)
		}
	}
	if len(parts) == 0 && len(files) > 0 {
		parts = []string{""} // files without a text
	}

	return parts, files
}

// beginningWith is as much of a text as one message takes together with what is said below it.
func beginningWith(text, below string, sp Splitter) string {
	for n := len([]rune(text)); ; n = n * 9 / 10 {
		head := string([]rune(text)[:n])
		if i := strings.LastIndexByte(head, '\n'); i > 0 && n < len([]rune(text)) {
			head = head[:i]
		}
		if strings.Count(head, "```")%2 == 1 {
			head += "\n```"
		}
		if whole := head + "\n\n" + below; n == 0 || len(sp.Split(whole)) == 1 {
			return strings.TrimSpace(whole)
		}
	}
}

// disturbs reports whether a promise waits for the end of quiet hours: nobody asked for it.
func (s *senders) disturbs(p message.Promise) bool {
	asked := p.ReplyTo != "" || p.Urgent || p.Outgoing.Report != nil
	return s.outlet.Quiet != nil && !asked && !s.outlet.Quiet(p.To).IsZero()
}

// holdAtMost is how long settings that end quiet hours early are not noticed.
const holdAtMost = time.Minute

// hold waits until a promise may disturb, or its context ends.
func (s *senders) hold(p *promise) {
	for until := s.outlet.Quiet(p.To); !until.IsZero(); until = s.outlet.Quiet(p.To) {
		select {
		case <-time.After(min(max(time.Until(until), time.Millisecond), holdAtMost)):
		case <-p.ctx.Done():
			return
		}
	}
}
