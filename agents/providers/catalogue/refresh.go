package catalogue

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tidwall/gjson"
)

// A Newer is a list that a user fetched after this program was built. It is in
// .daycare/models.json, as the embedded list does, with where it came from. What it
// says of a model wins over the embedded list, and the settings win over it.
type Newer struct {
	AsOf   string  `json:"asOf"`
	Source string  `json:"source"`
	Models []Model `json:"models"`
}

// maxModels bounds a list: the largest one known has some hundreds.
const maxModels = 20_000

// ReadNewer reads a list in the embedded one's form, or as OpenRouter's
// /api/v1/models gives it, and checks it. day is its date where it has none.
func ReadNewer(data []byte, source string, day time.Time) (*Newer, error) {
	if !json.Valid(data) {
		return nil, errors.New("not JSON")
	}
	n := &Newer{}
	switch v := gjson.ParseBytes(data); {
	case v.Get("models").IsArray():
		if err := json.Unmarshal(data, n); err != nil {
			return nil, fmt.Errorf("read models: %w", err)
		}
	case v.Get("data").IsArray():
		for _, one := range v.Get("data").Array() {
			if m, ok := fromOpenRouter(one); ok {
				n.Models = append(n.Models, m)
			}
		}
	default:
		return nil, errors.New("it has neither `models`, as in daycare's format, nor `data`, as in OpenRouter's")
	}

	if n.Source == "" {
		n.Source = source
	}
	if n.AsOf == "" {
		n.AsOf = day.UTC().Format(time.DateOnly)
	}

	return n, n.check()
}

// fromOpenRouter reads one entry. Variants of a model (":free") and entries that are
// no model (routers, whose price is -1) are left out.
func fromOpenRouter(v gjson.Result) (Model, bool) {
	id := v.Get("id").String()
	vendor, _, ok := strings.Cut(id, "/")
	if !ok || strings.Contains(id, ":") || strings.HasPrefix(vendor, "openrouter") {
		return Model{}, false
	}
	if vendor == "google" {
		vendor = "gemini"
	}

	m := Model{ID: id, Vendor: vendor, Window: int(v.Get("context_length").Int())}
	m.MaxOutput = min(int(v.Get("top_provider.max_completion_tokens").Int()), m.Window)
	for _, kind := range v.Get("architecture.input_modalities").Array() {
		m.Images = m.Images || kind.String() == "image"
	}

	price := func(name string) *float64 {
		s := v.Get("pricing." + name).String()
		usd, err := strconv.ParseFloat(s, 64)
		if s == "" || err != nil || usd < 0 {
			return nil
		}
		usd = math.Round(usd*1e12) / 1e6 // a token's price, as that of a million

		return &usd
	}
	m.Price = Price{price("prompt"), price("completion"), price("input_cache_read"), price("input_cache_write")}

	return m, m.Price.Input != nil && m.Price.Output != nil
}

// check finds what no list can mean. The error names the model.
func (n *Newer) check() error {
	if _, err := time.Parse(time.DateOnly, n.AsOf); err != nil {
		return fmt.Errorf("asOf is %q, want a day as 2026-11-20", n.AsOf)
	}
	if len(n.Models) == 0 || len(n.Models) > maxModels {
		return fmt.Errorf("it has %d models, want 1 to %d", len(n.Models), maxModels)
	}

	seen := map[string]bool{}
	for i, m := range n.Models {
		if err := m.check(); err != nil {
			return fmt.Errorf("model %d (%.80q): %w", i+1, m.ID, err)
		}
		for _, name := range append([]string{m.ID}, m.Aliases...) {
			if seen[key(name)] {
				return fmt.Errorf("model %d: %.80q appears twice", i+1, name)
			}
			seen[key(name)] = true
		}
	}

	return nil
}

var levels = []string{"none", "minimal", "low", "medium", "high", "xhigh", "max"}

func (m Model) check() error {
	const most = 1_000_000_000 // tokens
	switch {
	case strings.TrimSpace(m.ID) == "" || len(m.ID) > 200 || strings.ContainsFunc(m.ID, func(r rune) bool { return r < ' ' }):
		return errors.New("its id is not a valid name")
	case m.Window < 0 || m.Window > most || m.MaxOutput < 0 || m.MaxOutput > most:
		return fmt.Errorf("window %d, longest answer %d: out of range", m.Window, m.MaxOutput)
	case m.Window > 0 && m.MaxOutput > m.Window:
		return fmt.Errorf("its longest answer (%d) is longer than its window (%d)", m.MaxOutput, m.Window)
	case (m.Price.Input == nil) != (m.Price.Output == nil):
		return errors.New("it has a price for input or output only")
	}

	for _, level := range m.Thinking {
		if !slices.Contains(levels, level) {
			return fmt.Errorf("thinking level %q, want one of %s", level, strings.Join(levels, ", "))
		}
	}

	prices := []Price{m.Price}
	if m.Long != nil {
		prices = append(prices, m.Long.Price)
	}
	if m.Next != nil {
		prices = append(prices, m.Next.Price)
	}

	for _, p := range prices {
		for _, usd := range []*float64{p.Input, p.Output, p.CacheRead, p.CacheWrite} {
			if usd != nil && (math.IsNaN(*usd) || *usd < 0 || *usd > 10_000) {
				return fmt.Errorf("a price of %v US dollars per million tokens", *usd)
			}
		}
	}

	return nil
}

// over lays what n says over base.
func (n *Newer) over(base *list) *list {
	merged := &list{AsOf: n.AsOf, Models: slices.Clone(base.Models), byKey: map[string]int{}}
	for k, i := range base.byKey {
		merged.byKey[k] = i
	}

	for _, m := range n.Models {
		i, ok := merged.byKey[key(m.ID)]
		if !ok {
			i = len(merged.Models)
			merged.Models = append(merged.Models, m)
		} else {
			merged.Models[i] = m.over(merged.Models[i])
		}

		for _, name := range append([]string{m.ID}, m.Aliases...) {
			if _, taken := merged.byKey[key(name)]; !taken {
				merged.byKey[key(name)] = i
			}
		}
	}

	for i := range merged.Models {
		merged.Models[i].derive()
	}

	return merged
}

// over is base with what m knows in its place.
func (m Model) over(base Model) Model {
	if m.Window > 0 {
		base.Window = m.Window
	}
	if m.MaxOutput > 0 {
		base.MaxOutput = m.MaxOutput
	}

	base.Images = base.Images || m.Images
	if len(m.Thinking) > 0 {
		base.Thinking = m.Thinking
	}
	if m.Price != (Price{}) {
		base.Price = m.Price.over(base.Price)
	}
	if m.Long != nil {
		base.Long = m.Long
	}
	if m.Next != nil {
		base.Next = m.Next
	}

	return base
}

// A Difference is what a newer list says otherwise of one model.
type Difference struct {
	ID  string `json:"id"`
	New bool   `json:"new,omitempty"` // nobody knew it
	// What says each change: "window 200000 -> 1000000".
	What []string `json:"what,omitempty"`
}

// Compare lists what n would change in what c knows.
func (c *Catalogue) Compare(n *Newer) (all []Difference) {
	now := c.list()
	next := n.over(now)
	for i, m := range next.Models {
		if i >= len(now.Models) {
			all = append(all, Difference{ID: m.ID, New: true})
			continue
		}
		if what := differences(now.Models[i], m); len(what) > 0 {
			all = append(all, Difference{ID: m.ID, What: what})
		}
	}

	return all
}

func differences(a, b Model) (what []string) {
	say := func(name string, from, to any) {
		if from != to {
			what = append(what, fmt.Sprintf("%s %v -> %v", name, from, to))
		}
	}
	dollars := func(p *float64) string {
		if p == nil {
			return "unknown"
		}
		return "$" + strconv.FormatFloat(*p, 'f', -1, 64)
	}
	say("window", a.Window, b.Window)
	say("answer", a.MaxOutput, b.MaxOutput)
	say("images", a.Images, b.Images)
	say("thinking", strings.Join(a.Thinking, " "), strings.Join(b.Thinking, " "))
	say("input", dollars(a.Price.Input), dollars(b.Price.Input))
	say("output", dollars(a.Price.Output), dollars(b.Price.Output))
	say("cache read", dollars(a.Price.CacheRead), dollars(b.Price.CacheRead))
	say("cache write", dollars(a.Price.CacheWrite), dollars(b.Price.CacheWrite))

	return what
}
