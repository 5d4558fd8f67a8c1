package providers

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// What a service answers decides what comes next: to try again, to shorten, to ask for a
// key, or to give up.
func TestWhatAnAnswerMeans(t *testing.T) {
	for _, tt := range []struct {
		answer Answer
		want   Kind
	}{
		{Answer{Status: 429}, Busy}, {Answer{Status: 503}, Busy}, {Answer{Status: 529}, Busy},
		{Answer{Status: 429, Message: "Request too large for model"}, Overflow},
		{Answer{Status: 400, Message: "Request too large"}, Rejected},
		{Answer{Status: 429, Type: "insufficient_quota"}, Auth}, {Answer{Status: 400, Message: "API key not valid"}, Auth},
		{Answer{Status: 401}, Auth}, {Answer{Status: 402}, Auth}, {Answer{Status: 403}, Auth},
		{Answer{Status: 413}, Overflow}, {Answer{Status: 400, Message: "Prompt is too long: 3 > 2"}, Overflow},
		{Answer{Status: 400, Code: "context_length_exceeded"}, Overflow},
		{Answer{Status: 400}, Rejected}, {Answer{Status: 404, Message: "overloaded"}, Rejected}, {Answer{Status: 500}, Rejected},
		{Answer{Status: 400, Code: "429"}, Rejected},
		// Inside a stream there is no status.
		{Answer{Code: "429"}, Busy}, {Answer{Code: "401"}, Auth}, {Answer{Code: "500"}, Broken}, {Answer{Code: "499"}, Rejected},
		{Answer{Type: "overloaded_error"}, Busy}, {Answer{Type: "authentication_error"}, Auth}, {Answer{Type: "api_error"}, Broken},
		{Answer{Message: "it will not do"}, Rejected}, {Answer{}, Rejected},
	} {
		if got := tt.answer.Kind(); got != tt.want {
			t.Errorf("%+v is %s, want %s", tt.answer, got, tt.want)
		}
	}
}

// A service says how long to wait in one of three ways.
func TestHowLongAServiceAsksToWait(t *testing.T) {
	now := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	for want, h := range map[time.Duration]http.Header{
		1500 * time.Millisecond: {"Retry-After-Ms": {"1500"}, "Retry-After": {"9"}},
		9 * time.Second:         {"Retry-After-Ms": {"0"}, "Retry-After": {"9"}},
		24 * time.Hour:          {"Retry-After": {"99999999"}},
		0:                       {"Retry-After": {"Fri, 20 Nov 2026 12:00:00 GMT"}},
	} {
		if got := retryAfter(h, now); got != want {
			t.Errorf("%v asks to wait %v, want %v", h, got, want)
		}
	}
	a := ReadAnswer(429, `{"error":{"code":429,"details":[{"@type":"x.RetryInfo","retryDelay":"7s"}],"message":"quota"}}`)
	if a.Wait != 7*time.Second || a.Status != 429 {
		t.Errorf("Google asks to wait %v", a.Wait)
	}
	if a := ReadAnswer(400, `{"error":{"message":"m","metadata":{"raw":"m"}}}`); a.Message != "m" {
		t.Errorf("a message that is wrapped in itself is %q", a.Message)
	}
	if a := ReadAnswer(400, `{"type":"t","message":"m"}`); a.Message != "m" || a.Type != "t" {
		t.Errorf("%+v", a)
	}
}

// A service's message is one line that has an end.
func TestAMessageIsShort(t *testing.T) {
	for in, want := range map[string]string{" a\n\tb ": "a b", strings.Repeat("x", maxMessage): strings.Repeat("x", maxMessage),
		strings.Repeat("x", maxMessage-1) + "é": strings.Repeat("x", maxMessage-1) + "…"} {
		if got := short(in); got != want {
			t.Errorf("%q becomes %q", in, got)
		}
	}
}

// A failure is one line that names its provider and what the vendor's support asks for.
func TestHowAFailureReads(t *testing.T) {
	cause := errors.New("no route")
	for want, f := range map[string]*Failure{
		"p: HTTP 429: slow down (request r1)": {Kind: Busy, Provider: "p", Status: 429, Message: "slow down", RequestID: "r1", Err: cause},
		"p: no route":                         {Kind: Broken, Provider: "p", Err: cause},
		"p: broken":                           {Kind: Broken, Provider: "p"},
		"The key for p is missing.":           {Kind: NoKey, Provider: "p", Message: "The key for p is missing."},
		"p: no-key":                           {Kind: NoKey, Provider: "p"},
	} {
		if got := f.Error(); got != want {
			t.Errorf("it reads %q, want %q", got, want)
		}
	}
	for kind, again := range map[Kind]bool{Busy: true, Broken: true, Down: true, Overflow: false, NoKey: false, Auth: false,
		Rejected: false, Budget: false} {
		if got := (&Failure{Kind: kind}).Retryable(); got != again {
			t.Errorf("%s may succeed later: %v", kind, got)
		}
	}
	f := &Failure{Kind: Auth}
	if Classify("p", fmt.Errorf("x: %w", f)) != f {
		t.Error("a failure is not found where it is wrapped")
	}
	if got := Classify("p", cause); got.Kind != Broken || got.Provider != "p" || !errors.Is(got, cause) {
		t.Errorf("any other error is %+v", got)
	}
}

// exchange is one request to a server that answers so.
func exchange(t *testing.T, answer http.HandlerFunc) *Exchange {
	t.Helper()
	server := httptest.NewServer(answer)
	t.Cleanup(server.Close)
	return &Exchange{Provider: "p", Client: server.Client(), URL: server.URL, Header: http.Header{"X-Own": {"1"}}, Body: bodyOf("hello"),
		Request: &Request{System: "1234"}, Secrets: []string{"the-secret-key"}}
}

func bodyOf(text string) *Body {
	b := &Body{}
	b.Add([]byte(text))
	return b
}

// last is the last event of an exchange, and the text of those before it.
func last(t *testing.T, x *Exchange, d Decoder) (text string, ev Event) {
	t.Helper()
	for ev = range x.Events(t.Context(), d) {
		if c, ok := ev.(ContentDelta); ok {
			text += c.Text
		}
	}
	return text, ev
}

// says is a wire whose frames are text, but for those that end it.
var says = sayAll{func(data string) Event {
	if data == "[DONE]" {
		return Complete{Finish: EndTurn}
	}
	return ContentDelta{Text: data}
}}

// Whatever a server answers in place of a stream is a failure of the right kind, with its
// words and without the key.
func TestAServerThatDoesNotStream(t *testing.T) {
	write := func(status int, header map[string]string, body string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			for name, value := range header {
				w.Header().Set(name, value)
			}
			w.WriteHeader(status)
			io.WriteString(w, body)
		}
	}
	js := map[string]string{"Content-Type": "application/json"}
	for name, tt := range map[string]struct {
		answer http.HandlerFunc
		want   Failure
	}{
		"busy": {write(429, map[string]string{"Retry-After": "7", "Request-Id": "r1"}, `{"error":{"message":"slow down"}}`),
			Failure{Kind: Busy, Status: 429, RetryAfter: 7 * time.Second, Message: "slow down", RequestID: "r1"}},
		"the longer wait": {write(429, map[string]string{"Retry-After": "7"},
			`{"error":{"message":"m","details":[{"@type":"x.RetryInfo","retryDelay":"9s"}]}}`),
			Failure{Kind: Busy, Status: 429, RetryAfter: 9 * time.Second, Message: "m"}},
		"without words": {write(500, nil, " "), Failure{Kind: Rejected, Status: 500, Message: "Internal Server Error"}},
		"a redirect": {write(302, map[string]string{"Location": "https://elsewhere"}, ""),
			Failure{Kind: Rejected, Status: 302, Message: "redirects to https://elsewhere: set that as baseURL"}},
		"a page": {write(200, map[string]string{"Content-Type": "text/html; charset=utf-8"}, "<title>Login</title>"),
			Failure{Kind: Rejected, Status: 200, Message: "answered with a web page: Login, not with a stream: check baseURL"}},
		"its key": {write(401, map[string]string{"X-Request-Id": "the-secret-key"}, `{"error":"bad key the-secret-key"}`),
			Failure{Kind: Auth, Status: 401, Message: "bad key " + Redacted, RequestID: Redacted}},
		"another id": {write(400, map[string]string{"X-Generation-Id": "g1"}, `{"error":"m"}`),
			Failure{Kind: Rejected, Status: 400, Message: "m", RequestID: "g1"}},
		"half of a JSON answer": {write(200, map[string]string{"Content-Type": "application/json", "Content-Length": "99"}, `{}`),
			Failure{Kind: Broken, Message: "connection broke in the middle of the answer", Err: io.ErrUnexpectedEOF}},
		"half of a stream": {write(200, map[string]string{"Content-Type": "text/event-stream", "Content-Length": "99"}, "data: x\n\ndata"),
			Failure{Kind: Broken, Message: "connection broke in the middle of the answer", Err: io.ErrUnexpectedEOF}},
	} {
		_, ev := last(t, exchange(t, tt.answer), says)
		e, ok := ev.(Error)
		if !ok {
			t.Errorf("%s: ended with %T %+v", name, ev, ev)
			continue
		}
		got := *Classify("p", e.Err)
		if tt.want.Err != nil && errors.Is(got.Err, tt.want.Err) {
			got.Err = tt.want.Err
		}
		tt.want.Provider = "p"
		if diff := cmp.Diff(fmt.Sprintf("%+v", tt.want), fmt.Sprintf("%+v", got)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	for name, tt := range map[string]struct{ answer http.HandlerFunc }{
		"in one piece":  {write(200, js, "hello")},
		"as a stream":   {write(200, map[string]string{"Content-Type": "text/event-stream"}, "data: hel\n\n: ping\n\ndata: lo\n\n")},
		"with an end":   {write(200, nil, "data: hello\n\ndata: [DONE]\n\ndata: more\n\n")},
		"without words": {write(200, nil, "data: hello\n\n")},
	} {
		text, ev := last(t, exchange(t, tt.answer), says)
		end, ok := ev.(Complete)
		if !ok || text != "hello" || end.Usage != (Usage{Input: 1, Output: 2, Estimated: true}) {
			t.Errorf("%s: %q, %T %+v", name, text, ev, ev)
		}
	}
}

// What a server says it counted is not estimated, and what it calls and thinks counts where
// it says nothing.
func TestWhatAnAnswerUsed(t *testing.T) {
	stream := func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "data: 1\n\ndata: 2\n\ndata: 3\n\n") }
	told := Usage{Input: 7}
	for want, events := range map[Usage][]Event{
		told: {ContentDelta{"12345678"}, Complete{Usage: told}},
		{Input: 1, Output: 5, Estimated: true}: {ThinkingDelta{Text: "äääääääää"},
			ToolUseStop{ID: "c", Arguments: `{"a":"bcd"}`}, Complete{}},
	} {
		x := exchange(t, stream)
		n := 0
		for ev := range x.Events(t.Context(), sayAll{func(string) Event { n++; return events[n-1] }}) {
			if end, ok := ev.(Complete); ok && end.Usage != want {
				t.Errorf("used is %+v, want %+v", end.Usage, want)
			}
		}
	}
}

// A request is sent as it is, to its own server alone.
func TestWhatIsSent(t *testing.T) {
	var got *http.Request
	var body string
	x := exchange(t, func(w http.ResponseWriter, r *http.Request) {
		data, _ := io.ReadAll(r.Body)
		got, body = r, string(data)
		io.WriteString(w, "data: [DONE]\n\n")
	})
	last(t, x, says)
	if got.Method != http.MethodPost || body != "hello" || got.ContentLength != 5 || got.Header.Get("X-Own") != "1" {
		t.Errorf("sent is %s %q of %d bytes, %v", got.Method, body, got.ContentLength, got.Header)
	}
	x.URL = "http://[::1"
	if _, ev := last(t, x, says); !strings.Contains(fmt.Sprint(ev), "make request") {
		t.Errorf("to no address: %v", ev)
	}
	server := httptest.NewUnstartedServer(http.NotFoundHandler())
	server.Config.ErrorLog = nil
	server.StartTLS()
	defer server.Close()
	x = &Exchange{Provider: "p", Client: &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{}}}, URL: server.URL,
		Header: http.Header{},
		Body:   bodyOf("x"), Request: &Request{}}
	if _, ev := last(t, x, says); Classify("p", ev.(Error).Err).Kind != Rejected {
		t.Errorf("of a certificate that nobody vouches for: %v", ev)
	}
}

// A stream that says nothing for too long is given up; who reads slowly is not its silence.
func TestASilentStream(t *testing.T) {
	silent := make(chan struct{})
	defer close(silent)
	x := exchange(t, func(w http.ResponseWriter, r *http.Request) {
		io.WriteString(w, "data: hello\n\n")
		w.(http.Flusher).Flush()
		select {
		case <-silent:
		case <-r.Context().Done():
		}
	})
	x.Idle = 50 * time.Millisecond
	text, ev := last(t, x, says)
	e, ok := ev.(Error)
	if !ok || text != "hello" || Classify("p", e.Err).Kind != Broken || !strings.Contains(e.Err.Error(), "stream went silent") {
		t.Errorf("%q, then %T %v", text, ev, ev)
	}
	x = exchange(t, func(w http.ResponseWriter, _ *http.Request) {
		io.WriteString(w, "data: a\n\ndata: b\n\ndata: [DONE]\n\n")
	})
	x.Idle = 50 * time.Millisecond
	for ev := range x.Events(t.Context(), says) {
		time.Sleep(2 * x.Idle)
		if e, ok := ev.(Error); ok {
			t.Errorf("who reads slowly is told %v", e.Err)
		}
	}
}

// Errors inside a stream carry their status, if they say one, and no key.
func TestErrorsInsideAStream(t *testing.T) {
	x := &Exchange{Provider: "p", Secrets: []string{"the-secret-key"}}
	for code, want := range map[string]int{"429": 429, "399": 0, "400": 400, "599": 599, "600": 0, "x": 0} {
		if f := x.Told(Answer{Code: code, Message: "m the-secret-key"}); f.Status != want || f.Provider != "p" ||
			f.Message != "m "+Redacted {
			t.Errorf("code %s: %+v, want the status %d", code, f, want)
		}
	}
	if f := x.Garbage("the-secret-key {"); f.Kind != Broken || f.Message != "unreadable event in the stream: "+Redacted+" {" {
		t.Errorf("%+v", f)
	}
	if f := x.Ended(); f.Kind != Broken || f.Message == "" {
		t.Errorf("%+v", f)
	}
}

// A service of the settings has its own headers, which win, and needs no key where it is not
// the vendor's own or has another way in.
func TestServicesOfTheSettings(t *testing.T) {
	const vendor = "https://api.example.com/v1"
	for url, own := range map[string]bool{"": true, "https://api.example.com/v2/": true, "http://api.example.com/v1": false,
		"https://proxy.example.com": false} {
		r, err := NewRemote("w", Service{BaseURL: url}, vendor, "/chat")
		if err != nil || r.Own != own || r.ID() != "w" || r.Wire() != "w" {
			t.Errorf("%q is the vendor's own: %v, %v, want %v", url, r.Own, err, own)
		}
	}
	r, err := NewRemote("w", Service{ID: "mine", BaseURL: "http://localhost:1/v1/chat/", Model: "m",
		Headers: map[string]string{"accept": "x", "X-Key": "header-secret"}},
		vendor, "/chat")
	if err != nil || r.Service.BaseURL != "http://localhost:1/v1" || r.Model(&Request{}) != "m" || r.Model(&Request{Model: "n"}) != "n" ||
		r.EncodingKey("n") != "w:mine:n" {
		t.Errorf("%+v, %v", r.Service, err)
	}
	h := r.header("key", Bearer)
	want := http.Header{"Accept": {"x"}, "X-Key": {"header-secret"}, "Content-Type": {"application/json"}, "User-Agent": {"daycare"},
		"Authorization": {"Bearer key"}}
	if diff := cmp.Diff(want, h); diff != "" {
		t.Errorf("headers (-want +got):\n%s", diff)
	}
	if h := r.header("", Bearer); h.Get("Authorization") != "" {
		t.Errorf("without a key is sent %v", h)
	}
	if got := newRedactor(r.secrets("the-secret-key")).text("the-secret-key header-secret"); strings.Contains(got, "secret") {
		t.Errorf("errors show %q", got)
	}
	if _, err := NewRemote("w", Service{Options: map[string]any{"messages": 1}}, vendor, "", "messages"); err == nil {
		t.Error("settings may replace the conversation")
	}
	sent := 0
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if sent++; r.Header.Get("Authorization") != "" {
			t.Errorf("sent is %v", r.Header)
		}
		io.WriteString(w, "data: [DONE]\n\n")
	}))
	defer server.Close()
	for _, s := range []Service{{BaseURL: server.URL}, {Headers: map[string]string{"X-Key": "k"}}} {
		r, err := NewRemote("w", s, vendor, "")
		if err != nil {
			t.Fatal(err)
		}
		prepare := func() Outgoing {
			return Outgoing{URL: server.URL, Body: bodyOf("x"), Sign: Bearer, Decoder: func(*Exchange) Decoder { return says }}
		}
		for ev := range r.Stream(t.Context(), &Request{}, prepare) {
			if e, ok := ev.(Error); ok {
				t.Errorf("%+v: %v", s, e.Err)
			}
		}
	}
	if sent != 2 {
		t.Errorf("%d requests were made", sent)
	}
}

// A message is as long as what is said in it, and a picture counts the same whatever its size.
func TestHowLongAMessageIs(t *testing.T) {
	m := &Message{Parts: []Part{Text{"ää"}, Reasoning{Text: "äää", Signature: "signed"}, Call{Name: "read", Arguments: []byte(`"ä"`)},
		Result{Text: "ä", Images: make([]Image, 1), Documents: make([]Document, 2)}, Image{}, Document{}}}
	want := 2 + 3 + 4 + 3 + 1 + 5*imageChars
	for range 2 { // it is counted once
		if got := m.Chars(); got != want {
			t.Errorf("it has %d characters, want %d", got, want)
		}
	}
	if got := Estimate(&Request{Messages: []*Message{m, m}}); got != int64((2*want+3)/4) {
		t.Errorf("two of them have %d tokens", got)
	}
	if n := (&Message{}).Chars(); n != 0 {
		t.Errorf("nothing has %d characters", n)
	}
}

// Without a model to ask there is no answer.
func TestACallWithoutAProvider(t *testing.T) {
	if _, err := (&Caller{}).Call(t.Context(), &Request{}, nil); err == nil || !strings.Contains(err.Error(), "no provider is configured") {
		t.Errorf("ended with %v", err)
	}
	for n, want := range map[int]int{0: DefaultConcurrency, -1: DefaultConcurrency, 3: 3} {
		if l := Limit(nil, n); l.free != want || l.kept != min(1, want-1) {
			t.Errorf("of %d places %d are free, %d kept", n, l.free, l.kept)
		}
	}
}

// A call that is stopped in the middle of a request ends with the reason, and no other request
// is announced.
func TestACallThatIsStopped(t *testing.T) {
	why := errors.New("stop")
	ctx, cancel := context.WithCancelCause(t.Context())
	p := &fake{id: "a", answers: []answer{{ContentDelta{"half"}, ContentDelta{"never"}}}}
	_, err := (&Caller{Chain: []Provider{p}}).Call(ctx, &Request{}, func(ev Event) {
		switch ev := ev.(type) {
		case ContentDelta:
			cancel(why)
		case Retry:
			t.Errorf("announced is %+v", ev)
		}
	})
	if !errors.Is(err, why) || p.calls != 1 {
		t.Errorf("ended with %v after %d requests", err, p.calls)
	}
	ctx, cancel = context.WithCancelCause(t.Context())
	x := exchange(t, func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(http.StatusInternalServerError)
		w.(http.Flusher).Flush()
		cancel(why)
		<-r.Context().Done()
	})
	for ev := range x.Events(ctx, says) {
		if e, ok := ev.(Error); !ok || !errors.Is(e.Err, why) {
			t.Errorf("stopped while an error is read: %T %v", ev, ev)
		}
	}
}

// Who stops waiting at the moment at which a place is free passes it on.
func TestAPlaceThatNobodyTakesIsPassedOn(t *testing.T) {
	why := errors.New("tired")
	l := Limit(nil, 1)
	if err := l.enter(t.Context(), &Request{Agent: "a"}); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	left := make(chan error)
	go func() { left <- l.enter(ctx, &Request{Agent: "b"}) }()
	for l.Waiting() == 0 {
		runtime.Gosched()
	}
	l.mu.Lock()
	cancel(why)
	turn, ok := l.lines[1].next() // the first one leaves
	if ok {
		close(turn)
	}
	l.mu.Unlock()
	if err := <-left; err == nil { // the place came first
		l.leave()
	} else if !errors.Is(err, why) {
		t.Errorf("left with %v", err)
	}
	if !ok || l.free != 1 || l.Waiting() != 0 {
		t.Errorf("given %v; %d places are free and %d wait, want one that is free", ok, l.free, l.Waiting())
	}
}

// A message that has nothing in it that a model does not take stays the same one, so that what
// was encoded of it is kept.
func TestAMessageThatAModelTakesStaysTheSame(t *testing.T) {
	for name, m := range map[string]*Message{
		"text":    {Role: User, Parts: []Part{Text{"x"}}},
		"result":  {Role: Results, Parts: []Part{Result{Text: "x"}}},
		"picture": {Role: User, Parts: []Part{Image{"image/png", []byte("p")}, Result{Images: make([]Image, 1)}}},
	} {
		sight := Sight{}
		if name == "picture" {
			sight.Images = true
		}
		req := &Request{Messages: []*Message{m}}
		if got := sight.only(req); got != req {
			t.Errorf("%s: the request was copied", name)
		}
	}
	mixed := &Message{Parts: []Part{Result{Text: "a"}, Result{Text: "b", Images: make([]Image, 1)},
		Result{Text: "c", Documents: make([]Document, 1)}}}
	want := []Part{Result{Text: "a"}, Result{Text: "b\n" + noPicture}, Result{Text: "c\n" + noDocument}}
	if diff := cmp.Diff(want, (Sight{}).without(mixed).Parts); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
