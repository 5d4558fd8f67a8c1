package budget

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"testing"
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

	late := newWorld(t)
	late.limits, late.line = crew[0].limits, crew[0].line
	Machines{late.Ledger}.Join("m3", b.all())
	crew = append(crew, late)
	check("for one that comes late", 3, 600, 450)

	// Servers that were wiped get it again from whoever knows it.
	b.said = map[string]Says{}
	for one := range (Machines{late.Ledger}).Says() {
		b.said[one.Machine+"."+one.Name] = one
	}
	newer := newWorld(t)
	newer.limits, newer.line = crew[0].limits, crew[0].line
	Machines{newer.Ledger}.Join("m4", b.all())
	crew = append(crew, newer)
	check("after a wipe", 4, 600, 450)

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
	if err := ask(Wrap(&vendor{}, crew[0].Ledger), "a"); err != nil {
		t.Fatal(err)
	}
	r, err := crew[0].reserve("a", Amount{USD: 1, Tokens: 1000})
	if err != nil {
		t.Fatal(err)
	}
	b.say(crew[0], "m0")
	b.hear(crew[1])
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

// Telling says each change, the first at once, and ends with its context.
func TestTelling(t *testing.T) {
	_, crew := newCrew(t, 1)
	ctx, cancel := context.WithCancel(t.Context())
	said, done := make(chan string, 10), make(chan struct{})
	go func() {
		defer close(done)
		Machines{crew[0].Ledger}.Tell(ctx, func(_ context.Context, name string, _ []byte) error { said <- name; return nil })
	}()
	if err := ask(Wrap(&vendor{}, crew[0].Ledger), "a"); err != nil {
		t.Fatal(err)
	}
	if got := []string{<-said, <-said}; !slices.Equal(got, []string{"agent.a", "all"}) {
		t.Errorf("it says %q", got)
	}
	cancel()
	<-done
}
