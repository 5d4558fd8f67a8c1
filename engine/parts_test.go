package engine

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"daycare/engine/message"
)

// A smallRoom takes ten characters a message, and files.
type smallRoom struct {
	mu   sync.Mutex
	took []message.Outgoing
}

func (r *smallRoom) ID() string                                 { return "room" }
func (r *smallRoom) Run(context.Context, message.Deliver) error { return nil }
func (r *smallRoom) Rest() string                               { return "…file" }
func (r *smallRoom) Split(text string) (parts []string) {
	for text = strings.TrimSpace(text); text != ""; {
		n := min(10, len(text))
		parts, text = append(parts, text[:n]), text[n:]
	}
	return parts
}

func (r *smallRoom) Send(_ context.Context, out message.Outgoing) (string, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.took = append(r.took, out)
	return "id", nil
}

func (r *smallRoom) all() []message.Outgoing {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]message.Outgoing(nil), r.took...)
}

// An answer of more than three messages is its beginning and a file, of which there is one
// however often it is tried; without room for the file, or in the middle of an answer, it is parts.
func TestALongAnswerIsAFile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		room, kept, full := &smallRoom{}, map[string]string{}, false
		p := newPost(map[string]Connector{"room": room})
		p.outlet.Keep = func(id, name string, content []byte) (message.File, error) {
			if full {
				return message.File{}, errors.New("no space")
			}
			kept[id+" "+name] = string(content)
			return message.File{ID: id, Name: name}, nil
		}
		long := strings.Repeat("0123456789", 4)
		p.promise("a", "three", long[:30], nil)
		p.promise("a", "four", long, nil)
		p.promise("a", "begun", long, map[int]bool{0: true})
		synctest.Wait()
		full = true
		p.promise("a", "full", long, nil)
		synctest.Wait()

		count := map[string]int{}
		for _, out := range room.all() {
			count[out.ID]++
			one := len(out.Files) == 1 && out.Parts == 1 && strings.HasSuffix(out.Text, "…file") && len(room.Split(out.Text)) == 1
			if out.ID == "four" && !one {
				t.Errorf("the long answer is %+v", out)
			}
			if out.ID != "four" && len(out.Files) > 0 {
				t.Errorf("%s has files", out.ID)
			}
		}
		if count["three"] != 3 || count["four"] != 1 || count["begun"] != 3 || count["full"] != 4 || kept["four answer.md"] != long {
			t.Errorf("messages %v, kept %v", count, kept)
		}
	})
}

// In a chat without files a long answer is parts.
func TestALongAnswerWithoutFiles(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		room := &chatRoom{}
		p := newPost(map[string]Connector{"room": room})
		p.outlet.Keep = func(string, string, []byte) (message.File, error) { return message.File{}, nil }
		p.promise("a", "long", "1122334455", nil)
		synctest.Wait()
		if len(room.sent) != 5 {
			t.Errorf("sent are %v, want 5 parts", room.sent)
		}
	})
}

// The beginning of a long answer ends at the end of a line, if there is one.
func TestTheBeginningOfALongAnswer(t *testing.T) {
	for text, want := range map[string]string{
		"0123\n456789012345678": "0123\n\nx", "ab\ncd": "ab\ncd\n\nx", "0123456789012345678": "0123456\n\nx",
		"\n12345678901234567": "1234567\n\nx",
	} {
		if got := beginningWith(text, "x", &smallRoom{}); got != want {
			t.Errorf("%q begins %q, want %q", text, got, want)
		}
	}
}

// What is spoken goes with the first part.
func TestAnswersAreSpoken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		room := &smallRoom{}
		p := newPost(map[string]Connector{"room": room})
		p.outlet.Speak = func(_ context.Context, out message.Outgoing) (message.File, bool) {
			return message.File{ID: "sound"}, out.ID == "aloud"
		}
		p.promise("a", "aloud", "0123456789ab", nil)
		p.promise("a", "silent", "hello", nil)
		synctest.Wait()
		all := room.all()
		if len(all) != 3 || len(all[0].Files) != 1 || len(all[1].Files) != 0 || len(all[2].Files) != 0 {
			t.Errorf("sent %+v", all)
		}
	})
}

// In quiet hours only what someone asked for is sent; the rest waits for their end, in its order,
// and holds up no answer. A process that ends does not wait for the morning.
func TestQuietHours(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		room := &smallRoom{}
		p := newPost(map[string]Connector{"room": room})
		morning := time.Now().Add(9 * time.Hour)
		p.outlet.Quiet = func(message.Address) time.Time {
			if time.Now().Before(morning) {
				return morning
			}
			return time.Time{}
		}
		p.promise("a", "news1", "one", nil)
		p.promise("a", "news2", "two", nil)
		answer := message.Promise{Agent: "a", Since: time.Now(), Report: func(message.Result) {},
			Outgoing: message.Outgoing{ID: "answer", Text: "yes", To: toRoom, ReplyTo: "m1"}}
		urgent := answer
		urgent.ID, urgent.ReplyTo, urgent.Urgent = "said", "", true
		p.send(answer)
		p.send(urgent)
		ids := func() (all []string) {
			for _, out := range room.all() {
				all = append(all, out.ID)
			}
			return all
		}
		time.Sleep(8 * time.Hour)
		if got := strings.Join(ids(), " "); got != "answer said" {
			t.Errorf("at night was sent %q, want what was asked for", got)
		}
		time.Sleep(2 * time.Hour)
		synctest.Wait()
		if got := strings.Join(ids(), " "); got != "answer said news1 news2" {
			t.Errorf("in the morning was sent %q", got)
		}

		morning = time.Now().Add(9 * time.Hour)
		p.promise("a", "late", "x", nil)
		synctest.Wait()
		began := time.Now()
		p.close(20 * time.Second)
		if took := time.Since(began); took > time.Second {
			t.Errorf("the end took %v", took)
		}
		if got := p.only(t, "late"); !got.Kept {
			t.Errorf("what waited is %+v, want kept for the next process", got)
		}
	})
}

// halves takes 60 characters in one message.
type halves struct{}

func (halves) Split(text string) []string {
	if len(text) > 60 {
		return []string{text[:60], text[60:]}
	}
	return []string{text}
}

// The beginning of an answer ends the code that it is cut in.
func TestABeginningEndsItsCode(t *testing.T) {
	got := beginningWith("```\n"+strings.Repeat("code\n", 40)+"```", "the rest", halves{})
	if strings.Count(got, "```") != 2 || !strings.HasSuffix(got, "```\n\nthe rest") || len(got) > 60 {
		t.Errorf("the beginning is %q", got)
	}
}
