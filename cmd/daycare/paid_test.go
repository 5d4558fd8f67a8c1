package main

import (
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"daycare/engine/control"
	"daycare/engine/event"
	"daycare/engine/record"
)

// A vendor is a model service that keeps a log of what it sold. Each answer uses
// another number of tokens, so that a record of it can be found.
type vendor struct {
	*httptest.Server
	mu   sync.Mutex
	sold []*sale
}

// A sale is one request.
type sale struct {
	input  int64
	output int64
	end    string // complete, refused, broken, or cut: the other side went away
	begun  bool   // something of the answer left
}

const completionHead = `{"id":"c","object":"chat.completion.chunk","created":1,"model":"sold-1","choices":[{"index":0,`

func newVendor(t *testing.T) *vendor {
	v := &vendor{}
	v.Server = httptest.NewServer(http.HandlerFunc(v.answer))
	t.Cleanup(v.Close)
	return v
}

// answer is POST /chat/completions, streaming.
func (v *vendor) answer(w http.ResponseWriter, r *http.Request) {
	var req struct {
		Messages []struct {
			Role    string          `json:"role"`
			Content json.RawMessage `json:"content"`
		} `json:"messages"`
	}
	if err := json.NewDecoder(r.Body).Decode(&req); err != nil || len(req.Messages) == 0 {
		http.Error(w, "unreadable", http.StatusBadRequest)
		return
	}
	last := req.Messages[len(req.Messages)-1]
	v.mu.Lock()
	s := &sale{input: int64(10_000 + len(v.sold)), output: 7, end: "cut"}
	v.sold = append(v.sold, s)
	n := len(v.sold)
	v.mu.Unlock()
	finish := func(end string) {
		v.mu.Lock()
		defer v.mu.Unlock()
		s.end = end
	}
	said := string(last.Content)
	if strings.Contains(said, "be refused") {
		finish("refused")
		http.Error(w, `{"error":{"message":"not that","type":"invalid_request_error"}}`, http.StatusBadRequest)
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	out := http.NewResponseController(w)
	send := func(chunk string) bool {
		_, err := fmt.Fprintf(w, "data: %s\n\n", chunk)
		if err = orElseErr(err, out.Flush()); err != nil || r.Context().Err() != nil {
			return false
		}
		v.mu.Lock()
		s.begun = true
		v.mu.Unlock()
		return true
	}
	text := func(part string) bool {
		return send(completionHead + `"delta":{"content":` + jsonString(part) + `},"finish_reason":null}]}`)
	}
	end := func(why string) {
		usage := fmt.Sprintf(`"usage":{"prompt_tokens":%d,"completion_tokens":%d,"total_tokens":%d}}`, s.input, s.output, s.input+s.output)
		finish("complete") // from here on it is sold, whether anybody hears it or not
		send(completionHead + `"delta":{},"finish_reason":"` + why + `"}]}`)
		send(`{"id":"c","object":"chat.completion.chunk","created":1,"model":"sold-1","choices":[],` + usage)
		send("[DONE]")
	}
	pause := func(d time.Duration) bool {
		select {
		case <-time.After(d):
			return true
		case <-r.Context().Done():
			return false
		}
	}
	switch {
	case last.Role == "tool":
		text("They are at work.")
		end("stop")
	case strings.Contains(said, "begin the work"):
		for i, c := range []string{
			`{"name":"start_background_agent","arguments":"{\"prompt\":\"be well\",\"name\":\"well\"}"}`,
			`{"name":"start_background_agent","arguments":"{\"prompt\":\"be refused\",\"name\":\"refused\"}"}`,
			`{"name":"start_background_agent","arguments":"{\"prompt\":\"be broken\",\"name\":\"broken\"}"}`,
			`{"name":"spawn","arguments":"{\"task\":\"be slow\",\"label\":\"slow\"}"}`,
			`{"name":"CodeSearch","arguments":"{\"query\":\"be found\"}"}`,
		} {
			send(completionHead + fmt.Sprintf(`"delta":{"tool_calls":[{"index":%d,"id":"call_%d_%d","type":"function","function":%s}]},`+
				`"finish_reason":null}]}`, i, n, i, c))
		}
		end("tool_calls")
	case strings.Contains(said, "be broken") && n%3 != 0: // two times of three
		text("This is the beginning of an ")
		finish("broken")
		panic(http.ErrAbortHandler)
	case strings.Contains(said, "be slow"):
		for range 100 {
			if !text("and on and on ") || !pause(50*time.Millisecond) {
				return
			}
		}
		end("stop")
	default:
		if text("It is ") && pause(20*time.Millisecond) && text("as it is.") {
			end("stop")
		}
	}
}

func orElseErr(a, b error) error {
	if a != nil {
		return a
	}
	return b
}

func jsonString(s string) string {
	data, _ := json.Marshal(s) // a string is always JSON
	return string(data)
}

// newPaidHouse is a workspace whose agents ask the vendor, a dollar for a thousand
// tokens in.
func newPaidHouse(t *testing.T, v *vendor) *chatHouse {
	h := newChatHouse(t, "rules: []\n", "")
	write(t, filepath.Join(h.dir, home, "settings.yaml"), fmt.Sprintf(`providers:
  - { id: shop, type: openai, baseURL: %q, model: sold, concurrency: 32 }
models:
  - { id: sold, provider: shop, window: 100000, price: { input: 1000, output: 1000 } }
  - { id: sold-1, provider: shop, window: 100000, price: { input: 1000, output: 1000 } }
log: { level: error }
`, v.URL))

	return h
}

// bill compares what agents' histories say with the vendor's log. kills is how often
// the daemon died: each time, what was in progress may have been sold and not recorded.
func (h *chatHouse) bill(c *control.Client, v *vendor, kills int) {
	t := h.t
	t.Helper()
	list, err := c.Agents(t.Context())
	if err != nil {
		t.Fatal(err)
	}

	recorded, estimated, sum := map[int64]int{}, 0, map[string]float64{}
	for _, a := range list {
		err := record.Spent(filepath.Join(h.dir, home, "agents", a.ID), time.Time{}, func(s record.Spend) {
			sum[a.ID] += s.Cost
			if s.Tokens.Estimated {
				estimated++
				return
			}
			recorded[s.Tokens.Input]++
			if want := float64(s.Tokens.Input+s.Tokens.Output) / 1000; math.Abs(s.Cost-want) > 1e-9 {
				t.Errorf("a call of %d tokens cost %v, want %v", s.Tokens.Input+s.Tokens.Output, s.Cost, want)
			}
		})
		if err != nil {
			t.Fatal(err)
		}
	}

	h.billFamilies(list, sum)

	v.mu.Lock()
	defer v.mu.Unlock()
	counts, unheard, inVain := map[string]int{}, 0, 0
	for _, s := range v.sold {
		counts[s.end]++
		switch n := recorded[s.input]; {
		case n > 1:
			t.Errorf("the answer with %d tokens is recorded %d times", s.input, n)
		case s.end == "complete" && n == 0:
			unheard++
		case s.end != "complete" && n > 0:
			t.Errorf("an answer that was %s is recorded as if it were whole", s.end)
		case s.end != "complete" && s.begun:
			inVain++
		}
		delete(recorded, s.input)
	}

	if len(recorded) > 0 {
		t.Errorf("recorded and never sold: %v", recorded)
	}

	// Each kill may cut what every agent of the family was just asking.
	if most := kills * 8; unheard > most || inVain-estimated > most || kills == 0 && inVain != estimated {
		t.Errorf("%d whole answers are not recorded; %d were paid for in vain and %d of those are recorded; kills: %d",
			unheard, inVain, estimated, kills)
	}
	t.Logf("%d requests %v; recorded in vain %d of %d; whole and not recorded %d; kills %d", len(v.sold), counts,
		estimated, inVain, unheard, kills)
}

// billFamilies: the cost of an agent is its own and that of all below it, in the API
// and in the records.
func (h *chatHouse) billFamilies(list []event.Agent, sum map[string]float64) {
	h.t.Helper()
	below := map[string]float64{}
	for _, a := range list {
		if math.Abs(a.OwnCost-sum[a.ID]) > 1e-6 {
			h.t.Errorf("%s cost %v of its own, its records say %v", a.Name, a.OwnCost, sum[a.ID])
		}
		below[a.ParentAgentID] += a.OwnCost
	}

	for _, a := range list {
		if a.ParentAgentID == "" && math.Abs(a.Cost-a.OwnCost-below[a.ID]) > 1e-6 {
			h.t.Errorf("%s cost %v, want its own %v and its children's %v", a.Name, a.Cost, a.OwnCost, below[a.ID])
		}
	}
}

// TestTheCostOfAFamilyIsTheVendors: own and children's, with children that are
// refused, whose answers break, and that are stopped.
func TestTheCostOfAFamilyIsTheVendors(t *testing.T) {
	t.Parallel()
	v := newVendor(t)
	h := newPaidHouse(t, v)
	c := h.start()
	lead := h.lead(c)
	if err := h.send(c, lead, "begin the work"); err != nil {
		t.Fatal(err)
	}

	waitFor(t, "the slow child", func() bool {
		list, err := c.Agents(t.Context())
		if err != nil {
			return false
		}

		for _, a := range list {
			if a.Name == "slow" && a.State == event.Thinking {
				return true
			}
		}
		return false
	})

	time.Sleep(500 * time.Millisecond) // in the middle of its answer, if it can be
	if _, err := c.Stop(t.Context(), "slow", ""); err != nil {
		t.Fatal(err)
	}
	h.calm(c)
	h.bill(c, v, 0)
	h.ledger(c, 0)
}

// ledger compares what the budget counted with what the histories say. A crash can come
// between the two: then they differ by a call, of about ten dollars.
func (h *chatHouse) ledger(c *control.Client, kills int) {
	h.t.Helper()
	list, err := c.Agents(h.t.Context())
	if err != nil {
		h.t.Fatal(err)
	}
	total, counted := 0.0, 0.0
	for _, a := range list {
		total += a.OwnCost
	}

	files, err := filepath.Glob(filepath.Join(h.dir, home, "usage", "*.jsonl"))
	if err != nil {
		h.t.Fatal(err)
	}

	for _, path := range files {
		data, err := os.ReadFile(path)
		if err != nil {
			h.t.Fatal(err)
		}

		for line := range strings.Lines(string(data)) {
			var one struct{ Cost float64 }
			if err := json.Unmarshal([]byte(line), &one); err != nil {
				h.t.Fatal(err)
			}
			counted += one.Cost
		}
	}

	if math.Abs(total-counted) > 1e-6+11*float64(kills) {
		h.t.Errorf("the histories say $%v, the budget counted $%v", total, counted)
	}
	h.t.Logf("the histories say $%.3f, the budget counted $%.3f", total, counted)
}

// TestTheCostOfAFamilyOverKills is the same with a daemon that is killed again and
// again: nothing is counted twice, and nothing that a living daemon heard is missing.
func TestTheCostOfAFamilyOverKills(t *testing.T) {
	if testing.Short() {
		t.Skip("takes a while")
	}
	t.Parallel()
	v := newVendor(t)
	h := newPaidHouse(t, v)
	c := h.start()
	lead := h.lead(c)
	if err := h.send(c, lead, "begin the work"); err != nil {
		t.Fatal(err)
	}

	const kills = 6
	for range kills {
		time.Sleep(time.Duration(100+rand.IntN(900)) * time.Millisecond)
		c.Close()
		h.kill()
		c = h.start()
	}

	h.calm(c)
	h.bill(c, v, kills)
	h.ledger(c, kills)
}
