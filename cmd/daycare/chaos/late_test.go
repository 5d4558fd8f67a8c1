package chaos

import (
	"bytes"
	"strings"
	"testing"
	"time"
)

// A case is played again only if nothing was wrong in it but the time it took.
func TestOnlyWhatWasLateIsPlayedAgain(t *testing.T) {
	late, lived := "late: of 8 messages …", "answered again: x came again"+livedFor+"1.2s after the platform took it"
	for name, tt := range map[string]struct {
		violations []string
		want       bool
	}{
		"nothing":             {nil, false},
		"late":                {[]string{late}, true},
		"a delivery not kept": {[]string{lived, late}, true},
		"lost":                {[]string{late, "lost: c1"}, false},
		"in the same life":    {[]string{"answered again: x came again in the same life, 2s after …"}, false},
		"stuck":               {[]string{"stuck: nothing happened for 8s"}, false},
	} {
		r := &Result{Violations: tt.violations}
		var l lateCases
		if got := l.keep(Case{}, r); got != tt.want || len(l.cases) == 1 != tt.want {
			t.Errorf("%s: kept %t, want %t", name, got, tt.want)
		}
	}

	full := lateCases{cases: make([]Case, shownFailures)}
	if full.keep(Case{}, &Result{Violations: []string{late}}) {
		t.Error("more cases were late than a busy machine explains, and one more was put off")
	}
}

// A run that is ended before a late case was played again does not forget it.
func TestLateCasesOfAnEndedRunAreFailures(t *testing.T) {
	var l lateCases
	l.keep(Case{}, &Result{Violations: []string{"late: x"}})
	report := newReport()
	l.giveUp(report.add)
	if len(report.Failures) != 1 || report.OK() {
		t.Errorf("failures: %v", report.Failures)
	}
}

// A scenario that was late in peace is killed like any other; one in which more was wrong is not.
func TestALateScenarioIsLearned(t *testing.T) {
	h := &harness{planner: planner{learned: map[string][]string{}}}
	for violation, want := range map[string]bool{"late: of 4 messages …": true, "lost: m1": false, "": true} {
		s := &Scenario{Name: "saw " + violation}
		r := &Result{Passed: []string{"inbox.write"}}
		if violation != "" {
			r.Violations = []string{violation}
		}
		h.learn(s, r)
		if got := h.learned[s.Name] != nil; got != want {
			t.Errorf("%q in peace: learned %t, want %t", violation, got, want)
		}
	}
}

// A hunt that ends with a failure says of what, though each bug was caught.
func TestAHuntShowsWhatFailedWithoutABug(t *testing.T) {
	r := newReport()
	r.Bugs = []Caught{{Bug: "lifo", By: "kill"}}
	once := newResult(Case{Way: "peace", Scenario: &Scenario{Name: "labour"}})
	once.violate("late: of 4 messages …")
	r.LateOnce = []*Result{once}
	one := newResult(Case{Way: "peace", Scenario: &Scenario{Name: "chat"}})
	one.Dir = "/tmp/case-00007"
	one.violate("lost: %s is nowhere", "m1")
	r.add(one)

	var out bytes.Buffer
	if err := r.Print(&out); err != nil || r.OK() {
		t.Errorf("OK %t, %v", r.OK(), err)
	}
	for _, want := range []string{"1 of 1 caught", "FAILED peace chat\n  lost: m1 is nowhere\n  kept in /tmp/case-00007\n",
		"LATE ONCE, and not when played again 3 times: peace labour: late: of 4 messages …\n"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("the report lacks %q:\n%s", want, out.String())
		}
	}
}

// A chat that hangs until others have answers hangs until then, and where they get none, until its time is over.
func TestAChatHangsUntilOthersHaveAnswers(t *testing.T) {
	w := &world{stalls: &stallClock{}}
	w.platform = platform{hangs: map[string]time.Duration{"a": 300 * time.Millisecond}, hangsUntil: reached("b", "c")}
	took := func(chat string) time.Duration {
		began := time.Now()
		w.hang(chat)
		return time.Since(began)
	}
	w.replies = []reply{{chat: "a"}, {chat: "b"}}
	if d := took("a"); d < 300*time.Millisecond {
		t.Errorf("c had no answer, and it hung for %s", d)
	}

	w.platform.hangs["a"] = time.Hour
	w.replies = append(w.replies, reply{chat: "c"})
	took("a")
	took("b")
}
