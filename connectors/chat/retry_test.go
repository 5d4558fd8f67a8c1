package chat

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// A message that breaks its handler is tried three times, then passed over; then the
// count begins anew.
func TestStrikes(t *testing.T) {
	s := Strikes{Log: slog.New(slog.DiscardHandler)}
	bad := func() error { panic("seeded") }
	for n := range 6 {
		if err := s.Guard("a", bad); (err == nil) != (n%3 == 2) {
			t.Errorf("try %d: %v", n+1, err)
		}
	}

	no := errors.New("no")
	for _, want := range []error{no, nil} {
		s.Guard("a", bad)
		s.Guard("a", bad)
		if err := s.Guard("a", func() error { return want }); err != want {
			t.Errorf("got %v, want %v", err, want)
		}
	}

	if len(s.all) != 0 {
		t.Errorf("counted are still %v", s.all)
	}
}

// A second try of a part sends what the first did not, and what is sent is forgotten.
func TestProgress(t *testing.T) {
	var p Progress
	var sent []string
	broken := true
	step := func(name string) func() error {
		return func() error {
			if name == "b" && broken {
				return errors.New("broken")
			}
			sent = append(sent, name)
			return nil
		}
	}
	steps := []func() error{step("a"), step("b"), step("c")}
	if err := p.Send("k", steps); err == nil || len(p.sent) != 1 {
		t.Errorf("%v, %v", err, p.sent)
	}

	broken = false
	if err := p.Send("k", steps); err != nil || !slices.Equal(sent, []string{"a", "b", "c"}) || len(p.sent) != 0 {
		t.Errorf("%v, sent %v, remembered %v", err, sent, p.sent)
	}
}

func TestRest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for n, want := range map[int]time.Duration{0: time.Second, 3: 8 * time.Second, 5: longPause, 500: longPause} {
			began := time.Now()
			if Rest(t.Context(), time.Second, n); time.Since(began) != want {
				t.Errorf("after failure %d: %v, want %v", n, time.Since(began), want)
			}
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		began := time.Now()
		if Rest(ctx, time.Hour, 1); time.Since(began) > time.Second {
			t.Errorf("waited %v although the context ended", time.Since(began))
		}
	})
}

// What a client says has neither the address nor a secret in it, and a redirect is not followed.
func TestClient(t *testing.T) {
	const secret = "123:canary"
	elsewhere := 0
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/slow":
			w.Header().Set("Retry-After", "7")
			w.WriteHeader(http.StatusTooManyRequests)
		case "/moved":
			http.Redirect(w, r, "/elsewhere", http.StatusFound)
		case "/elsewhere":
			elsewhere++
		case "/cut":
			w.Header().Set("Content-Length", "100")
		default:
			io.Copy(w, r.Body)
		}
	}))
	defer s.Close()
	c := NewClient(s.URL+"/", secret)
	defer c.HTTP.CloseIdleConnections()
	post := func(path string) (Answer, error) {
		return c.Do(t.Context(), Call{Name: "m", Path: path, Media: "text/plain", Bearer: secret, Body: strings.NewReader("body")})
	}
	if a, err := post("/echo"); err != nil || a.Status != http.StatusOK || string(a.Body) != "body" {
		t.Errorf("%+v, %v", a, err)
	}
	if a, err := post("/slow"); err != nil || a.Status != http.StatusTooManyRequests || a.RetryAfter != 7*time.Second {
		t.Errorf("%+v, %v", a, err)
	}
	if a, err := post("/moved"); err != nil || a.Status != http.StatusFound || elsewhere != 0 {
		t.Errorf("%+v, %v, %d", a, err, elsewhere)
	}

	_, cut := post("/cut")
	_, unreadable := NewClient("http://a b/"+secret, secret).Do(t.Context(), Call{Name: "m"})
	_, refused := NewClient("http://127.0.0.1:1/"+secret, secret).Do(t.Context(), Call{Name: "m"})
	_, gone := c.Download(t.Context(), s.URL+"/slow?"+secret, secret)
	_, never := c.Download(t.Context(), "http://127.0.0.1:1/"+secret, secret)
	for name, err := range map[string]error{"cut": cut, "unreadable": unreadable, "refused": refused, "gone": gone, "never": never,
		"said": c.Clean(errors.New("token " + secret + " is wrong"))} {
		if err == nil || strings.Contains(err.Error(), secret) || strings.Contains(err.Error(), "http://") {
			t.Errorf("%s: %v", name, err)
		}
	}

	if plain := errors.New("plain"); c.Clean(plain) != plain {
		t.Error("an error without a secret was changed")
	}
}
