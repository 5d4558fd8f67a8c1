package mcp

import (
	"encoding/json"
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"

	"daycare/engine/permission"
	"daycare/tools"
	"daycare/tools/toolstest"
)

var questionID = regexp.MustCompile(`"question":"([0-9a-f]{12})"`)

// answerTo is the call of mcp_answer for what a result asks.
func answerTo(t *testing.T, text, rest string) tools.Call {
	t.Helper()
	m := questionID.FindStringSubmatch(text)
	if m == nil {
		t.Fatalf("no question in %s", text)
	}
	return tools.Call{ID: "call-2", Name: AnswerTool, Arguments: json.RawMessage(fmt.Sprintf(`{"question":%q%s}`, m[1], rest)), Agent: "x",
		Access: permission.Default("/w"), Progress: func(string) {}}
}

// A server asks in a call: the call ends, the user approves the answer, and the call is made again
// with it; also by a daycare that was killed meanwhile.
func TestAQuestionIsAnsweredWithAnApproval(t *testing.T) {
	w := newWorld(t, "questions")
	res := w.call(t.Context(), w.all()["mcp__a__register"], `{}`, nil)
	if res.Status != tools.Failed || !strings.Contains(res.Text, "asks the user first, in its words: What is[U+200B] your name?") ||
		!strings.Contains(res.Text, `"minLength":2`) || res.Source != "the MCP server a" {
		t.Fatalf("%+v", res)
	}

	again := newWorld(t, "questions") // as after a kill: nothing is left but the file
	data, err := os.ReadFile(w.questions.path)
	if err == nil {
		err = os.WriteFile(again.questions.path, data, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	answer := again.all()[AnswerTool]
	for rest, want := range map[string]string{
		`,"content":{"name":"x"}`:                   "does not take this answer",
		`,"content":{"size":"small"}`:               `missing field "name"`,
		`,"content":{"name":"Ada","size":"medium"}`: "does not take this answer",
		``: `missing field "name"`,
	} {
		if _, err := answer.(tools.Asks).Needs(answerTo(t, res.Text, rest)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", rest, err)
		}
	}
	call := answerTo(t, res.Text, `,"content":{"name":"Ada"}`)
	need, err := answer.(tools.Asks).Needs(call)
	if err != nil || !need.AskAlways || need.Prefix != "" || need.Tag != "@mcp:a/register" ||
		!strings.Contains(need.Detail.Call, "question: What is[U+200B] your name?") ||
		!strings.Contains(need.Detail.Call, `"name": "Ada"`) {
		t.Fatalf("%+v, %v", need, err)
	}
	if got, err := answer.Run(t.Context(), call); err != nil || got.Text != "accept Ada small" {
		t.Errorf("%+v, %v", got, err)
	}
	if got, _ := answer.Run(t.Context(), call); !strings.Contains(got.Text, "there is no open question") {
		t.Errorf("answered twice: %+v", got)
	}
}

func TestAQuestionIsDeclined(t *testing.T) {
	w := newWorld(t, "questions")
	all := w.all()
	res := w.call(t.Context(), all["mcp__a__register"], `{}`, nil)
	call := answerTo(t, res.Text, `,"decline":true`)
	if need, err := all[AnswerTool].(tools.Asks).Needs(call); err != nil || need.AskAlways || need.Tag != "@mcp:a/register" {
		t.Errorf("%+v, %v", need, err)
	}
	if got, _ := all[AnswerTool].Run(t.Context(), call); got.Text != "decline <nil> <nil>" {
		t.Errorf("%+v", got)
	}
}

// What only wants a yes needs no fields.
func TestAQuestionWithoutFields(t *testing.T) {
	w := newWorld(t, "questions")
	all := w.all()
	call := answerTo(t, w.call(t.Context(), all["mcp__a__confirm"], `{}`, nil).Text, "")
	if need, err := all[AnswerTool].(tools.Asks).Needs(call); err != nil || !need.AskAlways {
		t.Errorf("%+v, %v", need, err)
	}
	if got, _ := all[AnswerTool].Run(t.Context(), call); got.Text != "accept <nil> <nil>" {
		t.Errorf("%+v", got)
	}
}

func TestAQuestionBelongsToItsAgent(t *testing.T) {
	w := newWorld(t, "questions")
	all := w.all()
	call := answerTo(t, w.call(t.Context(), all["mcp__a__register"], `{}`, nil).Text, `,"content":{"name":"Eve"}`)
	call.Agent = "y"
	if _, err := all[AnswerTool].(tools.Asks).Needs(call); err == nil {
		t.Error("another agent can answer")
	}
	toolstest.Run(t, all[AnswerTool], toolstest.Options{Access: permission.Default(t.TempDir()), Bad: []string{`{"question":"none"}`}})
}

func TestAnAddressIsOpenedByTheUser(t *testing.T) {
	w := newWorld(t, "questions")
	all := w.all()
	res := w.call(t.Context(), all["mcp__a__open"], `{}`, nil)
	if !strings.Contains(res.Text, "https://pay.example.com/bill?nonce=1") {
		t.Fatal(res.Text)
	}
	call := answerTo(t, res.Text, "")
	need, err := all[AnswerTool].(tools.Asks).Needs(call)
	if err != nil || !strings.Contains(need.Detail.Call, "open this address yourself, then allow: https://pay.example.com/bill?nonce=1") {
		t.Errorf("%+v, %v", need, err)
	}
	if got, _ := all[AnswerTool].Run(t.Context(), call); got.Text != "accept <nil> <nil>" {
		t.Errorf("%+v", got)
	}
}

// A server that goes on asking is ended, one that wants more than an answer is refused, and none
// gets a model to sample from.
func TestQuestionsAreBounded(t *testing.T) {
	for how, want := range map[string]map[string]string{
		"questions":     {"nag": "was refused: it asked more than 5 times", "file": "not a web address", "sample": "does not support"},
		"questions:old": {"nag": "was refused: it asked more than 5 times"},
	} {
		w := newWorld(t, how)
		all := w.all()
		for name, want := range want {
			res := w.call(t.Context(), all["mcp__a__"+name], `{}`, nil)
			if res.Status != tools.Failed || !strings.Contains(res.Text, want) {
				t.Errorf("%s of %s: %+v", name, how, res)
			}
		}
		for i := range maxQuestions + 5 {
			w.call(t.Context(), all["mcp__a__register"], fmt.Sprintf(`{"n":%d}`, i), nil)
		}
		if all, err := w.questions.read(); err != nil || len(all.Questions) != maxQuestions {
			t.Errorf("%d questions are kept, %v", len(all.Questions), err)
		}
		if data, err := os.ReadFile(w.questions.path); err != nil {
			t.Error(err)
		} else if found, err := CheckQuestions(w.questions.path, data); err != nil || len(found) != 0 {
			t.Errorf("%v, %v", found, err)
		}
	}
}

// Servers of earlier versions ask by requests of their own, or refuse until an address is opened.
func TestQuestionsOfOldServers(t *testing.T) {
	w := newWorld(t, "questions:old")
	all := w.all()
	for name, want := range map[string]string{"login": "logged in",
		"register": `{"action":"accept","content":{"name":"Ada","size":"small"}}`} {
		res := w.call(t.Context(), all["mcp__a__"+name], `{}`, nil)
		call := answerTo(t, res.Text, `,"content":{"name":"Ada"}`)
		if got, err := all[AnswerTool].Run(t.Context(), call); err != nil || got.Text != want {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
	one, two := &calling{}, &calling{}
	s := w.Pool.find("a")
	for _, c := range []*calling{one, two} {
		defer s.calls.begin(s.session.ClientSession, c)()
	}
	if c := s.calls.of(t.Context(), s.session.ClientSession); c != nil {
		t.Error("a question in one of two calls has a call")
	}
}

// What the server gets is what was approved, to the last digit.
func TestNumbersOfAnAnswerAreExact(t *testing.T) {
	const content = `{"id":-9007199254740993,"name":"Ada","none":0,"ratio":0.1,"small":1e-7,"sure":true,"which":["a"]}`
	fields, err := exactly(json.RawMessage(content))
	if err != nil {
		t.Fatal(err)
	}
	if sent, err := json.Marshal(fields); err != nil || string(sent) != content {
		t.Errorf("%s is sent as %s, %v", content, sent, err)
	}

	for content, want := range map[string]string{`{"id":12345678901234567890}`: "id: 12345678901234567890 is too large",
		`{"id":1e999}`: "out of range"} {
		if _, err := exactly(json.RawMessage(content)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", content, err, want)
		}
	}
}
