package lab

import (
	"fmt"
	"strings"
	"time"

	"daycare/agents/trial"
	"daycare/cmd/daycare/term"
)

// A report is one round of tests.
type report struct {
	Results []result `json:"results"`
	Runs    int      `json:"runs"`
	Passed  int      `json:"passed"`
	Failed  int      `json:"failed"` // runs of tests that never passed, or could not be run
	Flaky   int      `json:"flaky"`  // tests with a model that passed only sometimes
	Cost    float64  `json:"cost"`   // US dollars; of replayed runs it is what the recording cost
	Spent   float64  `json:"spent"`  // US dollars that this round cost
	Unsure  []flaky  `json:"unsure,omitempty"`
}

// A flaky test passed sometimes.
type flaky struct {
	Test   string `json:"test"`
	File   string `json:"file"`
	Model  string `json:"model"`
	Passed int    `json:"passed"`
	Of     int    `json:"of"`
}

func newReport(results []result) report {
	r := report{Results: results, Runs: len(results)}
	type key struct{ file, model string }
	of := map[key]*flaky{}
	var order []*flaky
	for _, one := range results {
		if r.Cost += one.Cost; one.How == live || one.How == recorded {
			r.Spent += one.Cost
		}
		k := key{one.File, one.Model}
		if of[k] == nil {
			of[k] = &flaky{Test: one.Test, File: one.File, Model: one.Model}
			order = append(order, of[k])
		}
		if of[k].Of++; one.Status == passed {
			of[k].Passed++
		}
	}

	for _, f := range order {
		r.Passed += f.Passed
		switch {
		case f.Passed == 0:
			r.Failed += f.Of
		case f.Passed < f.Of:
			r.Flaky++
			r.Unsure = append(r.Unsure, *f)
		}
	}

	return r
}

// tell prints a run when it has ended.
func (s *suite) tell(r result) {
	if s.app.JSON {
		return
	}
	s.printing.Lock()
	defer s.printing.Unlock()
	style := s.app.OutStyle()
	word := map[string]term.Styled{passed: "ok    ", failed: style.Red("FAILED"), broken: style.Red("ERROR ")}[r.Status]
	name := r.Test
	if s.options.times > 1 {
		name = fmt.Sprintf("%s #%d", name, r.N)
	}
	s.app.Print("%s  %s  %s\n", word, name, style.Dim(fmt.Sprintf("%s (%s)  %s  %s  %s", r.Model, r.How,
		term.Plural(r.Rounds, "call", "calls"), term.Money(r.Cost), took(r.MS))))
	if r.Error != "" {
		s.app.Print("%s\n", indented(r.Error))
	}
	for _, f := range r.Failures {
		s.app.Print("        %s %s\n", style.Bold("expected:"), f.Expected)
		s.app.Print("%s\n", indented(gotten(f)))
	}
	if len(r.Failures) > 0 || r.Error != "" {
		s.app.Print("        %s\n", style.Dim(r.File))
	}
	if r.Kept != "" {
		s.app.Print("        its workspace: %s\n", r.Kept)
	}
}

// gotten is what was there instead, below its heading where it has several lines.
func gotten(f trial.Failure) string {
	text := strings.TrimRight(f.Got, "\n")
	if strings.Contains(text, "\n") {
		return "got:\n" + text
	}

	return "got: " + text
}

func indented(text string) string {
	return "        " + strings.ReplaceAll(text, "\n", "\n        ")
}

func took(ms int64) string {
	return (time.Duration(ms) * time.Millisecond).Round(10 * time.Millisecond).String()
}

// summary prints the end of a round.
func (s *suite) summary(r report) {
	for _, f := range r.Unsure {
		s.app.Print("%s  %s  %s\n", s.app.OutStyle().Yellow("flaky "), f.Test,
			s.app.OutStyle().Dim(fmt.Sprintf("%s  passed %d of %d times", f.Model, f.Passed, f.Of)))
	}
	parts := []string{term.Plural(r.Runs, "run", "runs"), fmt.Sprintf("%d passed", r.Passed)}
	if n := r.Runs - r.Passed; n > 0 {
		parts = append(parts, fmt.Sprintf("%d failed", n))
	}
	if r.Flaky > 0 {
		parts = append(parts, term.Plural(r.Flaky, "test is flaky", "tests are flaky"))
	}
	s.app.Print("%s  %s spent\n", strings.Join(parts, ", "), term.Money(r.Spent))
}
