package webhook

import (
	"errors"
	"strings"
	"testing"
	"text/template"

	"daycare/engine/inbox"
)

func TestRender(t *testing.T) {
	const push = `{"ref":"refs/heads/main","id":12345678901,"ratio":0.10,"big":123456789012345678901234567890,
		"ok":true,"none":null,"commits":[{"id":"a1","author":{"name":"Ada <a@b>"}},{"id":"b2"}],"repo":{"name":"day"}}`
	tests := []struct {
		name, template, media, body, want string
	}{
		{"plain text", "", "text/plain", "just this\n", "just this\n"},
		{"text member", "", "application/json", `{"text":"hello","more":1}`, "hello"},
		{"text that is no string", "", "application/json", `{ "text": 5 }`, `{"text":5}`},
		{"no text member", "", "application/json", "{\n \"a\": [1, 2]\n}", `{"a":[1,2]}`},
		{"fields", "{{.ref}} of {{.repo.name}}", "", push, "refs/heads/main of day"},
		{"numbers as written", "{{.id}} {{.ratio}} {{.big}}", "", push, "12345678901 0.10 123456789012345678901234567890"},
		{"missing is empty", "[{{.no}}][{{.repo.no}}][{{.no.no.no}}][{{.ref.no}}][{{.none}}][{{.none.x}}]", "", push, "[][][][][][]"},
		{"range", "{{range .commits}}{{.id}} by {{.author.name}};{{end}}", "", push, "a1 by Ada <a@b>;b2 by ;"},
		{"range with variables", "{{range $i, $c := .commits}}{{$i}}{{$c.id}}{{$c.no.no}} {{end}}", "", push, "0a1 1b2 "},
		{"range of what is missing", "{{range .no.no}}x{{else}}nothing{{end}}", "", push, "nothing"},
		{"range of a number", "{{range 3}}x{{end}}", "", push, "xxx"},
		{"if", `{{if eq .action "opened"}}yes{{else if .ok}}ok{{end}}`, "", push, "ok"},
		{"compare numbers", `{{if gt .id 5}}more{{end}}`, "", push, "more"},
		{"with", "{{with .repo}}{{.name}}{{end}}{{with .no}}x{{end}}", "", push, "day"},
		{"objects print as JSON", "{{.repo}} {{(index .commits 1)}}", "", push, `{"name":"day"} {"id":"b2"}`},
		{"index", `{{index .commits 9 "id"}}|{{index .commits 0 "id"}}|{{(index .commits 0).author.name}}`, "", push, "|a1|Ada <a@b>"},
		{"variables", "{{$r := .repo}}{{$r.name}}{{$r.no}}", "", push, "day"},
		{"functions and pipes", `{{printf "%s/%d" .repo.name .id | len}} {{.no | printf "%q"}}`, "", push, `15 ""`},
		{"defined", `{{define "x"}}<{{.name}}{{.no}}>{{end}}{{template "x" .repo}}`, "", push, "<day>"},
		{"text in a template", "said: {{.text}}", "text/plain", "hello", "said: hello"},
		{"an array", "{{range .}}{{.}},{{end}}", "", `[1,"a",{}]`, `1,a,{},`},
		{"a string", "{{.}}", "", `"x"`, "x"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			parsed, err := parseTemplate(test.template)
			if err != nil {
				t.Fatal(err)
			}
			if test.media == "" {
				test.media = "application/json"
			}
			got, err := render(parsed, test.media, []byte(test.body))
			if err != nil || got != test.want {
				t.Errorf("render = %q, %v, want %q", got, err, test.want)
			}
		})
	}
}

func TestRenderRefuses(t *testing.T) {
	must := func(text string) *template.Template {
		parsed, err := parseTemplate(text)
		if err != nil {
			t.Fatal(err)
		}
		return parsed
	}
	tests := []struct {
		name string
		t    *template.Template
		body string
		want error
	}{
		{"not JSON", nil, "hello", errNotJSON},
		{"two values", nil, "{} {}", errNotJSON},
		{"half a value", must("{{.a}}"), `{"a":`, errNotJSON},
		{"bad call", must("{{slice .a 5 9}}"), `{"a":"x"}`, errTemplate},
		{"endless", must(`{{range .a}}{{$.b}}{{end}}`),
			`{"a":[` + strings.Repeat("1,", 999) + `1],"b":"` + strings.Repeat("x", 2000) + `"}`, inbox.ErrTooLarge},
		{"for ever", must(`{{define "x"}}{{template "x" .}}{{end}}{{template "x" .}}`), `{}`, errTemplate},
	}
	for _, test := range tests {
		if _, err := render(test.t, "application/json", []byte(test.body)); !errors.Is(err, test.want) ||
			test.want != errTemplate && errors.Is(err, errTemplate) {
			t.Errorf("%s: render = %v, want %v", test.name, err, test.want)
		}
	}
}

func TestMediaType(t *testing.T) {
	for _, good := range []string{"text/plain", "text/plain; charset=utf-8", "application/json",
		"Application/JSON;charset=UTF-8", "application/cloudevents+json"} {
		if _, err := mediaType(good, ""); err != nil {
			t.Errorf("mediaType(%q) = %v", good, err)
		}
	}

	for _, bad := range []string{"", "application/x-www-form-urlencoded", "text/html",
		"multipart/form-data; boundary=x", "image/svg+json", "json"} {
		if got, err := mediaType(bad, ""); err == nil {
			t.Errorf("mediaType(%q) = %q, want an error", bad, got)
		}
	}

	if _, err := mediaType("text/plain", "gzip"); err == nil {
		t.Error("a compressed body passes")
	}
}

// FuzzTemplate: no template that parses panics on any payload, and what is
// missing never shows as "<no value>".
func FuzzTemplate(f *testing.F) {
	f.Add("{{.a.b}}{{range $i, $x := .c}}{{$x.d}}{{end}}", `{"c":[{}]}`)
	f.Add("{{with $y := (index .a 0).b}}{{$y.z}}{{end}}{{if not .q}}{{len .q}}{{end}}", `[]`)
	f.Add(`{{block "x" .a}}{{.b | printf "%v"}}{{end}}{{break}}`, `{"a":null}`)
	f.Fuzz(func(t *testing.T, text, body string) {
		parsed, err := parseTemplate(text)
		if err != nil || parsed == nil || strings.Contains(text, "range") && strings.ContainsAny(text, "0123456789") {
			return // {{range 1000000000}} is the settings' own fault
		}
		got, err := render(parsed, "application/json", []byte(body))
		if err == nil && strings.Contains(got, "<no value>") && !strings.Contains(text+body, "no value") && !strings.Contains(text, "nil") {
			t.Errorf("%q of %q = %q", text, body, got)
		}
	})
}
