package budget

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"daycare/agents/providers"
	"daycare/engine/disk"
	"daycare/engine/permission"
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
	broken map[string]error // why an agent's own limit is not known
	line   map[string][]string
	said   strings.Builder
	*Ledger
}

func newWorld(t *testing.T) *world {
	w := &world{t: t, dir: filepath.Join(t.TempDir(), "usage [1]"), now: time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC),
		own: map[string]Amount{}, line: map[string][]string{}}
	w.open() // the folder is made with the first line
	return w
}

func (w *world) open() {
	w.t.Helper()
	w.Ledger = Open(Options{Dir: w.dir, Volume: disk.NewVolume(w.dir), Log: slog.New(slog.NewTextHandler(&w.said, nil)),
		Now: func() time.Time { return w.now }, Limits: func() Limits { return w.limits },
		Own: func(id string) (Amount, error) { return w.own[id], w.broken[id] }, Line: func(id string) []string { return w.line[id] },
		Price: func(_, _ string, u providers.Usage) float64 { return float64(u.Input+u.Output) / 1000 }})
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

// Who only looks at what was spent, without a volume, writes nothing.
func TestALookAtTheLedgerWritesNothing(t *testing.T) {
	w := newWorld(t)
	if err := ask(Wrap(&vendor{}, w.Ledger), "a"); err != nil {
		t.Fatal(err)
	}
	list := func() (names []string) {
		entries, err := os.ReadDir(w.dir)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range entries {
			names = append(names, e.Name())
		}
		return names
	}
	before := list()
	look := Open(Options{Dir: w.dir, Log: slog.New(slog.NewTextHandler(&w.said, nil)), Now: func() time.Time { return w.now },
		Limits: func() Limits { return w.limits }})
	if got, want := look.Spent("a"), w.Spent("a"); !near(got, want) || want.Tokens == 0 || !slices.Equal(list(), before) ||
		w.said.Len() > 0 {
		t.Errorf("it sees %+v of %+v, the folder has %q, %q before; said was %q", got, want, list(), before, w.said.String())
	}
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

func TestALimitThatIsNotKnownIsNotNoLimit(t *testing.T) {
	w := newWorld(t)
	w.broken, w.line["child"] = map[string]error{"parent": errors.New("state.json: unexpected end")}, []string{"parent"}
	v := &vendor{}
	for _, agent := range []string{"parent", "child"} {
		err := ask(Wrap(v, w.Ledger), agent)
		var f *providers.Failure
		if !errors.As(err, &f) || f.Kind != providers.Budget || !strings.Contains(err.Error(), "unexpected end") {
			t.Errorf("a request of the %s: %v, want it refused, and why", agent, err)
		}
	}
	if v.sold != (Amount{}) {
		t.Errorf("%v were spent", v.sold)
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
	if err := os.MkdirAll(w.dir, 0o700); err != nil {
		t.Fatal(err)
	}
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
		return Call{At: at.Add(time.Duration(hours) * time.Hour), Agent: agent, Above: []string{"p"}, Provider: "v",
			Model: "m", Usage: providers.Usage{Input: input}, Cost: 0.5}
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
	l := Open(Options{Dir: dir, Volume: disk.NewVolume(dir), Log: slog.New(slog.DiscardHandler), Now: func() time.Time { return at }})
	if a, p := l.Spent("a"), l.Spent("p"); a.Tokens != 30 || a.USD != 1 || p.Tokens != 65 {
		t.Errorf("spent are %v by a, %v by all beneath p", a, p)
	}
}

// A usage file is a cache: a run of NULs, a line of any length or a folder in its place
// keeps nothing from starting, and costs no other line.
func TestBrokenUsageFiles(t *testing.T) {
	w := newWorld(t)
	if err := ask(Wrap(&vendor{}, w.Ledger), "a"); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(w.dir, "2026-11-20.jsonl")
	good, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for name, spoil := range map[string][]byte{
		"NULs in front":           append(append(make([]byte, 3<<20), '\n'), good...),
		"NULs behind":             append(append([]byte{}, good...), make([]byte, 3<<20)...),
		"a long line":             append([]byte(`{"agent":"`+strings.Repeat("x", 2<<20)+"\"}\n"), good...),
		"a long line without end": append(append([]byte{}, good...), strings.Repeat("x", 2<<20)...),
		"a long line between good": append(append(append([]byte{}, good...),
			[]byte(strings.Repeat("x", 2<<20)+"\n")...), []byte("not json\n")...),
	} {
		if err := os.WriteFile(path, spoil, 0o600); err != nil {
			t.Fatal(err)
		}
		w.open()
		if got := w.Spent("a").Tokens; got != 150 {
			t.Errorf("%s: %d tokens were spent, want 150", name, got)
		}
	}
	if err := os.Mkdir(filepath.Join(w.dir, "2026-11-19.jsonl"), 0o700); err != nil {
		t.Fatal(err)
	}
	for _, spoil := range []string{"", "\x00\x00\x00", "{", `{"total":{"tokens":-5}}`, `{"days":7}`} {
		if err := os.WriteFile(filepath.Join(w.dir, sumsFile), []byte(spoil), 0o600); err != nil {
			t.Fatal(err)
		}
		w.open()
		if got := w.Spent("a").Tokens; got != 150 {
			t.Errorf("with sums %q: %d tokens were spent, want 150", spoil, got)
		}
	}
	if !strings.Contains(w.said.String(), "2026-11-19.jsonl") {
		t.Error("nothing is said of a file that cannot be read")
	}
}

// A day that the clock shows again is not granted again, nor one before it; the next
// day is.
func TestWrongClockGrantsNoBudget(t *testing.T) {
	day := func(d int) time.Time { return time.Date(2026, 11, d, 12, 0, 0, 0, time.UTC) }
	for name, tt := range map[string]struct {
		at   []time.Time
		want int // requests of which the limit allows two a day
	}{
		"the same day":             {[]time.Time{day(20), day(20), day(20)}, 2},
		"ahead and back":           {[]time.Time{day(20), day(20), day(24), day(20), day(20)}, 3},
		"years ahead and back":     {[]time.Time{day(20), day(20).AddDate(9, 0, 0), day(20), day(20)}, 2},
		"back":                     {[]time.Time{day(20), day(20), day(19), day(18), day(20)}, 2},
		"back by years":            {[]time.Time{day(20), day(20).AddDate(-25, 0, 0), day(20).AddDate(-25, 0, 0), day(20)}, 2},
		"back, and the next day":   {[]time.Time{day(20), day(20), day(19), day(20), day(21), day(21), day(21)}, 4},
		"ahead, back and the next": {[]time.Time{day(20), day(24), day(20), day(21), day(21), day(21), day(22), day(22)}, 6},
		"to and fro at midnight":   {[]time.Time{day(20), day(20), day(21), day(20), day(21), day(21)}, 4},
	} {
		for _, restart := range []bool{false, true} {
			w := newWorld(t)
			w.limits.PerDay.Tokens = 300
			v, n := &vendor{}, 0
			for _, w.now = range tt.at {
				if restart {
					w.open()
				}
				if ask(Wrap(v, w.Ledger), "a") == nil {
					n++
				}
			}
			if n != tt.want {
				t.Errorf("%s (restarts: %v): %d requests were allowed, want %d", name, restart, n, tt.want)
			}
		}
	}
}

// However the clock jumps and whenever the process ends, no date is charged more than a
// day's budget, and a day that follows the newest one has all of it.
func TestDaysUnderAWildClock(t *testing.T) {
	const limit = 450
	asked, refused := 0, 0
	for seed := range 40 {
		r := rand.New(rand.NewPCG(uint64(seed), 3))
		w := newWorld(t)
		w.limits.PerDay.Tokens = limit
		v := &vendor{}
		days, newest := map[string]int64{}, w.now.Format(time.DateOnly)
		for range 60 {
			switch r.IntN(6) {
			case 0:
				w.now = w.now.Add(time.Duration(r.Int64N(int64(96*time.Hour))) - 48*time.Hour)
			case 1:
				w.now = w.now.AddDate(r.IntN(7)-3, 0, 0)
			case 2:
				w.open()
			default:
				w.now = w.now.Add(time.Duration(r.Int64N(int64(3 * time.Hour))))
			}
			date := w.now.Format(time.DateOnly)
			err := ask(Wrap(v, w.Ledger), "a")
			if asked++; err != nil {
				refused++
			} else {
				days[date] += 150
			}
			if date > newest && err != nil {
				t.Errorf("life %d: %s is a new day and has no budget: %v", seed, date, err)
			}
			newest = max(newest, date)
			if days[date] > limit {
				t.Errorf("life %d: %d tokens were spent on %s", seed, days[date], date)
			}
		}
	}
	t.Logf("%d requests, %d of them refused", asked, refused)
}

// A start reads the files of past days once: afterwards it has their sums. Whatever
// happens to the files, the sums are those of the files.
func TestSumsOfPastDays(t *testing.T) {
	w := newWorld(t)
	write := func(day string, n int) {
		t.Helper()
		var text []byte
		for i := range n {
			data, err := json.Marshal(line{At: disk.StampOf(must(time.Parse(time.DateOnly, day))),
				Agent: fmt.Sprint("a", i%3), Above: []string{"p"}, Tokens: tokens{Input: 1}})
			if err != nil {
				t.Fatal(err)
			}
			text = append(append(text, data...), '\n')
		}
		if err := os.WriteFile(filepath.Join(w.dir, day+".jsonl"), text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	check := func(want int64) {
		t.Helper()
		for range 2 {
			w.open()
			if got := w.Spent("p").Tokens; got != want {
				t.Errorf("%d tokens were spent, want %d", got, want)
			}
		}
	}
	if err := os.MkdirAll(w.dir, 0o700); err != nil {
		t.Fatal(err)
	}
	for i := range 9 {
		write(fmt.Sprintf("2026-11-1%d", i), 300)
	}
	check(9 * 300)
	k := w.o.load()
	if len(k.Files) != 9 || k.Total.Tokens != 9*300 {
		t.Errorf("kept are the sums of %d files, %v", len(k.Files), k.Total)
	}
	write("2026-11-20", 10) // today's is read at each start
	check(9*300 + 10)
	write("2026-11-15", 400) // edited
	check(9*300 + 100 + 10)
	if err := os.Remove(filepath.Join(w.dir, "2026-11-16.jsonl")); err != nil {
		t.Fatal(err)
	}
	check(8*300 + 100 + 10)
	w.now = w.now.AddDate(0, 0, 1)
	if err := ask(Wrap(&vendor{}, w.Ledger), "p"); err != nil {
		t.Fatal(err)
	}
	if k = w.o.load(); k.Files["2026-11-20.jsonl"].Size == 0 || k.Calendar.Day != "2026-11-21" {
		t.Errorf("after a day ended the kept sums are of %v in %s", k.Files, k.Calendar.Day)
	}
	w.now = w.now.AddDate(0, 0, -1) // the clock goes back to a day whose file was added up
	check(8*300 + 100 + 10 + 150)
}

// While a file is written, nobody waits who asks what was spent.
func TestNobodyWaitsForTheFile(t *testing.T) {
	w := newWorld(t)
	w.file.Lock()
	defer w.file.Unlock()
	done := make(chan error)
	go func() {
		r, err := w.reserve("a", Amount{1, 1000})
		if err == nil {
			w.release(r)
		}
		done <- err
	}()
	select {
	case err := <-done:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(time.Minute):
		t.Fatal("a reservation waits for a file")
	}
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// Waiting helps at the limit of a day alone: at any other it would be forever.
func TestRemedyOfALimit(t *testing.T) {
	for scope, want := range map[string]string{
		permission.BudgetPerDay:   "Raise it in the settings, or wait until the next day",
		permission.BudgetPerAgent: "Raise it in the settings",
		permission.BudgetTotal:    "Raise it in the settings",
		"agent1":                  "Raise the budget in state.json",
	} {
		t.Run(scope, func(t *testing.T) {
			if got := (&Reached{Budget: permission.Budget{Scope: scope}}).Remedy(); got != want {
				t.Errorf("%s: %q, want %q", scope, got, want)
			}
		})
	}
}
