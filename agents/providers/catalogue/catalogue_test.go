package catalogue

import (
	"bytes"
	"encoding/json"
	"errors"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"daycare/agents/providers"
)

func TestEmbeddedList(t *testing.T) {
	d := json.NewDecoder(bytes.NewReader(embedded))
	d.DisallowUnknownFields()
	var l struct {
		AsOf   string  `json:"asOf"`
		Models []Model `json:"models"`
	}
	if err := d.Decode(&l); err != nil {
		t.Fatal(err)
	}
	if _, err := parse(embedded); err != nil {
		t.Fatal(err)
	}
	if _, err := time.Parse(time.DateOnly, l.AsOf); err != nil {
		t.Error(err)
	}

	for _, m := range l.Models {
		for _, level := range m.Thinking {
			if !slices.Contains(levels, level) {
				t.Errorf("%s: thinking level %q", m.ID, level)
			}
		}
		if m.MaxOutput > m.Window || m.Vendor == "" {
			t.Errorf("%s: window %d, longest answer %d, vendor %q", m.ID, m.Window, m.MaxOutput, m.Vendor)
		}
		if (m.Price.Input == nil) != (m.Price.Output == nil) {
			t.Errorf("%s: a price for input or output only", m.ID)
		}
		if r := m.Price.CacheRead; r != nil && *r > *m.Price.Input {
			t.Errorf("%s: the cache costs more than no cache", m.ID)
		}
		if m.Next != nil {
			if _, err := time.Parse(time.DateOnly, m.Next.From); err != nil {
				t.Errorf("%s: %v", m.ID, err)
			}
		}
	}
}

func TestFind(t *testing.T) {
	c := New(nil)
	for name, want := range map[string]string{
		"claude-opus-5-5":                "claude-opus-5-5",
		"anthropic/claude-opus-5.5":      "claude-opus-5-5",
		"claude-haiku-4-5-20251001":      "claude-haiku-4-5",
		"openai/gpt-6.1-sol":             "gpt-6.1-sol",
		"GPT-6.1-Sol":                    "gpt-6.1-sol",
		"gpt-4o-2024-08-06":              "gpt-4o",
		"gpt-5.6":                        "gpt-5.6-sol",
		"models/gemini-3.8-flash":        "gemini-3.8-flash",
		"google/gemini-3.8-flash:online": "gemini-3.8-flash",
		"MiniMax-M3":                     "minimax-m3",
		"deepseek/deepseek-v4.1-flash":   "deepseek-flash",
		"qwen3:8b":                       "",
		"claude-opus-9":                  "",
		"gpt-6.1":                        "",
		"":                               "",
	} {
		m, ok := c.Find("", name)
		if ok != (want != "") || ok && m.ID != want {
			t.Errorf("Find(%q) = %s, %v; want %q", name, m.ID, ok, want)
		}
	}
}

func TestUnknown(t *testing.T) {
	var unknown *UnknownModel
	if err := New(nil).Check("", "claude-sonet-5-5"); !errors.As(err, &unknown) {
		t.Fatalf("Check = %v, want an UnknownModel", err)
	}
	if len(unknown.Near) == 0 || unknown.Near[0] != "claude-sonnet-5-5" {
		t.Errorf("similar names: %v, want claude-sonnet-5-5 first", unknown.Near)
	}
	if near := New(nil).Near("gpt-6", 3); len(near) != 3 || near[0] != "gpt-6-astra" {
		t.Errorf("near to gpt-6: %v", near)
	}
	if near := New(nil).Near("my-own-thing", 3); len(near) != 0 {
		t.Errorf("near to my-own-thing: %v", near)
	}
}

func price(in, out float64) Price { return Price{Input: &in, Output: &out} }

func TestOverrides(t *testing.T) {
	c := New([]Override{
		{ID: "own", Window: 32000},
		{ID: "claude-opus-5.5", Price: price(1, 2), MaxOutput: 10},
		{ID: "claude-opus-5-5", Provider: "gate", Price: price(3, 4)},
		{ID: "only-there", Provider: "gate", Window: 5},
	})
	if m, ok := c.Find("", "own"); !ok || m.Window != 32000 {
		t.Errorf("a model of the settings: %+v, %v", m, ok)
	}

	m, _ := c.Find("anthropic", "anthropic/claude-opus-5.5")
	if *m.Price.Input != 1 || m.MaxOutput != 10 || m.Window != 1000000 || *m.Price.CacheRead != 0.2 {
		t.Errorf("overridden: %+v", m)
	}
	if m, _ := c.Find("gate", "claude-opus-5-5"); *m.Price.Input != 3 || m.MaxOutput != 10 {
		t.Errorf("overridden for one provider: %+v", m)
	}
	if _, ok := c.Find("other", "only-there"); ok {
		t.Error("a model of one provider is known at another")
	}
	if _, ok := c.Find("gate", "only-there"); !ok {
		t.Error("a model of one provider is not known there")
	}
	if all := c.All(); all[len(all)-1].ID != "own" || len(all) != len(builtin().Models)+1 {
		t.Errorf("All ends with %s, %d models", all[len(all)-1].ID, len(all))
	}
}

func TestCost(t *testing.T) {
	c := New(nil)
	day := func(s string) time.Time { at, _ := time.Parse(time.DateOnly, s); return at }
	now := day("2026-11-12")
	for _, tt := range []struct {
		name  string
		u     providers.Usage
		at    time.Time
		want  float64
		known bool
	}{
		{"claude-opus-5-5", providers.Usage{Input: 1e6, Output: 1e6, CacheRead: 1e6, CacheWrite: 1e6}, now, 4 + 20 + 0.2 + 5, true},
		{"claude-haiku-5-5", providers.Usage{Input: 100000}, now, 0.01, true},
		{"claude-haiku-5-5", providers.Usage{Input: 1, CacheRead: 100000, Output: 1000}, now, (0.5 + 100000*0.05 + 1000*2.5) / 1e6, true},
		{"gemini-4-argon", providers.Usage{Output: 1e6}, now, 10, true},
		{"gemini-4-argon", providers.Usage{Output: 1e6}, day("2026-12-01"), 20, true},
		{"gemini-4-hydrogen", providers.Usage{CacheRead: 1e6}, now, 1.5, true}, // no price of its own
		{"deepseek/deepseek-flash:free", providers.Usage{Input: 1e6}, now, 0, true},
		{"gpt-oss-120b", providers.Usage{Input: 1}, now, 0, false},
		{"qwen3:8b", providers.Usage{Input: 1}, now, 0, false},
	} {
		got, known := c.Cost("", tt.name, tt.u, tt.at)
		if math.Abs(got-tt.want) > 1e-9 || known != tt.known {
			t.Errorf("Cost(%s, %+v) = %g, %v; want %g, %v", tt.name, tt.u, got, known, tt.want, tt.known)
		}
	}
}

// The catalogue is not changed by who uses it.
func TestShared(t *testing.T) {
	before, _ := New(nil).Find("", "claude-opus-5-5")
	New([]Override{{ID: "claude-opus-5-5", Price: price(99, 99)}}).All()
	after, _ := New(nil).Find("", "claude-opus-5-5")
	if diff := cmp.Diff(before, after); diff != "" {
		t.Error(diff)
	}
}
