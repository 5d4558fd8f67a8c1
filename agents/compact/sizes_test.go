package compact

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"daycare/agents/providers"
	"daycare/engine/message"
	"daycare/engine/record"
)

func x(n int) string { return strings.Repeat("x", n) }

// All sizes follow from the room that there is; a summary has an end of its own.
func TestSizesFollowFromTheRoom(t *testing.T) {
	for limit, want := range map[int]Limits{
		8000:    {Trigger: 6000, Tail: 2000, Round: 3000, Summary: 1000, Request: 1000, Part: 4000},
		200_000: {Trigger: 150_000, Tail: 50_000, Round: 75_000, Summary: 4000, Request: 25_000, Part: 100_000},
	} {
		if diff := cmp.Diff(want, For(limit)); diff != "" {
			t.Errorf("of %d (-want +got):\n%s", limit, diff)
		}
	}
}

// A record takes a token for about four characters, and pictures what vendors count for them.
func TestHowLongARecordIs(t *testing.T) {
	picture, text := message.File{MimeType: "image/png"}, message.File{MimeType: "text/plain"}
	for name, tt := range map[string]struct {
		rec  record.Record
		want int
	}{
		"a message":  {&record.User{Text: strings.Repeat("ä", 80), Preface: x(20)}, 51},
		"with files": {&record.User{Files: []message.File{picture, text, picture}}, 26 + 2*imageTokens},
		"an answer":  {&record.Assistant{Text: strings.Repeat("ä", 40)}, 11},
		"with more": {&record.Assistant{Thinking: []record.Thinking{{Text: x(20), Signature: x(20)}},
			ToolCalls: []record.ToolCall{{Name: "read", Arguments: []byte(x(36))}}}, 21},
		"a result": {&record.ToolResult{Output: record.Output{Text: strings.Repeat("ä", 40)}}, 21},
		"with blocks": {&record.ToolResult{Output: record.Output{Blocks: []record.Block{{Type: "image"}, {Type: "document"},
			{Type: "diff"}}}}, 11 + 2*imageTokens},
		"a permission": {&record.Permission{Request: x(40)}, 61},
		"a note":       {&record.Note{Text: x(400)}, 1},
	} {
		if got := Size(&record.Entry{Rec: tt.rec}); got != tt.want {
			t.Errorf("%s has %d tokens, want %d", name, got, tt.want)
		}
	}
}

// A text that is too long keeps its beginning and its end, in whole characters.
func TestALongTextKeepsItsEnds(t *testing.T) {
	for _, tt := range []struct {
		text  string
		limit int
		want  string
	}{
		{"123456", 6, "123456"}, {"1234567", 6, "1234 […1 bytes…] 67"}, {"a\xffb", 6, "a\uFFFDb"},
		{"123ä567ä9", 6, "123 […5 bytes…] 9"},
	} {
		if got := shorten(tt.text, tt.limit); got != tt.want {
			t.Errorf("%q becomes %q, want %q", tt.text, got, tt.want)
		}
	}
}

// Who summarises reads what was said, called and returned, and nothing can pass for more.
func TestWhatATranscriptShows(t *testing.T) {
	at := time.Date(2026, 11, 20, 12, 30, 0, 0, time.UTC)
	file := message.File{Name: "<a>", Path: "/f&g"}
	for want, rec := range map[string]record.Record{
		"[2026-11-20 12:30 person] a &lt;b&gt; [file &lt;a&gt; at /f&amp;g]": &record.User{Text: "a <b>", Files: []message.File{file}},
		"[2026-11-20 12:30 message from child] done":                         &record.User{Text: "done", Origin: "child"},
		"[2026-11-20 12:30 agent] I look.\n[agent calls read] {&lt;}\n[agent calls ls] {}": &record.Assistant{Text: "I look.",
			ToolCalls: []record.ToolCall{{Name: "read", Arguments: []byte("{<}")}, {Name: "ls", Arguments: []byte("{}")}}},
		"[agent calls ls] {}": &record.Assistant{Text: " \n", ToolCalls: []record.ToolCall{{Name: "ls", Arguments: []byte("{}")}}},
		"[result of read: ok] it &amp; more [file &lt;a&gt; at /f&amp;g] [file b at /b]": &record.ToolResult{Name: "read",
			Status: record.StatusOK, Files: []message.File{file},
			Output: record.Output{Text: "it & more", Blocks: []record.Block{{File: &message.File{Name: "b", Path: "/b"}}, {Text: "diff"}}}},
		"[2026-11-20 12:30 permission always: @web] &gt;": &record.Permission{Event: "always", Tag: "@web", Request: ">"},
		"": &record.Note{Text: "x"},
	} {
		if got := line(&record.Entry{At: at, Rec: rec}); got != want {
			t.Errorf("%T is shown as\n%s\nwant\n%s", rec, got, want)
		}
	}
}

// A transcript comes in parts that are no longer than was asked for.
func TestATranscriptComesInParts(t *testing.T) {
	of := func(sizes ...int) (entries []*record.Entry) {
		for _, n := range sizes { // "[result of : ok] " has 17 bytes
			entries = append(entries, &record.Entry{Rec: &record.ToolResult{Status: record.StatusOK,
				Output: record.Output{Text: x(n - 17)}}})
		}
		return append(entries, &record.Entry{Rec: &record.Note{Text: "nothing"}})
	}
	for _, tt := range []struct {
		sizes []int
		want  string // bytes of each part
	}{
		{nil, ""}, {[]int{40}, "41"}, {[]int{200, 199}, "401"}, {[]int{200, 202}, "404"}, {[]int{200, 203}, "201 204"},
		{[]int{200, 250, 100, 300}, "201 352 301"}, {[]int{500}, "419"},
	} {
		var got []string
		for _, part := range transcript(of(tt.sizes...), 100) {
			got = append(got, fmt.Sprint(len(part)))
		}
		if strings.Join(got, " ") != tt.want {
			t.Errorf("records of %v come in parts of %v, want %s", tt.sizes, got, tt.want)
		}
	}
}

// What was planned to go is as it was, or it is planned anew.
func TestAPlanHoldsWhileNothingChanged(t *testing.T) {
	ctx := talk("u900", "a900", "u10")
	ctx.Summary = &record.Entry{Seq: 5, Rec: &record.Summary{Text: "before", From: 2}}
	p, ok := Make(ctx, For(1000), 99)
	if !ok || !p.Holds(ctx) {
		t.Fatalf("a plan does not hold: %+v", p)
	}
	more := *ctx
	more.Entries = append(more.Entries[:3:3], talk("a10").Entries...)
	if !p.Holds(&more) {
		t.Error("what came behind it ends a plan")
	}
	for name, change := range map[string]func(c *record.Context){
		"a record is gone":    func(c *record.Context) { c.Entries = c.Entries[1:] },
		"a record is another": func(c *record.Context) { c.Entries = append([]*record.Entry{{}}, c.Entries[1:]...) },
		"all are gone":        func(c *record.Context) { c.Entries = nil },
		"another summary":     func(c *record.Context) { c.Summary = &record.Entry{Rec: &record.Summary{Text: "other"}} },
		"no summary":          func(c *record.Context) { c.Summary = nil },
	} {
		c := *ctx
		if change(&c); p.Holds(&c) {
			t.Errorf("%s: the plan holds", name)
		}
	}
}

// The tail is as long as there is room for, to the token; a silent message asks for nothing.
func TestWhereTheTailBegins(t *testing.T) {
	for name, tt := range map[string]struct {
		words string
		tail  int // tokens of room
		gone  int // -1: nothing
	}{
		"as long as there is room": {"a9 a9 a9", 20, 1},
		"one token less":           {"a9 a9 a9", 19, 2},
		"all of it":                {"a9 a9 a9", 30, -1},
		"a result cannot begin":    {"a9 c9 r9 a9", 45, 1}, // a call has 5 more, a result 10
	} {
		p, ok := Make(talk(strings.Fields(tt.words)...), Limits{Tail: tt.tail, Round: tt.tail}, 99)
		if ok != (tt.gone >= 0) || ok && len(p.Gone) != tt.gone {
			t.Errorf("%s: %d go (%v), want %d", name, len(p.Gone), ok, tt.gone)
		}
	}
	ctx := talk("u100", "c10", "r900")
	ctx.Entries[0].Rec.(*record.User).Silent = true
	if p, ok := Make(ctx, Limits{Tail: 20, Round: 20}, 99); !ok || len(p.Requests) != 0 {
		t.Errorf("a silent message is quoted as a request: %+v", p.Requests)
	}
	ctx = talk("u10", "u20", "c10", "r900")
	ctx.Entries[1].Rec.(*record.User).Silent = true
	if p, ok := Make(ctx, Limits{Tail: 20, Round: 20}, 99); !ok || len(p.Requests) != 1 || len(p.Requests[0].Text) != 40 {
		t.Errorf("quoted are %d requests, want the one that was said", len(p.Requests))
	}
}

// teaches is a model that remembers what it was asked and answers with usage.
type teaches struct {
	asked  []*providers.Request
	answer providers.Response
	fails  int // at which call; 0: none
}

func (m *teaches) Call(_ context.Context, req *providers.Request, _ func(providers.Event)) (*providers.Response, error) {
	if m.asked = append(m.asked, req); len(m.asked) == m.fails {
		return nil, errors.New("gone")
	}
	a := m.answer
	return &a, nil
}

// A model is asked as the task says, and what it cost is in the record, also if a later part
// fails.
func TestHowAModelIsAskedForASummary(t *testing.T) {
	usage := providers.Usage{Input: 10, Output: 5, CacheRead: 3, CacheWrite: 2, Estimated: true}
	m := &teaches{answer: providers.Response{Text: good("x"), Provider: "p", Model: "m", Usage: usage}}
	plan, _ := Make(talk("u900", "a900", "u900"), For(4000), 99)
	task := Task{Plan: plan, Limits: Limits{Summary: 500, Request: 100, Part: 1000}, Model: "small", Agent: "a",
		Waiting: true, Focus: "<b>"}
	s, err := Summarize(t.Context(), m, task)
	want := record.Tokens{Input: 20, Output: 10, CacheRead: 6, CacheWrite: 4, Estimated: true}
	if err != nil || s.Tokens != want || s.Model != "m" {
		t.Errorf("%+v, %v, want %+v", s, err, want)
	}
	req := m.asked[0]
	text := req.Messages[0].Parts[0].(providers.Text).Text
	if req.Model != "small" || req.Agent != "a" || !req.Foreground || req.MaxTokens != 750 || strings.Contains(text, "<earlier_summary>") ||
		!strings.Contains(text, "&lt;b&gt;") || !strings.HasSuffix(text, "in at most 250 words.") {
		t.Errorf("asked is %+v:\n%s", req, text)
	}
	task.Focus = ""
	m = &teaches{answer: m.answer, fails: 2}
	if s, err = Summarize(t.Context(), m, task); err == nil || s.Tokens.Input != 10 || s.Text != "" {
		t.Errorf("after a failure: %+v, %v", s, err)
	}
	if text := m.asked[0].Messages[0].Parts[0].(providers.Text).Text; strings.Contains(text, "above all") {
		t.Errorf("without a focus the model is asked\n%s", text)
	}
	if _, err := Summarize(t.Context(), m, Task{Limits: For(1000)}); !errors.Is(err, ErrUseless) {
		t.Errorf("of nothing: %v", err)
	}
	// A summary that is far too long does not fill the next request.
	m = &teaches{answer: providers.Response{Text: good(x(100_000))}}
	if _, err := Summarize(t.Context(), m, task); err != nil ||
		len(m.asked[1].Messages[0].Parts[0].(providers.Text).Text) > 4*1000+2*4*500+1000 {
		t.Errorf("%v; the second part comes with all of a summary that is far too long", err)
	}
}

// A summary has at least three of the headings, and is no refusal.
func TestWhatIsASummary(t *testing.T) {
	three := "## Goal\nx\n## Progress\ny\n## Files\nz"
	for _, tt := range []struct {
		answer providers.Response
		ok     bool
	}{
		{providers.Response{Text: " " + three + "\n"}, true}, {providers.Response{Text: three, Finish: providers.MaxTokens}, true},
		{providers.Response{Text: three, Finish: providers.Refusal}, false},
		{providers.Response{Text: "## Goal\nx\n## Progress\ny"}, false},
	} {
		text, err := usable(&tt.answer)
		if (err == nil) != tt.ok || tt.ok && text != three {
			t.Errorf("%+v: %q, %v", tt.answer, text, err)
		}
	}
}

// What runs and the latest request are added to a summary, and taken off before the next one.
func TestWhatIsAddedToASummary(t *testing.T) {
	user := func(text string) *record.User {
		return &record.User{Text: text, Files: []message.File{{Name: "a", Path: "/a"}}}
	}
	for _, tt := range []struct {
		task Task
		want string
	}{
		{Task{}, "S"},
		{Task{Running: []string{"j1", "j2"}}, "S\n\n" + runningHead + "\n- j1\n- j2"},
		{Task{Plan: Plan{Requests: []*record.User{user("one"), user("two")}}},
			"S\n\n" + requestHead + "\none [file a at /a]\ntwo [file a at /a]\n" + requestOpen},
		{Task{Plan: Plan{Quoted: "old\n", Answered: true}}, "S\n\n" + requestHead + "\nold\n" + requestDone},
	} {
		got := tt.task.complete(" S \n")
		if got != tt.want {
			t.Errorf("it is\n%s\nwant\n%s", got, tt.want)
		}
		if again := strip(got); again != "S" {
			t.Errorf("taken off, %q is left", again)
		}
	}
	text, answered := quoted("S\n\n" + requestHead + "\nold\n" + requestDone)
	if text != "old\n" || !answered {
		t.Errorf("quoted is %q, answered %v", text, answered)
	}
	if text, answered = quoted("S"); text != "" || answered {
		t.Errorf("of a summary without one is quoted %q, answered %v", text, answered)
	}
	one := Task{Limits: Limits{Request: 100}, Plan: Plan{Requests: []*record.User{user(x(200)), user(x(300)), user(x(250))}}}
	if n := one.RequestCut(); n != 100+50 { // 200 bytes of each, whatever their number
		t.Errorf("%d bytes are left out", n)
	}
}

// A digest says what was asked and answered and which files were named, each once.
func TestWhatADigestSays(t *testing.T) {
	call := func(args string) *record.Entry {
		return &record.Entry{Rec: &record.Assistant{Text: "looking",
			ToolCalls: []record.ToolCall{{Name: "read", Arguments: json.RawMessage(args)}}}}
	}
	at := time.Date(2026, 11, 20, 12, 30, 0, 0, time.UTC)
	plan := Plan{Gone: []*record.Entry{{At: at, Rec: &record.User{Text: "do\n it"}}, call(`{"path":"a"}`), call(`{"path":"b"}`),
		call(`{"path":"a"}`), call(`{"other":1}`), call(`[]`), call(`{"path":""}`), {Rec: &record.Assistant{Text: "done"}},
		{Rec: &record.Assistant{Text: " "}},
		{At: at, Rec: &record.User{Text: "it is", Origin: "child"}}}}
	want := digestHead + "\n\n" + askedHead +
		"\n- 2026-11-20 12:30 asked: do it\n  answered: done\n- 2026-11-20 12:30 told by child: it is\n\n" +
		filesHead + "\n- b\n- a"
	got := Digest(Task{Plan: plan, Limits: For(8000)})
	if got != want {
		t.Errorf("it says\n%s\nwant\n%s", got, want)
	}
	before, asked, files := earlier(got)
	if before != "" || len(asked) != 3 || strings.Join(files, "") != "- b- a" {
		t.Errorf("taken apart it is %q, %q, %q", before, asked, files)
	}
	if before, asked, files = earlier(digestHead); before != "" || asked != nil || files != nil {
		t.Errorf("an empty one is %q, %q, %q", before, asked, files)
	}
	if empty := Digest(Task{Limits: For(8000)}); empty != digestHead {
		t.Errorf("of nothing it says\n%s", empty)
	}
	plan = Plan{Before: good("earlier")}
	for n := range maxPaths + 5 {
		plan.Gone = append(plan.Gone, call(fmt.Sprintf(`{"path":"f%d"}`, n)))
	}
	got = Digest(Task{Plan: plan, Limits: For(8000)})
	if strings.Count(got, "- f") != maxPaths || strings.Contains(got, "- f4\n") || !strings.Contains(got, "- f5\n") ||
		!strings.Contains(got, beforeHead+"\n## Goal\nearlier\n") {
		t.Errorf("of many files it says\n%s", got)
	}
	// The oldest lines go until it is short enough, and what is left is as long as may be.
	plan.Gone = nil
	for n := range 200 {
		plan.Gone = append(plan.Gone, &record.Entry{At: at, Rec: &record.User{Text: fmt.Sprintf("request %d", n)}})
	}
	got = Digest(Task{Plan: plan, Limits: Limits{Summary: 1000, Request: 100}})
	if len(got) > 4003 || len(got) < 3600 || !strings.HasSuffix(got, "request 199") {
		t.Errorf("%d bytes of 4,000 are said, the last of them %q", len(got), got[len(got)-20:])
	}
}
