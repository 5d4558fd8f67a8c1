package budget

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// A board is what machines say to each other.
type board struct {
	said map[string]Says
	down error
}

// put is how a machine says something.
func (b *board) put(machine string) func(context.Context, string, []byte) error {
	return func(_ context.Context, name string, data []byte) error {
		if b.down == nil {
			b.said[machine+"."+name] = Says{machine, name, data}
		}
		return b.down
	}
}

func (b *board) all() iter.Seq[Says] {
	return func(yield func(Says) bool) {
		for _, one := range b.said {
			if !yield(one) {
				return
			}
		}
	}
}

// hear has a machine hear all that was said, twice.
func (b *board) hear(w *world) {
	for range 2 {
		for one := range b.all() {
			Machines{w.Ledger}.Heard(one)
		}
	}
}

// say has a machine say what it has spent.
func (b *board) say(w *world, machine string) {
	Machines{w.Ledger}.TellNow(context.Background(), b.put(machine))
}

// newCrew are machines of one cluster.
func newCrew(t *testing.T, n int) (b *board, all []*world) {
	b = &board{said: map[string]Says{}}
	for i := range n {
		w := newWorld(t)
		Machines{w.Ledger}.Join(fmt.Sprint("m", i), b.all())
		all = append(all, w)
	}
	return b, all
}

// A limit bounds what all machines have spent, each counted once: whatever is said or heard again, also on a
// machine that comes late, was restarted, or was away.
func TestLimitsBoundAllMachines(t *testing.T) {
	b, crew := newCrew(t, 3)
	v := &vendor{}
	spend := func(i int, agent string) {
		t.Helper()
		if err := ask(Wrap(v, crew[i].Ledger), agent); err != nil {
			t.Fatal(err)
		}
	}
	for _, w := range crew {
		w.limits = Limits{PerDay: Amount{Tokens: 10_000}, PerAgent: Amount{Tokens: 10_000}, Total: Amount{Tokens: 10_000}}
		w.line["child"] = []string{"parent"}
	}
	check := func(when string, i int, all, parent int64) {
		t.Helper()
		got := map[string]int64{}
		for _, level := range crew[i].Levels([]string{"child"}) {
			got[level.Scope] = level.Spent.Tokens
		}
		if got["total"] != all || got["perDay"] != all || got["perAgent"] != parent {
			t.Errorf("%s, machine %d counts %v, want %d and %d of the family", when, i, got, all, parent)
		}
	}

	spend(0, "parent")
	spend(1, "child") // the child works on another machine than its parent
	spend(2, "other")
	check("before anything is said", 0, 150, 150)
	for i, w := range crew {
		b.say(w, fmt.Sprint("m", i))
	}
	for i, w := range crew {
		b.hear(w)
		check("when all is said", i, 450, 300)
	}

	b.down = errors.New("no server")
	spend(1, "child")
	b.say(crew[1], "m1")
	if b.hear(crew[0]); len(b.said) != 7 {
		t.Errorf("%d sums were said", len(b.said))
	}
	check("while a machine is away", 0, 450, 300)
	b.down = nil
	b.say(crew[1], "m1")
	b.hear(crew[0])
	check("when it is back", 0, 600, 450)

	crew[1].open() // it was restarted, after it had said all
	Machines{crew[1].Ledger}.Join("m1", b.all())
	check("after a restart", 1, 600, 450)
	if len(crew[1].unsaid) > 0 {
		t.Errorf("it says again what was said: %v", crew[1].unsaid)
	}

	spend(1, "child")
	crew[1].open() // before it could say that
	Machines{crew[1].Ledger}.Join("m1", b.all())
	b.say(crew[1], "m1")
	b.hear(crew[0])
	check("after a restart with something unsaid", 0, 750, 600)

	late := newWorld(t)
	late.limits, late.line = crew[0].limits, crew[0].line
	Machines{late.Ledger}.Join("m3", b.all())
	crew = append(crew, late)
	check("for one that comes late", 3, 750, 600)

	// Servers that were wiped get it again from whoever knows it.
	b.said = map[string]Says{}
	for one := range (Machines{late.Ledger}).Says() {
		b.said[one.Machine+"."+one.Name] = one
	}
	newer := newWorld(t)
	newer.limits, newer.line = crew[0].limits, crew[0].line
	Machines{newer.Ledger}.Join("m4", b.all())
	crew = append(crew, newer)
	check("after a wipe", 4, 750, 600)

	late.limits.PerDay.Tokens = 700
	if err := ask(Wrap(v, late.Ledger), "other"); !errors.As(err, new(*Reached)) {
		t.Errorf("the limit of the day, which the others have used up, does not stop: %v", err)
	}
	late.limits.PerDay.Tokens, late.limits.PerAgent.Tokens = 0, 500
	if err := ask(Wrap(v, late.Ledger), "child"); !errors.As(err, new(*Reached)) {
		t.Errorf("the limit of the family does not stop: %v", err)
	}
	if err := ask(Wrap(v, late.Ledger), "another"); err != nil {
		t.Errorf("another agent is stopped: %v", err)
	}
}

// The next day is a new one, whichever machine spent what on the last; a request that runs is not said.
func TestADayOfAllMachines(t *testing.T) {
	b, crew := newCrew(t, 2)
	crew[1].limits.Total.Tokens = 10_000
	if err := ask(Wrap(&vendor{}, crew[0].Ledger), "a"); err != nil {
		t.Fatal(err)
	}
	r, err := crew[0].reserve("a", Amount{USD: 1, Tokens: 1000})
	if err != nil {
		t.Fatal(err)
	}
	b.say(crew[0], "m0")
	b.hear(crew[1])
	for _, level := range crew[1].Levels([]string{"b"}) {
		if level.Scope == "total" && level.Spent.Tokens != 150 {
			t.Errorf("in all %d tokens are spent, want 150", level.Spent.Tokens)
		}
	}
	today := func(w *world, machine string) int64 { return Machines{w.Ledger}.Today(machine).Tokens }
	if got := today(crew[1], "m0"); got != 150 {
		t.Errorf("the other machine spent %d tokens, want 150", got)
	}
	if got := today(crew[0], ""); got != 1150 {
		t.Errorf("this machine spent %d tokens, want 1150 with what runs", got)
	}
	crew[0].release(r)
	if len(crew[0].runs) > 0 {
		t.Error("a request that was released still runs")
	}

	crew[1].now = crew[1].now.Add(24 * time.Hour)
	if got := today(crew[1], "m0"); got != 0 {
		t.Errorf("on the next day the other machine spent %d tokens", got)
	}
	crew[1].limits.PerDay.Tokens = 160
	if err := ask(Wrap(&vendor{}, crew[1].Ledger), "a"); err != nil {
		t.Errorf("on the next day: %v", err)
	}
	b.say(crew[1], "m1")
	b.hear(crew[0])
	if got := today(crew[0], "m1"); got != 0 {
		t.Errorf("yesterday the other machine spent %d tokens", got)
	}
}

// Telling says each change once, the first at once, what could not be said again, and ends with its context.
func TestTelling(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, crew := newCrew(t, 1)
		m := Machines{crew[0].Ledger}
		ctx, cancel := context.WithCancel(t.Context())
		var mu sync.Mutex
		var said []string
		down := errors.New("no server")
		var telling sync.WaitGroup
		telling.Go(func() {
			m.Tell(ctx, func(_ context.Context, name string, _ []byte) error {
				mu.Lock()
				defer mu.Unlock()
				if said = append(said, name); name == sayAll {
					return down
				}
				return nil
			})
		})
		check := func(when string, want ...string) {
			t.Helper()
			synctest.Wait()
			mu.Lock()
			defer mu.Unlock()
			if !slices.Equal(said, want) {
				t.Errorf("%s it has said %q, want %q", when, said, want)
			}
		}
		check("at the start")
		if err := ask(Wrap(&vendor{}, crew[0].Ledger), "a"); err != nil {
			t.Fatal(err)
		}
		check("at once", "agent.a", "all")
		time.Sleep(sayPause + time.Millisecond)
		check("after an error", "agent.a", "all", "all")
		mu.Lock()
		down = nil
		mu.Unlock()
		time.Sleep(5 * sayPause)
		check("in the end", "agent.a", "all", "all", "all")
		cancel()
		telling.Wait()
		if m.TellNow(t.Context(), b.put("m0")); len(b.said) > 0 {
			t.Errorf("it says %v again", b.said)
		}
	})
}

// A machine that joins says what it had spent alone, without spending more, and of some days: the clocks of the
// others may be behind.
func TestWhatWasSpentAloneIsSaid(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, crew := newCrew(t, 1)
		alone := newWorld(t)
		for range 2 {
			if err := ask(Wrap(&vendor{}, alone.Ledger), "a"); err != nil {
				t.Fatal(err)
			}
			alone.now = alone.now.Add(24 * time.Hour)
		}
		m := Machines{alone.Ledger}
		m.Join("m1", b.all())
		ctx, cancel := context.WithCancel(t.Context())
		var telling sync.WaitGroup
		telling.Go(func() { m.Tell(ctx, b.put("m1")) })
		synctest.Wait()
		cancel()
		telling.Wait()
		b.hear(crew[0])
		for day := range 3 {
			want := int64(150)
			if day == 2 {
				want = 0
			}
			if got := (Machines{crew[0].Ledger}).Today("m1").Tokens; got != want {
				t.Errorf("on day %d it spent %d tokens, want %d", day, got, want)
			}
			crew[0].now = crew[0].now.Add(24 * time.Hour)
		}
		own := slices.Collect(m.Says())
		if !slices.ContainsFunc(own, func(s Says) bool { return s.Machine == "m1" && s.Name == sayAll }) {
			t.Errorf("of itself it knows %v", own)
		}
	})
}

// A raise that another machine was given applies here, too; one that cannot be read changes nothing.
func TestRaisesOfAnotherMachine(t *testing.T) {
	w := newWorld(t)
	w.limits.Total.Tokens = 440
	_, r := spend(t, w, "a")
	there := newWorld(t) // where the answer came
	there.limits = w.limits
	if err := there.Raise("a", r.Budget, "token", "ada"); err != nil {
		t.Fatal(err)
	}
	raises, err := os.ReadFile(filepath.Join(there.dir, raisesFile))
	if err == nil {
		err = os.WriteFile(filepath.Join(w.dir, raisesFile), raises, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	if err := ask(Wrap(&vendor{}, w.Ledger), "a"); !errors.As(err, new(*Reached)) {
		t.Fatalf("before the file is read: %v", err)
	}
	m := Machines{w.Ledger}
	m.Reread()
	if err := ask(Wrap(&vendor{}, w.Ledger), "a"); err != nil {
		t.Errorf("with the raise of the other machine: %v", err)
	}
	if err := os.WriteFile(filepath.Join(w.dir, raisesFile), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	m.Reread()
	err = ask(Wrap(&vendor{}, w.Ledger), "a")
	if said := w.said.String(); err != nil || !strings.Contains(said, "those of other machines do not apply") {
		t.Errorf("with a file that cannot be read: %v; said is %s", err, said)
	}
}
