package control

import (
	"compress/gzip"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"daycare/engine/apitoken"
	"daycare/engine/event"
)

// A long answer goes compressed over the network to those who take it, and never over the socket.
func TestLongAnswersAreCompressedOnTheNetwork(t *testing.T) {
	f := &fake{history: func(string, int64, int) (event.Page, error) {
		return event.Page{Records: []json.RawMessage{json.RawMessage(`"` + strings.Repeat("a", 5000) + `"`)}}, nil
	}}
	h := Handler(f.backend(), Options{})
	get := func(caller Caller, path, accept string) *httptest.ResponseRecorder {
		r := httptest.NewRequest("GET", path, nil)
		r.Header.Set("Accept-Encoding", accept)
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r.WithContext(WithCaller(r.Context(), caller)))
		return w
	}
	far, near := Caller{Rights: apitoken.Everything}, Caller{Local: true, Rights: apitoken.Everything}
	for _, c := range []struct {
		caller       Caller
		path, accept string
		zipped       bool
	}{{far, "/v1/agents/alpha/history", "gzip, br", true}, {far, "/v1/agents/alpha/history", "br", false},
		{far, "/v1/agents/alpha", "gzip", false}, {near, "/v1/agents/alpha/history", "gzip", false}} {
		w := get(c.caller, c.path, c.accept)
		if got := w.Header().Get("Content-Encoding") == "gzip"; got != c.zipped || w.Code != http.StatusOK {
			t.Errorf("%s accepting %s: %d, compressed: %v", c.path, c.accept, w.Code, got)
		}
		var v any
		body := io.Reader(w.Body)
		if c.zipped {
			z, err := gzip.NewReader(w.Body)
			if err != nil {
				t.Fatal(err)
			}
			body = z
		}
		if err := json.NewDecoder(body).Decode(&v); err != nil {
			t.Errorf("%s: %v", c.path, err)
		}
	}
}
