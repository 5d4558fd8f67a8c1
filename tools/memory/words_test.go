package memory

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// A text is taken apart as users search: in lower case, without accents, whatever stands
// between words. A script without spaces gives each character with the one before it.
func TestHowATextIsTakenApart(t *testing.T) {
	for text, want := range map[string]string{
		"Köln, ÄRGER!": "koln arger", "e\u0301te\u0301": "ete", "don't": "don t", "a1-B2": "a1 b2", "Žižkov Ýsa": "zizkov ysa",
		"東京都": "東 東京 京都", "東a京": "東 a 京", "東 京": "東 京", "x東": "x 東", "?!": "", "": "", "ßé": "ße", "naïve": "naive",
	} {
		if got := strings.Join(words(text), " "); got != want {
			t.Errorf("%q is taken apart as %q, want %q", text, got, want)
		}
	}
}

// A note is found and shown in passages: a heading begins one and is the title of those
// below it, an empty line ends one that is long enough, and none is endless.
func TestHowANoteIsCutIntoPassages(t *testing.T) {
	long := func(n int) string { return strings.Repeat("x", n) }
	for name, tt := range map[string]struct{ text, want string }{
		"nothing":                        {"\n  \n\n", ""},
		"short paragraphs":               {"a\nb\n\nc\n", `1 "" 4`},
		"empty lines first":              {"\n\na\n", `3 "" 1`},
		"below a heading":                {"a\n# Tea \nb\nc\n## Milk\nd\n", `1 "" 1, 2 "Tea" 3, 5 "Milk" 2`},
		"an empty line after a long one": {long(501) + "\n\nb\n", `1 "" 1, 3 "" 1`},
		"after one not that long":        {long(500) + "\n\nb\n", `1 "" 3`},
		"long, without an empty line":    {long(501) + "\nb\n", `1 "" 2`},
		"two paragraphs below a heading": {"# Tea\n" + long(501) + "\n\nb\n", `1 "Tea" 2, 4 "Tea" 1`},
		"twenty lines":                   {strings.Repeat("a\n", 20), `1 "" 20`},
		"twenty-one lines":               {strings.Repeat("a\n", 21), `1 "" 20, 21 "" 1`},
		"many bytes":                     {long(2000) + "\nb\nc\n", `1 "" 2, 3 "" 1`},
		"lines as on Windows":            {"# Tea\r\nb\r\n", `1 "Tea" 2`},
	} {
		var got []string
		for _, p := range passages(tt.text) {
			got = append(got, fmt.Sprintf("%d %q %d", p.line, p.title, strings.Count(p.text, "\n")+1))
		}
		if diff := cmp.Diff(tt.want, strings.Join(got, ", ")); diff != "" {
			t.Errorf("%s: line, title and length (-want +got):\n%s", name, diff)
		}
	}
}

// found are the files of a search, best first.
func found(x *index, query string) string {
	var files []string
	for _, h := range x.search(query, 100) {
		files = append(files, h.file)
	}
	return strings.Join(files, " ")
}

// The better a passage fits the words of a question the earlier it is shown; of equals the
// note of the later name, which is the newer day.
func TestWhatIsFoundFirst(t *testing.T) {
	for name, tt := range map[string]struct {
		notes map[string]string
		query string
		want  string
	}{
		"more of the word":           {map[string]string{"a": "cat dog bird", "b": "cat cat bird"}, "cat", "b a"},
		"the shorter passage":        {map[string]string{"a": "cat", "b": "cat and many other words beside it"}, "cat", "a b"},
		"the rarer word":             {map[string]string{"a": "owl", "b": "tea", "c": "tea"}, "tea owl", "a c b"},
		"a word in the heading":      {map[string]string{"a": "# Cat\nbird tea", "b": "# Bird\ncat tea"}, "cat", "a b"},
		"a word in the name":         {map[string]string{"cat": "bird", "d": "cat"}, "cat", "cat d"},
		"the word, then its kin":     {map[string]string{"z": "catalogue", "b": "cata"}, "cata", "b z"},
		"a short word must be whole": {map[string]string{"a": "catalogue", "b": "cat"}, "cat", "b"},
		"a longer one may begin one": {map[string]string{"a": "catalogue", "b": "bird"}, "cata", "a"},
		"the newer of equals":        {map[string]string{"d/2026-11-01": "cat", "d/2026-11-02": "cat"}, "cat", "d/2026-11-02 d/2026-11-01"},
		"no such word":               {map[string]string{"a": "cat"}, "bird", ""},
		"no notes":                   {nil, "bird", ""},
	} {
		x := newIndex()
		for file, text := range tt.notes {
			x.put(file, text)
		}
		if got := found(x, tt.query); got != tt.want {
			t.Errorf("%s: %q finds %q, want %q", name, tt.query, got, tt.want)
		}
	}
}

// Of equal passages of one note the earlier one comes first.
func TestTheEarlierPassageOfANoteComesFirst(t *testing.T) {
	x := newIndex()
	x.put("a", "# One\ncat\n# Two\ncat\n")
	if hits := x.search("cat", 10); len(hits) != 2 || hits[0].at.line != 1 || hits[1].at.line != 3 {
		t.Errorf("found %+v", hits)
	}
}

// The score of a passage is that of BM25 with k1 = 1.2 and b = 0.75.
func TestTheScoreIsThatOfBM25(t *testing.T) {
	x := newIndex()
	x.put("a", "cat cat owl owl")
	x.put("b", "cat tea")
	for n, want := range []float64{0.229204, 0.211109} { // ln 1.2 · 4.4/3.5 and ln 1.2 · 2.2/1.9
		if got := x.search("cat", 10)[n].score; got < want-1e-6 || got > want+1e-6 {
			t.Errorf("passage %d has the score %f, want %f", n, got, want)
		}
	}
	x = newIndex()
	x.put("cat", "") // no passage
	x.put("owl", "?")
	if got := x.search("owl", 10); len(got) != 1 || got[0].score <= 0 { // a passage without words
		t.Errorf("found %+v", got)
	}
}

// A word stands for twenty longer ones at most, and a note that is put in again or removed
// leaves nothing behind.
func TestTheIndexStaysAsItsNotes(t *testing.T) {
	x := newIndex()
	for n := range 30 {
		x.put(fmt.Sprintf("n%02d", n), fmt.Sprintf("walrus%02d", n))
	}
	if got := len(x.search("walr", 100)); got != maxBegins {
		t.Errorf("walr finds %d notes, want %d", got, maxBegins)
	}
	x.put("n00", "# Tea\nboiler\n# Milk\nboiler")
	x.put("n00", "boiler")
	x.remove("n01")
	x.put("n30", "seal")
	if got := found(x, "walrus00 walrus01 boiler seal walrus02"); got != "n30 n02 n00" {
		t.Errorf("found %q", got)
	}
	if x.count != 30 || x.length != 30 || len(x.docs) > 31 {
		t.Errorf("%d passages of %v words in %d places, want 30 of 30, and free places used again", x.count, x.length, len(x.docs))
	}
}
