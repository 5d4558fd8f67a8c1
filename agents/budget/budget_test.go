package budget

import (
	"context"
	"errors"
	"iter"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"daycare/agents/providers"
)

// vendor is a provider that counts what it was asked for and what it sold.
type vendor struct {
	mu     sync.Mutex
	asked  int
	sold   Amount
	ending providers.Event // nil: Complete with 100 tokens in and 50 out
	text   string
}

func (*vendor) ID() string   { return "v" }
func (*vendor) Wire() string { return "v" }

func (v *vendor) Stream(context.Context, *providers.Request) iter.Seq[providers.Event] {
	return func(yield func(providers.Event) bool) {
		v.mu.Lock()
		v.asked++
		v.mu.Unlock()
		if v.text != "" && !yield(providers.ContentDelta{Text: v.text}) {
			return
		}
		if v.ending != nil {
			yield(v.ending)
			return
		}
		v.mu.Lock()
		v.sold = v.sold.plus(Amount{0.15, 150})
		v.mu.Unlock()
		yield(providers.Complete{Finish: providers.EndTurn, Usage: providers.Usage{Input: 100, Output: 50}, Model: "m"})
	}
}

// world is a ledger whose options the test sets. A token costs a tenth of a cent.
type world struct {
	t      *testing.T
	dir    string
	now    time.Time
	limits Limits
	own    map[string]Amount
	line   map[string][]string
	*Ledger
}

func newWorld(t *testing.T) *world {
	w := &world{t: t, dir: t.TempDir(), now: time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC), own: map[string]Amount{}, line: map[string][]string{}}
	w.open()
	return w
}

func (w *world) open() {
	w.t.Helper()
	var err error
	w.Ledger, err = Open(Options{Dir: w.dir, Now: func() time.Time { return w.now }, Limits: func() Limits { return w.limits },
		Own: func(id string) Amount { return w.own[id] }, Line: func(id string) []string { return w.line[id] },
		Price: func(_, _ string, u providers.Usage) float64 { return float64(u.Input+u.Output) / 1000 }})
	if err != nil {
		w.t.Fatal(err)
	}
}

// ask makes one request of an agent and returns its error.
func ask(p providers.Provider, agent string) (err error) {
	for ev := range p.Stream(context.Background(), &providers.Request{Agent: agent, MaxTokens: 150}) {
		if e, ok := ev.(providers.Error); ok {
			err = e.Err
		}
	}
	return err
}

func near(a, b Amount) bool {
	d := a.USD - b.USD
	return d < 1e-9 && d > -1e-9 && a.Tokens == b.Tokens
}

func TestSpendingIsWrittenAndReadAgain(t *testing.T) {
	w := newWorld(t)
	v := &vendor{}
	w.line["child"] = []string{"parent"}
	for _, agent := range []string{"parent", "child", "child"} {
		if err := ask(Wrap(v, w.Ledger), agent); err != nil {
			t.Fatal(err)
		}
	}
	for range 2 { // and after a restart, with a torn line
		if got := w.Spent("parent"); !near(got, v.sold) {
			t.Errorf("the parent spent %v with its child, the vendor sold %v", got, v.sold)
		}
		if got := w.Spent("child"); got.Tokens != 300 {
			t.Errorf("the child spent %v, want 300 tokens", got)
		}
		f, err := os.OpenFile(filepath.Join(w.dir, "2026-11-20.jsonl"), os.O_APPEND|os.O_WRONLY, 0)
		if err != nil {
			t.Fatal(err)
		}
		f.WriteString(`{"at":"2026-11-20T12:00:00Z","agent":"parent","cost":99`)
		f.Close()
		w.open()
	}
}

func TestLimits(t *testing.T) {
	for name, tt := range map[string]struct {
		limits  Limits
		own     Amount
		setting string
	}{
		"in all, money":    {limits: Limits{Total: Amount{USD: 0.44}}, setting: "budget.total"},
		"a day, tokens":    {limits: Limits{PerDay: Amount{Tokens: 440}}, setting: "budget.perDay"},
		"an agent, tokens": {limits: Limits{PerAgent: Amount{Tokens: 440}}, setting: "budget.perAgent"},
		"its own":          {own: Amount{USD: 0.44}, setting: "of agent parent"},
	} {
		w := newWorld(t)
		w.limits, w.own["parent"], w.line["child"] = tt.limits, tt.own, []string{"parent"}
		v := &vendor{}
		var err error
		for i := 0; err == nil && i < 10; i++ {
			err = ask(Wrap(v, w.Ledger), []string{"parent", "child"}[i%2])
		}
		var f *providers.Failure
		var reached *Reached
		if !errors.As(err, &f) || f.Kind != providers.Budget || !errors.As(err, &reached) || reached.Setting != tt.setting {
			t.Errorf("%s: %v, want the limit %s", name, err, tt.setting)
		}
		if v.asked != 2 || f.Retryable() {
			t.Errorf("%s: the vendor was asked %d times, want 2, children included", name, v.asked)
		}
	}
}

func TestTheDayIsTheCalendars(t *testing.T) {
	w := newWorld(t)
	w.limits.PerDay.Tokens = 250
	v := &vendor{}
	if err := ask(Wrap(v, w.Ledger), "a"); err != nil {
		t.Fatal(err)
	}
	if err := ask(Wrap(v, w.Ledger), "a"); err == nil {
		t.Error("the day's budget was exceeded")
	}
	w.now = w.now.Add(13 * time.Hour)
	if err := ask(Wrap(v, w.Ledger), "a"); err != nil {
		t.Errorf("on the next day: %v", err)
	}
}

// Requests at once reserve before they spend, so they cannot exceed a limit together.
func TestRequestsAtOnceStayWithinTheLimit(t *testing.T) {
	w := newWorld(t)
	w.limits.Total.Tokens = 1000
	v := &vendor{}
	p := Wrap(v, w.Ledger)
	var wg sync.WaitGroup
	for range 100 {
		wg.Go(func() { ask(p, "a") })
	}
	wg.Wait()
	if v.sold.Tokens > 1000 {
		t.Errorf("the vendor sold %d tokens; the limit is 1000", v.sold.Tokens)
	}
}

func TestWhatCameToNoEnd(t *testing.T) {
	failed := providers.Error{Err: &providers.Failure{Kind: providers.Broken}}
	w := newWorld(t)
	if err := ask(Wrap(&vendor{ending: failed}, w.Ledger), "a"); err == nil {
		t.Fatal("no error")
	}
	if got := w.Spent("a"); !near(got, Amount{}) {
		t.Errorf("a request that was refused cost %v", got)
	}
	ask(Wrap(&vendor{ending: failed, text: "12345678"}, w.Ledger), "a")
	if got := w.Spent("a"); got.Tokens != 2 {
		t.Errorf("a stream that broke after 8 characters counts %v, want the 2 tokens that came", got)
	}
}

// A line that a crash cut costs no other: what comes behind it can be read.
func TestTornLine(t *testing.T) {
	w := newWorld(t)
	path := filepath.Join(w.dir, w.now.Format(time.DateOnly)+".jsonl")
	if err := os.WriteFile(path, []byte(`{"at":"2026-11-20T11:00:00Z","agent":"a`), 0o600); err != nil {
		t.Fatal(err)
	}
	w.open()
	r, err := w.reserve("a", Amount{1, 1000})
	if err != nil {
		t.Fatal(err)
	}
	w.settle(r, "v", "m", providers.Usage{Input: 100, Output: 50})
	if err := w.Err(); err != nil {
		t.Fatal(err)
	}
	w.open()
	if got := w.Spent("a").Tokens; got != 150 {
		t.Errorf("read again, the agent has spent %d tokens, want 150", got)
	}
}

// What the files do not have is found in the histories and written back, once.
func TestMissing(t *testing.T) {
	dir := t.TempDir()
	at := time.Date(2026, 11, 20, 12, 0, 0, 0, time.Local)
	call := func(agent string, hours int, input int64) Call {
		return Call{At: at.Add(time.Duration(hours) * time.Hour), Agent: agent, Above: []string{"p"}, Provider: "v", Model: "m", Usage: providers.Usage{Input: input}, Cost: 0.5}
	}
	known, lost, other := call("a", 0, 10), call("a", 24, 20), call("b", 1, 30)
	paid := call("b", 2, 5) // it broke off before there was a record
	if err := Add(dir, []Call{known, other, paid}); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		missing, err := Missing(dir, []Call{lost, known, other})
		if err != nil {
			t.Fatal(err)
		}
		if len(missing) > 0 && (len(missing) != 1 || missing[0].Usage.Input != 20) {
			t.Fatalf("missing are %v", missing)
		}
		if err := Add(dir, missing); err != nil {
			t.Fatal(err)
		}
	}
	l, err := Open(Options{Dir: dir, Now: func() time.Time { return at }})
	if err != nil {
		t.Fatal(err)
	}
	if a, p := l.Spent("a"), l.Spent("p"); a.Tokens != 30 || a.USD != 1 || p.Tokens != 65 {
		t.Errorf("spent are %v by a, %v by all beneath p", a, p)
	}
}
