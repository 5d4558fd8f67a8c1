// Package lab has the commands that try agents out without touching those that work: test and
// replay.
//
// A test runs in a throwaway workspace (throwaway.go) with an engine of its own in this
// process. Which model answers there is decided by the lab (models.go): a scripted one, one
// that plays a cassette, or the real one, recorded or not. A run (run.go) sends the messages of
// the test, answers what the agent asks, waits until nothing works any more and reads from the
// histories what happened; agents/trial compares that with what the test expects. Which tests
// run how often with which models is in suite.go, what is printed in report.go and junit.go.
package lab
