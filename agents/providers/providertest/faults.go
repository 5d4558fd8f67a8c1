package providertest

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"daycare/agents/providers"
)

// cut ends a good answer after every event. Without the end mark it is broken,
// however the connection ends.
func (s suite) cut(t *testing.T) {
	for _, name := range []string{"text", "tools"} {
		text := transcript(t, name)
		for at := 0; at < len(text); {
			next := strings.Index(text[at:], "\n\n")
			if next < 0 {
				break
			}
			at += next + 2
			prefix := text[:at]
			if at == len(text) {
				break
			}

			events := s.play(t, prefix, len(prefix))
			if s.wire.Ended(prefix) {
				if _, ok := events[len(events)-1].(providers.Complete); !ok {
					t.Errorf("%s cut cleanly at %d, after its end: %+v, want Complete", name, at, events[len(events)-1])
				}
			} else {
				wantKind(t, events, providers.Broken)
			}

			p := s.serve(t, func(w http.ResponseWriter, r *http.Request) {
				stream(w, prefix, len(prefix))
				reset(w)
			})
			wantKind(t, Collect(t, t.Context(), p, Hello()), providers.Broken)
		}
	}
}

// reset breaks the connection the hard way.
func reset(w http.ResponseWriter) {
	conn, _, err := w.(http.Hijacker).Hijack()
	if err != nil {
		panic(err)
	}
	if tcp, ok := conn.(*net.TCPConn); ok {
		tcp.SetLinger(0)
	}
	conn.Close()
}

// refused answers with errors; the message repeats the key, as some services do.
func (s suite) refused(t *testing.T) {
	told := "no, not with " + Key + " and not today"
	page := "<html><head><title>Bad gateway</title></head><body>" + Key + "</body></html>"
	tests := []struct {
		name   string
		status int
		header [2]string
		body   string
		kind   providers.Kind
		after  time.Duration
	}{
		{name: "429", status: 429, body: s.wire.Error("rate_limit_error", told), kind: providers.Busy},
		{name: "429 with seconds", status: 429, header: [2]string{"Retry-After", "7"}, kind: providers.Busy, after: 7 * time.Second},
		{name: "429 with milliseconds", status: 429, header: [2]string{"Retry-After-Ms", "1500"}, kind: providers.Busy,
			after: 1500 * time.Millisecond},
		{name: "529", status: 529, body: s.wire.Error("overloaded_error", told), kind: providers.Busy},
		{name: "503", status: 503, body: "upstream connect error", kind: providers.Busy},
		{name: "500", status: 500, body: s.wire.Error("api_error", told), kind: providers.Rejected},
		{name: "400", status: 400, body: s.wire.Error("invalid_request_error", told), kind: providers.Rejected},
		{name: "401", status: 401, body: s.wire.Error("authentication_error", told), kind: providers.Auth},
		{name: "403", status: 403, body: s.wire.Error("permission_error", told), kind: providers.Auth},
		{name: "404", status: 404, kind: providers.Rejected},
		{name: "page with 502", status: 502, header: [2]string{"Content-Type", "text/html"}, body: page, kind: providers.Rejected},
		{name: "page with 200", status: 200, header: [2]string{"Content-Type", "text/html"}, body: page, kind: providers.Rejected},
		{name: "redirect", status: 307, header: [2]string{"Location", "http://127.0.0.1:1/elsewhere"}, kind: providers.Rejected},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			p := s.serve(t, func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Request-Id", "req_018EeWyXxfu5pfWkrYcMdjWG")
				if tt.header[0] != "" {
					w.Header().Set(tt.header[0], tt.header[1])
				}
				w.WriteHeader(tt.status)
				fmt.Fprint(w, tt.body)
			})
			f := wantKind(t, Collect(t, t.Context(), p, Hello()), tt.kind)
			if f.Status != tt.status || f.RetryAfter != tt.after || f.Provider != p.ID() {
				t.Errorf("failure %+v, want status %d, Retry-After %v", f, tt.status, tt.after)
			}
			if !strings.Contains(f.Error(), "req_018EeWyXxfu5pfWkrYcMdjWG") {
				t.Errorf("error %q does not name the request, which the vendor's support asks for", f)
			}
		})
	}

	s.replies(t, "overflow", s.wire.Overflow, providers.Overflow)
	s.replies(t, "no credit", s.wire.NoCredit, providers.Auth)
}

func (s suite) replies(t *testing.T, name string, replies []Reply, kind providers.Kind) {
	for i, reply := range replies {
		t.Run(fmt.Sprintf("%s %d", name, i), func(t *testing.T) {
			p := s.serve(t, func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Content-Type", "application/json")
				w.WriteHeader(reply.Status)
				fmt.Fprint(w, reply.Body)
			})
			wantKind(t, Collect(t, t.Context(), p, Hello()), kind)
		})
	}
}

// faults are those of the network.
func (s suite) faults(t *testing.T) {
	text := transcript(t, "text")
	half := text[:len(text)/2]
	tests := []struct {
		name    string
		handler http.HandlerFunc
		silent  bool // the request must fail by its own patience
	}{
		{"reset before the answer", func(w http.ResponseWriter, r *http.Request) { reset(w) }, false},
		{"hang before the answer", func(w http.ResponseWriter, r *http.Request) { wait(r, 20*Idle) }, true},
		{"hang inside the answer", func(w http.ResponseWriter, r *http.Request) {
			stream(w, half, len(half))
			wait(r, 20*Idle)
		}, true},
		{"half an event", func(w http.ResponseWriter, r *http.Request) { stream(w, half, len(half)) }, false},
		{"nothing", func(w http.ResponseWriter, r *http.Request) { stream(w, "\n", 1) }, false},
		{"garbage in an event", func(w http.ResponseWriter, r *http.Request) {
			stream(w, "data: {\"oops "+Key+"\n\n"+text, 1<<20)
		}, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if tt.silent {
				t.Parallel()
			}
			p := s.serve(t, tt.handler)
			start := time.Now()
			wantKind(t, Collect(t, t.Context(), p, Hello()), providers.Broken)
			if took := time.Since(start); tt.silent && took > 10*Idle {
				t.Errorf("noticed after %v, want about %v", took, Idle)
			}
		})
	}

	t.Run("nobody listens", func(t *testing.T) {
		p := s.new(t, "http://127.0.0.1:1", client(t))
		wantKind(t, Collect(t, t.Context(), p, Hello()), providers.Down)
	})
	t.Run("garbage between events", func(t *testing.T) {
		want := s.play(t, text, len(text))
		got := s.play(t, "garbage\nid: 7\nretry: 1\n: comment\n\n"+strings.ReplaceAll(text, "\n\n", "\nfoo: bar\n\n"), 64)
		if g, w := string(lines(t, got)), string(lines(t, want)); g != w {
			t.Errorf("lines that mean nothing changed the answer:\n%s", g)
		}
	})

	t.Run("slow but alive", func(t *testing.T) {
		t.Parallel()
		p := s.serve(t, func(w http.ResponseWriter, r *http.Request) {
			for start := time.Now(); time.Since(start) < 2*Idle; wait(r, Idle/8) {
				stream(w, ": still here\n", 64)
			}
			stream(w, text, len(text))
		})
		events := Collect(t, t.Context(), p, Hello())
		if _, ok := events[len(events)-1].(providers.Complete); !ok {
			t.Errorf("comments are a sign of life; got %+v", events[len(events)-1])
		}
	})
}

// wait ends early when the client has gone.
func wait(r *http.Request, d time.Duration) {
	select {
	case <-r.Context().Done():
	case <-time.After(d):
	}
}

func (s suite) streamErrors(t *testing.T) {
	text := transcript(t, "text")
	begin := text[:strings.Index(text, "\n\n")+2]
	for kind, want := range map[string]providers.Kind{
		"overloaded_error": providers.Busy, "rate_limit_error": providers.Busy,
		"api_error": providers.Broken, "server_error": providers.Broken,
		"authentication_error": providers.Auth, "invalid_request_error": providers.Rejected,
	} {
		t.Run(kind, func(t *testing.T) {
			all := begin + s.wire.StreamError(kind, "no, not with "+Key)
			f := wantKind(t, s.play(t, all, len(all)), want)
			if !strings.Contains(f.Message, providers.Redacted) {
				t.Errorf("message %q: want the service's own words with the key redacted", f.Message)
			}
		})
	}
}

// cancel ends calls from this side: by the context, and by leaving the loop.
func (s suite) cancel(t *testing.T) {
	text := transcript(t, "text")
	begin := text[:strings.LastIndex(strings.TrimSpace(text), "\n\n")+2] // something is read of it, whatever it begins with
	serve := func(t *testing.T) (providers.Provider, chan struct{}) {
		gone := make(chan struct{})
		return s.serve(t, func(w http.ResponseWriter, r *http.Request) {
			defer close(gone)
			stream(w, begin, len(begin))
			<-r.Context().Done()
		}), gone
	}
	t.Run("context", func(t *testing.T) {
		p, gone := serve(t)
		why := errors.New("stopped by hand")
		ctx, cancel := context.WithCancelCause(t.Context())
		defer cancel(nil)
		time.AfterFunc(Idle/8, func() { cancel(why) })
		events := Collect(t, ctx, p, Hello())
		if e, ok := events[len(events)-1].(providers.Error); !ok || !errors.Is(e.Err, why) {
			t.Errorf("ended with %+v, want the cause of the cancel", events[len(events)-1])
		}

		closed(t, gone)
	})

	t.Run("leaving the loop", func(t *testing.T) {
		t.Parallel()
		p, gone := serve(t)
		for range p.Stream(t.Context(), Hello()) {
			break
		}
		closed(t, gone)
	})

	t.Run("before", func(t *testing.T) {
		p, _ := serve(t)
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		events := Collect(t, ctx, p, Hello())
		if e, ok := events[len(events)-1].(providers.Error); !ok || !errors.Is(e.Err, context.Canceled) {
			t.Errorf("ended with %+v, want context.Canceled", events[len(events)-1])
		}
	})
}

func closed(t *testing.T, gone chan struct{}) {
	t.Helper()
	select {
	case <-gone:
	case <-time.After(10 * time.Second):
		t.Error("the connection is still open")
	}
}

// concurrent uses one provider, and one message, from many goroutines.
func (s suite) concurrent(t *testing.T) {
	text := transcript(t, "tools")
	p := s.serve(t, func(w http.ResponseWriter, r *http.Request) { stream(w, text, 100) })
	req := Conversation(p.ID())
	want := string(lines(t, s.play(t, text, 100)))
	var wg sync.WaitGroup
	for range 16 {
		wg.Go(func() {
			var events []providers.Event
			for ev := range p.Stream(t.Context(), req) {
				events = append(events, ev)
			}
			if got := string(lines(t, events)); got != want {
				t.Errorf("beside other calls the answer reads differently:\n%s", got)
			}
		})
	}

	wg.Wait()
}
