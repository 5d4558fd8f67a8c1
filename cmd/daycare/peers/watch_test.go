package peers

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"daycare/engine/control"
)

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
					fmt.Fprintf(j, "event: x\ndata: %s\n\n", strings.Repeat(who, 500))
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
	err = control.Relay(resp.Body, func(_ string, event []byte) error { n[string(event)]++; return nil })
	a, b := "event: x\ndata: "+strings.Repeat("a", 500)+"\n\n", "event: x\ndata: "+strings.Repeat("b", 500)+"\n\n"
	if err != nil || len(n) != 2 || n[a] != 200 || n[b] != 200 {
		t.Errorf("%v, %d kinds of events", err, len(n))
	}
}
