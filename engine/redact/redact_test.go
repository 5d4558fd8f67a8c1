package redact

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"strings"
	"testing"
	"time"
)

const secret = `sk-canary/3f9c+"ü&=x`

func TestText(t *testing.T) {
	r := New(secret, "another-secret", "short", "")
	html, _ := json.Marshal(secret)
	for name, spelled := range map[string]string{
		"raw":               secret,
		"base64":            base64.StdEncoding.EncodeToString([]byte(secret)),
		"base64 url":        base64.RawURLEncoding.EncodeToString([]byte(secret)),
		"base64 after 1":    base64.StdEncoding.EncodeToString([]byte("a" + secret + "b")),
		"base64 after 2":    base64.StdEncoding.EncodeToString([]byte("me:" + "ab" + secret)),
		"base64 of a login": base64.URLEncoding.EncodeToString([]byte("user:" + secret + "\n")),
		"hex":               hex.EncodeToString([]byte(secret)),
		"HEX":               strings.ToUpper(hex.EncodeToString([]byte(secret))),
		"query":             url.QueryEscape(secret),
		"path":              url.PathEscape(secret),
		"percent, lower":    strings.ToLower(url.QueryEscape(secret)),
		"JSON":              string(html),
		"JSON, plain":       fmt.Sprintf("%q", secret),
		"JSON, ASCII":       `"sk-canary/3f9c+\"\u00fc&=x"`,
		"another":           "another-secret",
	} {
		got := r.Text("before " + spelled + " after")
		if !strings.Contains(got, Mark) || strings.Contains(got, spelled) {
			t.Errorf("%s: %q became %q", name, spelled, got)
		}
		if strings.HasPrefix(name, "base64") {
			checkDecoded(t, name, got)
		}
	}

	if s := "a short word, and sk-canary"; r.Text(s) != s {
		t.Errorf("%q became %q", s, r.Text(s))
	}
}

// checkDecoded looks whether what is left can be decoded to a part of the secret.
func checkDecoded(t *testing.T, name, left string) {
	t.Helper()
	for _, word := range strings.Fields(strings.ReplaceAll(left, Mark, " ")) {
		plain, err := base64.RawStdEncoding.DecodeString(strings.TrimRight(word, "="))
		if err == nil && strings.Contains(string(plain), "canary") {
			t.Errorf("%s: %q is left and says %q", name, word, plain)
		}
	}
}

func TestSet(t *testing.T) {
	r := New()
	if got := r.Text(secret); got != secret {
		t.Errorf("without secrets: %q", got)
	}
	r.Set([]string{"  " + secret + "\n", secret + "-and-longer"})
	if got := r.Text(secret + "-and-longer"); got != Mark {
		t.Errorf("of two secrets the longer must be taken: %q", got)
	}

	r.Set(nil)
	if got := r.Text(secret); got != secret {
		t.Errorf("taken back: %q", got)
	}
	var none *Redactor
	if got := none.Text(secret); got != secret {
		t.Errorf("nil: %q", got)
	}
}

func TestJSON(t *testing.T) {
	r := New(secret, "1234567890")
	in, _ := json.Marshal(map[string]any{"key": secret, "n": 1234567890})
	out := r.JSON(in)
	if !json.Valid(out) || strings.Contains(string(out), "canary") || strings.Contains(string(out), "1234567890") {
		t.Errorf("%s became %s", in, out)
	}
	if same := json.RawMessage(`{"a":1}`); string(r.JSON(same)) != string(same) {
		t.Errorf("%s was changed", same)
	}
}

type thing struct{ Name, Key string }

func TestAttr(t *testing.T) {
	var b bytes.Buffer
	r := New(secret)
	log := slog.New(slog.NewJSONHandler(&b, &slog.HandlerOptions{ReplaceAttr: r.Attr}))
	log.With("with", secret).WithGroup("g").Error("text "+secret, "err", errors.New("no: "+secret), "list", []string{secret},
		"thing", thing{"a", secret}, "n", 7, "took", time.Second)
	if strings.Contains(b.String(), "canary") {
		t.Errorf("the log has the secret: %s", b.String())
	}

	var line struct {
		Time string
		G    struct {
			N    int
			Took int64
		}
	}
	if err := json.Unmarshal(b.Bytes(), &line); err != nil || line.Time == "" || line.G.N != 7 || line.G.Took != int64(time.Second) {
		t.Errorf("numbers and times must stay what they are: %s (%v)", b.String(), err)
	}
}

func FuzzText(f *testing.F) {
	f.Add(secret, "before ", " after")
	f.Fuzz(func(t *testing.T, s, before, after string) {
		if len(strings.TrimSpace(s)) < Shortest || strings.Contains(Mark, strings.TrimSpace(s)) {
			return
		}
		for _, form := range forms(strings.TrimSpace(s)) {
			if got := New(s).Text(before + form + after); len(form) >= Shortest && strings.Contains(got, form) &&
				!strings.Contains(before+Mark+after, form) {
				t.Errorf("%q is still in %q", form, got)
			}
		}
	})
}
