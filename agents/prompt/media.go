package prompt

import (
	"slices"
	"strings"

	"daycare/agents/providers"
)

const (
	tooMany = "not shown: too many pictures and documents in this message"
	// gone replaces a picture or document that is no longer sent. Its
	// file is named beside it.
	gone = "[no longer shown here, as newer pictures and documents are; read the file to see it again]"
)

// room makes room for a picture or document of so many bytes, and reports false if
// there is none. Where there are too many, the oldest of those that the model has
// answered are taken out, down to half: so it happens seldom that a request does not
// begin like the one before. It follows from the conversation alone, so that a
// process that starts anew makes the same requests.
func (b *Builder) room(size int) bool {
	n := int64(size)
	if b.shown >= maxShown || b.media+n > maxMedia {
		b.messages = slices.Clone(b.messages) // earlier requests keep theirs
		for i, m := range b.messages[:b.answered] {
			if b.shown < maxShown/2 && b.media+n <= maxMedia/2 {
				break
			}
			b.messages[i] = b.without(m)
		}
	}
	if b.media+n > maxMedia {
		return false
	}
	b.media, b.shown = b.media+n, b.shown+1
	return true
}

// without is a message without its pictures and documents; the same one if it has
// none.
func (b *Builder) without(m *providers.Message) *providers.Message {
	bare := &providers.Message{Role: m.Role}
	before := b.shown
	took := func(size int) { b.media, b.shown = b.media-int64(size), b.shown-1 }
	for _, p := range m.Parts {
		switch part := p.(type) {
		case providers.Image:
			took(len(part.Data))
			p = providers.Text{Text: gone}
		case providers.Document:
			took(len(part.Data))
			p = providers.Text{Text: gone}
		case providers.Result:
			for _, img := range part.Images {
				took(len(img.Data))
			}
			for _, doc := range part.Documents {
				took(len(doc.Data))
			}
			part.Text += strings.Repeat("\n"+gone, len(part.Images)+len(part.Documents))
			part.Images, part.Documents = nil, nil
			p = part
		}
		bare.Parts = append(bare.Parts, p)
	}
	if b.shown == before {
		return m
	}
	b.size.answered += messageChars(bare) - messageChars(m)
	return bare
}
