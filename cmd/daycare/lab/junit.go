package lab

import (
	"encoding/xml"
	"fmt"
	"os"
	"strings"

	"daycare/engine/plain"
)

// The report of JUnit, as CI services read it: a suite for each file.
type (
	junitReport struct {
		XMLName  xml.Name     `xml:"testsuites"`
		Tests    int          `xml:"tests,attr"`
		Failures int          `xml:"failures,attr"`
		Errors   int          `xml:"errors,attr"`
		Time     string       `xml:"time,attr"`
		Suites   []junitSuite `xml:"testsuite"`
	}
	junitSuite struct {
		Name     string      `xml:"name,attr"`
		Tests    int         `xml:"tests,attr"`
		Failures int         `xml:"failures,attr"`
		Errors   int         `xml:"errors,attr"`
		Time     string      `xml:"time,attr"`
		Cases    []junitCase `xml:"testcase"`
	}
	junitCase struct {
		Name    string        `xml:"name,attr"`
		Class   string        `xml:"classname,attr"`
		Time    string        `xml:"time,attr"`
		Failure *junitProblem `xml:"failure"`
		Error   *junitProblem `xml:"error"`
		Out     string        `xml:"system-out,omitempty"`
	}
	junitProblem struct {
		Message string `xml:"message,attr"`
		Text    string `xml:",chardata"`
	}
)

// junit is a round as JUnit has it.
func (r report) junit() junitReport {
	var out junitReport
	var total int64
	at, times := map[string]int{}, map[string]int64{}
	for _, one := range r.Results {
		i, known := at[one.File]
		if !known {
			i = len(out.Suites)
			at[one.File] = i
			out.Suites = append(out.Suites, junitSuite{Name: one.File})
		}
		suite := &out.Suites[i]
		c := junitCase{Name: fmt.Sprintf("%s [%s] #%d", one.Test, one.Model, one.N), Class: one.File, Time: seconds(one.MS),
			Out: fmt.Sprintf("%s, %d model calls, $%.4f\n%s", one.How, one.Rounds, one.Cost, plain.Text(one.Answer))}
		switch one.Status {
		case failed:
			c.Failure = &junitProblem{one.Failures[0].Expected, failureText(one)}
			out.Failures, suite.Failures = out.Failures+1, suite.Failures+1
		case broken:
			first, _, _ := strings.Cut(one.Error, "\n")
			c.Error = &junitProblem{plain.Text(first), plain.Text(one.Error)}
			out.Errors, suite.Errors = out.Errors+1, suite.Errors+1
		}

		suite.Cases = append(suite.Cases, c)
		out.Tests, suite.Tests = out.Tests+1, suite.Tests+1
		total, times[one.File] = total+one.MS, times[one.File]+one.MS
		suite.Time = seconds(times[one.File])
	}
	out.Time = seconds(total)

	return out
}

func seconds(ms int64) string { return fmt.Sprintf("%.3f", float64(ms)/1000) }

func failureText(r result) string {
	var b strings.Builder
	for _, f := range r.Failures {
		fmt.Fprintf(&b, "expected: %s\ngot: %s\n", f.Expected, f.Got)
	}

	return plain.Text(b.String())
}

func writeJUnit(path string, r report) error {
	data, err := xml.MarshalIndent(r.junit(), "", "  ")
	if err != nil {
		return err
	}

	return os.WriteFile(path, append([]byte(xml.Header), append(data, '\n')...), 0o644)
}
