package form

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"daycare/engine/finding"
)

// kinds is a field of each type and each tag.
type kinds struct {
	Text  string        `json:"text"`
	Need  string        `json:"need" check:"required"`
	One   string        `json:"one" allow:"|a|b"`
	Must  string        `json:"must" allow:"a|b"`
	Pat   string        `json:"pat" pattern:"^x+$"`
	URL   string        `json:"url" check:"url"`
	Hours string        `json:"hours" check:"hours"`
	Port  string        `json:"port" check:"port"`
	Env   string        `json:"env" check:"env"`
	Bytes []byte        `json:"bytes"`
	Flag  bool          `json:"flag"`
	Int   int           `json:"int" min:"1" max:"9"`
	Small int8          `json:"small"`
	Whole uint16        `json:"whole"`
	Float float64       `json:"float" min:"0.5" max:"2"`
	Free  float64       `json:"free"`
	Span  time.Duration `json:"span" min:"1s" max:"1h"`
	Any   time.Duration `json:"any"`
	Off   time.Duration `json:"off" check:"off" min:"1s"`
	At    time.Time     `json:"at"`
	Spelt spelt         `json:"spelt"`
}

// spelt has a spelling of its own.
type spelt struct{ word string }

func (s *spelt) UnmarshalText(text []byte) error {
	if s.word = string(text); s.word != "good" {
		return errors.New("not good")
	}
	return nil
}

// fieldOf is the field of a key.
func fieldOf(t *testing.T, of reflect.Type, key string) Field {
	t.Helper()
	i := slices.IndexFunc(Fields(of), func(f Field) bool { return f.Key == key })
	if i < 0 {
		t.Fatalf("no field %s", key)
	}
	return Fields(of)[i]
}

// What a field takes, by its type and its tags, and what it does not.
func TestWhatAFieldTakes(t *testing.T) {
	for key, tt := range map[string]struct{ yes, no []string }{
		"text": {[]string{"", "x", "5", "true"}, nil},
		"need": {[]string{"x"}, []string{""}},
		"one":  {[]string{"", "a", "b"}, []string{"c", "|", "a|b"}},
		"must": {[]string{"a", "b"}, []string{"", "c"}},
		"pat":  {[]string{"", "x", "xxx"}, []string{"y", "xy"}},
		"url":  {[]string{"", "http://a", "https://a/b?c"}, []string{"a", "ftp://a", "http://", "https:///b", "http://a b", "://a"}},
		"hours": {[]string{"", "08:00-22:00", "22:00-06:00", "00:00-24:00"},
			[]string{"08:00", "8:00-22:00", "08:00-25:00", "24:00-08:00", "08:00-22:00-23:00", "x-08:00"}},
		"port":  {[]string{"", "nas.home:8080", "[::1]:1"}, []string{":80", "*:80", "a:0", "a", "a:65536"}},
		"bytes": {[]string{"", "x"}, nil},
		"flag":  {[]string{"true", "false", "1", "0"}, []string{"", "yes", "perhaps", "2"}},
		"int":   {[]string{"1", "9", "0_9"}, []string{"0", "10", "1.5", "x", "", "-1", "99999999999999999999"}},
		"small": {[]string{"-128", "127", "0"}, []string{"-129", "128"}},
		"whole": {[]string{"0", "65535"}, []string{"-1", "x"}},
		"float": {[]string{"0.5", "2", "1e0"}, []string{"0.4", "2.1", "x", "", "NaN", "Inf", "-Inf", "1e999"}},
		"free":  {[]string{"-5", "1e300"}, []string{"NaN", "Inf"}},
		"span":  {[]string{"1s", "1h", "30m"}, []string{"999ms", "1h1s", "0", "-5s", "x", "", "1d"}},
		"any":   {[]string{"0", "1d", "30d", "1h30m"}, []string{"-1s", "-1d", "1.5d", "x", "d", "40000d"}},
		"off":   {[]string{"0", "0s", "1s", "2d"}, []string{"1ms", "-1s"}},
		"at":    {[]string{"2026-12-01T09:00:00Z", "2026-12-01T09:00:00+01:00"}, []string{"today", "2026-12-01", ""}},
		"spelt": {[]string{"good"}, []string{"bad", ""}},
	} {
		f := fieldOf(t, reflect.TypeFor[kinds](), key)
		for _, text := range tt.yes {
			v, allowed := Parse(text, f)
			if v == nil || allowed != "" {
				t.Errorf("%s does not take %q: %s", key, text, allowed)
			}
		}

		for _, text := range tt.no {
			if v, allowed := Parse(text, f); v != nil || allowed == "" {
				t.Errorf("%s takes %q as %v", key, text, v)
			}
		}
	}

	for key, want := range map[string]any{"int": int64(9), "float": 1.5, "flag": true, "off": 48 * time.Hour, "text": "9"} {
		text := map[string]string{"int": "0_9", "float": "1.5", "flag": "true", "off": "2d", "text": "9"}[key]
		if v, _ := Parse(text, fieldOf(t, reflect.TypeFor[kinds](), key)); v != want {
			t.Errorf("%s of %q is %#v, want %#v", key, text, v, want)
		}
	}
}

// What is allowed is said with its bounds, its choices or its kind.
func TestWhatAFieldAllowsIsSaid(t *testing.T) {
	for key, parts := range map[string][]string{"int": {"1", "9"}, "float": {"0.5", "2"}, "span": {"1s", "1h"}, "one": {"a, b"},
		"must": {"a, b"}, "pat": {"^x+$"},
		"off": {"0", "1s"}, "at": {"2026"}, "flag": {"true", "false"}, "url": {"https://"}, "hours": {":"}} {
		f := fieldOf(t, reflect.TypeFor[kinds](), key)
		words := Words(f.Type, f.Tag)
		for _, part := range parts {
			if !strings.Contains(words, part) {
				t.Errorf("%s allows %q, which has no %q", key, words, part)
			}
		}
		if Words(reflect.PointerTo(f.Type), f.Tag) != words {
			t.Errorf("%s allows something else where it may be missing", key)
		}
	}

	seen := map[string]string{}
	for _, key := range []string{"text", "need", "any", "off", "small", "free", "flag", "at", "one", "pat", "url"} {
		f := fieldOf(t, reflect.TypeFor[kinds](), key)
		words := Words(f.Type, f.Tag)
		if seen[words] != "" || strings.HasPrefix(words, "|") {
			t.Errorf("%s allows %q, as %s does", key, words, seen[words])
		}
		seen[words] = key
	}

	for kind, yes := range map[string]string{"id": "a", "env": "A", "hours": "08:00-22:00", "url": "http://a", "listen": ":80",
		"port": "a:80", "timezone": "UTC"} {
		if !Is(kind, yes) || Is(kind, "") || Of(kind) == "" {
			t.Errorf("%q is of the kind %s: %v; nothing is: %v", yes, kind, Is(kind, yes), Is(kind, ""))
		}
	}
}

// ids are the findings of a file in short: line, severity and id.
func ids(f *File) (all []string) {
	for _, one := range f.Found {
		all = append(all, fmt.Sprintf("%d %s %s", one.Line, one.Severity, strings.TrimPrefix(one.ID, "x-")))
	}
	return all
}

// In YAML a value is what its spelling says: a number in quotes is a text, and a text may be
// written as a number.
func TestHowAValueIsWritten(t *testing.T) {
	for text, want := range map[string][]string{
		"need: a\nint: 5":         nil,
		"need: a\nint: \"5\"":     {"2 error wrong-type"},
		"need: a\nint: 5.0":       {"2 error wrong-type"},
		"need: a\nint: true":      {"2 error wrong-type"},
		"need: a\nint: 50":        {"2 error bad-value"},
		"need: 5\ntext: true":     nil,
		"need: a\nflag: yes":      {"2 error wrong-type"},
		"need: a\nflag: \"true\"": {"2 error wrong-type"},
		"need: a\nflag: 1":        {"2 error wrong-type"},
		"need: a\nfloat: 1":       nil,
		"need: a\nfloat: \"1\"":   {"2 error wrong-type"},
		"need: a\nfree: .inf":     {"2 error wrong-type"},
		"need: a\nspan: 30":       {"2 error wrong-type"},
		"need: a\nspan: 2h":       {"2 error bad-value"},
		"need: a\ntext: [a]":      {"2 error wrong-type"},
		"need: a\ntext: {a: b}":   {"2 error wrong-type"},
		"need: a\ntext:":          nil,
		"need:\ntext: a":          {"1 error missing"},
		"need: \"\"":              {"1 error bad-value"},
		"text: a":                 {"1 error missing"},
		"need: a\nneed: b":        {"2 error duplicate-key"},
		"need: a\nnede: b":        {"2 warning unknown-key"},
		"- a":                     {"1 error wrong-type"},
		"need: a\n---\nneed: b":   {"2 error syntax"},
		"need: a\nbad: [":         {"2 error syntax"},
		"\tneed: a":               {"1 error syntax"},
		"":                        nil,
		"# nothing":               nil,
		"need: a\n$schema: x":     nil,
	} {
		f := Kind{ID: "x"}.YAML("f", []byte(text+"\n"))
		var got kinds
		f.Read(&got)
		if all := ids(f); !slices.Equal(all, want) {
			t.Errorf("%q: %q, want %q", text, all, want)
		}
		if f.Failed() != (len(want) > 0 && !strings.Contains(want[0], "warning")) {
			t.Errorf("%q: failed is %v", text, f.Failed())
		}
	}
}

// How bad a key is that nobody knows, and a value that is not allowed, is a matter of the kind.
func TestHowBadAMistakeIs(t *testing.T) {
	const text = "need: a\nnede: b\none: c\nint: x\n"
	for name, tt := range map[string]struct {
		kind Kind
		want []string
		one  string
	}{
		"as usual":   {Kind{}, []string{"2 warning unknown-key", "3 error bad-value", "4 error wrong-type"}, ""},
		"info":       {Kind{Unknown: finding.Info}, []string{"2 info unknown-key", "3 error bad-value", "4 error wrong-type"}, ""},
		"strict":     {Kind{Unknown: finding.Error}, []string{"2 error unknown-key", "3 error bad-value", "4 error wrong-type"}, ""},
		"mild":       {Kind{Wrong: finding.Warning}, []string{"2 warning unknown-key", "3 warning bad-value", "4 warning wrong-type"}, ""},
		"odd":        {Kind{Odd: finding.Warning}, []string{"2 warning unknown-key", "3 warning bad-value", "4 error wrong-type"}, "c"},
		"odd is bad": {Kind{Odd: finding.Error}, []string{"2 warning unknown-key", "3 error bad-value", "4 error wrong-type"}, ""},
		"by others": {Kind{IDs: map[string]string{"bad-value": "wrong"}},
			[]string{"2 warning unknown-key", "3 error wrong", "4 error wrong-type"}, ""},
	} {
		tt.kind.ID, tt.kind.Remedy = "x", "mend it"
		f := tt.kind.YAML("f", []byte(text))
		var got kinds
		f.Read(&got)
		if all := ids(f); !slices.Equal(all, tt.want) || got.One != tt.one || got.Need != "a" {
			t.Errorf("%s: %q, %q; want %q, %q", name, all, got.One, tt.want, tt.one)
		}

		for _, one := range f.Found {
			if near := strings.HasSuffix(one.ID, "unknown-key"); near != strings.Contains(one.Remedy, `"need"`) ||
				!near && (one.Remedy == "mend it") != (one.Severity == finding.Error) {
				t.Errorf("%s: the remedy of %s is %q", name, one.ID, one.Remedy)
			}
		}
	}

	f := Kind{ID: "x", Unknown: finding.Info}.YAML("f", []byte("need: a\nzzzzzz: b\n"))
	if f.Read(&kinds{}); f.Found[0].Remedy != "" {
		t.Errorf("what may well be meant has the remedy %q", f.Found[0].Remedy)
	}
	f = Kind{ID: "x"}.YAML("f", []byte("need: a\nzzzzzz: b\ngate: c\n"))
	if f.Check(reflect.TypeFor[kinds](), "gate"); len(f.Found) != 1 || !strings.Contains(f.Found[0].Remedy, "need") {
		t.Errorf("beside a key of somebody else: %q", ids(f))
	}

	f = Kind{ID: "x"}.YAML("f", []byte("need: a\nzzzzzz: b\nint: x\n"))
	if values := f.Values(reflect.TypeFor[kinds](), Any); len(f.Found) != 1 || len(values) != 1 || values["need"] != "a" {
		t.Errorf("beside keys of anybody: %q, %v", ids(f), values)
	}
}

// What should be the name of a variable may be the secret itself, and is not quoted.
func TestWhatMayBeASecretIsNotQuoted(t *testing.T) {
	for _, text := range []string{"need: a\nenv: s3cret-key", "need: a\nenv: [s3cret-key]", "need: a\nenv: \"s3cret key\""} {
		f := Kind{ID: "x"}.YAML("f", []byte(text))
		if f.Read(&kinds{}); !f.Failed() || strings.Contains(fmt.Sprint(f.Found), "s3cret") {
			t.Errorf("%q: %+v", text, f.Found)
		}
	}
}

// The name that was probably meant is one with at most two wrong letters, or with less behind it.
func TestNearestNames(t *testing.T) {
	names := []string{"name", "mode", "on", "watchCommand", "gate"}
	for s, want := range map[string]string{"nmae": "name", "NAME": "name", "names": "name", "nam": "name", "mod": "mode", "modes2": "mode",
		"onn": "on", "oonn": "",
		"xyz": "", "": "", "watchcomand": "watchCommand", "gtae": "gate", "onward": "", "gates_and_more": "gate",
		strings.Repeat("x", 65): "", "x": ""} {
		if got := Nearest(s, names); got != want {
			t.Errorf("%q is nearest to %q, want %q", s, got, want)
		}
	}

	long := strings.Repeat("x", 65)
	if got := Nearest(long+"y", []string{long + "z"}); got != "" {
		t.Errorf("long words are compared: %q", got)
	}
	if got := Nearest(long[:64], []string{long[:63] + "z"}); got == "" {
		t.Error("words of 64 letters are not compared")
	}
}
