package agents

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"daycare/agents/compact"
	"daycare/agents/prompt"
	"daycare/agents/providers"
	"daycare/engine/event"
	"daycare/engine/inbox"
	"daycare/engine/message"
	"daycare/engine/record"
	"daycare/tools"
)

// windowed is a model with a window. It counts tokens in its own way, refuses what
// is too long or out of order, and remembers nothing but what a request says.
type windowed struct {
	window  int
	useless bool // its summaries are none

	mu        sync.Mutex
	sizes     []int // of each request in a conversation
	refused   int
	summaries int
	invalid   []string
}

const (
	charsPerToken = 3.2
	tokensOfImage = 1500
)

func (w *windowed) Call(_ context.Context, req *providers.Request, _ func(providers.Event)) (*providers.Response, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	size := count(req)
	if size > w.window {
		w.refused++
		return nil, &providers.Failure{Kind: providers.Overflow, Provider: "w", Status: 400, Message: "prompt is too long"}
	}
	if why := invalid(req); why != "" {
		w.invalid = append(w.invalid, why)
	}

	r := &providers.Response{Finish: providers.EndTurn, Provider: "w", Model: "m",
		Usage: providers.Usage{Input: int64(size), Output: 50}}
	if strings.HasPrefix(req.System, "You write the memory") {
		w.summaries++
		r.Text = w.summary(textOf(req))
		return r, nil
	}

	w.sizes = append(w.sizes, size)
	w.answer(req, r)
	return r, nil
}

var (
	fact     = regexp.MustCompile(`the code of turn \d+ is [a-z]+\d+`)
	question = regexp.MustCompile(`what is the code of turn (\d+)\?`)
	number   = regexp.MustCompile(`this is turn (\d+)`)
)

// summary keeps the facts, as a good summary does.
func (w *windowed) summary(text string) string {
	if w.useless {
		return "You asked me to summarise."
	}
	seen := map[string]bool{}
	kept := ""
	for _, f := range fact.FindAllString(text, -1) {
		if !seen[f] {
			seen[f] = true
			kept += "- " + f + "\n"
		}
	}

	return "## Goal\nx\n## Constraints\n" + kept +
		"## Progress\nnone\n## Decisions\nnone\n## Open work\nnone\n## Files\nnone\n## Next step\nnone"
}

// answer calls tools once a turn, then says what the user asked for.
func (w *windowed) answer(req *providers.Request, r *providers.Response) {
	last := req.Messages[len(req.Messages)-1]
	asked := textOf(&providers.Request{Messages: []*providers.Message{last}})
	if q := question.FindStringSubmatch(asked); q != nil {
		r.Text = "I do not know."
		if f := regexp.MustCompile(`the code of turn ` + q[1] + ` is [a-z]+\d+`).FindString(textOf(req)); f != "" {
			r.Text = f
		}
		return
	}
	if n := number.FindStringSubmatch(asked); n != nil && last.Role == providers.User {
		for i := range len(n[1]) { // one to three calls
			args := json.RawMessage(fmt.Sprintf(`{"n":"%s-%d"}`, n[1], i))
			r.Calls = append(r.Calls, providers.ResponseCall{RemoteID: fmt.Sprint("c", i), Name: "big", Arguments: args, Valid: true})
		}
		r.Finish = providers.ToolUse
		return
	}

	r.Text = "Done."
}

func textOf(req *providers.Request) string {
	var b strings.Builder
	for _, m := range req.Messages {
		for _, p := range m.Parts {
			switch p := p.(type) {
			case providers.Text:
				b.WriteString(p.Text + "\n")
			case providers.Result:
				b.WriteString(p.Text + "\n")
			}
		}
	}

	return b.String()
}

// count is the size of a request as this model counts it: not as daycare does.
func count(req *providers.Request) int {
	chars, images := len(req.System), 0
	for _, t := range req.Tools {
		chars += len(t.Name) + len(t.Description) + len(t.Schema)
	}

	for _, m := range req.Messages {
		chars += 20
		for _, p := range m.Parts {
			switch p := p.(type) {
			case providers.Text:
				chars += len(p.Text)
			case providers.Call:
				chars += len(p.Name) + len(p.Arguments)
			case providers.Result:
				chars += len(p.Text)
				images += len(p.Images)
			case providers.Image:
				images++
			}
		}
	}

	return int(float64(chars)/charsPerToken) + images*tokensOfImage
}

// invalid says what a strict vendor would refuse in a request.
func invalid(req *providers.Request) string {
	if len(req.Messages) == 0 || req.Messages[0].Role != providers.User {
		return "the first message is not the user's"
	}
	ids := map[string]bool{}
	for i, m := range req.Messages {
		if len(m.Parts) == 0 {
			return fmt.Sprintf("message %d is empty", i)
		}
		var open []string
		for _, p := range m.Parts {
			if c, ok := p.(providers.Call); ok {
				if ids[c.ID] || !json.Valid(c.Arguments) {
					return "a call's id is there twice, or its arguments are no JSON"
				}
				ids[c.ID] = true
				open = append(open, c.ID)
			}
			if t, ok := p.(providers.Text); ok && strings.TrimSpace(t.Text) == "" {
				return "an empty text"
			}
		}

		if why := follows(req, i, open); why != "" {
			return why
		}
	}

	return ""
}

// follows checks that the calls of message i have their results in the next one.
func follows(req *providers.Request, i int, open []string) string {
	m := req.Messages[i]
	if m.Role == providers.Assistant {
		if i+1 == len(req.Messages) {
			return "the last message is the model's"
		}
		var got []string
		for _, p := range req.Messages[i+1].Parts {
			if r, ok := p.(providers.Result); ok {
				got = append(got, r.CallID)
			}
		}
		if diff := cmp.Diff(open, got); diff != "" {
			return "calls and results differ: " + diff
		}
	}
	if m.Role == providers.Results && (i == 0 || req.Messages[i-1].Role != providers.Assistant) {
		return "results without calls"
	}
	if i > 0 && m.Role == req.Messages[i-1].Role {
		return "two messages of one role"
	}

	return ""
}

// bigTool gives far more than the window takes, and a picture now and then.
type bigTool struct{ calls int }

func (*bigTool) Spec() tools.Spec {
	return tools.Spec{Name: "big", Description: "gives much", Schema: json.RawMessage(`{"type":"object"}`), Replay: tools.ReadOnly}
}

func (b *bigTool) Run(_ context.Context, c tools.Call) (tools.Result, error) {
	b.calls++
	r := tools.Result{Text: strings.Repeat("output of "+string(c.Arguments)+" ", 200+b.calls*7919%6000)}
	if b.calls%5 == 0 {
		r.Blocks = []tools.Block{{Type: "image", File: &message.File{Name: "p.png", MimeType: "image/png", Size: 1000, Path: "/p.png"}}}
	}
	return r, nil
}

func newWindowed(t *testing.T, w *windowed, list ...tools.Tool) *bench {
	t.Helper()
	b := newBench(t, callHold, list...)
	b.opts.Model = func(record.Model) Model { return w }
	b.opts.Window = func(record.Model) int { return w.window }
	b.opts.Sources = prompt.Sources{File: func(message.File) ([]byte, error) { return onePixel, nil }}
	return b
}

// longConversation has turns with outputs that are larger than the window, and pictures,
// through a model of 32,000 tokens: nothing is ever refused, and what was said in turn 3 is
// known at the end.
func longConversation(t *testing.T, turns int) {
	w := &windowed{window: 32_000}
	b := newWindowed(t, w, &bigTool{})
	b.run()

	for n := 1; n <= turns; n++ {
		it := inbox.Item{Kind: message.Text, Text: fmt.Sprintf("this is turn %d", n)}
		if n%7 == 0 {
			it.Files = []message.File{{Name: "cat.png", MimeType: "image/png", Size: 1000, Path: "/cat.png"}}
		}
		if n%40 == 3 {
			it.Text += fmt.Sprintf(". Remember: the code of turn %d is swallow%d", n, n*17)
		}

		r, err := b.box.Accept(context.Background(), it)
		if err != nil {
			t.Fatal(err)
		}
		if o := b.outcome(r.Item); o.Reason != record.ReasonDone || o.Text != "Done." {
			t.Fatalf("turn %d: %+v", n, o)
		}
	}

	if o := b.outcome(b.say("what is the code of turn 3?")); o.Text != "the code of turn 3 is swallow51" {
		t.Errorf("asked for turn 3: %q", o.Text)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.refused > 0 || len(w.invalid) > 0 {
		t.Errorf("%d requests were too long, %d invalid: %v", w.refused, len(w.invalid), w.invalid[:min(3, len(w.invalid))])
	}
	if strings.Contains(b.history(), `"type":"reset"`) {
		t.Error("the conversation was reset")
	}

	most, sum := 0, 0
	for _, s := range w.sizes {
		most, sum = max(most, s), sum+s
	}
	t.Logf("%d calls, largest %d, mean %d tokens; %d summaries", len(w.sizes), most, sum/len(w.sizes), w.summaries)
	if path := os.Getenv("DAYCARE_PLOT"); path != "" {
		os.WriteFile(path, []byte(strings.Trim(fmt.Sprint(w.sizes), "[]")), 0o600)
	}
}

// A model whose summaries are useless: the oldest turns are dropped, and the list
// of what was asked stays.
func TestUselessSummaryFallsBack(t *testing.T) {
	w := &windowed{window: 32_000, useless: true}
	b := newWindowed(t, w, &bigTool{})
	b.run()
	for n := 1; n <= 30; n++ {
		b.wait(b.say(fmt.Sprintf("this is turn %d: the code of turn %d is owl%d", n, n, n)))
	}
	if o := b.outcome(b.say("what is the code of turn 3?")); o.Text != "the code of turn 3 is owl3" {
		t.Errorf("asked for turn 3: %q", o.Text)
	}
	if w.refused > 0 || len(w.invalid) > 0 {
		t.Errorf("%d refused, invalid: %v", w.refused, w.invalid)
	}
}

// A service whose window is smaller than known refuses once; after that the limit
// is the right one.
func TestSmallerWindowIsLearned(t *testing.T) {
	t.Parallel()
	w := &windowed{window: 32_000}
	b := newWindowed(t, w, &bigTool{})
	b.opts.Window = nil
	b.run()

	for n := 1; n <= 40; n++ {
		if o := b.outcome(b.say(fmt.Sprintf("this is turn %d", n))); o.Reason != record.ReasonDone {
			t.Fatalf("turn %d: %+v", n, o)
		}
	}
	if w.refused > 2 || w.summaries == 0 || len(w.invalid) > 0 {
		t.Errorf("%d refused, %d summaries, invalid: %v", w.refused, w.summaries, w.invalid)
	}
}

// A conversation stays as it is until three quarters of the window are used.
func TestNothingIsSummarisedWhileThereIsRoom(t *testing.T) {
	w := &windowed{window: 32_000}
	b := newWindowed(t, w)
	b.run()

	for n := 1; b.count("summary") == 0 && n <= 40; n++ { // about 1,000 tokens each
		b.outcome(b.say(fmt.Sprintf("note %d: ", n) + strings.Repeat("lorem ipsum ", 300)))
	}
	b.halt()
	if most := w.sizes[len(w.sizes)-2]; w.summaries != 1 || most < w.window/2 || most > w.window*9/10 {
		t.Errorf("%d summaries, after requests of %d tokens, of a window of %d", w.summaries, most, w.window)
	}
}

// What a summary is made of, and how long it gets, fits the model that makes it, where that has less room than the agent's.
func TestASummaryFitsTheModelThatMakesIt(t *testing.T) {
	const limit = 64_000
	own := compact.For(limit)
	for window, of := range map[int]int{0: limit, 2 * limit: limit, limit: limit, limit / 4: limit / 4} {
		sh := &shortener{models: models{&world{Window: func(m record.Model) int {
			if m.ID != "small" {
				t.Errorf("asked is for the window of %+v", m)
			}
			return window
		}}}}
		want := own
		want.Part, want.Summary = min(own.Part, compact.For(of).Part), min(own.Summary, compact.For(of).Summary)
		if got := sh.readable(own, limit, record.Model{ID: "small"}); got != want {
			t.Errorf("a window of %d: %+v, want %+v", window, got, want)
		}
	}
}

// A conversation that the model refuses however short it is made ends, and the next message begins a new one.
func TestAConversationThatDoesNotFitBeginsAnew(t *testing.T) {
	b := newBench(t, callHold)
	var full atomic.Bool
	full.Store(true)
	b.opts.Model = func(record.Model) Model {
		return thinker(func(ctx context.Context, req *providers.Request, watch func(providers.Event)) (*providers.Response, error) {
			if full.Load() {
				return nil, &providers.Failure{Kind: providers.Overflow, Provider: "p", Err: errors.New("too long")}
			}
			return b.model.Call(ctx, req, watch)
		})
	}
	b.run()
	if o := b.outcome(b.say("hello")); o.Reason != record.ReasonError || !strings.Contains(o.Text, "grown too long for the model") {
		t.Errorf("%+v", o)
	}
	full.Store(false)
	if o := b.outcome(b.say("again")); o.Reason != record.ReasonDone || o.Text != "heard: again" {
		t.Errorf("%+v", o)
	}
	b.halt()
	if b.count("reset") != 1 || !strings.Contains(b.history(), `"reason":"emergency"`) ||
		strings.Contains(b.model.request(b.model.calls()-1), "hello") {
		t.Errorf("the conversation did not begin anew\n%s", b.history())
	}
}

func TestMessageLargerThanTheWindow(t *testing.T) {
	w := &windowed{window: 32_000}
	b := newWindowed(t, w, &bigTool{})
	b.run()
	b.wait(b.say("hello"))
	if o := b.outcome(b.say("read this: " + strings.Repeat("lorem ipsum ", 40_000))); o.Reason != record.ReasonDone {
		t.Errorf("outcome %s %q", o.Reason, o.Error)
	}
	if o := b.outcome(b.say("and now?")); o.Reason != record.ReasonDone {
		t.Errorf("the next turn: %s %q", o.Reason, o.Error)
	}
}

func TestCompactOnRequest(t *testing.T) {
	w := &windowed{window: 32_000}
	b := newWindowed(t, w, &bigTool{})
	events := b.opts.Events.Subscribe(t.Context())
	b.run()
	order := func() string {
		r, err := b.box.Accept(context.Background(), inbox.Item{Kind: message.Compact, Text: "keep the codes"})
		if err != nil {
			t.Fatal(err)
		}
		b.wait(r.Item)
		return r.Item
	}
	order() // nothing to shorten: a note closes it
	if b.count("note") != 1 || b.count("summary") != 0 {
		t.Errorf("an empty conversation was shortened\n%s", b.history())
	}

	for n := 1; n <= 3; n++ {
		b.wait(b.say(fmt.Sprintf("this is turn %d: the code of turn %d is owl%d", n, n, n)))
	}
	item := order()
	if o := b.outcome(item); o.Reason != "compact" {
		t.Errorf("outcome %+v", o)
	}

	var reported []event.Compacted
	for e := range events {
		if c, ok := e.Body.(event.Compacted); ok {
			if reported = append(reported, c); len(reported) == 2 {
				break
			}
		}
	}

	if reported[0].Failed != "there is nothing older than the newest messages" || reported[1].Failed != "" ||
		reported[1].Gone == 0 || reported[1].RequestCut != 0 {
		t.Errorf("reported %+v", reported)
	}
	if o := b.outcome(b.say("what is the code of turn 1?")); o.Text != "the code of turn 1 is owl1" {
		t.Errorf("after it: %q", o.Text)
	}
	if last := w.sizes[len(w.sizes)-1]; last > 2000 {
		t.Errorf("the request after it has %d tokens", last)
	}
}

// A history that has grown large is closed behind a summary: what it stands for moves to an old file.
func TestALargeHistoryIsClosedBehindASummary(t *testing.T) {
	t.Parallel()
	b := newBench(t, callHold)
	b.opts.Model = func(record.Model) Model { return summing{b.model} }
	b.run()
	for size := 0; size <= record.RotateBytes; size += 900_000 {
		r, err := b.box.Accept(t.Context(), inbox.Item{Kind: message.System, Silent: true, Text: strings.Repeat("lorem ", 150_000)})
		if err != nil {
			t.Fatal(err)
		}
		b.wait(r.Item)
	}
	r, err := b.box.Accept(t.Context(), inbox.Item{Kind: message.Compact})
	if err != nil {
		t.Fatal(err)
	}
	b.wait(r.Item)
	b.halt()
	if closed, err := os.ReadDir(filepath.Join(b.dir, "history")); err != nil || len(closed) != 1 || b.count("summary") != 1 {
		t.Errorf("old files are %v, %v; %d summaries in the new one", closed, err, b.count("summary"))
	}
}

// A history that cannot be closed behind a summary is reported.
func TestAHistoryThatCannotBeClosedIsReported(t *testing.T) {
	t.Parallel()
	b := newBench(t, callHold)
	var recs []record.Record
	for size := 0; size <= record.RotateBytes; size += 900_000 {
		recs = append(recs, &record.User{Item: fmt.Sprint("i", size), Silent: true, Text: strings.Repeat("lorem ", 150_000)})
	}
	b.cutAfter(append(recs, &record.Summary{Text: "lorem", From: 1, KeptFrom: int64(len(recs) + 2)})...)
	a, err := open(t.Context(), b.opts.options())
	if err != nil {
		t.Fatal(err)
	}
	defer a.close()
	folder := filepath.Join(b.dir, "history")
	if err := os.WriteFile(folder, nil, 0o600); err != nil { // where old files go
		t.Fatal(err)
	}

	if a.shortener.room.rotate = true; a.shortener.rotate() == nil {
		t.Error("it is reported as done")
	}
	if err := os.Remove(folder); err != nil {
		t.Fatal(err)
	}
	a.shortener.room.rotate = true
	if err := a.shortener.rotate(); err != nil {
		t.Errorf("with the folder: %v", err)
	}
	if closed, err := os.ReadDir(folder); err != nil || len(closed) != 1 {
		t.Errorf("old files are %v, %v", closed, err)
	}
}

// unreachable is a model that fails for all summaries.
type unreachable struct{ *windowed }

func (u unreachable) Call(ctx context.Context, req *providers.Request, watch func(providers.Event)) (*providers.Response, error) {
	if strings.HasPrefix(req.System, "You write the memory") {
		return nil, &providers.Failure{Kind: providers.Busy, Provider: "w", Err: errors.New("busy")}
	}
	return u.windowed.Call(ctx, req, watch)
}

// Without a model the context stays whole as long as it fits.
func TestFailedSummaryKeepsTheContextWhileItFits(t *testing.T) {
	w := &windowed{window: 32_000}
	b := newWindowed(t, w, &bigTool{})
	b.opts.Model = func(record.Model) Model { return unreachable{w} }
	b.run()

	for n := 1; n <= 40; n++ {
		if o := b.outcome(b.say(fmt.Sprintf("this is turn %d", n))); o.Reason != record.ReasonDone {
			t.Fatalf("turn %d: %+v", n, o)
		}
	}
	if w.refused > 0 || b.count("summary") == 0 || strings.Contains(b.history(), `"type":"reset"`) {
		t.Errorf("%d refused, %d summaries", w.refused, b.count("summary"))
	}
}

// What a restart reads is what was seen before it.
func TestSummarySurvivesARestart(t *testing.T) {
	w := &windowed{window: 32_000}
	b := newWindowed(t, w, &bigTool{})
	b.run()
	for n := 1; n <= 12; n++ {
		b.wait(b.say(fmt.Sprintf("this is turn %d: the code of turn %d is owl%d", n, n, n)))
	}

	b.halt()
	if b.count("summary") == 0 {
		t.Fatal("not compacted")
	}
	h, _, err := record.Open(b.vol, b.dir, time.Now, b.opts.Log)
	if err != nil {
		t.Fatal(err)
	}

	c, err := h.Context()
	if err != nil || c.Summary == nil {
		t.Fatalf("no summary in force: %v", err)
	}
	s := c.Summary.Rec.(*record.Summary)
	if len(c.Entries) > 0 && c.Entries[0].Seq != s.KeptFrom {
		t.Errorf("the context begins at %d, the summary keeps from %d", c.Entries[0].Seq, s.KeptFrom)
	}

	h.Close()
	if _, err := os.Stat(filepath.Join(b.dir, "history.jsonl")); err != nil {
		t.Fatal(err)
	}
	b.openBox()
	b.run()
	if o := b.outcome(b.say("what is the code of turn 1?")); o.Text != "the code of turn 1 is owl1" {
		t.Errorf("after the restart: %q", o.Text)
	}
}

// onePixel is a picture as small as one can be.
var onePixel, _ = base64.StdEncoding.DecodeString(
	"iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR4nGNgYGBgAAAABQABpfZFQAAAAABJRU5ErkJggg==")
