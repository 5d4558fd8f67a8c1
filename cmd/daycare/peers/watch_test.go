package peers

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"
)

// Events are passed on whole, with their ids, and what says only that a stream lives is not.
func TestEventsInAStream(t *testing.T) {
	stream := ": daycare\n\nid: b.1\nevent: agent.woke\ndata: {}\n\n: \n\nevent: message.delta\ndata: 1\ndata: 2\n\nid: b.2\nevent: half"
	var got []string
	note := func(id string, event []byte) error {
		got = append(got, id+"|"+string(event))
		return nil
	}
	if err := eventsIn(strings.NewReader(stream), note); err != nil {
		t.Error(err)
	}
	want := []string{"b.1|id: b.1\nevent: agent.woke\ndata: {}\n\n", "|event: message.delta\ndata: 1\ndata: 2\n\n"}
	if !slices.Equal(got, want) {
		t.Errorf("%q\nwant %q", got, want)
	}

	gone := errors.New("gone")
	if err := eventsIn(strings.NewReader(stream), func(string, []byte) error { return gone }); !errors.Is(err, gone) {
		t.Errorf("it ended with %v, want what the reader said", err)
	}
	large := "data: " + strings.Repeat("x", 200_000) + "\n\n"
	got = nil
	if err := eventsIn(strings.NewReader(large), note); err != nil || !slices.Equal(got, []string{"|" + large}) {
		t.Errorf("a large event: %v, %d events", err, len(got))
	}
	if err := eventsIn(strings.NewReader("data: "+strings.Repeat("x", maxEvent)), note); err == nil {
		t.Error("an event without an end is read for ever")
	}
}

// Several write to one answer, each whole events; the others begin when its head was written, and not where it is an error.
func TestAJointAnswer(t *testing.T) {
	refused := &joint{ResponseWriter: httptest.NewRecorder(), began: make(chan struct{})}
	refused.WriteHeader(http.StatusNotFound)
	select {
	case <-refused.began:
		t.Error("an error begins a stream")
	default:
	}

	served := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		j := &joint{ResponseWriter: w, began: make(chan struct{})}
		rc := http.NewResponseController(j)
		if err := rc.SetWriteDeadline(time.Now().Add(time.Minute)); err != nil {
			t.Error(err)
		}
		j.WriteHeader(http.StatusOK)
		<-j.began
		done := make(chan struct{})
		for _, who := range []string{"a", "b"} {
			go func() {
				for range 200 {
					fmt.Fprintf(j, "data: %s\n\n", strings.Repeat(who, 500))
					if err := rc.Flush(); err != nil {
						t.Error(err)
					}
				}
				done <- struct{}{}
			}()
		}
		<-done
		<-done
	}))
	defer served.Close()
	resp, err := http.Get(served.URL)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	n := map[string]int{}
	err = eventsIn(resp.Body, func(_ string, event []byte) error { n[string(event)]++; return nil })
	a, b := "data: "+strings.Repeat("a", 500)+"\n\n", "data: "+strings.Repeat("b", 500)+"\n\n"
	if err != nil || len(n) != 2 || n[a] != 200 || n[b] != 200 {
		t.Errorf("%v, %d kinds of events", err, len(n))
	}
}
