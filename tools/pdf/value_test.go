package pdf

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// fresh is a file with all of its limits, and nothing in it.
func fresh(data string) *file {
	return &file{data: []byte(data), left: newMeter(context.Background()), where: map[int]place{}, trailer: dict{}, fonts: map[ref]*font{}}
}

// values are all values of a text, one after the other.
func values(f *file, data string) (all []any) {
	p := &parser{file: f, data: []byte(data)}
	for {
		v := p.value(0)
		if v == (end{}) {
			return all
		}
		all = append(all, v)
	}
}

// Values are read as the standard writes them, and what is not a value as what it most likely
// was meant to be.
func TestValues(t *testing.T) {
	for in, want := range map[string][]any{
		"":                             nil,
		" \t\r\n\f\x00":                nil,
		"% a comment (of all\n5%x\r6%": {5.0, 6.0},
		"12 -1.5 +3 .5 007":            {12.0, -1.5, 3.0, .5, 7.0},
		"--5 1e999 -":                  {0.0, 0.0, 0.0},
		"true false null BT T* 'x":     {true, false, nil, word("BT"), word("T*"), word("'x")},
		"/Name/A#42#c3#A9/A#4/B#zz/#":  {name("Name"), name("AB\u00e9"), name("A#4"), name("B#zz"), name("#")},
		"(a(b)c)(d\\)e\\(f\\\\)":       {text("a(b)c"), text(`d)e(f\`)},
		`(\n\r\t\b\f\x)`:               {text("\n\r\t\b\fx")},
		`(\101\7x\0053\18)`:            {text("A\x07x\x053\x018")},
		"(a\\\r\nb\\\nc\\\rd)(e\r)":    {text("abcd"), text("e\r")},
		"(never ends":                  {text("never ends")},
		"<48 65\n6C6><><4g8>":          {text("Hel`"), text(""), text("H")},
		"<4a4F":                        {text("JO")},
		"[1[2]3](x)[4":                 {[]any{1.0, []any{2.0}, 3.0}, text("x"), []any{4.0}},
		"[1 2 0 R/A 3 0 R]":            {[]any{1.0, ref(2), name("A"), ref(3)}},
		"[R 1 R]":                      {[]any{1.0}},
		"[1 endobj 2":                  {[]any{1.0}, 2.0},
		"[1>>2":                        {[]any{1.0}, 2.0},
		"<</A 1/B[2]/C<</D(e)>>>>5":    {dict{"A": 1.0, "B": []any{2.0}, "C": dict{"D": text("e")}}, 5.0},
		"<</A 1 2/B 3>>":               {dict{"A": 1.0, "B": 3.0}},
		"<</A 1/B>>/C":                 {dict{"A": 1.0}, name("C")},
		"<</A 4 0 R/B 1 endobj":        {dict{"A": ref(4), "B": 1.0}},
		">>{}":                         {word(">>"), word("{"), word("}")},
		"> )":                          {word(">"), word(")")},
		strings.Repeat("x", 70) + " 5": {word(strings.Repeat("x", 64)), 5.0},
	} {
		if diff := cmp.Diff(want, values(fresh(""), in)); diff != "" {
			t.Errorf("%q (-want +got):\n%s", in, diff)
		}
	}
}

// A value keeps so many others and is so deep, whatever the file says; the next one begins
// anew.
func TestBoundsOfAValue(t *testing.T) {
	many := "[" + strings.Repeat("0 ", maxKept+1) + "]"
	for i, v := range values(fresh(""), many+many) {
		if n := len(v.([]any)); n != maxKept {
			t.Errorf("value %d keeps %d others, want %d", i, n, maxKept)
		}
	}
	depth := func(open, shut string) (n int) {
		v := values(fresh(""), strings.Repeat(open, 100)+strings.Repeat(shut, 100))[0]
		for {
			switch inner := v.(type) {
			case []any:
				if n++; len(inner) == 0 {
					return n
				}
				v = inner[0]
			case dict:
				if n++; inner["A"] == nil {
					return n
				}
				v = inner["A"]
			default:
				return n
			}
		}
	}
	if a, d := depth("[", "]"), depth("<</A ", ">>"); a != maxDepth+1 || d != maxDepth+1 {
		t.Errorf("lists are %d deep and dictionaries %d, want %d", a, d, maxDepth+1)
	}
}

// The data of a stream is as long as it says, if it ends there; else it goes to the next end.
func TestWhereAStreamEnds(t *testing.T) {
	for in, want := range map[string]string{
		"<</Length 4>>stream\nabcd\nendstream":            "abcd",
		"<</Length 4>>stream\r\nabcd\r\nendstream":        "abcd",
		"<</Length 13>>stream\nab endstream c\nendstream": "ab ", // a length that is wrong is not believed
		"<</Length 14>>stream\nab endstream c\nendstream": "ab endstream c",
		"<</Length 3>>stream\nabcd\nendstream":            "abcd",
		"<</Length 99>>stream\nabcd\r\nendstream":         "abcd",
		"<</Length -1>>stream\nabcd\nendstream":           "abcd",
		"<<>>stream\nabcd\n\nendstream":                   "abcd\n",
		"<</Length 0>>stream\nendstream":                  "",
		"<</Length 9>>stream\nabcd":                       "abcd",
	} {
		f := fresh("")
		s, ok := f.read(&parser{file: f, data: []byte(in)}).(*stream)
		if !ok || string(s.raw) != want {
			t.Errorf("%q: the data is %q, want %q", in, s.raw, want)
		}
	}
	f := fresh("")
	if v := f.read(&parser{file: f, data: []byte("7 0 R")}); v != ref(7) {
		t.Errorf("a reference is read as %#v", v)
	}
}

// An object has the number that stands before it.
func TestTheNumberOfAnObject(t *testing.T) {
	for before, want := range map[string]int{"12 0 ": 12, "x7 65535\n": 7, "34 1": 34, "99 5  0  ": 5, "0012 0 ": 12, "0 ": -1,
		"a 0 ": -1, "": -1, "12 x ": -1, "123456789012 0 ": 456789012} {
		got, ok := objectNumber([]byte(before))
		if !ok {
			got = -1
		}
		if got != want {
			t.Errorf("%q: %d, want %d", before, got, want)
		}
	}
}

// A stream of objects has its objects where it says; what it says of places outside of it
// is nothing.
func TestAStreamOfObjects(t *testing.T) {
	f := fresh("")
	f.objects(&stream{dict: dict{"N": 9.0, "First": 24.0}, raw: []byte("5 0 6 4 7 99 8 -99 9 8  (a) (b) (c) ")})
	for number, want := range map[ref]any{5: text("a"), 6: text("b"), 7: nil, 8: nil, 9: text("c")} {
		if got := f.get(number); got != want {
			t.Errorf("object %d is %#v, want %#v", number, got, want)
		}
	}
	f = fresh("")
	f.objects(&stream{dict: dict{"N": 1.0, "First": 8.0}, raw: []byte("5 0 6 4 (a) (b) ")})
	if f.get(ref(5)) != text("a") || f.get(ref(6)) != nil {
		t.Error("more objects are read than the stream has")
	}
}

// References are followed, a few of them.
func TestReferences(t *testing.T) {
	var b strings.Builder
	for n := 1; n <= 9; n++ {
		fmt.Fprintf(&b, "%d 0 obj %d 0 R endobj\n", n, n+1)
	}
	f := fresh(b.String() + "10 0 obj (end) endobj 11 0 obj <</A 1>>stream\nx\nendstream endobj")
	f.scan()
	if f.get(ref(4)) != text("end") || f.get(ref(2)) != nil || f.get(ref(99)) != nil || f.get(5.0) != 5.0 {
		t.Errorf("followed are %v %v %v", f.get(ref(4)), f.get(ref(2)), f.get(ref(99)))
	}
	if f.asDict(ref(11))["A"] != 1.0 || f.asDict(ref(10)) != nil || f.asDict(dict{"B": 2.0})["B"] != 2.0 {
		t.Error("a stream's dictionary is not found")
	}
}
