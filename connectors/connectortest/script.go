package connectortest

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"
)

// A Script is a platform's API that gives each request the answer that is written for it, and keeps
// what it was asked. What nothing is written for gets 404.
type Script struct {
	URL  string
	says []map[string]string

	mu    sync.Mutex
	heard []string
}

// NewScript serves answers until the test ends. The key of one is method and path, such as
// "POST /messages", or how they begin with "*" behind it; an answer is a status and a body, such as
// `200 {"id":"1"}`. One of 429 without a body asks for 3 seconds. The first map that has a key counts.
func NewScript(t *testing.T, says ...map[string]string) *Script {
	t.Helper()
	s := &Script{says: says}
	server := httptest.NewServer(s)
	t.Cleanup(server.Close)
	s.URL = server.URL
	return s
}

// ServeHTTP answers.
func (s *Script) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	at := r.Method + " " + r.URL.Path
	s.mu.Lock()
	s.heard = append(s.heard, strings.TrimSpace(at+" "+r.URL.RawQuery+" "+r.Header.Get("Content-Type")+" "+string(body)))
	s.mu.Unlock()
	status, text, _ := strings.Cut(s.answer(at), " ")
	code, err := strconv.Atoi(status)
	if err != nil {
		code = http.StatusNotFound
	}
	if code == http.StatusTooManyRequests && text == "" {
		w.Header().Set("Retry-After", "3")
	}
	w.WriteHeader(code)
	_, _ = io.WriteString(w, text)
}

// answer is what is written for a request; "": nothing is.
func (s *Script) answer(at string) string {
	for _, says := range s.says {
		if answer, ok := says[at]; ok {
			return answer
		}
		for key, answer := range says {
			if begin, ok := strings.CutSuffix(key, "*"); ok && strings.HasPrefix(at, begin) {
				return answer
			}
		}
	}

	return ""
}

// Of returns the requests that begin so, in their order: method, path, query, media type and body.
func (s *Script) Of(begin string) (list []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, h := range s.heard {
		if strings.HasPrefix(h, begin) {
			list = append(list, h)
		}
	}

	return list
}
