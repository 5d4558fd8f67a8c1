package openai

import (
	"net/http"
	"net/http/httptest"
	"os"
	"testing"
	"time"

	"daycare/engine/event"
)

// A leaver is a client that goes away after it got some writes.
type leaver struct {
	*httptest.ResponseRecorder
	takes int
}

func (l *leaver) Write(data []byte) (int, error) {
	if l.takes == 0 {
		return 0, os.ErrClosed
	}
	l.takes--

	return l.ResponseRecorder.Write(data)
}

// A client that goes away is noticed, whichever event it does not get any more.
func TestClientsThatGoAway(t *testing.T) {
	for name, made := range map[string]func(*answer) layout{
		"chat":     func(a *answer) layout { return &chatForm{answer: a} },
		"response": func(a *answer) layout { return &responseForm{answer: a} },
	} {
		const many = 1000
		all := &leaver{httptest.NewRecorder(), many}
		if err := tellAll(all, made); err != nil {
			t.Fatal(err)
		}
		events := many - all.takes
		if events < 4 {
			t.Errorf("%s: an answer has %d events", name, events)
		}
		for takes := range events {
			if tellAll(&leaver{httptest.NewRecorder(), takes}, made) == nil {
				t.Errorf("%s: the client got %d of %d events, and nobody noticed", name, takes, events)
			}
		}
	}
}

func tellAll(w http.ResponseWriter, made func(*answer) layout) error {
	a := &answer{w: w, rc: http.NewResponseController(w), at: time.Now(), begun: true, request: request{usage: true, model: "a"}}
	a.form = made(a)
	err := a.form.begin()
	if err == nil {
		err = a.form.say("the answer")
	}
	if err == nil {
		err = a.form.end(event.Outcome{Reason: "done", Text: "the answer", Finish: "end_turn"})
	}

	return err
}
