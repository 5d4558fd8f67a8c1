package budget

import (
	"errors"
	"log/slog"
	"path/filepath"
	"reflect"
	"slices"
	"sync"
	"time"

	"daycare/agents/providers"
	"daycare/engine/disk"
)

// An Amount is money (US dollars) and tokens; as a limit, 0 means no limit.
type Amount struct {
	USD    float64 `json:"usd"`
	Tokens int64   `json:"tokens"`
}

func (a Amount) plus(b Amount) Amount  { return Amount{a.USD + b.USD, a.Tokens + b.Tokens} }
func (a Amount) minus(b Amount) Amount { return Amount{a.USD - b.USD, a.Tokens - b.Tokens} }

// over reports whether a is more than the limit allows.
func (a Amount) over(limit Amount) bool {
	return limit.USD > 0 && a.USD > limit.USD || limit.Tokens > 0 && a.Tokens > limit.Tokens
}

// Limits are those of the settings.
type Limits struct{ PerDay, PerAgent, Total Amount }

// Options are what a Ledger asks at each request, so that edits count at once.
type Options struct {
	Dir    string // .daycare/usage
	Volume *disk.Volume
	Log    *slog.Logger
	Now    func() time.Time
	Limits func() Limits
	// Own is the limit that a user wrote into an agent's state.json. An error means
	// that it is not known, and nothing is spent.
	Own func(agent string) (Amount, error)
	// Line is the agent and its ancestors, the oldest last.
	Line func(agent string) []string
	// Price is the cost of a usage in US dollars.
	Price func(provider, model string, u providers.Usage) float64
}

// A Ledger sums what was spent. It may be used from many goroutines at once.
type Ledger struct {
	o Options

	mu       sync.Mutex
	spent    sums // settled and reserved
	raises   []raise
	calendar calendar
	turned   bool  // what is kept says another day, or nothing was kept yet
	writeErr error // the newest; the ledger continues in memory
	beside         // what other machines have spent

	file sync.Mutex // held while a file is written; never with mu
	day  dayFile    // under file
}

// A line is one request in a file.
type line struct {
	At        disk.Stamp `json:"at"`
	Agent     string     `json:"agent"`
	Above     []string   `json:"above,omitempty"` // its ancestors then
	Provider  string     `json:"provider"`
	Model     string     `json:"model"`
	Tokens    tokens     `json:"tokens"`
	Cost      float64    `json:"cost"`
	Estimated bool       `json:"estimated,omitempty"`
}

// LineType is the type of a line of usage/DATE.jsonl, for its JSON Schema.
func LineType() reflect.Type { return reflect.TypeFor[line]() }

type tokens struct {
	Input      int64 `json:"input"`
	Output     int64 `json:"output"`
	CacheRead  int64 `json:"cacheRead"`
	CacheWrite int64 `json:"cacheWrite"`
}

func tokensOf(u providers.Usage) tokens {
	return tokens{u.Input, u.Output, u.CacheRead, u.CacheWrite}
}

func (t tokens) sum() int64 { return t.Input + t.Output + t.CacheRead + t.CacheWrite }

// Open reads what was spent so far. Files that cannot be read are reported and left out:
// they are a cache, and keep nothing from starting.
func Open(o Options) *Ledger {
	l := &Ledger{o: o}
	if err := errors.Join(o.Volume.Recover(o.Dir, sumsFile, raisesFile), o.Volume.Settle(o.Dir)); err != nil {
		o.Log.Warn("cannot clean up the usage files after a crash", "err", err)
	}
	day := l.date()
	k := o.addUp(day)
	l.spent, l.calendar, l.raises = k.sums, k.Calendar, o.loadRaises()
	o.read(&l.spent, filepath.Join(o.Dir, day+".jsonl"))
	if l.calendar.Day == "" {
		l.calendar.Day = day
	}

	l.turn()
	l.keep()
	return l
}

func (l *Ledger) date() string { return l.o.Now().Format(time.DateOnly) }

// today returns what the current day is charged on this machine. l.mu is held.
func (l *Ledger) today() Amount { return l.spent.Days[l.calendar.Day].plus(l.calendar.Extra) }

// turn starts a new day if one has begun. l.mu is held, or l is not shared yet.
func (l *Ledger) turn() {
	if day := l.date(); day != l.calendar.Day {
		l.calendar.turn(day, l.spent.Total, l.today())
		l.turned = true
	}
}

// keep adds up the days that are over, for the next start. Where nothing was spent yet it
// does so with the first line.
func (l *Ledger) keep() {
	begun := disk.Exists(l.o.Dir)
	l.mu.Lock()
	c := l.calendar
	c.Past = slices.Clone(c.Past)
	l.turned = !begun
	l.mu.Unlock()
	if !begun {
		return
	}

	l.file.Lock()
	defer l.file.Unlock()
	k := l.o.addUp(c.Day)
	k.Calendar = c
	l.o.save(k)
}

func (o line) amount() Amount {
	return Amount{o.Cost, o.Tokens.sum()}
}

// A reservation is what one request may cost, until it is settled.
type reservation struct {
	family []string // the agent first
	amount Amount
	day    string
}

// reserve keeps about what a request will cost. Errors: *Reached, and those of Own.
func (l *Ledger) reserve(agent string, a Amount) (*reservation, error) {
	family, limits, err := l.limits(agent)
	if err != nil {
		return nil, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.turn()

	for _, limit := range limits {
		if spent, now := l.spentOf(limit), l.raised(limit); spent.plus(a).over(now) {
			return nil, l.reached(limit, spent, a)
		}
	}

	r := &reservation{family, a, l.calendar.Day}
	l.spent.add(family, a, r.day)
	l.begun(r)

	return r, nil
}

// release gives a reservation back: nothing was spent.
func (l *Ledger) release(r *reservation) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.spent.add(r.family, Amount{}.minus(r.amount), r.day)
	l.ended(r)
}

// settle puts what was spent in the reservation's place and writes it down.
func (l *Ledger) settle(r *reservation, provider, model string, u providers.Usage) {
	one := line{At: disk.StampOf(l.o.Now()), Agent: r.family[0], Above: r.family[1:], Provider: provider, Model: model,
		Estimated: u.Estimated,
		Tokens:    tokensOf(u), Cost: l.o.Price(provider, model, u)}
	l.mu.Lock()
	l.turn()
	l.spent.add(r.family, Amount{}.minus(r.amount), r.day)
	l.spent.add(r.family, one.amount(), l.calendar.Day)
	l.ended(r)
	l.spentBy(r.family)
	day, turned := l.calendar.Day, l.turned
	l.mu.Unlock()
	l.file.Lock()
	err := l.day.append(filepath.Join(l.o.Dir, day+".jsonl"), one)
	l.file.Unlock()
	l.mu.Lock()
	l.writeErr = err
	l.mu.Unlock()
	if turned {
		l.keep()
	}
}

// Spend counts what an agent spent and nobody reserved: an answer that a crash cut, found
// at the next start.
func (l *Ledger) Spend(agent, provider, model string, u providers.Usage) {
	l.settle(&reservation{family: append([]string{agent}, l.o.Line(agent)...)}, provider, model, u)
}

// Err is why the newest line could not be written, nil if it could.
func (l *Ledger) Err() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.writeErr
}

// Spent is what an agent and all below it have spent, reservations included.
func (l *Ledger) Spent(agent string) Amount {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.spent.Agents[agent]
}
