package trial

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"github.com/aymanbagabas/go-udiff"

	"daycare/engine/lazyregexp"
)

// A Failure is an expectation that was not met.
type Failure struct {
	Expected string `json:"expected"` // in words
	Got      string `json:"got"`      // what was there instead, in lines: a diff where there is something to compare
}

// reasons are the ends of a turn that need not be expected.
var reasons = []string{"done", "waiting"}

// Check compares what happened with what is expected of it.
func Check(list []Expect, r Run) (failed []Failure) {
	ends := false
	for _, e := range list {
		ends = ends || e.Ends != ""
		if f := e.met(r); f != nil {
			failed = append(failed, *f)
		}
	}

	if !ends && !slices.Contains(reasons, r.Reason) {
		failed = append([]Failure{{"the turn ends with an answer", r.ending() + "\n" + callLines(r.Calls)}}, failed...)
	}

	return failed
}

// ending says how the newest turn ended.
func (r Run) ending() string {
	return strings.TrimSpace(fmt.Sprintf("it ended with %q %s", r.Reason, r.Error))
}

// met returns nil if the expectation is met.
func (e Expect) met(r Run) *Failure {
	switch {
	case e.Contains != "":
		return contains("the answer", r.Answer, e.Contains)
	case e.NotContains != "" && strings.Contains(r.Answer, e.NotContains):
		return &Failure{fmt.Sprintf("the answer does not contain %q", e.NotContains), around(r.Answer, e.NotContains)}
	case e.Regex != "":
		return matches("the answer", r.Answer, e.Regex)
	case e.Schema != nil:
		return fitsSchema(r.Answer, e.Schema)
	case e.Called != nil:
		return e.Called.met(r.Calls)
	case e.NeverCalled != "":
		return neverCalled(r.Calls, e.NeverCalled)
	case e.File != nil:
		return e.File.met(r.File)
	case e.Asks != "":
		return asks(r.Asked, e.Asks)
	case e.Ends != "" && e.Ends != r.Reason:
		return &Failure{fmt.Sprintf("the turn ends with %q", e.Ends), r.ending()}
	case e.Judge != nil:
		return e.Judge.met(r)
	}

	return e.Bounds.met(r)
}

func (b Bounds) met(r Run) *Failure {
	if b.CostUnder != nil && r.Cost >= *b.CostUnder {
		return &Failure{fmt.Sprintf("it costs less than $%v", *b.CostUnder),
			fmt.Sprintf("$%.4f, with %d model calls, %d tokens in, %d out", r.Cost, r.Rounds, r.Input, r.Output)}
	}
	if b.RoundsUnder > 0 && r.Rounds >= b.RoundsUnder {
		return &Failure{fmt.Sprintf("fewer than %d model calls", b.RoundsUnder), fmt.Sprintf("%d\n%s", r.Rounds, callLines(r.Calls))}
	}

	return nil
}

func contains(what, text, want string) *Failure {
	if strings.Contains(text, want) {
		return nil
	}
	f := &Failure{fmt.Sprintf("%s contains %q", what, want), quote(text)}
	if near := likest(text, want); near != "" {
		f.Got = "the line that is most like it:\n" + diff("expected", "got", want, near) + quote(text)
	}

	return f
}

func matches(what, text, pattern string) *Failure {
	if ok, err := regexp.MatchString(pattern, text); ok || err != nil { // Parse has compiled it
		return nil
	}
	return &Failure{fmt.Sprintf("%s matches /%s/", what, pattern), quote(text)}
}

// fence is a code block of Markdown.
var fence = lazyregexp.New("(?s)^\\s*(?:.*?\\n)?```[a-z]*\\n(.*?)\\n```")

// fitsSchema checks an answer that is JSON, alone or in its first code block.
func fitsSchema(answer string, schema json.RawMessage) *Failure {
	text := strings.TrimSpace(answer)
	if m := fence.FindStringSubmatch(answer); m != nil {
		text = m[1]
	}
	const expected = "the answer is JSON of the schema"
	var value any
	if err := json.Unmarshal([]byte(text), &value); err != nil {
		return &Failure{expected, "not JSON: " + err.Error() + "\n" + quote(answer)}
	}

	resolved, err := compile(schema)
	if err == nil {
		err = resolved.Validate(value)
	}
	if err != nil {
		return &Failure{expected, err.Error() + "\n" + quote(answer)}
	}

	return nil
}

func (c Called) met(calls []Call) *Failure {
	n := 0
	var near *Call
	for i := range calls {
		if calls[i].Tool != c.Tool {
			continue
		}
		if near = &calls[i]; fitting(c.With, calls[i].Arguments) {
			n++
		}
	}
	if n > 0 && c.Times == 0 || c.Times > 0 && n == c.Times {
		return nil
	}

	f := &Failure{Expected: "a call of " + c.Tool, Got: callLines(calls)}
	if len(c.With) > 0 {
		f.Expected += " with " + oneLine(c.With)
	}
	if c.Times > 0 {
		f.Expected = fmt.Sprintf("%s, %d times", f.Expected, c.Times)
		f.Got = fmt.Sprintf("%d such calls\n%s", n, f.Got)
	}
	if n == 0 && near != nil && len(c.With) > 0 {
		f.Got = "the newest call of " + c.Tool + ":\n" +
			diff("expected", "got", pretty(c.With), pretty(picked(near.Arguments, c.With))) + f.Got
	}

	return f
}

// fitting reports whether the arguments of a call have all that is wanted.
func fitting(want map[string]any, arguments json.RawMessage) bool {
	var got map[string]any
	if len(want) > 0 && json.Unmarshal(arguments, &got) != nil {
		return false
	}
	for key, value := range want {
		if !fits(value, got[key]) {
			return false
		}
	}

	return true
}

// fits compares a value of a test with one of a call: an object has at least what is wanted.
func fits(want, got any) bool {
	switch want := want.(type) {
	case string:
		text, ok := got.(string)
		if slashed(want) {
			matched, err := regexp.MatchString(want[1:len(want)-1], text)
			return ok && matched && err == nil
		}
		return ok && text == want
	case map[string]any:
		object, ok := got.(map[string]any)
		for key, value := range want {
			ok = ok && fits(value, object[key])
		}
		return ok
	case []any:
		list, ok := got.([]any)
		ok = ok && len(list) == len(want)
		for i := range want {
			ok = ok && fits(want[i], list[i])
		}
		return ok
	}

	a, _ := json.Marshal(want) // of YAML or JSON: numbers of either are alike
	b, _ := json.Marshal(got)

	return reflect.DeepEqual(a, b)
}

// picked are those arguments of a call that something is wanted of.
func picked(arguments json.RawMessage, want map[string]any) map[string]any {
	var got map[string]any
	if json.Unmarshal(arguments, &got) != nil {
		return nil
	}
	maps.DeleteFunc(got, func(key string, _ any) bool { _, wanted := want[key]; return !wanted })

	return got
}

func neverCalled(calls []Call, tool string) *Failure {
	for _, c := range calls {
		if c.Tool == tool {
			return &Failure{fmt.Sprintf("%s is never called", tool), callLines(calls)}
		}
	}

	return nil
}

func (h FileHas) met(read func(string) ([]byte, error)) *Failure {
	data, err := read(h.Path)
	missing := errors.Is(err, fs.ErrNotExist)
	switch {
	case h.Absent && missing:
		return nil
	case h.Absent && err == nil:
		return &Failure{"there is no file " + h.Path, quote(string(data))}
	case missing:
		return &Failure{"there is a file " + h.Path, "there is none"}
	case err != nil:
		return &Failure{"the file " + h.Path + " can be read", err.Error()}
	}

	text := string(data)
	switch {
	case h.Is != nil && *h.Is != text:
		return &Failure{h.Path + " is as written in the test", diff("expected", "got", *h.Is, text)}
	case h.Contains != "":
		return contains(h.Path, text, h.Contains)
	case h.Regex != "":
		return matches(h.Path, text, h.Regex)
	}

	return nil
}

func asks(asked []Asked, want string) *Failure {
	var lines []string
	for _, a := range asked {
		if strings.HasPrefix(a.Permission, want) {
			return nil
		}
		lines = append(lines, a.Permission+" ("+a.Answer+")")
	}
	if len(lines) == 0 {
		lines = []string{"no approval was requested"}
	}

	return &Failure{"an approval of " + want + " is requested", strings.Join(lines, "\n")}
}

func (j Judge) met(r Run) *Failure {
	expected := fmt.Sprintf("a model gives the answer %.2f or more", j.Threshold)
	if r.Judge == nil {
		return &Failure{expected, "there is no model to judge it"}
	}
	score, why, err := r.Judge(j.Rubric, r.Question, r.Answer)
	switch {
	case err != nil:
		return &Failure{expected, "it could not be judged: " + err.Error()}
	case score < j.Threshold:
		return &Failure{expected, fmt.Sprintf("%.2f: %s\nrubric: %s\n%s", score, why, strings.TrimSpace(j.Rubric), quote(r.Answer))}
	}

	return nil
}

// likest is the line of a text that has most in common with what was wanted; "": no line has much.
func likest(text, want string) string {
	best, most := "", 0
	wanted := strings.Fields(strings.ToLower(want))
	for line := range strings.Lines(text) {
		n := 0
		for _, word := range wanted {
			if strings.Contains(strings.ToLower(line), word) {
				n++
			}
		}
		if n > most {
			best, most = strings.TrimRight(line, "\n"), n
		}
	}

	return best
}

// around is a text from shortly before a part of it to shortly behind it.
func around(text, part string) string {
	const reach = 80
	at := strings.Index(text, part)
	return quote(strings.ToValidUTF8(text[max(0, at-reach):min(len(text), at+len(part)+reach)], ""))
}

func diff(from, to, a, b string) string {
	return udiff.Unified(from, to, ended(a), ended(b))
}

func ended(s string) string {
	if s == "" || strings.HasSuffix(s, "\n") {
		return s
	}
	return s + "\n"
}

// maxQuoted is how many lines of a text are shown.
const maxQuoted = 20

// quote is a text as it is shown of a failure.
func quote(text string) string {
	lines := strings.Split(strings.TrimRight(text, "\n"), "\n")
	if text == "" {
		return "| (empty)\n"
	}
	if len(lines) > maxQuoted {
		lines = append(lines[:maxQuoted:maxQuoted], fmt.Sprintf("… %d more lines", len(lines)-maxQuoted))
	}

	return "| " + strings.Join(lines, "\n| ") + "\n"
}

// callLines are calls, a line each.
func callLines(calls []Call) string {
	if len(calls) == 0 {
		return "no tool was called\n"
	}
	var b strings.Builder
	b.WriteString("calls:\n")
	for i, c := range calls {
		if i == maxQuoted {
			fmt.Fprintf(&b, "  … %d more\n", len(calls)-i)
			break
		}
		fmt.Fprintf(&b, "  %s %s %s\n", c.Tool, short(string(c.Arguments)), c.Status)
	}

	return b.String()
}

func short(s string) string {
	const most = 160
	if runes := []rune(s); len(runes) > most {
		return string(runes[:most]) + "…"
	}

	return s
}

func pretty(v any) string {
	data, _ := json.MarshalIndent(v, "", "  ") // of YAML or JSON
	return string(data)
}

func oneLine(v any) string {
	data, _ := json.Marshal(v)
	return string(data)
}
