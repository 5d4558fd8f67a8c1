package redact

import (
	"encoding/hex"
	"math/rand/v2"
	"strings"
	"testing"
)

// Cut anywhere, a stream says what the whole text without secrets is, and never shows
// one; nothing is held back at the end.
func TestStreamCutAnywhere(t *testing.T) {
	secrets := []string{"abcabcabcabd", "abcabcabcabdabc", "canary/8f3e+a1", "ünïcödé-key"}
	r := New(secrets...)
	texts := []string{
		"", "plain", "abcabcabcabcabd", "abcabcabcabdabc", "x abcabcabcabdab y", "abcabcabcabdabcabcabcabd",
		"a token canary/8f3e+a1 and canary/8f3e+a", "ünïcödé-keyünïcödé-ke", hex.EncodeToString([]byte(secrets[2])) + "!",
		strings.Repeat("abcabcabcab", 5) + "dabc",
	}
	random := rand.New(rand.NewPCG(1, 2))
	for range 300 {
		var b strings.Builder
		for range random.IntN(12) {
			s := secrets[random.IntN(len(secrets))]
			b.WriteString(s[:random.IntN(len(s)+1)])
			if random.IntN(3) == 0 {
				b.WriteString(s)
			}
		}
		texts = append(texts, b.String())
	}

	for _, text := range texts {
		for range 20 {
			s := r.Stream()
			var shown strings.Builder
			for rest := text; rest != ""; {
				n := 1 + random.IntN(min(len(rest), 9))
				shown.WriteString(s.Next(rest[:n]))
				rest = rest[n:]
			}

			shown.WriteString(s.Rest())
			got := shown.String()
			for _, secret := range secrets {
				if strings.Contains(got, secret) {
					t.Fatalf("%q in pieces shows %q", text, got)
				}
			}

			if !strings.Contains(got, Mark) && got != text {
				t.Fatalf("%q in pieces is %q", text, got)
			}
			if want := r.Text(text); got != want {
				t.Fatalf("%q in pieces is %q, whole %q", text, got, want)
			}
		}
	}
}

// What cannot be a secret is shown at once, also while secrets are known or none are.
func TestStreamHoldsNothingElse(t *testing.T) {
	for _, r := range []*Redactor{nil, New(), New("canary/8f3e+a1")} {
		s := r.Stream()
		if got := s.Next("Password: "); got != "Password: " {
			t.Errorf("shown is %q", got)
		}
		if got := s.Rest(); got != "" {
			t.Errorf("held back was %q", got)
		}
	}

	s := New("canary/8f3e+a1").Stream()
	if got := s.Next("it is can"); got != "it is " {
		t.Errorf("shown is %q", got)
	}
	if got := s.Next("dy"); got != "candy" {
		t.Errorf("shown is %q", got)
	}
}

func TestWriter(t *testing.T) {
	var out strings.Builder
	w := New("canary/8f3e+a1").Writer(&out)
	for _, piece := range []string{"a cana", "ry/8f", "3e+a1 b", " canary"} {
		if n, err := w.Write([]byte(piece)); n != len(piece) || err != nil {
			t.Fatal(n, err)
		}
	}
	if err := w.Close(); err != nil || out.String() != "a [redacted] b canary" {
		t.Errorf("%q, %v", out.String(), err)
	}
}
