// Package lab has the commands that try agents out without touching those that work, test and
// replay, and batch, which asks one many things.
//
// A test runs in a throwaway workspace (throwaway.go) with an engine of its own in this
// process. Which model answers there is decided by the lab (models.go): a scripted one, one
// that plays a cassette, or the real one, recorded or not. A run (try.go, session.go) sends the messages of
// the test, answers what the agent asks, waits until nothing works any more and reads from the
// histories what happened; agents/trial compares that with what the test expects. Which tests
// run how often with which models is in suite.go, what is printed in report.go and junit.go.
//
// A replay (replay.go) finds turns in histories. It has their requests made again (exact.go), or
// asks a model once more and gives it the recorded results of tools (again.go).
//
// A call that was never recorded is run in a workplace, an engine of its own (unrecorded.go).
//
// A simulation (simulate.go) plays a double of the workspace (double.go): the clock of package crash is frozen until
// nothing works any more, and is moved to the next time that something waits for. That is not testing/synctest, which
// needs a *testing.T, and whose time never advances while a goroutine waits for the kernel, as those do that watch
// files: here a file that is watched and a command that runs take no time.
//
// A batch (batch.go) reads its lines and keeps its results in prompts.go. Nothing else is kept:
// the address of an agent and the dedupe key of its message follow from the line. What a vendor's batch API answers is in vendor.go:
// there the batches that were handed in are kept, too.
//
// What a dry run left (rehearsal.go) is shown, applied and dropped by the commands of changes.go.
package lab
