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
		{far, "/v1/agents/alpha/history", "gzip;q=0, br", false}, {far, "/v1/agents/alpha/history", "br;q=1, GZIP; q=0.5", true},
		{far, "/v1/agents/alpha/history", "gzip;q=0, *", false}, {far, "/v1/agents/alpha/history", "*;q=0.1", true},
		{far, "/v1/agents/alpha/history", "gzip;q=0.000", false}, {far, "/v1/agents/alpha/history", "not-gzip", false},
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

func TestRecordsHaveTheirTextAsHTML(t *testing.T) {
	records := []string{`{"seq":1,"type":"user_message","text":"**a** }"}`, `{"seq":2,"type":"tool_result","text":"**b**"}`,
		`{"seq":3,"type":"assistant_message","text":""}`, `{"seq":4,"type":"summary","text":"}"}`, `{"seq":5,"type":"note"}`}
	f := &fake{history: func(string, int64, int) (page event.Page, _ error) {
		for _, r := range records {
			page.Records = append(page.Records, json.RawMessage(r))
		}
		return page, nil
	}}
	b := f.backend()
	b.HTML = func(text string) string { return "<i>" + text + "</i>" }
	ask := func(path string) (got []string) {
		_, _, text := raw(t, Handler(b, Options{}), "GET", path, "")
		var page struct {
			Records []struct {
				Seq  int
				HTML string
			}
		}
		if err := json.Unmarshal([]byte(text), &page); err != nil {
			t.Fatalf("%v: %s", err, text)
		}
		for _, r := range page.Records {
			got = append(got, r.HTML)
		}
		return got
	}
	if got := strings.Join(ask("/v1/agents/alpha/history?html=1"), "|"); got != "<i>**a** }</i>|||<i>}</i>|" {
		t.Errorf("HTML %q", got)
	}
	if got := strings.Join(ask("/v1/agents/alpha/history"), ""); got != "" {
		t.Errorf("nobody asked for %q", got)
	}
}
