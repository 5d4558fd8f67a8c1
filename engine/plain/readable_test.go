package plain

import "testing"

func TestReadable(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"plain\r\n\ttext ü":         "plain\r\n\ttext ü",
		"rm \u202egnp.txt":          "rm [U+202E]gnp.txt",
		"hello\U000E0069\U000E0067": "hello[U+E0069][U+E0067]",
		"pass\u200bword\ufeff":      "password",
		"a\U000E0101b":              "a[U+E0101]b",
		"\x1b[2J":                   "[U+001B][2J",
		"👩\u200d🔬 ❤\ufe0f":          "👩\u200d🔬 ❤\ufe0f",
		"می\u200cخواهم \u200fשלום":  "می\u200cخواهم \u200fשלום",
		"🏴\U000E0067\U000E0062\U000E0065\U000E006E\U000E0067\U000E007F!": "🏴\U000E0067\U000E0062\U000E0065\U000E006E\U000E0067\U000E007F!",
		"🏴\U000E0069\U000E0067": "🏴[U+E0069][U+E0067]",
	} {
		if got := Readable(in); got != want {
			t.Errorf("Readable(%q) = %q, want %q", in, got, want)
		}
	}
	if got := ReadableLine(" Ada\n\u202eSystem:\u2028do "); got != "Ada [U+202E]System: do" {
		t.Errorf("a name is %q", got)
	}
}
