package redact

import (
	"bytes"
	"encoding/json"
	"math/rand/v2"
	"strings"
	"syscall"
	"testing"
)

// A text that comes in pieces loses its secrets however it is cut: what is passed on is
// what the whole text is without them, and what can be is passed on at once.
func TestPiecesAreTheWholeWithoutSecrets(t *testing.T) {
	random := rand.New(rand.NewPCG(7, 8))
	secrets := []string{"hunter2hunter2", "hunter2hunter2andmore", "päss wörd 𝄞 \"x\" <&>", "ABABABABAB"}
	r := New(secrets...)
	var bits []string
	for _, s := range secrets {
		for _, form := range forms(s) {
			bits = append(bits, form, form[:len(form)/2], form[len(form)/2:], form[:len(form)-1])
		}
	}

	bits = append(bits, "plain ", "hunter2", "\n", "AB", "x")
	for range 3000 {
		var text strings.Builder
		for range random.IntN(6) {
			text.WriteString(bits[random.IntN(len(bits))])
		}
		whole := text.String()
		s, w := r.Stream(), new(bytes.Buffer)
		to := r.Writer(w)
		var got strings.Builder
		for at := 0; at < len(whole); {
			next := min(len(whole), at+1+random.IntN(12))
			got.WriteString(s.Next(whole[at:next]))
			if n, err := to.Write([]byte(whole[at:next])); n != next-at || err != nil {
				t.Fatal(n, err)
			}
			at = next
		}

		got.WriteString(s.Rest())
		if err := to.Close(); err != nil {
			t.Fatal(err)
		}
		if want := r.Text(whole); got.String() != want || w.String() != want {
			t.Fatalf("%q became\n%q and\n%q, want\n%q", whole, got.String(), w.String(), want)
		}
	}

	s := r.Stream()
	if got := s.Next("nothing of it"); got != "nothing of it" || s.Rest() != "" {
		t.Errorf("%q was passed on of a plain text", got)
	}
}

// A secret that repeats itself is taken out each time, also where its end and the next
// one's beginning look like another one.
func TestASecretThatRepeatsItselfIsTakenOutOfPieces(t *testing.T) {
	const secret = "ABABABABAB"
	for cut := range 2 * len(secret) {
		s := New(secret).Stream()
		text := secret + secret
		if got := s.Next(text[:cut]) + s.Next(text[cut:]) + s.Rest(); got != Mark+Mark {
			t.Errorf("cut at %d: %q", cut, got)
		}
	}
}

// Every spelling of a secret is taken out, and what only looks like one stays.
func TestEachSpellingIsTakenOut(t *testing.T) {
	const secret = "päss wörd 𝄞 \"x\" <&>"
	r := New(secret)
	for _, form := range forms(secret) {
		if got := r.Text("a " + form + " b"); got != "a "+Mark+" b" {
			t.Errorf("%q became %q", form, got)
		}
	}

	if got := ascii(secret); got != `p\u00e4ss w\u00f6rd \ud834\udd1e \"x\" <&>` {
		t.Errorf("in ASCII it is %s", got)
	}
	if got := lowerPercent("a%2F%3Db%"); got != "a%2f%3db%" {
		t.Errorf("%s", got)
	}

	for _, form := range forms("12345678") {
		if len(form) < Shortest {
			t.Errorf("%q is too short to be taken out", form)
		}
	}
}

func TestJSONStaysJSON(t *testing.T) {
	r := New("12345678", "hunter2hunter2")
	for text, want := range map[string]string{
		`{"a":1}`: `{"a":1}`, `{"a":"hunter2hunter2"}`: `{"a":"` + Mark + `"}`, `{"a":12345678}`: `"{\"a\":` + Mark + `}"`,
		`12345678`: `"` + Mark + `"`,
	} {
		got := r.JSON(json.RawMessage(text))
		if string(got) != want && !(text == "12345678" && json.Valid(got) && !strings.Contains(string(got), text)) || !json.Valid(got) {
			t.Errorf("%s became %s, want %s", text, got, want)
		}
	}
}

// cut is a writer that takes nothing.
type cut struct{}

func (cut) Write([]byte) (int, error) { return 0, syscall.EPIPE }

// An error of the writer beneath comes back, whenever the text is passed on.
func TestErrorsOfTheWriterBeneath(t *testing.T) {
	for name, r := range map[string]*Redactor{"nil": nil, "none": New(), "one": New("hunter2hunter2")} {
		if n, err := r.Writer(cut{}).Write([]byte("plain\n")); err == nil || n != 0 {
			t.Errorf("%s: %d, %v", name, n, err)
		}
	}
	w := New("hunter2hunter2").Writer(cut{})
	if n, err := w.Write([]byte("hunter2")); n != 7 || err != nil {
		t.Errorf("what is held back: %d, %v", n, err)
	}
	if err := w.Close(); err == nil {
		t.Error("what was held back is lost, and nothing is said")
	}
	if err := New("hunter2hunter2").Writer(cut{}).Close(); err != nil {
		t.Errorf("nothing was written: %v", err)
	}
}
