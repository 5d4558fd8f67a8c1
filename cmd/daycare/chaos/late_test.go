package chaos

import "testing"

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
