package chaos

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

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
		Nothing: {"log": "synced\n"},
		Names:   {"log": "synced\n", "new": ""},
		Data:    {"log": "synced\nand more\n"},
		Half:    {"log": "synced\nand "},
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
	for _, name := range hunted {
		if !seen[name] {
			t.Errorf("seeded bugs are hunted in the scenario %s, which is not there", name)
		}
	}
}

// The default length dies at the first passing of each failpoint, also of those that the
// scenario is not for, and at some that pass one once more; a full run at all.
func TestOperations(t *testing.T) {
	s := &Scenario{Name: "test", Only: []string{"inbox."}}
	passed := []string{"home.dirsync", "inbox.write"}
	for range repeatEvery {
		passed = append(passed, "inbox.write", "turn.taken")
	}
	want := []operation{{1, "home.dirsync", false}, {2, "inbox.write", true}, {4, "turn.taken", false}, {2*repeatEvery + 1, "inbox.write", true}}
	h := &harness{report: newReport()}
	got := h.operations(s, passed)
	if d := cmp.Diff(want, got, cmp.AllowUnexported(operation{})); d != "" {
		t.Errorf("operations to die at (-want +got):\n%s", d)
	}
	h.count(passed, got)
	if h.report.Points != 3 || h.report.PointsPlayed != 3 || h.considered != len(passed) || h.unplayed != len(passed)-len(want) {
		t.Errorf("counted %d of %d points, %d of %d operations left out", h.report.PointsPlayed, h.report.Points, h.unplayed, h.considered)
	}
	if n := len(h.killCases(s, passed, "")); n != 2*len(want) {
		t.Errorf("%d kills for %d operations, want two tears of each", n, len(want))
	}
	h.Length = Full
	if n := len(h.operations(s, passed)); n != len(passed) {
		t.Errorf("a full run dies at %d of %d operations", n, len(passed))
	}
}

// What is played first against a bug is the death that its entry names, in a scenario
// that is played against bugs.
func TestBugs(t *testing.T) {
	scenarios := slices.DeleteFunc(Scenarios(), func(s *Scenario) bool { return !slices.Contains(hunted, s.Name) })
	h := &harness{learned: map[string][]string{"chat": {"inbox.write", "inbox.sync"}}}
	for _, bug := range Bugs {
		cases, err := h.prey(bug, scenarios)
		if err != nil {
			t.Fatalf("%s: %v", bug.Name, err)
		}
		first := cases[0]
		if first.Scenario == nil || first.Scenario.Name != bug.scenario || first.deaths() != bug.deaths {
			t.Errorf("%s is looked for first by %+v, want %s in %s", bug.Name, first, bug.deaths, bug.scenario)
		}
		_, point, _ := strings.Cut(bug.deaths, "@")
		point, _, _ = strings.Cut(point, "#")
		if !slices.Contains(crash.Names(), point) {
			t.Errorf("%s is looked for at %s, which is no failpoint", bug.Name, point)
		}
		if last := cases[len(cases)-1]; last.Way != "random power cut" || last.Bug != bug.Name || len(cases) < 8 {
			t.Errorf("%s: after the first, %d cases follow, the last is a %s; want all kills, cuts and random deaths", bug.Name, len(cases)-1, last.Way)
		}
	}
}

func write(t *testing.T, path, content string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
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
	if env := (launch{collects: true}).environment(""); slices.ContainsFunc(env, func(s string) bool { return strings.HasPrefix(s, "GO") && !strings.HasPrefix(s, "GOTRACEBACK") }) {
		t.Errorf("does not collect as ever: %q", env)
	}
}
