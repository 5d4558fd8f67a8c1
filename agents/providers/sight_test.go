package providers

import (
	"context"
	"iter"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestSeeText: a document that a tool brought comes with its text for those who need it.
func TestSeeText(t *testing.T) {
	read := Result{CallID: "c", Text: "a.pdf: 2 pages",
		Documents: []Document{{Name: "a.pdf", MimeType: "application/pdf", Data: []byte("d"), Text: "[page 1]\nhello"}}}
	req := &Request{Messages: []*Message{{Role: Results, Parts: []Part{read}}}}
	for sight, want := range map[Sight]Result{
		{Documents: true}: read,
		{Images: true}: {CallID: "c",
			Text: "a.pdf: 2 pages\n[This model does not accept documents; this is the text of it:]\n[page 1]\nhello"},
	} {
		h := &heard{}
		for range See(h, func(string) Sight { return sight }).Stream(t.Context(), req) {
		}
		if d := cmp.Diff([]Part{want}, h.req.Messages[0].Parts); d != "" {
			t.Errorf("%+v (-want +got):\n%s", sight, d)
		}
	}
}

// heard keeps the request that it got.
type heard struct{ req *Request }

func (*heard) ID() string   { return "heard" }
func (*heard) Wire() string { return "none" }
func (h *heard) Stream(_ context.Context, req *Request) iter.Seq[Event] {
	h.req = req
	return func(yield func(Event) bool) { yield(Complete{Finish: EndTurn}) }
}

func TestSee(t *testing.T) {
	plain := &Message{Role: User, Parts: []Part{Text{"hello"}}}
	media := &Message{Role: User, Parts: []Part{Text{"look"}, Image{"image/png", []byte("p")},
		Document{Name: "a.pdf", MimeType: "application/pdf", Data: []byte("d")}}}
	result := &Message{Role: Results, Parts: []Part{Result{CallID: "c", Text: "shot", Images: []Image{{"image/png", []byte("p")}}}}}
	req := &Request{Model: "m", Messages: []*Message{plain, media, result}}
	for _, tt := range []struct {
		sight         Sight
		media, result []Part
	}{
		{Sight{true, true}, media.Parts, result.Parts},
		{Sight{true, false}, []Part{media.Parts[0], media.Parts[1], Text{noDocument}}, result.Parts},
		{Sight{false, true}, []Part{media.Parts[0], Text{noPicture}, media.Parts[2]},
			[]Part{Result{CallID: "c", Text: "shot\n" + noPicture}}},
		{Sight{}, []Part{media.Parts[0], Text{noPicture}, Text{noDocument}}, []Part{Result{CallID: "c", Text: "shot\n" + noPicture}}},
	} {
		h := &heard{}
		for range See(h, func(string) Sight { return tt.sight }).Stream(t.Context(), req) {
		}
		got := h.req.Messages
		if got[0] != plain {
			t.Errorf("%+v: a message without pictures was copied; what was encoded of it is lost", tt.sight)
		}
		if d := cmp.Diff(tt.media, got[1].Parts); d != "" {
			t.Errorf("%+v (-want +got):\n%s", tt.sight, d)
		}
		if d := cmp.Diff(tt.result, got[2].Parts); d != "" {
			t.Errorf("%+v (-want +got):\n%s", tt.sight, d)
		}
		if len(media.Parts) != 3 || req.Messages[1] != media {
			t.Fatal("the request was changed")
		}
	}
}
