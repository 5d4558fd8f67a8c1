package catalogue

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"slices"
	"sync"
	"time"

	"daycare/agents/providers"
)

// A Model is one model, as far as it is known: 0, nil and "" are not known.
type Model struct {
	ID        string   `json:"id"`
	Aliases   []string `json:"aliases,omitempty"`
	Vendor    string   `json:"vendor"` // anthropic, openai, gemini: who serves it first hand; as OpenRouter spells it
	Open      bool     `json:"open,omitempty"`
	Window    int      `json:"window,omitempty"`    // tokens, of prompt and answer together
	MaxOutput int      `json:"maxOutput,omitempty"` // tokens
	Images    bool     `json:"images,omitempty"`
	Documents bool     `json:"documents,omitempty"` // PDFs
	Thinking  []string `json:"thinking,omitempty"`  // levels that it takes, least first
	Price     Price    `json:"price,omitzero"`
	Long      *Tier    `json:"long,omitempty"`
	Next      *Change  `json:"next,omitempty"`
}

// A Price is in US dollars per million tokens; nil is not known.
type Price struct {
	Input      *float64 `json:"input,omitempty"`
	Output     *float64 `json:"output,omitempty"`
	CacheRead  *float64 `json:"cacheRead,omitempty"`
	CacheWrite *float64 `json:"cacheWrite,omitempty"`
}

// A Tier is what a whole call costs once its prompt is longer than Over tokens,
// cached ones included. What it leaves out stays at the usual price.
type Tier struct {
	Over  int64 `json:"over"`
	Price Price `json:"price"`
}

// A Change is a price that the vendor announced for later.
type Change struct {
	From  string `json:"from"` // a day, UTC
	Price Price  `json:"price"`
}

// An Override is what the settings say of a model; zero and nil leave the
// catalogue's word.
type Override struct {
	ID        string
	Provider  string // id of the provider; "": at every one
	Window    int
	MaxOutput int
	Images    *bool
	Documents *bool
	Price     Price
}

// A Catalogue answers questions about models. It is never changed, and may be
// used from many goroutines at once.
type Catalogue struct {
	overrides []Override
	newer     *list // nil: the embedded one
}

// New makes a catalogue of the embedded list with overrides over it.
func New(overrides []Override) *Catalogue { return &Catalogue{overrides: overrides} }

// With is the catalogue with a newer list between the embedded one and the overrides.
func (c *Catalogue) With(n *Newer) *Catalogue { return &Catalogue{c.overrides, n.over(builtin())} }

func (c *Catalogue) list() *list {
	if c.newer != nil {
		return c.newer
	}
	return builtin()
}

//go:embed models.json
var embedded []byte

// A list is models.json, read on first use: most commands need no model.
type list struct {
	AsOf   string  `json:"asOf"`
	Models []Model `json:"models"`
	byKey  map[string]int
}

var builtin = sync.OnceValue(func() *list {
	l, err := parse(embedded)
	if err != nil {
		panic("catalogue: the embedded list is broken: " + err.Error())
	}
	return l
})

func parse(data []byte) (*list, error) {
	l := &list{byKey: map[string]int{}}
	if err := json.Unmarshal(data, l); err != nil {
		return nil, fmt.Errorf("read models: %w", err)
	}

	for i, m := range l.Models {
		l.Models[i].derive()
		for _, name := range append([]string{m.ID}, m.Aliases...) {
			if other, twice := l.byKey[key(name)]; twice {
				return nil, fmt.Errorf("read models: %s is there twice, also as %s", name, l.Models[other].ID)
			}
			l.byKey[key(name)] = i
		}
	}

	return l, nil
}

// derive fills in what follows from the rest: those models of three vendors that
// take pictures take PDFs as well.
func (m *Model) derive() {
	if m.Images && slices.Contains([]string{"anthropic", "openai", "gemini"}, m.Vendor) {
		m.Documents = true
	}
}

// AsOf is the day that the figures were collected.
func (c *Catalogue) AsOf() string { return c.list().AsOf }

// All lists the models with the overrides that hold at every provider, those that
// only the settings know at the end.
func (c *Catalogue) All() []Model {
	l := c.list()
	all := make([]Model, 0, len(l.Models))
	for _, m := range l.Models {
		all = append(all, c.override("", m.ID, m))
	}

	for _, o := range c.overrides {
		if _, ok := l.lookup(o.ID); !ok && o.Provider == "" {
			all = append(all, c.override("", o.ID, Model{ID: o.ID}))
		}
	}

	return all
}

// Find is the model that a provider serves under a name. The name may have a
// vendor in front ("anthropic/claude-opus-5.5") and a date or a variant behind
// ("-20251001", ":free"). provider is an id of the settings, "" for none.
func (c *Catalogue) Find(provider, name string) (Model, bool) {
	m, ok := c.list().lookup(name)
	if !ok {
		m = Model{ID: name}
	}
	for _, o := range c.overrides {
		ok = ok || o.holds(provider, name)
	}

	return c.override(provider, name, m), ok
}

func (o Override) holds(provider, name string) bool {
	return (o.Provider == "" || o.Provider == provider) && (o.ID == name || key(o.ID) == key(name))
}

// Priced reports whether the settings give a model a price of their own.
func (c *Catalogue) Priced(provider, name string) bool {
	return slices.ContainsFunc(c.overrides, func(o Override) bool {
		return o.holds(provider, name) && o.Price != (Price{})
	})
}

// Said reports whether the settings say that a model takes documents.
func (c *Catalogue) Said(provider, name string) bool {
	return slices.ContainsFunc(c.overrides, func(o Override) bool {
		return o.holds(provider, name) && o.Documents != nil
	})
}

// override lays what the settings say over m; what they say of one provider wins
// over what they say of all.
func (c *Catalogue) override(provider, name string, m Model) Model {
	for _, special := range []bool{false, true} {
		for _, o := range c.overrides {
			if o.holds(provider, name) && (o.Provider != "") == special {
				m = o.over(m)
			}
		}
	}

	return m
}

func (o Override) over(m Model) Model {
	if o.Window > 0 {
		m.Window = o.Window
	}
	if o.MaxOutput > 0 {
		m.MaxOutput = o.MaxOutput
	}
	if o.Images != nil {
		m.Images = *o.Images
	}
	if o.Documents != nil {
		m.Documents = *o.Documents
	}
	if o.Price != (Price{}) {
		m.Price, m.Long, m.Next = o.Price.over(m.Price), nil, nil
	}

	return m
}

// over is base with what p knows in its place.
func (p Price) over(base Price) Price {
	pick := func(a, b *float64) *float64 {
		if a != nil {
			return a
		}
		return b
	}

	return Price{pick(p.Input, base.Input), pick(p.Output, base.Output),
		pick(p.CacheRead, base.CacheRead), pick(p.CacheWrite, base.CacheWrite)}
}

// Cost is what a call cost in US dollars. known is false where a price that it
// needs is not known; the cost is then 0. Cached tokens without a price of their
// own cost as much as others: an estimate that is never too low.
func (c *Catalogue) Cost(provider, name string, u providers.Usage, at time.Time) (usd float64, known bool) {
	m, ok := c.Find(provider, name)
	if !ok {
		return 0, false
	}
	p := m.PriceAt(at, u.Input+u.CacheRead+u.CacheWrite)
	if (p.Input == nil && u.Input+u.CacheRead+u.CacheWrite > 0) || (p.Output == nil && u.Output > 0) {
		return 0, false
	}

	sum := 0.0
	for _, part := range []struct {
		tokens int64
		prices [2]*float64
	}{
		{u.Input, [2]*float64{p.Input}}, {u.Output, [2]*float64{p.Output}},
		{u.CacheRead, [2]*float64{p.CacheRead, p.Input}}, {u.CacheWrite, [2]*float64{p.CacheWrite, p.Input}},
	} {
		for _, price := range part.prices {
			if price != nil {
				sum += float64(part.tokens) * *price / 1e6
				break
			}
		}
	}

	return sum, true
}

// PriceAt is the price of a call with a prompt of that many tokens at a time.
func (m Model) PriceAt(at time.Time, prompt int64) Price {
	p := m.Price
	if m.Next != nil && at.UTC().Format(time.DateOnly) >= m.Next.From {
		p = m.Next.Price.over(p)
	}
	if m.Long != nil && prompt > m.Long.Over {
		p = m.Long.Price.over(p)
	}

	return p
}
