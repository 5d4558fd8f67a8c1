package pdf

import (
	"math"
	"testing"
)

// at is a letter of a size, upright, at a place.
func at(x, y, size float64) matrix { return matrix{size, 0, 0, size, x, y} }

// What stands between two letters follows from where they stand: the first is half of its
// size wide and ends at 5, 0.
func TestWhatStandsBetweenTwoLetters(t *testing.T) {
	for _, tt := range []struct {
		next matrix
		want string
	}{
		{at(5, 0, 10), "ab"}, {at(6.5, 0, 10), "ab"}, {at(6.7, 0, 10), "a b"}, {at(90, 0, 10), "a b"},
		{at(6.7, 0, 20), "ab"}, {at(8.3, 0, 20), "a b"}, // the larger letter counts
		{at(7, 0, 2), "a b"}, {at(6, 0, 2), "ab"},
		{at(5, -6.9, 10), "ab"}, {at(5, -7.1, 10), "a\nb"}, {at(0, -18.9, 10), "a\nb"}, {at(0, -19.1, 10), "a\n\nb"},
		{at(5, 6.9, 10), "ab"}, {at(5, 7.1, 10), "a\n\nb"}, // a column begins further up
		{at(-9.9, 0, 10), "ab"}, {at(-10.1, 0, 10), "a\nb"},
		{matrix{0, 10, -10, 0, 5, 0}, "a\n\nb"}, // turned
		{matrix{9.5, 3, -3, 9.5, 5, 0}, "ab"},   // a little
		{matrix{8, 6, -6, 8, 5, 0}, "a\n\nb"},   // more
		{matrix{-10, 0, 0, 10, 5, 0}, "a\n\nb"}, // mirrored
	} {
		var l layout
		l.add("a", at(0, 0, 10), 0.5)
		l.add("b", tt.next, 0.5)
		if got := l.String(); got != tt.want {
			t.Errorf("a letter at %v gives %q, want %q", tt.next, got, tt.want)
		}
	}
	// The same on a line that goes up.
	for y, want := range map[float64]string{5: "ab", 6.5: "ab", 6.7: "a b", -10.1: "a\nb"} {
		var l layout
		l.add("a", matrix{0, 10, -10, 0, 0, 0}, 0.5)
		l.add("b", matrix{0, 10, -10, 0, 0, y}, 0.5)
		if got := l.String(); got != want {
			t.Errorf("a letter further up at %v gives %q, want %q", y, got, want)
		}
	}
}

// Spaces are not doubled, nor left where a line begins or ends.
func TestSpacesBetweenWords(t *testing.T) {
	for name, tt := range map[string]struct {
		letters []string
		step    float64
		want    string
	}{
		"written":             {[]string{"a", " ", "b"}, 5, "a b"},
		"twice":               {[]string{"a", " ", " ", "b"}, 5, "a b"},
		"written and left":    {[]string{"a", " ", "b"}, 9, "a b"},
		"at the ends":         {[]string{" ", "a", " "}, 5, "a"},
		"after what is empty": {[]string{"a", "\x01", "b"}, 5, "a b"},
		"of another kind":     {[]string{"a", "\u00a0", "b"}, 5, "a b"},
	} {
		var l layout
		for i, s := range tt.letters {
			l.add(s, at(float64(i)*tt.step, 0, 10), 0.5)
		}
		if got := l.String(); got != tt.want {
			t.Errorf("%s: %q, want %q", name, got, tt.want)
		}
	}
	var l layout
	for i, s := range []string{"a", " ", "b"} { // the space begins a line
		l.add(s, at(float64(i)*5, -12*float64(min(i, 1)), 10), 0.5)
	}
	if got := l.String(); got != "a\nb" {
		t.Errorf("a line that begins with a space gives %q", got)
	}
}

// Letters become plain text: no signs for the machine, no ligatures, accents put together.
func TestLettersBecomeText(t *testing.T) {
	for in, want := range map[string]string{"ﬁ": "fi", "ﬄ": "ffl", "\u00ad": "", "\x00": "", "\ufffd": "", "\ue000": "", "e\u0301": "é",
		"\t": "", "x\u2003y": "x y", "中": "中"} {
		var l layout
		l.add(in, at(0, 0, 10), 0.5)
		if got := l.String(); got != want {
			t.Errorf("%q becomes %q, want %q", in, got, want)
		}
	}
}

// A letter of no size or of no place is none.
func TestLettersWithoutAPlace(t *testing.T) {
	nan := math.NaN()
	for _, m := range []matrix{{}, {a: 10}, {d: 10}, at(0, 0, 1e9), at(nan, 0, 10), at(0, nan, 10), {nan, 0, 0, 10, 0, 0},
		{10, 0, 0, nan, 0, 0}, {1e10, 0, 0, 10, 0, 0}, {10, 0, 0, 1e10, 0, 0}, at(math.Inf(1), math.Inf(-1), 10)} {
		var l layout
		if l.add("a", m, 0.5); l.String() != "" || l.on {
			t.Errorf("a letter at %v is drawn", m)
		}
	}
}

// One matrix followed by another maps as one after the other.
func TestMatrices(t *testing.T) {
	to := func(m matrix, x, y float64) (float64, float64) { return m.a*x + m.c*y + m.e, m.b*x + m.d*y + m.f }
	m, n := matrix{2, 3, 5, 7, 11, 13}, matrix{17, 19, 23, 29, 31, 37}
	for _, p := range [][2]float64{{0, 0}, {1, 0}, {0, 1}, {3, 4}} {
		x, y := to(m, p[0], p[1])
		x, y = to(n, x, y)
		if gx, gy := to(m.then(n), p[0], p[1]); gx != x || gy != y {
			t.Errorf("%v is mapped to %v, %v, want %v, %v", p, gx, gy, x, y)
		}
	}
}
