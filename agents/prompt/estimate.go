package prompt

import (
	"unicode/utf8"

	"daycare/agents/providers"
	"daycare/engine/record"
)

// An estimate counts characters as the conversation grows, so that asking for it
// costs nothing.
type estimate struct {
	static   int // system prompt and tools
	answered int // messages up to the newest answer
	open     int // messages after it

	reported   int // tokens the vendor counted, up to and with the newest answer
	reportedAt int // answered at that time
}

func (s *estimate) tokens() int {
	counted := s.counted()
	if s.reported == 0 {
		return counted
	}

	return max(counted, s.reported+(s.answered-s.reportedAt+s.open)/4)
}

func (s *estimate) counted() int { return (s.static + s.answered + s.open) / 4 }

func (s *estimate) fixed(sys string, tools []providers.Tool) {
	s.static = chars(sys)
	for _, t := range tools {
		s.static += chars(t.Name) + chars(t.Description) + len(t.Schema)
	}
}

// tail counts the messages of the open group anew.
func (s *estimate) tail(open []*providers.Message) {
	s.open = 0
	for _, m := range open {
		s.open += messageChars(m)
	}
}

// seal adds the open group and its answer to the final count.
func (s *estimate) seal(answer *providers.Message) {
	s.answered += s.open + messageChars(answer)
	s.open = 0
}

// report takes what the vendor counted for the answer that was sealed last.
func (s *estimate) report(t record.Tokens) {
	used := t.Input + t.Output + t.CacheRead + t.CacheWrite
	if t.Estimated || used <= 0 {
		return
	}
	s.reported, s.reportedAt = int(used), s.answered
}

func messageChars(m *providers.Message) int {
	n := 0
	for _, p := range m.Parts {
		switch p := p.(type) {
		case providers.Text:
			n += chars(p.Text)
		case providers.Reasoning:
			n += chars(p.Text) + len(p.Signature)
		case providers.Call:
			n += chars(p.Name) + len(p.Arguments)
		case providers.Result:
			n += chars(p.Text) + (len(p.Images)+len(p.Documents))*imageChars
		case providers.Image, providers.Document:
			n += imageChars
		}
	}

	return n
}

// imageChars is what a picture or a document counts as, whatever its size: vendors count it by
// its area or its pages, which the reported usage then brings in.
const imageChars = len("<image>")

func chars(s string) int { return utf8.RuneCountInString(s) }
