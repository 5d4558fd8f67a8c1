package providers

import (
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/iotest"
	"time"
	"unicode/utf8"
)

func FuzzAppendString(f *testing.F) {
	for _, s := range []string{"", "plain", "a\"b\\c", "\n\r\t\x00\x1f\x7f", "ü 世界 👩‍🚀\u2028", "\xff\xfea\xc3", "<&>", "a\ufffdb",
		"\ufffd\xff"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		b := AppendString([]byte("x"), s)[1:]
		var back string
		if err := json.Unmarshal(b, &back); err != nil {
			t.Fatalf("%q became %s: %v", s, b, err)
		}
		if want := strings.ToValidUTF8(s, "\ufffd"); utf8.ValidString(s) && back != want {
			t.Errorf("%q came back as %q", s, back)
		}
		std, _ := json.Marshal(s) // knows the rules, but escapes more
		var want string
		if json.Unmarshal(std, &want); back != want {
			t.Errorf("%q came back as %q, encoding/json says %q", s, back, want)
		}
	})
}

func TestBodyReader(t *testing.T) {
	var b Body
	for _, s := range []string{"", "a", "", "bcd", "efghij", ""} {
		b.Add([]byte(s))
	}
	if err := iotest.TestReader(b.Reader(), []byte("abcdefghij")); err != nil {
		t.Error(err)
	}
	again, _ := io.ReadAll(b.Reader())
	if string(again) != "abcdefghij" || b.Len() != 10 || string(b.Bytes()) != "abcdefghij" {
		t.Errorf("second reading %q, length %d", again, b.Len())
	}
}

func TestHead(t *testing.T) {
	o, err := EncodeOptions(map[string]any{"b": 2, "z": nil, "a": []int{1}, "s": "own"})
	if err != nil {
		t.Fatal(err)
	}
	h := NewHead(&Request{}, o)
	h.Field("m", `"x"`)
	h.Field("b", "1")
	h.Field("z", "1")
	h.Set("s", `"set"`)
	h.Set("z", "1")
	if got, want := string(h.Done()), `{"m":"x","s":"set","a":[1],"b":2,`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if _, err := EncodeOptions(map[string]any{"f": func() {}}); err == nil {
		t.Error("a function as an option was accepted")
	}
}

func TestRetryAfter(t *testing.T) {
	now := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	for value, want := range map[string]time.Duration{
		"": 0, "7": 7 * time.Second, "0.5": 500 * time.Millisecond, "-3": 0, "soon": 0, "1e300": 24 * time.Hour, "NaN": 0,
		"Fri, 20 Nov 2026 12:00:30 GMT": 30 * time.Second, "Fri, 20 Nov 2026 11:00:30 GMT": 0,
	} {
		if got := retryAfter(http.Header{"Retry-After": {value}}, now); got != want {
			t.Errorf("retryAfter(%q) = %v, want %v", value, got, want)
		}
	}
}

func TestReadAnswer(t *testing.T) {
	for body, want := range map[string]Answer{
		`{"error":"model 'x' not found"}`: {Message: "model 'x' not found"},
		`{"detail":"Not Found"}`:          {Message: "Not Found"},
		`{"error":{"message":"m","type":"t","code":"c"}}`: {Message: "m",
			Type: "t", Code: "c"},
		`[{"error":{"code":429,"message":"quota","status":"RESOURCE_EXHAUSTED"}}]`: {Message: "quota",
			Type: "RESOURCE_EXHAUSTED", Code: "429"},
		`{"error":{"code":400,"message":"Provider returned error","metadata":{"raw":"upstream says"}}}`: {Message: "Provider returned " +
			"error: upstream says", Code: "400"},
		"<html><head><TITLE>\n 502 Bad Gateway</TITLE>": {Message: "a web page: 502 Bad Gateway"},
		"<!doctype html>": {Message: "a web page"},
		"plain words":     {Message: "plain words"},
		"":                {},
	} {
		if got := ReadAnswer(0, body); got != want {
			t.Errorf("ReadAnswer(%s) = %+v, want %+v", body, got, want)
		}
	}
}

func TestRedact(t *testing.T) {
	key := "sk-a/b+c=\"d\" é"
	r := newRedactor([]string{key, "short", ""})
	for _, in := range []string{key, "Bearer " + key + "!", `{"k":"sk-a/b+c=\"d\" é"}`,
		"?key=sk-a%2Fb%2Bc%3D%22d%22+%C3%A9", "c2stYS9iK2M9ImQiIMOp"} {
		if got := r.text(in); strings.Contains(got, "sk-a") || strings.Contains(got, "c2stY") || !strings.Contains(got, Redacted) {
			t.Errorf("%q became %q", in, got)
		}
	}
	if got := r.text("a short text"); got != "a short text" {
		t.Errorf("a short value was taken for a secret: %q", got)
	}
	if err := r.err(io.ErrUnexpectedEOF); err != io.ErrUnexpectedEOF {
		t.Errorf("a clean error was replaced: %v", err)
	}
}

func TestEstimate(t *testing.T) {
	req := &Request{
		System: "12345678",
		Tools:  []Tool{{Name: "1234", Description: "1234", Schema: []byte(`{"a":1} `)}},
		Messages: []*Message{{Role: User, Parts: []Part{
			Text{"üüüü"}, Image{Data: make([]byte, 1<<20)},
		}}, {Role: Results, Parts: []Part{Result{Text: "12345", Images: make([]Image, 2)}}}},
	}
	if got, want := Estimate(req), int64((8+16+4+7+5+14+3)/4); got != want {
		t.Errorf("Estimate = %d, want %d", got, want)
	}
	if got := EstimateText("12345"); got != 2 {
		t.Errorf("EstimateText = %d, want 2", got)
	}
}
