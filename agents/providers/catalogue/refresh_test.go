package catalogue

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"daycare/agents/providers"
)

var today = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

// As OpenRouter documents it: prices are strings, of one token.
const openRouter = `{"data":[
 {"id":"anthropic/claude-opus-5.5","name":"x","context_length":2000000,"architecture":{"input_modalities":["text","image"]},
  "pricing":{"prompt":"0.000004","completion":"0.00002","input_cache_read":"0.0000004"},"top_provider":{"max_completion_tokens":256000}},
 {"id":"google/gemini-9-ultra","context_length":1048576,"architecture":{"input_modalities":["text","image","file"]},
  "pricing":{"prompt":"0.00000125","completion":"0.00001"},"top_provider":{"max_completion_tokens":9999999}},
 {"id":"qwen/qwen3:free","context_length":1,"pricing":{"prompt":"0","completion":"0"}},
 {"id":"openrouter/auto","context_length":2000000,"pricing":{"prompt":"-1","completion":"-1"}}]}`

func TestReadOpenRouter(t *testing.T) {
	n, err := ReadNewer([]byte(openRouter), "https://openrouter.ai/api/v1/models", today)
	if err != nil {
		t.Fatal(err)
	}
	if n.AsOf != "2026-11-20" || len(n.Models) != 2 {
		t.Fatalf("as of %s, %d models: %+v", n.AsOf, len(n.Models), n.Models)
	}

	c := New([]Override{{ID: "claude-opus-5-5", MaxOutput: 7}}).With(n)
	m, ok := c.Find("", "claude-opus-5-5")
	if !ok || m.ID != "claude-opus-5-5" || m.Window != 2_000_000 || *m.Price.Input != 4 || *m.Price.Output != 20 ||
		*m.Price.CacheRead != 0.4 || m.MaxOutput != 7 || len(m.Thinking) == 0 {
		t.Errorf("the newer list must win over the embedded one, the settings over both, and what it does not say must stay: %+v", m)
	}

	m, ok = c.Find("", "gemini-9-ultra")
	if !ok || m.Vendor != "gemini" || m.MaxOutput != 1048576 || !m.Documents || *m.Price.Input != 1.25 {
		t.Errorf("a new model: %v %+v", ok, m)
	}
	if usd, known := c.Cost("", "gemini-9-ultra", providers.Usage{Input: 1_000_000, Output: 100_000}, today); !known || usd != 2.25 {
		t.Errorf("it costs %v, %v", usd, known)
	}
	if _, ok := New(nil).Find("", "gemini-9-ultra"); ok {
		t.Error("the embedded list was changed")
	}

	var what []string
	for _, d := range New(nil).Compare(n) {
		if d.ID == "claude-opus-5-5" {
			what = d.What
		}
		if d.New && d.ID != "google/gemini-9-ultra" {
			t.Errorf("%s is said to be new", d.ID)
		}
	}

	if !strings.Contains(strings.Join(what, "; "), "window 1000000 -> 2000000") {
		t.Errorf("the changes are %q", what)
	}
	if same := New(nil).With(n).Compare(n); len(same) > 0 {
		t.Errorf("the same list again changes %v", same)
	}
}

func TestReadOwnForm(t *testing.T) {
	n, err := ReadNewer(embedded, "file", today)
	if err != nil {
		t.Fatalf("the embedded list as a newer one: %v", err)
	}
	if d := New(nil).Compare(n); len(d) > 0 {
		t.Errorf("it differs from itself: %+v", d)
	}
	if d := cmp.Diff(New(nil).All(), New(nil).With(n).All()); d != "" {
		t.Error(d)
	}
}

// A list that is wrong anywhere is not used at all, and the error says where.
func TestBadLists(t *testing.T) {
	for text, want := range map[string]string{
		`<html>`:                              "not JSON",
		`{"error":"no"}`:                      "neither",
		`{"models":[]}`:                       "0 models",
		`{"models":[{"id":" "}]}`:             "model 1",
		`{"models":[{"id":"a","window":-1}]}`: "out of range",
		`{"models":[{"id":"a","window":10,"maxOutput":11}]}`:         "longer than its window",
		`{"models":[{"id":"a"},{"id":"b","aliases":["A"]}]}`:         "model 2: \"A\" appears twice",
		`{"models":[{"id":"a","price":{"input":-1,"output":1}}]}`:    "a price of -1",
		`{"models":[{"id":"a","price":{"input":1}}]}`:                "input or output only",
		`{"models":[{"id":"a","price":{"input":99999,"output":1}}]}`: "a price of 99999",
		`{"models":[{"id":"a","thinking":["deep"]}]}`:                "thinking level \"deep\"",
		`{"asOf":"yesterday","models":[{"id":"a"}]}`:                 "asOf",
		`{"models":[{"id":"a","window":"big"}]}`:                     "read models",
	} {
		if _, err := ReadNewer([]byte(text), "s", today); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
}

func FuzzReadNewer(f *testing.F) {
	f.Add(embedded)
	f.Add([]byte(openRouter))
	f.Fuzz(func(t *testing.T, data []byte) {
		n, err := ReadNewer(data, "s", today)
		if err == nil { // what is taken can be used
			c := New(nil).With(n)
			c.Compare(n)
			for _, m := range c.All() {
				c.Find("", m.ID)
			}
		}
	})
}
