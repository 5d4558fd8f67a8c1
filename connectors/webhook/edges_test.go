package webhook

import (
	"bytes"
	"context"
	"encoding/hex"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"daycare/connectors"
	"daycare/engine/inbox"
	"daycare/engine/message"
)

// alone is a connector with one hook, without a listener.
func alone(t *testing.T, h Hook, secret string) *Connector {
	t.Helper()
	h.ID, h.SecretEnv = "a", "A"
	c, err := New(Options{ID: "hooks", Listen: "127.0.0.1:0", Hooks: []Hook{h}}, func(string) string { return secret },
		slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}

	return c
}

// What is missing in a payload is nothing, wherever a template asks for it.
func TestTemplatesSoftenEveryPart(t *testing.T) {
	payload := `{"a":{"b":"x"},"list":[1,2],"no":false}`
	for text, want := range map[string]string{
		`{{with .none.x}}w{{else}}{{.none.y}}-{{.a.b}}{{end}}`:           "-x",
		`{{if .none.x}}i{{else}}{{.none.y}}{{.a.b}}{{end}}`:              "x",
		`{{with .a.b}}{{.}}{{end}}`:                                      "x",
		`{{if .a.b.c}}i{{else}}e{{end}}{{with .a.b.c}}w{{end}}`:          "e",
		`{{range .a.b.c}}r{{end}}{{define "u"}}u{{end}}{{template "u"}}`: "u",
		`{{range .none.x}}r{{else}}{{.none.y}}none{{end}}`:               "none",
		`{{range .list}}{{.}},{{end}}`:                                   "1,2,",
		`{{define "t"}}[{{.}}{{.none.x}}]{{end}}{{template "t" .a}}`:     `[{"b":"x"}]`,
		`{{define "t"}}[{{.}}]{{end}}{{template "t" .none.x}}`:           "[]",
		`{{print (print .none.x) .a.b}}`:                                 "x",
		`{{(index .list 0)}}{{$x := .a}}{{$x.b}}{{$x.none.x}}{{$x}}`:     `1x{"b":"x"}`,
		`{{printf "%v" (index . "none" "x")}}{{.no}}{{(.a).none.x}}|`:    "false|",
	} {
		tmpl, err := parseTemplate(text)
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		if got, err := render(tmpl, "application/json", []byte(payload)); err != nil || got != want {
			t.Errorf("%s: %q, %v, want %q", text, got, err, want)
		}
	}
}

// A payload's numbers are printed as they were written, its text without marks of HTML.
func TestPayloadsArePrintedAsTheyCame(t *testing.T) {
	tmpl, err := parseTemplate(`{{.v}}`)
	if err != nil {
		t.Fatal(err)
	}

	for v, want := range map[string]string{"1.5": "1.5", "1.50": "1.50", "1e400": "1e400",
		"12345678901234567890": "12345678901234567890",
		`{"t":"<&>"}`:          `{"t":"<&>"}`, `[1.50]`: "[1.50]"} {
		if got, err := render(tmpl, "application/json", []byte(`{"v":`+v+`}`)); err != nil || got != want {
			t.Errorf("%s: %q, %v", v, got, err)
		}
	}

	more, err := parseTemplate(`{{if gt .v 1.2}}more{{end}}`)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := render(more, "application/json", []byte(`{"v":1.5}`)); err != nil || got != "more" {
		t.Errorf("a number that is compared: %q, %v", got, err)
	}

	for _, body := range []string{`{"text":"x"} {"text":"y"}`, "", "{"} {
		if got, err := render(nil, "application/json", []byte(body)); !errors.Is(err, errNotJSON) {
			t.Errorf("%q: %q, %v", body, got, err)
		}
	}
	b := &bounded{}
	for n, want := range map[int]error{inbox.MaxItemBytes: nil, 1: inbox.ErrTooLarge} {
		b.Reset()
		b.WriteString(strings.Repeat("x", inbox.MaxItemBytes-n))
		if _, err := b.Write(make([]byte, n)); err != nil {
			t.Errorf("up to the limit: %v", err)
		}
		if _, err := b.Write([]byte("x")); !errors.Is(err, inbox.ErrTooLarge) {
			t.Errorf("over the limit: %v, want %v", err, want)
		}
	}
}

// A signature is a whole MAC, a timestamp a time, and a delivery has its id.
func TestClaimsThatAreNotWhole(t *testing.T) {
	whole := strings.Repeat("00", 32)
	claim := func(headers ...string) string {
		h := http.Header{}
		for i := 0; i < len(headers); i += 2 {
			h.Set(headers[i], headers[i+1])
		}
		_, refused := readClaim(h)
		if refused == nil {
			return ""
		}

		return refused.reason
	}
	now := "1700000000"
	for want, got := range map[string]string{
		"does not have the form":  claim("X-Hub-Signature-256", whole),
		"does not have the form ": claim("X-Hub-Signature-256", "sha256="+whole[2:]) + " ",
		" does not have the form": " " + claim("X-Webhook-Signature", "zz", "X-Webhook-Timestamp", now),
		"no timestamp":            claim("X-Webhook-Signature", whole),
		"no timestamp:":           claim("X-Webhook-Signature", whole, "X-Webhook-Timestamp", "0"),
		"no delivery id": claim("Webhook-Signature", "v1,"+"AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=",
			"Webhook-Timestamp", now, "Idempotency-Key", "other"),
	} {
		if !strings.Contains(got, strings.TrimSpace(want)) {
			t.Errorf("%q, want %q", got, want)
		}
	}

	if hexMAC(whole) == nil || hexMAC(hex.EncodeToString([]byte("short"))) != nil || hexMAC("zz") != nil {
		t.Error("a MAC of another length is one")
	}
	if got := claim("X-Webhook-Signature", whole, "X-Webhook-Timestamp", now); got != "" {
		t.Errorf("a whole claim: %s", got)
	}
}

// Whoever asks wrongly hears how to ask, and a request that breaks its handler is answered.
func TestAnswersToRequests(t *testing.T) {
	c := alone(t, Hook{}, "s")
	ask := func(method, path string, deliver message.Deliver) *httptest.ResponseRecorder {
		r := signed("a", "application/json", `{"text":"x"}`)
		r.Method, r.URL.Path = method, path
		w := httptest.NewRecorder()
		c.serve(w, r, deliver)
		return w
	}
	if w := ask("POST", "/other/a", nil); w.Code != http.StatusNotFound || w.Header().Get("X-Content-Type-Options") != "nosniff" {
		t.Errorf("another path: %d, %v", w.Code, w.Header())
	}
	if w := ask("GET", "/hooks/a", nil); w.Code != http.StatusMethodNotAllowed || w.Header().Get("Allow") != "POST" {
		t.Errorf("GET: %d, %v", w.Code, w.Header())
	}

	broken := func(context.Context, message.Incoming) (message.Receipt, error) { panic("seeded") }
	if w := ask("POST", "/hooks/a", broken); w.Code != http.StatusInternalServerError ||
		!strings.Contains(w.Body.String(), `"internal"`) {
		t.Errorf("a broken handler: %d %s", w.Code, w.Body)
	}
	if text, p := (&hook{}).text(signed("a", "text/plain", " \n"), []byte(" \n")); p != emptyText {
		t.Errorf("a blank body: %q, %v", text, p)
	}

	long := httptest.NewRequest("POST", "/hooks/a", io.LimitReader(strings.NewReader(strings.Repeat("x", 100)), 100))
	w := httptest.NewRecorder()
	if p := oversized(w, long); p.status != http.StatusRequestEntityTooLarge || w.Header().Get("Connection") != "close" {
		t.Errorf("too large: %+v, %v", p, w.Header())
	}
}

// An answer is not sent without a secret to sign it with, and says what it is.
func TestAnswersAreSigned(t *testing.T) {
	var seen http.Header
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { seen = r.Header.Clone() }))
	t.Cleanup(server.Close)
	out := message.Outgoing{ID: "o", To: message.Address{ChannelID: "a"}, Text: "x"}
	c := alone(t, Hook{Callback: server.URL}, canary)
	if _, err := c.Send(t.Context(), out); err != nil || seen.Get("Content-Type") != "application/json" ||
		seen.Get("User-Agent") != "daycare" {
		t.Errorf("%v, %v", err, seen)
	}

	seen = nil
	c.secret = func(string) string { return "" }
	if _, err := c.Send(t.Context(), out); err == nil || seen != nil {
		t.Errorf("without a secret: %v, sent %v", err, seen)
	}
	plain := errors.New("plain")
	if withoutURL(plain) != plain {
		t.Error("an error without an address was changed")
	}
	if got := retryAfter(time.Now().Add(time.Hour).UTC().Format(http.TimeFormat), time.Now()); got < 59*time.Minute ||
		got > time.Hour {
		t.Errorf("until a date: %v", got)
	}
}

// An unnamed secret is nobody's.
func TestDecoyHasASecretOfItsOwn(t *testing.T) {
	c := alone(t, Hook{}, canary)
	if got := c.secret(""); got == "" || got == canary || got != c.secret("") {
		t.Errorf("the secret of no hook is %q", got)
	}
}

// What strangers try is not in the log, as there may be much of it; what goes wrong at a hook is.
func TestScannersDoNotFillTheLog(t *testing.T) {
	c := alone(t, Hook{}, "s")
	for path, logged := range map[string]bool{"/": false, "/hooks/none": false, "/hooks/a": true} {
		var said bytes.Buffer
		c.log = slog.New(slog.NewTextHandler(&said, nil))
		r := newRequest("a", `{"text":"x"}`) // it has no signature
		r.URL.Path = path
		c.serve(httptest.NewRecorder(), r, nil)
		if got := strings.Contains(said.String(), "refused"); got != logged {
			t.Errorf("%s: the log has %q", path, said.String())
		}
	}
}

// A connector of the settings asks the other machines whether a signature was used there.
func TestAConnectorOfTheSettings(t *testing.T) {
	asked := 0
	create := func(o Options) (connectors.Connector, error) {
		m := connectors.Making{Decode: func(into any) error { *into.(*Options) = o; return nil },
			Named: func(string) string { return "s" }, Log: slog.New(slog.DiscardHandler)}
		m.Host.Once = func(_ context.Context, _, value string) (string, error) { asked++; return value, nil }
		return Kind.New(m)
	}
	made, err := create(Options{ID: "hooks", Listen: "127.0.0.1:0", Hooks: []Hook{{ID: "a", SecretEnv: "A"}}})
	if err != nil {
		t.Fatal(err)
	}
	w := httptest.NewRecorder()
	made.(*Connector).serve(w, signed("a", "text/plain", "x"), func(context.Context, message.Incoming) (message.Receipt, error) {
		return message.Receipt{}, nil
	})
	if w.Code != http.StatusAccepted || asked != 1 {
		t.Errorf("status %d, others were asked %d times", w.Code, asked)
	}
	if made, err := create(Options{ID: "hooks", Listen: "127.0.0.1:0"}); err == nil || made != nil {
		t.Errorf("without hooks: %v, %v", made, err)
	}
}
