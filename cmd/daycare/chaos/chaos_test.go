package chaos

import (
	"bytes"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"daycare/cmd/daycare/chaos/machines"
	"daycare/engine/crash"
)

func TestParseDeaths(t *testing.T) {
	got, err := ParseDeaths("kill@#17:100, stall@history.sync#2:0/none")
	if err != nil {
		t.Fatal(err)
	}
	want := []Death{{Failpoint: "kill@#17:100"}, {Failpoint: "stall@history.sync#2:0", Cut: Nothing}}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}

	c := Case{Way: "kill", Scenario: &Scenario{Name: "chat"}, Deaths: got}
	if again := c.flags(); again != "--scenario chat --kill 'kill@#17:100,stall@history.sync#2:0/none'" {
		t.Errorf("the case is printed as %s", again)
	}
	if _, err := ParseDeaths("17"); err == nil {
		t.Error("17 was taken for a death")
	}
}

// What failed is shown with its folder and with the command that plays it again.
func TestReportOfAViolation(t *testing.T) {
	r := newReport()
	one := newResult(Case{Way: "kill", Scenario: &Scenario{Name: "chat"}, Deaths: []Death{{Failpoint: "kill@#17:100"}}})
	one.Dir = "/tmp/case-00007"
	one.Reached["inbox.write"] = true
	r.add(newResult(Case{Way: "kill", Scenario: &Scenario{Name: "chat"}}))
	if !r.OK() {
		t.Error("a run without violations is not OK")
	}

	one.violate("lost: %s is nowhere", "m1")
	r.add(one)
	if r.OK() {
		t.Error("a run with a violation is OK")
	}
	var out bytes.Buffer
	if err := r.Print(&out); err != nil {
		t.Fatal(err)
	}

	for _, want := range []string{"FAILED kill chat kill@#17:100\n  lost: m1 is nowhere\n", "  kept in /tmp/case-00007\n",
		"  again: daycare chaos --scenario chat --kill 'kill@#17:100'\n", "failpoints: 1 of "} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("the report lacks %q:\n%s", want, out.String())
		}
	}

	bugs := newReport()
	bugs.Bugs = []Caught{{Bug: "nosync", By: "power cut"}, {Bug: "lifo"}}
	if bugs.OK() {
		t.Error("a seeded bug that was not caught is OK")
	}
}

// A power cut leaves what was synced and, of the rest, what its kind says.
func TestCutPower(t *testing.T) {
	for cut, want := range map[Cut]map[string]string{
		Nothing: {"log": "synced\n", "old": "kept\n"},
		Names:   {"log": "synced\n", "new": "", "renamed": "kept\n"},
		Data:    {"log": "synced\nand more\n", "old": "kept\n"},
		Half:    {"log": "synced\nand ", "old": "kept\n"},
		Both:    {"log": "synced\n", "new": "", "old": "kept\n", "renamed": "kept\n"},
		Gone:    {"log": "synced\n"},
	} {
		t.Run(string(cut), func(t *testing.T) {
			root := filepath.Join(t.TempDir(), "root")
			mirror := root + ".mirror"
			if err := os.Mkdir(root, 0o700); err != nil {
				t.Fatal(err)
			}
			log := filepath.Join(root, "log")
			saved := time.Now().Add(-2 * time.Hour).Truncate(time.Second)
			write(t, log, "synced\n")
			write(t, filepath.Join(root, "old"), "kept\n")
			if err := os.Chtimes(log, saved, saved); err != nil {
				t.Fatal(err)
			}
			if err := seed(root, mirror); err != nil {
				t.Fatal(err)
			}
			f, err := os.OpenFile(log, os.O_APPEND|os.O_WRONLY, 0)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := f.WriteString("and more\n"); err != nil {
				t.Fatal(err)
			}
			f.Close()
			later := saved.Add(time.Hour)
			if err := os.Chtimes(log, later, later); err != nil {
				t.Fatal(err)
			}
			if cut == Data || cut == Half {
				saved = later
			}
			write(t, filepath.Join(root, "new"), "never synced\n")
			if err := os.Rename(filepath.Join(root, "old"), filepath.Join(root, "renamed")); err != nil {
				t.Fatal(err)
			}
			if err := cutPower(root, mirror, cut); err != nil {
				t.Fatal(err)
			}
			got := map[string]string{}
			entries, err := os.ReadDir(root)
			if err != nil {
				t.Fatal(err)
			}
			for _, e := range entries {
				data, err := os.ReadFile(filepath.Join(root, e.Name()))
				if err != nil {
					t.Fatal(err)
				}
				got[e.Name()] = string(data)
			}
			if d := cmp.Diff(want, got); d != "" {
				t.Errorf("after the cut (-want +got):\n%s", d)
			}
			if info, err := os.Stat(log); err != nil || !info.ModTime().Equal(saved) {
				t.Errorf("the log was saved at %v (%v), want %v", info.ModTime(), err, saved)
			}
		})
	}
}

// All that a scenario is chosen by must be there: its name, and points that exist.
func TestScenarios(t *testing.T) {
	seen := map[string]bool{}
	for _, s := range Scenarios() {
		if seen[s.Name] {
			t.Errorf("there are two scenarios %s", s.Name)
		}
		seen[s.Name] = true
		for _, prefix := range s.Only {
			if !slices.ContainsFunc(crash.Names(), func(name string) bool { return strings.HasPrefix(name, prefix) }) {
				t.Errorf("scenario %s dies at %s, and no failpoint begins so", s.Name, prefix)
			}
		}
	}

	for _, name := range slices.Concat(slowly, watching) {
		if !seen[name] {
			t.Errorf("the scenario %s is to be played under pressure and is not there", name)
		}
	}
}

// Bugs are many, of all kinds; each is switched on somewhere in the source, and no other is.
func TestBugs(t *testing.T) {
	seeded := map[string]int{}
	clustered := map[string]bool{} // bugs of machines that share agents
	call := regexp.MustCompile(`crash\.Bug\("(\w+)"\)`)
	root := filepath.Join("..", "..", "..")
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || filepath.Ext(path) != ".go" || strings.HasSuffix(path, "_test.go") {
			return err
		}
		source, err := os.ReadFile(path)
		for _, found := range call.FindAllSubmatch(source, -1) {
			if filepath.Dir(path) == filepath.Join(root, "engine", "cluster") {
				clustered[string(found[1])] = true
				continue
			}
			seeded[string(found[1])]++
		}

		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(Bugs) < 25 {
		t.Errorf("%d bugs are seeded, want 25", len(Bugs))
	}

	for name, what := range soonest {
		known := slices.Contains(ways, what) ||
			slices.ContainsFunc(Scenarios(), func(s *Scenario) bool { return s.Name == what })
		if !known || !slices.ContainsFunc(Bugs, func(b Bug) bool { return b.Name == name }) {
			t.Errorf("a short hunt for %s begins with %q: there is no such bug, way to die or scenario", name, what)
		}
	}

	for _, b := range Bugs {
		if seeded[b.Name] == 0 {
			t.Errorf("the bug %s is nowhere in the source", b.Name)
		}
		delete(seeded, b.Name)
	}

	for _, b := range machines.Bugs {
		if !clustered[b.Name] {
			t.Errorf("the bug %s is nowhere in engine/cluster", b.Name)
		}
		delete(clustered, b.Name)
	}
	for name := range clustered {
		t.Errorf("the bug %s is in engine/cluster and not in the list of machines", name)
	}
	for name := range seeded {
		t.Errorf("the bug %s is in the source and not in the list", name)
	}
}

// Each round against a bug has a case of each scenario, and rounds of all kinds come
// before any kind comes again.
func TestGround(t *testing.T) {
	passed := []string{"home.dirsync", "inbox.write", "inbox.sync", "turn.taken", "history.write", "history.sync", "send.after"}
	scenarios := []*Scenario{{Name: "one"}, {Name: "two"}}
	h := &harness{planner: planner{learned: map[string][]string{"one": passed, "two": passed}, report: newReport()}}
	all := h.ground(scenarios)
	for i, way := range []string{"kill", "power cut", "peace", "kill, then power"} {
		round := all[2*i : 2*i+2]
		if round[0].Way != way || round[1].Way != way || round[0].Scenario == round[1].Scenario {
			t.Errorf("round %d is %s and %s, want a %s in each scenario", i+1, round[0], round[1], way)
		}
	}

	if again := h.ground(scenarios); again[3].String() != all[3].String() || len(all) < 30 {
		t.Errorf("%d cases, the fourth is %s and then %s; want many, in the same order each time", len(all), all[3], again[3])
	}

	early := sooner("power cut", all)
	if len(early) != len(all) || early[0].String() != all[2].String() || early[len(early)-2].Way == "power cut" {
		t.Errorf("with power cuts first there are %d cases, from %s to %s", len(early), early[0], early[len(early)-1])
	}

	// A step more in one scenario changes the order of its own cases at most.
	of := func(s *Scenario, list []Case) (names []string) {
		for _, c := range list {
			if c.Scenario == s {
				names = append(names, c.String())
			}
		}
		return names
	}
	h.learned["one"] = append([]string{"home.write"}, passed...)
	longer := h.ground(scenarios)
	if d := cmp.Diff(of(scenarios[1], all), of(scenarios[1], longer)); d != "" {
		t.Errorf("a step more in scenario one changes the order of scenario two:\n%s", d)
	}
	for k, list := range map[int][]string{3: passed, 4: h.learned["one"]} {
		c := Case{Way: "kill", Scenario: scenarios[0], Deaths: []Death{{Failpoint: fmt.Sprintf("kill@#%d:0", k)}}}
		if got := c.named(list); got != "kill one kill@inbox.sync#1:0" || c.Deaths[0].Failpoint != fmt.Sprintf("kill@#%d:0", k) {
			t.Errorf("%s is called %s, want it called by its failpoint", c, got)
		}
	}

	if last := all[len(all)-1]; last.Way != "random power cut" {
		t.Errorf("the last case is a %s, want random power cuts", last.Way)
	}
}

func write(t *testing.T, path, content string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

// An answer rests on the last write before it leaves, and on the last sync.
func TestRestsOn(t *testing.T) {
	passed := []string{"history.write", "history.sync", "history.write", "history.sync", "send.before", "send.after",
		"send.before", "history.write", "send.before", "history.write", "send.before"}
	if got := restsOn(passed, "history.write"); !slices.Equal(got, []int{2, 3}) {
		t.Errorf("answers rest on the writes %v, want the second and the third", got)
	}
	if got := restsOn(passed, "history.sync"); !slices.Equal(got, []int{2}) {
		t.Errorf("answers rest on the syncs %v, want the second", got)
	}
	if got := restsOn(passed[:3], "history.write"); len(got) != 0 {
		t.Errorf("no answer left, and they rest on %v", got)
	}
}

// Long cases begin before three quarters of the short ones, evenly, and none is lost.
func TestSpread(t *testing.T) {
	short := make([]Case, 8)
	for i := range short {
		short[i] = Case{Way: string(rune('a' + i))}
	}

	for _, tt := range []struct {
		long int
		want string
	}{{0, "abcdefgh"}, {1, "+abcdefgh"}, {3, "+ab+cd+efgh"}, {12, "++a++b++c++d++e++fgh"}} {
		got := ""
		for _, c := range spread(slices.Repeat([]Case{{Way: "+"}}, tt.long), short) {
			got += c.Way
		}
		if got != tt.want {
			t.Errorf("%d long cases: %s, want %s", tt.long, got, tt.want)
		}
	}
}

// What was played before an interruption is shown, in the order of the ways to die, with
// how much was not.
func TestReportOfAnInterruption(t *testing.T) {
	r := newReport()
	for _, way := range []string{"random kill -9", "kill", "peace"} {
		r.add(newResult(Case{Way: way, Scenario: &Scenario{Name: "chat"}}))
	}
	r.Planned, r.Unplayed = 31_105, 31_103
	r.Points, r.PointsPlayed = 788, 788
	var out bytes.Buffer
	if err := r.Print(&out); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(out.String(), "NOT PLAYED: 31103 of 31105 cases") {
		t.Errorf("the report does not say what was not played:\n%s", out.String())
	}
	if strings.Contains(out.String(), "788") {
		t.Errorf("the report speaks of failpoints that were to be died at as if it had come so far:\n%s", out.String())
	}
	if d := cmp.Diff([]string{"peace", "kill", "random kill -9"}, r.order()); d != "" {
		t.Errorf("order of ways to die (-want +got):\n%s", d)
	}
}

// A daemon that dies at a step does not collect its garbage before it has much; one that
// dies at any moment does as ever.
func TestGarbage(t *testing.T) {
	if env := (launch{}).environment(""); !slices.Contains(env, "GOGC=off") || !slices.Contains(env, "GOMEMLIMIT="+muchGarbage) {
		t.Errorf("collects from the start, or without end does not: %q", env)
	}
	if env := (launch{collects: true}).environment(""); slices.ContainsFunc(env,
		func(s string) bool { return strings.HasPrefix(s, "GOGC") || strings.HasPrefix(s, "GOMEMLIMIT") }) {
		t.Errorf("does not collect as ever: %q", env)
	}
}

// A third of an unreliable platform's calls fail. Who waits for the end of a soak waits at most for as long as one answer
// fails, and daycare waits twice as long after each time.
func TestUnreliable(t *testing.T) {
	fails := unreliable()
	calls, failed, took := 0, 0, 0
	for n := range 1000 {
		inARow := 0
		for {
			calls++
			f, tk := fails(strconv.Itoa(n))
			if !f {
				if tk {
					t.Fatal("what did not fail says that the answer was taken all the same")
				}
				break
			}
			failed++
			inARow++
			if tk {
				took++
			}
		}
		if inARow > 3 {
			t.Errorf("one answer failed %d times", inARow)
		}
	}
	if failed < calls/4 || failed > calls/2 || took < failed/4 || took > failed*3/4 {
		t.Errorf("%d of %d calls failed, %d after the answer was taken", failed, calls, took)
	}
}
