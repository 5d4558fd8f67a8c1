package agents

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"daycare/engine/inbox"
	"daycare/engine/message"
	"daycare/tools"
)

// A rival counts how many of its calls run at once.
type rival struct {
	name     string
	parallel bool
	mu       *sync.Mutex
	now, top *int
}

func (r rival) Spec() tools.Spec {
	return tools.Spec{Name: r.name, Description: "Waits.", Replay: tools.ReadOnly, Parallel: r.parallel,
		Schema: json.RawMessage(`{"type":"object","properties":{"ms":{"type":"integer"}}}`)}
}

func (r rival) Run(_ context.Context, c tools.Call) (tools.Result, error) {
	var a struct{ MS int }
	if err := json.Unmarshal(c.Arguments, &a); err != nil {
		return tools.Result{}, err
	}
	r.mu.Lock()
	*r.now++
	*r.top = max(*r.top, *r.now)
	others := *r.now
	r.mu.Unlock()
	time.Sleep(time.Duration(a.MS) * time.Millisecond)
	r.mu.Lock()
	*r.now--
	r.mu.Unlock()
	if !r.parallel {
		return tools.Result{Text: fmt.Sprintf("%s %d among %d", r.name, a.MS, others)}, nil
	}
	return tools.Result{Text: fmt.Sprintf("%s %d", r.name, a.MS)}, nil
}

// Calls of parallel-safe tools run beside each other, at most four; any other runs alone.
// Results keep the order of the calls, whoever is done first.
func TestCallsBesideEachOther(t *testing.T) {
	mu, now, top := &sync.Mutex{}, 0, 0
	beside, alone := rival{"beside", true, mu, &now, &top}, rival{"alone", false, mu, &now, &top}
	var calls, want []string
	for i, ms := range []int{60, 50, 40, 30, 20, 10} {
		calls = append(calls, fmt.Sprintf("{ name: beside, arguments: { ms: %d } }", ms))
		want = append(want, fmt.Sprintf("beside %d", ms))
		if i == 4 {
			calls = append(calls, "{ name: alone, arguments: { ms: 5 } }", "{ name: alone, arguments: { ms: 6 } }")
			want = append(want, "alone 5 among 1", "alone 6 among 1")
		}
	}
	b := newBench(t, `rules:
  - { round: 1, reply: [ { calls: [ `+strings.Join(calls, ", ")+` ] } ] }
  - { reply: [ { text: done } ] }
`, beside, alone)
	b.run()
	b.outcome(b.say("go"))
	if top != 4 {
		t.Errorf("%d calls ran at once, want 4", top)
	}
	told, at := b.model.request(1), -1
	for _, w := range want {
		next := strings.Index(told, w)
		if next <= at {
			t.Fatalf("%q is not where it belongs in\n%s", w, told)
		}
		at = next
	}
}

// A spilling tool keeps its whole output in a file and returns head and tail of it, as
// exec does.
type spilling struct {
	dir   *string // of the agent
	bytes int
	shown int // how many bytes of it are in the text, half of them at each end
}

func (s spilling) Spec() tools.Spec {
	return tools.Spec{Name: "spill", Description: "Prints.", Replay: tools.ReadOnly,
		Schema: json.RawMessage(`{"type":"object"}`), Parallel: true}
}

func (s spilling) Run(context.Context, tools.Call) (tools.Result, error) {
	output := "begin" + strings.Repeat("x", s.bytes-8) + "end"
	sum := sha256.Sum256([]byte(output))
	whole := &tools.Whole{Blob: hex.EncodeToString(sum[:]), Bytes: int64(len(output)), Kept: int64(len(output))}
	path := filepath.Join(*s.dir, "blobs", whole.Blob)
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(output), 0o600)); err != nil {
		return tools.Result{}, err
	}
	half := s.shown / 2
	text := whole.Shorten(output[:half], output[len(output)-half:], int64(len(output)-2*half))
	return tools.Result{Text: text + "\n[exit code 0]", Whole: whole}, nil
}

// An output that its tool shortened has one marker, which names the tool's file and
// counts what is really missing, however much shorter the context needs it.
func TestShortenedOutputsAreCutOnce(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		shown, calls int
		again        bool // the runtime shortens it once more
	}{
		{29_000, 1, false}, {29_960, 1, false}, {30_000, 1, true}, {60_000, 1, true}, {29_000, 4, true},
	} {
		var dir string
		tool := spilling{dir: &dir, bytes: 1_288_895, shown: tt.shown}
		calls := strings.Repeat("{ name: spill, arguments: {} }, ", tt.calls)
		b := newBench(t, `rules:
  - { round: 1, reply: [ { calls: [ `+calls+`] } ] }
  - { reply: [ { text: done } ] }
`, tool)
		dir = b.dir
		b.opts.Settings.ContextLimit = 40_000 // a round of tools may have a quarter of it
		b.run()
		if out := b.outcome(b.say("go")); out.Text != "done" {
			t.Fatalf("%+v: %+v", tt, out)
		}

		told := b.model.request(1)
		marker := regexp.MustCompile(`(\d+) of 1288895 bytes left out; the whole output is in (\S+)`).FindAllStringSubmatch(told, -1)
		if len(marker) != tt.calls || strings.Count(told, "left out") != tt.calls {
			t.Fatalf("%+v: %d markers for %d calls", tt, len(marker), tt.calls)
		}
		if again := marker[0][1] != strconv.Itoa(tool.bytes-2*(tt.shown/2)); again != tt.again {
			t.Errorf("%+v: shortened again: %v, want %v", tt, again, tt.again)
		}
		shown := 0
		for _, run := range regexp.MustCompile(`x{100,}`).FindAllString(told, -1) { // an x may be in an id, too
			shown += len(run)
		}
		shown /= tt.calls
		if left, _ := strconv.Atoi(marker[0][1]); left < tool.bytes-8-shown || left > tool.bytes-shown {
			t.Errorf("%+v: the marker counts %d bytes left out, %d are shown", tt, left, shown)
		}
		data, err := os.ReadFile(marker[0][2])
		if err != nil || len(data) != tool.bytes {
			t.Errorf("%+v: the file that the marker names has %d bytes, %v", tt, len(data), err)
		}
		if files, _ := os.ReadDir(filepath.Join(dir, "blobs")); len(files) != 1 {
			t.Errorf("%+v: %d files are kept, want 1", tt, len(files))
		}
		if named := `"blob":"` + filepath.Base(marker[0][2]) + `"`; strings.Count(b.history(), named) != tt.calls {
			t.Errorf("%+v: history does not name the blob %s", tt, named)
		}
		if strings.Contains(b.history(), dir) {
			t.Errorf("%+v: history names a place on this machine", tt)
		}
	}
}

// A wordy tool says much.
type wordy struct {
	name  string
	bytes int
	most  int
	says  string // over and over; "": x
}

func (w wordy) Spec() tools.Spec {
	return tools.Spec{Name: w.name, Description: "Talks.", Replay: tools.ReadOnly,
		Schema: json.RawMessage(`{"type":"object"}`), MaxOutput: w.most}
}

func (w wordy) Run(context.Context, tools.Call) (tools.Result, error) {
	says := cmp.Or(w.says, "x")
	return tools.Result{Text: "begin" + strings.Repeat(says, (w.bytes-8)/len(says)) + "end"}, nil
}

// What a tool says is cut at 30,000 characters, or at its own bound; the whole is in a
// file that the text names.
func TestLongOutputsAreCut(t *testing.T) {
	for _, tt := range []struct {
		tool wordy
		cut  bool
	}{
		{wordy{"shell", 30_000, 0, ""}, false}, {wordy{"shell", 30_001, 0, ""}, true},
		{wordy{"file", 50_000, 51_400, ""}, false}, {wordy{"file", 51_401, 51_400, ""}, true}, {wordy{"small", 101, 100, ""}, true},
		{wordy{"letters", blobOver, 0, "éx"}, false}, {wordy{"letters", blobOver + 3, 0, "éx"}, true},
	} {
		b := newBench(t, `rules:
  - { round: 1, reply: [ { calls: [ { name: `+tt.tool.name+`, arguments: {} } ] } ] }
  - { reply: [ { text: done } ] }
`, tt.tool)
		b.run()
		b.outcome(b.say("go"))
		told := b.model.request(1)
		most := max(tt.tool.most, 100)
		if tt.tool.most == 0 {
			most = 30_000
		}
		cut := strings.Contains(told, "bytes left out; the whole output is in "+b.dir+"/blobs/")
		if n := strings.Count(told, "x"); cut != tt.cut || !strings.Contains(told, "begin") ||
			!strings.Contains(told, "end") || n > most+100 || !cut && n < (tt.tool.bytes-8)/max(1, len(tt.tool.says)) {
			t.Errorf("%s of %d bytes: cut %v, %d are left", tt.tool.name, tt.tool.bytes, cut, n)
		}
	}
}

// A call that worked is one that worked, also where its long output cannot be kept.
func TestALongOutputThatCannotBeKeptIsCut(t *testing.T) {
	b := newBench(t, `rules:
  - { round: 1, reply: [ { calls: [ { name: shell, arguments: {} } ] } ] }
  - { reply: [ { text: done } ] }
`, wordy{"shell", 40_000, 0, ""})
	b.run()
	b.outcome(b.say("go"))
	blobs := filepath.Join(b.dir, "blobs")
	if err := errors.Join(os.RemoveAll(blobs), os.WriteFile(blobs, nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	b.outcome(b.say("go"))
	if told := b.model.request(3); !strings.Contains(told, "could not be kept") || !strings.Contains(told, "begin") ||
		!strings.Contains(told, "end") {
		t.Errorf("the model was told\n%.300s", told)
	}
	if err := os.Remove(blobs); err != nil {
		t.Fatal(err)
	}
}

// A call knows whose it is and how far its message has come: what it starts is one hop
// further, so that agents that start or tell each other come to an end.
func TestWhatACallKnowsOfItsTurn(t *testing.T) {
	for _, asks := range []bool{true, false} {
		h := newHold("hold", tools.ReadOnly)
		list := []tools.Tool{h}
		if asks {
			list = append(list, bareTool{spec: tools.Spec{Name: tools.RequestPermission, Replay: tools.ReadOnly}})
		}
		b := newBench(t, callHold, list...)
		b.run()
		chat := message.Address{Connector: "chat", ChannelID: "c2"}
		r, err := b.box.Accept(t.Context(), inbox.Item{Kind: message.Text, Text: "go", Hops: 4, Route: &chat,
			Context: message.Context{MessageID: "m1"}})
		if err != nil {
			t.Fatal(err)
		}
		call := <-h.running
		h.release <- "r"
		o := b.outcome(r.Item)
		if call.Hops != 5 || call.Agent != b.opts.Meta.ID || call.Turn != o.Turn || call.Route != chat || call.Message != "m1" ||
			call.Unasked == asks {
			t.Errorf("the call has %d hops, agent %q, turn %q, route %v, message %q, unasked %v; want 5, %q, %q, %v, m1, %v",
				call.Hops, call.Agent, call.Turn, call.Route, call.Message, call.Unasked, b.opts.Meta.ID, o.Turn, chat, !asks)
		}
	}
}
