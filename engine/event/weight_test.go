package event

import (
	"encoding/json"
	"errors"
	"reflect"
	"testing"
	"time"
)

// What an event takes up is counted by the texts in it, wherever they are; what all events
// share counts for none.
func TestWhatAnEventWeighs(t *testing.T) {
	text := "12345"
	type inner struct {
		A, B string
		N    int
	}
	for name, tt := range map[string]struct {
		v    any
		want int
	}{
		"a text": {text, 5}, "a number": {7, 0}, "a truth": {true, 0}, "bytes": {json.RawMessage(text), 5}, "a pointer": {&text, 5},
		"no pointer": {(*string)(nil), 0}, "texts": {[]string{text, "67"}, 7}, "no texts": {[]string(nil), 0},
		"a struct": {inner{"1", "23", 4}, 3},
		"structs":  {[]inner{{"1", "", 0}, {"", "23", 4}}, 3}, "something": {struct{ X any }{text}, 5}, "nothing": {struct{ X any }{}, 0},
		"a time with a zone of its own": {time.Now().In(time.FixedZone(text, 1)), 0},
		"an event": {Event{ID: "1", Agent: "22", Turn: "333", Type: "4444", At: time.Now(),
			Body: Finished{Text: text, Items: []string{"6"}}}, 16},
	} {
		if got := weight(reflect.ValueOf(tt.v)); got != tt.want {
			t.Errorf("%s weighs %d, want %d", name, got, tt.want)
		}
	}
}

// An event that cannot be encoded is never taken for one without a body.
func TestAnEventThatCannotBeEncoded(t *testing.T) {
	s := NewStream("boot")
	s.Emit(Event{Type: ToolStarted, Body: Tool{Arguments: json.RawMessage("{")}})
	kept, _ := s.Since(1)
	for _, e := range []Event{kept[0], kept[0], {Body: Tool{Arguments: json.RawMessage("{")}},
		{At: time.Date(10_000, 1, 1, 0, 0, 0, 0, time.UTC)}} {
		data, err := e.MarshalJSON()
		var wrong *json.MarshalerError
		if !errors.As(err, &wrong) {
			t.Errorf("%+v is encoded as %s, %v", e, data, err)
		}
	}
}

// There is no model where the program's own answers first: one of another type that is called
// so, or that stands behind another, is a model.
func TestWhereThereIsNoModel(t *testing.T) {
	own, called, other := Service{ID: "scripted", Type: "scripted"}, Service{ID: "scripted", Type: "openai"},
		Service{ID: "mine", Type: "scripted"}
	for _, tt := range []struct {
		list []Service
		want bool
	}{{nil, false}, {[]Service{own}, true}, {[]Service{own, called}, true}, {[]Service{called, own}, false},
		{[]Service{other, own}, false}} {
		if NoModel(tt.list) != tt.want {
			t.Errorf("%+v: no model is %v", tt.list, !tt.want)
		}
	}
}
