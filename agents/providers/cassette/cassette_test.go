package cassette

import (
	"context"
	"encoding/json"
	"errors"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"daycare/agents/providers"
	"daycare/agents/providers/scripted"
)

const script = `rules:
  - tool_result: read
    reply: [ { text: "It says: {{.Result}}", chunk: 3 }, { usage: { input: 9, output: 4 } } ]
  - contains: weigh
    reply:
      - { thinking: Hm. }
      - { text: Let me look. }
      - { calls: [ { name: read, arguments: { path: "/tmp/ws1/a.txt" } }, { name: ls } ] }
  - reply: [ { fault: { status: 529 } } ]
`

// talk is what an agent asks: a run in a folder, with an id of its own for the call.
func talk(folder, id, result string) []*providers.Request {
	user := &providers.Message{Role: providers.User, Parts: []providers.Part{
		providers.Text{Text: "<time>2026-11-20 18:22 CET</time><message>weigh " + folder + "</message>"}}}
	answer := &providers.Message{Role: providers.Assistant, Parts: []providers.Part{providers.Text{Text: "Let me look."},
		providers.Call{ID: id, Name: "read", Arguments: json.RawMessage(`{"path":"` + folder + `/a.txt"}`)}}}
	results := &providers.Message{Role: providers.Results,
		Parts: []providers.Part{providers.Result{CallID: id, Name: "read", Text: result}}}
	tools := []providers.Tool{{Name: "read", Description: "Reads.", Schema: json.RawMessage(`{ "type": "object" }`)}}
	first := &providers.Request{System: "You work in " + folder, Tools: tools, Messages: []*providers.Message{user}}
	second := &providers.Request{System: first.System, Tools: tools, Messages: []*providers.Message{user, answer, results}}

	return []*providers.Request{first, second}
}

func ask(p providers.Provider, req *providers.Request) (text string, calls []string, err error) {
	r, err := (&providers.Caller{Chain: []providers.Provider{p}}).Call(context.Background(), req, nil)
	if err != nil {
		return "", nil, err
	}
	for _, c := range r.Calls {
		calls = append(calls, c.Name+string(c.Arguments))
	}

	return r.Text, calls, nil
}

const idOne, idTwo = "tz4a98xxat96iws9zmbrgj3a", "aaaabbbbcccc1111ddddeee2"

func blur(folder string) Blur { return Blur{Names: []Name{{Text: folder, As: "$WORKSPACE"}}} }

func record(t *testing.T) []byte {
	t.Helper()
	p, err := scripted.New(scripted.Options{Source: []byte(script)})
	if err != nil {
		t.Fatal(err)
	}
	tape := New(Head{Provider: "scripted", Wire: p.Wire(), Model: "m"}, blur("/tmp/ws1"))
	for _, req := range talk("/tmp/ws1", idOne, "tea 3.20") {
		if _, _, err := ask(tape.Record(p), req); err != nil {
			t.Fatal(err)
		}
	}

	return tape.Bytes()
}

func load(t *testing.T, data []byte, b Blur) *Tape {
	t.Helper()
	tape, err := Parse("x.jsonl", data, b)
	if err != nil {
		t.Fatal(err)
	}
	return tape
}

// A run in another folder, at another time, with other ids gets the same answers, with its own
// folder in them; and the file is the same when it is written again.
func TestPlaysWhatWasRecorded(t *testing.T) {
	data := record(t)
	for _, secret := range []string{"/tmp/ws1", "2026-11-20", idOne} {
		if strings.Contains(string(data), secret) {
			t.Errorf("the tape has %s:\n%s", secret, data)
		}
	}
	tape := load(t, data, blur("/home/ada/ws2"))
	if diff := cmp.Diff(string(data), string(tape.Bytes())); diff != "" {
		t.Error(diff)
	}

	reqs := talk("/home/ada/ws2", idTwo, "tea 3.20")
	text, calls, err := ask(tape.Play(), reqs[0])
	if want := []string{`read{"path":"/home/ada/ws2/a.txt"}`, "ls{}"}; err != nil || text != "Let me look." || !cmp.Equal(calls, want) {
		t.Error(text, calls, err)
	}
	if text, _, err := ask(tape.Play(), reqs[1]); err != nil || text != "It says: tea 3.20" {
		t.Error(text, err)
	}
	if tape.Unused() != 0 || len(tape.Missed()) != 0 {
		t.Error(tape.Unused(), tape.Missed())
	}
}

func TestWhatDiffersIsSaid(t *testing.T) {
	data := record(t)
	for name, tt := range map[string]struct {
		change func(first, second *providers.Request)
		want   string
	}{
		"result": {func(_, r *providers.Request) { r.Messages = talk("/w", idTwo, "tea 4.20")[1].Messages },
			"+result: $ID1 read tea 4.20"},
		"system":  {func(_, r *providers.Request) { r.System += "\nBe brief." }, "the system prompt:"},
		"model":   {func(_, r *providers.Request) { r.Model = "other" }, "model: recorded , now other"},
		"warmth":  {func(_, r *providers.Request) { x := 0.5; r.Temperature = &x }, "temperature: recorded unset, now 0.5"},
		"no tool": {func(_, r *providers.Request) { r.Tools = nil }, "the tool read: recorded, and the agent does not have it now"},
		"a tool": {func(_, r *providers.Request) { r.Tools = append(r.Tools, providers.Tool{Name: "ls"}) },
			"the tool ls: not recorded"},
		"another tool": {func(_, r *providers.Request) { r.Tools = []providers.Tool{{Name: "read", Description: "Looks."}} }, "-Reads."},
		"shorter": {func(_, r *providers.Request) { r.Messages = r.Messages[:2] },
			"message 3 (results) is recorded, and not in the request"},
		"longer": {func(_, r *providers.Request) { r.Messages = append(r.Messages, r.Messages[0]) },
			"message 4 of 4 is not recorded"},
		"again": {func(f, r *providers.Request) { *r = *f }, "more often now than then"},
	} {
		t.Run(name, func(t *testing.T) {
			tape := load(t, data, blur("/w"))
			reqs := talk("/w", idTwo, "tea 3.20")
			if _, _, err := ask(tape.Play(), reqs[0]); err != nil {
				t.Fatal(err)
			}
			first, second := *reqs[0], *reqs[1]
			tt.change(&first, &second)
			_, _, err := ask(tape.Play(), &second)
			m, ok := errors.AsType[*Mismatch](err)
			if !ok || !strings.Contains(m.Differs, tt.want) || len(tape.Missed()) != 1 {
				t.Errorf("%v\n%+v, want %q", err, m, tt.want)
			}
		})
	}
}

// A pattern applies to both sides, so a tape need not be recorded again for it.
func TestIgnore(t *testing.T) {
	b := blur("/w")
	b.Ignore = []*regexp.Regexp{regexp.MustCompile(`\d\.\d\d`)}
	tape := load(t, record(t), b)
	for _, req := range talk("/w", idTwo, "tea 9.99") {
		if _, _, err := ask(tape.Play(), req); err != nil {
			t.Error(err)
		}
	}
}

func TestBrokenTapesNameTheLine(t *testing.T) {
	good := string(record(t))
	for _, tt := range []struct{ text, want string }{
		{"", "x.jsonl:1: the file is empty"},
		{"{}\n", "x.jsonl:1: not a cassette"},
		{"tea\n", "x.jsonl:1: not JSON"},
		{`{"cassette":9}`, "this daycare reads 1"},
		{strings.Replace(good, `{"system"`, `{"sistem"`, 1), "x.jsonl:2: expected a member"},
		{strings.Replace(good, `{"message":"m1"`, `{"message":"m9"`, 1), `no line before it has the message "m1"`},
		{strings.Replace(good, `{"tools":"t1"`, `{"tools":"t9"`, 1), `no line before it has the tools "t1"`},
		{strings.Replace(good, `{"end"`, `{"ends"`, 1), "call 1: its answer has no end"},
	} {
		if _, err := Parse("x.jsonl", []byte(tt.text), Blur{}); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%.60q: %v, want %q", tt.text, err, tt.want)
		}
	}
}

// A request that failed is not kept: it is made again.
func TestFailuresAreNotRecorded(t *testing.T) {
	p, err := scripted.New(scripted.Options{Source: []byte(`rules: [ { reply: [ { text: half }, { fault: { status: 400 } } ] } ]`)})
	if err != nil {
		t.Fatal(err)
	}
	tape := New(Head{Provider: "x"}, Blur{})
	if _, _, err := ask(tape.Record(p), talk("/w", idOne, "")[0]); err == nil || tape.Len() != 0 {
		t.Error(err, tape.Len())
	}
}

func FuzzParse(f *testing.F) {
	f.Add(`{"cassette":1,"provider":"p","wire":"w","model":"m"}
{"system":"s1","text":"a"}
{"tools":"t1"}
{"message":"m1","role":"user","text":"text: hello"}
{"call":1,"system":"s1","tools":"t1","messages":["m1"],"answer":[{"text":"hi"},{"end":{"finish":"end_turn","usage":{}}}]}`)
	f.Fuzz(func(t *testing.T, text string) {
		tape, err := Parse("x", []byte(text), Blur{})
		if err != nil {
			return
		}
		for range tape.Play().Stream(t.Context(), talk("/w", idOne, "x")[0]) {
		}
		if _, err := Parse("again", tape.Bytes(), Blur{}); err != nil {
			t.Errorf("what it writes it cannot read: %v\n%s", err, tape.Bytes())
		}
	})
}
