package peers

import (
	"context"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"daycare/agents/budget"
	"daycare/agents/providers"
	"daycare/engine/cluster"
	"daycare/engine/cluster/clustertest"
	"daycare/engine/disk"
	"daycare/engine/permission"
)

// A spender is a machine with a ledger.
type spender struct {
	*Machines
	ledger *budget.Ledger
	stop   func()
}

// spends starts a machine whose agents may spend so many tokens a day.
func spends(t *testing.T, root, server string) *spender {
	t.Helper()
	s := &spender{}
	s.Machines = hearing(t, root, server, func() { budget.Machines{Ledger: s.ledger}.Reread() })
	s.ledger = budget.Open(budget.Options{Dir: filepath.Join(s.Workspace.Data, "usage"), Volume: s.Volume, Log: s.Log, Now: time.Now,
		Limits: func() budget.Limits { return budget.Limits{PerDay: budget.Amount{Tokens: 1000}} },
		Own:    func(string) (budget.Amount, error) { return budget.Amount{}, nil },
		Line:   func(string) []string { return nil },
		Price:  func(string, string, providers.Usage) float64 { return 0.01 }})
	s.Count(s.ledger)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 2)
	go func() { done <- s.tellSpending(ctx) }()
	go func() { done <- s.node.Tend(ctx) }()
	s.stop = func() {
		cancel()
		<-done
		<-done
		leave(t, s.Machines)
	}

	return s
}

func (s *spender) spend(agent string) {
	s.ledger.Spend(agent, "v", "m", providers.Usage{Input: 100})
}

// day is what counts against the limit of the day, and that limit.
func (s *spender) day() (spent, limit int64) {
	for _, level := range s.ledger.Levels(nil) {
		if level.Scope == permission.BudgetPerDay {
			return level.Spent.Tokens, level.Limit.Tokens
		}
	}
	return -1, -1
}

// What machines spend counts once on each: while they run, after a restart of one, for one that comes late, and after the
// servers were wiped. A limit that is raised on one is raised on all.
func TestBudgetsOfAllMachines(t *testing.T) {
	dir := t.TempDir()
	server := clustertest.Serve(t, dir, 0)
	url, port := server.ClientURL(), server.Addr().(*net.TCPAddr).Port
	roots := []string{t.TempDir(), t.TempDir(), t.TempDir()}
	a, b := spends(t, roots[0], url), spends(t, roots[1], url)
	count := func(when string, s *spender, want int64) {
		t.Helper()
		var got int64
		for end := time.Now().Add(30 * time.Second); got != want && time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
			got, _ = s.day()
		}
		if got != want {
			t.Fatalf("%s a machine counts %d tokens, want %d", when, got, want)
		}
	}
	a.spend("x")
	b.spend("x")
	b.spend("y")
	count("while both run", a, 300)
	count("while both run", b, 300)
	said := false
	for _, m := range a.States() {
		said = said || strings.Contains(m.Detail, ", $0.02 today")
	}
	if !said {
		t.Errorf("the machines are %+v", a.States())
	}

	ask := permission.Budget{Scope: permission.BudgetPerDay, Unit: permission.Tokens, Limit: 1000, More: 1000,
		Day: time.Now().Format(time.DateOnly)}
	if err := b.ledger.Raise("x", ask, "token", "me"); err != nil {
		t.Fatal(err)
	}
	for end := time.Now().Add(30 * time.Second); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		if _, limit := a.day(); limit == 2000 {
			break
		}
	}
	if _, limit := a.day(); limit != 2000 {
		t.Errorf("the limit that was raised on the other machine is %d here", limit)
	}

	b.spend("y") // and ends before a second is over
	b.stop()
	count("after the end of the other", a, 400)
	b = spends(t, roots[1], url)
	count("after its restart", b, 400)
	count("after that restart", a, 400)
	b.stop()

	late := spends(t, roots[2], url)
	defer func() { late.stop() }()
	count("when it comes late", late, 400)

	server.Shutdown()
	server.WaitForShutdown()
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	clustertest.Serve(t, dir, port)
	a.spend("x")
	count("after a wipe", late, 500)
	a.stop()
	b = spends(t, roots[1], url)
	defer func() { b.stop() }()
	count("after a wipe, with a machine that was off", b, 500)
	b.spend("x")
	count("what that one spends", late, 600)
}

// A machine has one id for ever; a file that cannot be read is not replaced. Two with one id are reported.
func TestIdentity(t *testing.T) {
	home := t.TempDir()
	vol := disk.NewVolume(home)
	first, err := identity(home, vol)
	again, err2 := identity(home, vol)
	if err != nil || err2 != nil || first != again || first == "" {
		t.Errorf("%q %v, then %q %v", first, err, again, err2)
	}
	for _, text := range []string{"", "{}", `{"id":"../x"}`, "\x00"} {
		if err := os.WriteFile(filepath.Join(home, "usage", "machine.json"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if got, err := identity(home, vol); err == nil || !strings.Contains(err.Error(), "machine.json") {
			t.Errorf("with %q: %q, %v", text, got, err)
		}
	}
	own := cluster.Machine{Boot: "a", ID: first}
	if got := differs(own, cluster.Machine{Boot: "b", ID: first}); !strings.Contains(got, "a copy") {
		t.Errorf("a copy of the folder is %q", got)
	}
	if got := differs(own, own); got != "" {
		t.Errorf("the machine itself is %q", got)
	}
}
