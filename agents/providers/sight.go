package providers

import (
	"context"
	"iter"
)

// Sight is what a model takes beside text.
type Sight struct{ Images, Documents bool }

// See wraps p so that a model gets only what it takes: where it takes no pictures
// or documents, a line in their place says so. A service would refuse the request,
// and with it every later one of the conversation. The names of the files stand in
// the text already. model is what a request names, "" for the provider's own.
func See(p Provider, sight func(model string) Sight) Provider { return sighted{p, sight} }

type sighted struct {
	Provider
	sight func(model string) Sight
}

// Stream makes one request; see Provider.
func (s sighted) Stream(ctx context.Context, req *Request) iter.Seq[Event] {
	return s.Provider.Stream(ctx, s.sight(req.Model).only(req))
}

const (
	noPicture  = "[A picture is not shown: this model takes none.]"
	noDocument = "[A document is not shown: this model takes none. Read it with a tool, or say that you cannot.]"
)

// instead is what a model reads that takes no documents.
func (d Document) instead() string {
	if d.Text == "" {
		return noDocument
	}
	return "[This model does not accept documents; this is the text of it:]\n" + d.Text
}

// only is req with what the model takes. Messages without anything else stay the
// same, so that what providers encoded of them is kept.
func (s Sight) only(req *Request) *Request {
	if req.Plain || s.Images && s.Documents {
		return req
	}
	var fit *Request
	for i, m := range req.Messages {
		if !s.lacks(m) {
			continue
		}
		if fit == nil {
			other := *req
			other.Messages = append([]*Message(nil), req.Messages...)
			other.Known = Known{} // what replaces a picture is another message each time
			fit = &other
		}
		fit.Messages[i] = s.without(m)
	}

	if fit == nil {
		return req
	}

	return fit
}

// lacks reports whether m has something in it that the model does not take.
func (s Sight) lacks(m *Message) bool {
	for _, p := range m.Parts {
		switch p := p.(type) {
		case Image:
			if !s.Images {
				return true
			}
		case Document:
			if !s.Documents {
				return true
			}
		case Result:
			if len(p.Images) > 0 && !s.Images || len(p.Documents) > 0 && !s.Documents {
				return true
			}
		}
	}

	return false
}

func (s Sight) without(m *Message) *Message {
	fit := &Message{Role: m.Role}
	for _, p := range m.Parts {
		switch part := p.(type) {
		case Image:
			if !s.Images {
				p = Text{noPicture}
			}
		case Document:
			if !s.Documents {
				p = Text{part.instead()}
			}
		case Result:
			if len(part.Images) > 0 && !s.Images {
				part.Text, part.Images = part.Text+"\n"+noPicture, nil
			}
			if !s.Documents {
				for _, d := range part.Documents {
					part.Text += "\n" + d.instead()
				}
				part.Documents = nil
			}

			p = part
		}

		fit.Parts = append(fit.Parts, p)
	}

	return fit
}
