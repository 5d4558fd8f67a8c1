package transcript

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/charmbracelet/x/ansi"
	"github.com/google/go-cmp/cmp"

	"daycare/connectors/terminal/markdown"
	"daycare/connectors/terminal/theme"
	"daycare/engine/control"
	"daycare/engine/event"
)

var renderer = markdown.New(theme.New(theme.Terminal{Dark: true}))

func frame(height int) Frame {
	return Frame{Renderer: renderer, Width: 60, Height: height, Now: time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)}
}

func page(lines ...string) event.Page {
	var p event.Page
	for _, l := range lines {
		p.Records = append(p.Records, json.RawMessage(l))
	}
	return p
}

func user(seq int, text string) string {
	return fmt.Sprintf(`{"seq":%d,"type":"user_message","item":"i%d","text":%q}`, seq, seq, text)
}

func said(seq int, turn, text string) string {
	return fmt.Sprintf(`{"seq":%d,"type":"assistant_message","turn":%q,"text":%q,"finish":"end_turn"}`, seq, turn, text)
}

func tell(t *Transcript, kind event.Type, turn string, body any) Needs {
	data, err := json.Marshal(body)
	if err != nil {
		panic(err)
	}
	return t.Event(control.RawEvent{Type: kind, Turn: turn, Data: data})
}

// shown is what can be read, without empty lines.
func shown(t *Transcript, height int) []string {
	var lines []string
	for _, l := range t.View.Lines(frame(height)) {
		if l = strings.TrimSpace(ansi.Strip(l)); l != "" {
			lines = append(lines, l)
		}
	}
	return lines
}

// Records and events tell the same, in any order and more than once.
func TestRecordsAndEventsAgree(t *testing.T) {
	begin := `{"seq":2,"type":"turn_begin","turn":"t1","attempt":1}`
	call := `{"seq":4,"type":"assistant_message","turn":"t1","text":"look","finish":"tool_use","toolCalls":[{"id":"c1","name":"read",` +
		`"arguments":{"path":"a.go"}}]}`
	result := `{"seq":5,"type":"tool_result","toolCallId":"c1","name":"read","status":"ok","output":{"text":"package a"}}`
	end := `{"seq":7,"type":"turn_end","turn":"t1","reason":"done"}`
	all := []string{`{"seq":1,"type":"start"}`, begin, user(3, "hello"), call, result, said(6, "t1", "it is a"), end}
	want := []string{"› hello", "look", "✓ read a.go", "it is a"}
	events := func(t *Transcript) {
		tell(t, event.TurnStarted, "t1", event.Started{})
		tell(t, event.MessageDelta, "t1", event.Delta{Text: "lo"})
		tell(t, event.MessageDelta, "t1", event.Delta{Offset: 2, Text: "ok"})
		tell(t, event.ToolStarted, "t1", event.Tool{Call: "c1", Name: "read", Arguments: []byte(`{"path":"a.go"}`)})
		tell(t, event.ToolFinished, "t1", event.Tool{Call: "c1", Name: "read", Status: "ok"})
		tell(t, event.MessageDelta, "t1", event.Delta{Text: "it is"})
	}
	for name, run := range map[string]func(*Transcript){
		"records alone":   func(x *Transcript) { x.Merge(page(all...)) },
		"events, records": func(x *Transcript) { x.Merge(page(all[:1]...)); events(x); x.Merge(page(all...)) },
		"records, events": func(x *Transcript) {
			x.Merge(page(all...))
			events(x)
			tell(x, event.TurnFinished, "t1", event.Finished{})
			x.Merge(page(all...))
		},
		"records come late": func(x *Transcript) {
			x.Merge(page(all[:3]...))
			events(x)
			x.Merge(page(all[:5]...))
			x.Merge(page(all...))
		},
		"twice": func(x *Transcript) { x.Merge(page(all...)); x.Merge(page(all...)); x.Replace(page(all...)) },
	} {
		x := New()
		run(x)
		if diff := cmp.Diff(want, shown(x, 50)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
		if x.Turn().ID != "" {
			t.Errorf("%s: the turn is over and still under way", name)
		}
	}
}

// An answer that begins again after a retry takes the place of what came before.
func TestDiscard(t *testing.T) {
	x := New()
	x.Merge(page(user(1, "hello")))
	tell(x, event.TurnStarted, "t1", event.Started{})
	tell(x, event.MessageDelta, "t1", event.Delta{Text: "half"})
	tell(x, event.Retry, "t1", event.Attempt{N: 1, Of: 8, Discard: true})
	tell(x, event.MessageDelta, "t1", event.Delta{Text: "whole"})
	if diff := cmp.Diff([]string{"› hello", "whole"}, shown(x, 50)); diff != "" {
		t.Error(diff)
	}
}

// A hole in what streams is told, and the draft fills it.
func TestHole(t *testing.T) {
	x := New()
	x.Merge(page(user(1, "hello")))
	tell(x, event.TurnStarted, "t1", event.Started{})
	if n := tell(x, event.MessageDelta, "t1", event.Delta{Offset: 6, Text: "three"}); !n.Draft {
		t.Error("text is missing before the delta, and nobody asks for the draft")
	}
	x.Draft(event.Draft{Turn: "t1", Text: "one two three"}, time.Now())
	if n := tell(x, event.MessageDelta, "t1", event.Delta{Offset: 11, Text: "ee four"}); n.Draft {
		t.Error("nothing is missing, and the draft is asked for")
	}
	if diff := cmp.Diff([]string{"› hello", "one two three four"}, shown(x, 50)); diff != "" {
		t.Error(diff)
	}
}

// A page far ahead of what is here replaces it; older pages go before it, with the
// results whose calls they hold.
func TestPages(t *testing.T) {
	x := New()
	seven := int64(7)
	newest := page(`{"seq":7,"type":"tool_result","toolCallId":"c","name":"read","status":"error","output":{"text":"no such file"}}`,
		said(8, "t", "gone"))
	newest.Before = &seven
	x.Merge(page(user(1, "long ago")))
	x.Merge(newest)
	if diff := cmp.Diff([]string{"gone"}, shown(x, 50)); diff != "" {
		t.Errorf("after a gap (-want +got):\n%s", diff)
	}
	if before, more := x.Older(); before != 7 || !more {
		t.Errorf("Older() = %d, %v, want 7, true", before, more)
	}
	x.Prepend(page(user(5, "asked"), `{"seq":6,"type":"assistant_message","turn":"t","toolCalls":[{"id":"c","name":"read",`+
		`"arguments":{"path":"x"}}]}`))
	if diff := cmp.Diff([]string{"› asked", "✗ read x  error", "└ no such file", "gone"}, shown(x, 50)); diff != "" {
		t.Errorf("with the older page (-want +got):\n%s", diff)
	}
	if _, more := x.Older(); more {
		t.Error("there is nothing before the oldest page")
	}
}

// The card of a call that had to be asked about says who answered what.
func TestAnswered(t *testing.T) {
	asking := []string{user(1, "go"),
		`{"seq":2,"type":"assistant_message","turn":"t","toolCalls":[{"id":"c","name":"exec","arguments":{"command":"make"}}]}`,
		`{"seq":3,"type":"permission","event":"asked","token":"tok1","tag":"@exec:make","request":"make"}`,
		`{"seq":4,"type":"tool_result","toolCallId":"c","name":"exec","status":"denied","output":{"text":"needs approval tok1: a person ` +
			`has been asked"}}`,
		`{"seq":5,"type":"turn_end","turn":"t","reason":"waiting"}`}
	aside := user(6, "meanwhile")
	for _, c := range []struct{ event, card, note string }{
		{"once", "? exec make  allowed once by ada", "· allowed once by ada: make"},
		{"always", "? exec make  allowed from now on by ada", "· allowed from now on by ada: make"},
		{"deny", "✗ exec make  denied by ada", "· denied by ada: make"},
		{"expired", "✗ exec make  nobody answered in time", "· nobody answered in time: make"},
	} {
		x := New()
		x.Merge(page(asking...))
		want := []string{"› go", "? exec make  asks you"}
		if diff := cmp.Diff(want, shown(x, 50)); diff != "" {
			t.Errorf("before the answer (-want +got):\n%s", diff)
		}
		answer := fmt.Sprintf(`{"seq":7,"type":"permission","event":%q,"token":"tok1","by":"ada","tag":"@exec:make",`+
			`"request":"make"}`, c.event)
		x.Merge(page(append(asking, answer)...))
		want[1] = c.card
		if diff := cmp.Diff(want, shown(x, 50)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.event, diff)
		}
		// An answer that comes after other things is told where it came, too.
		want = append(want, "› meanwhile", c.note)
		x.Replace(page(append(asking, aside, answer)...))
		if diff := cmp.Diff(want, shown(x, 50)); diff != "" {
			t.Errorf("%s, later (-want +got):\n%s", c.event, diff)
		}
		six := int64(6) // the call is on an older page than the answer
		late := page(aside, answer)
		late.Before = &six
		x.Replace(late)
		x.Prepend(page(asking...))
		if diff := cmp.Diff(want, shown(x, 50)); diff != "" {
			t.Errorf("%s, pages from the end (-want +got):\n%s", c.event, diff)
		}
	}
}

// Reading stays where it is while text comes in below.
func TestScroll(t *testing.T) {
	x := New()
	var lines []string
	for i := range 30 {
		lines = append(lines, user(i+1, fmt.Sprint("line ", i)))
	}
	x.Merge(page(lines...))
	f := frame(6)
	x.View.Lines(f)
	x.View.Scroll(-20, f)
	place := shown(x, 6)
	if x.View.Following() || place[0] == "› line 29" {
		t.Fatalf("scrolled up, and still at the end: %q", place)
	}
	x.Merge(page(append(lines, user(31, "new"))...))
	tell(x, event.MessageDelta, "t", event.Delta{Text: "streaming\n\nmore\n\nand more"})
	if diff := cmp.Diff(place, shown(x, 6)); diff != "" {
		t.Errorf("the text moved under the reader (-before +after):\n%s", diff)
	}
	if x.View.Scroll(1000, f); !x.View.Following() {
		t.Error("scrolled to the end, and it is not followed")
	}
	if !x.View.Scroll(-1000, f) {
		t.Error("the top was reached, and nobody is told")
	}
	if got := shown(x, 6)[0]; got != "› line 0" {
		t.Errorf("the first line is %q", got)
	}
}

// A line that cannot be read is passed over: one bad record hides no other.
func TestBadRecords(t *testing.T) {
	x := New()
	x.Merge(page(user(1, "a"), `{"seq":2,"type":`, `[]`, `{"seq":3,"type":"of the future","text":7}`, user(4, "b")))
	if diff := cmp.Diff([]string{"› a", "› b"}, shown(x, 50)); diff != "" {
		t.Error(diff)
	}
}

// A message of many lines, such as a paste, shows its beginning, its end and how long it is,
// until it is opened. Nothing of it is lost.
func TestALongMessageIsFolded(t *testing.T) {
	var text strings.Builder
	for i := range 200 {
		fmt.Fprintf(&text, "line %d\n", i+1)
	}
	tr := New()
	tr.Merge(page(user(1, text.String()), user(2, "short\n"+strings.Repeat("\n", 300))))
	folded := strings.Join(shown(tr, 400), "\n")
	for _, want := range []string{"› line 1\n", "line 6\n", "200 lines", "line 198\n", "line 200", "› short"} {
		if !strings.Contains(folded+"\n", want) {
			t.Errorf("there is no %q in:\n%s", want, folded)
		}
	}
	if strings.Contains(folded, "line 100") {
		t.Errorf("the middle is shown:\n%s", folded)
	}
	if !tr.View.ToggleAll() || !strings.Contains(strings.Join(shown(tr, 400), "\n"), "line 100\n") {
		t.Errorf("opened it is\n%s", strings.Join(shown(tr, 400), "\n"))
	}
}
