package main

import (
	"errors"
	"flag"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"daycare/engine/workspace"
	"daycare/tools/mcp/mcptest"
)

func TestMain(m *testing.M) {
	// With the race detector every process sleeps a second before it ends, to let other
	// threads report. Those that the tests start have none by then.
	if os.Getenv("GORACE") == "" {
		os.Setenv("GORACE", "atexit_sleep_ms=0")
	}
	// What this package prepares before main begins is prepared by each of the two thousand commands that the tests run, too:
	// expressions are those of lazyregexp, and nothing here imports go-cmp.
	//
	// Most of them wait for processes: more go beside each other than there are processors.
	flag.Set("test.parallel", strconv.Itoa(3*runtime.GOMAXPROCS(0)))
	testscript.Main(keyless{m}, map[string]func(){"daycare": main1, "mcp-server": func() { mcptest.Serve(os.Args[1]) },
		"mcp-service": func() { mcptest.ServeIssuer(os.Args[1]) }, "xdg-open": browse, "open": browse})
}

// browse is a browser: it opens an address, and goes where it is sent.
func browse() {
	res, err := http.Get(os.Args[1])
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	res.Body.Close()
}

// keyless runs the tests without the keys of who runs them, so that the offline model answers.
// It changes the environment of the tests alone, and before all of them: one that did it for
// itself could have no other beside it.
type keyless struct{ *testing.M }

func (k keyless) Run() int {
	for _, name := range []string{"ANTHROPIC_API_KEY", "OPENAI_API_KEY", "OPENROUTER_API_KEY", "GEMINI_API_KEY"} {
		os.Unsetenv(name)
	}
	os.Setenv("EVERYWAY_SECRET", hookSecret)
	debug.SetGCPercent(400) // a fifth of what the tests themselves compute was to collect garbage
	return k.M.Run()
}

// hookSecret is what webhooks of tests are signed with.
const hookSecret = "a secret of the hook"

// playScripts runs the command line as a user would, one script a subject: those named, or all. They see no environment
// but their own, so no key of the machine: the offline model answers.
func playScripts(t *testing.T, names ...string) {
	if len(names) == 0 {
		names = []string{"*"}
	}
	var files []string
	for _, name := range names {
		found, err := filepath.Glob("testdata/script/" + name + ".txtar")
		if err != nil || len(found) == 0 {
			t.Fatalf("no script %s (%v)", name, err)
		}
		files = append(files, found...)
	}

	testscript.Run(t, testscript.Params{
		Files:               files,
		RequireExplicitExec: true,
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"exits": exits, "eventually": eventually,
		},
		Setup: func(env *testscript.Env) error {
			env.Setenv("GORACE", os.Getenv("GORACE"))
			homes, err := filepath.Abs(filepath.Join("movein", "testdata", "homes")) // of other programs
			env.Setenv("HOMES", homes)
			env.Defer(func() { stopLeftover(env.WorkDir) })
			return err
		},
	})
}

// exits CODE COMMAND… runs daycare and compares its exit code; the output can be
// matched afterwards as with exec.
func exits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exits CODE daycare ARGS…")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	err = ts.Exec(args[1], args[2:]...)
	code := 0
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		code = exit.ExitCode()
	} else if err != nil {
		ts.Fatalf("%v", err)
	}
	if code != want {
		ts.Fatalf("%s: exit code %d, want %d", strings.Join(args[1:], " "), code, want)
	}
}

// eventually TEXT COMMAND… repeats a command until its output has TEXT.
func eventually(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: eventually TEXT COMMAND…")
	}
	for began := time.Now(); time.Since(began) < time.Minute; wait(began, 50*time.Millisecond) {
		if ts.Exec(args[1], args[2:]...) == nil && strings.Contains(ts.ReadFile("stdout"), args[0]) {
			return
		}
	}
	ts.Fatalf("%s: output never had %q", strings.Join(args[1:], " "), args[0])
}

// wait sleeps until something is looked at again: a fifth of the time that was waited since began, so that looking, which may
// be a process, costs little where it takes long. It is at least least and at most 0.2 s.
func wait(began time.Time, least time.Duration) {
	time.Sleep(max(least, min(time.Since(began)/5, 200*time.Millisecond)))
}

// stopLeftover ends the daemon of a script that failed before it stopped it.
func stopLeftover(dir string) {
	filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err == nil && d.Name() == "daycare.sock" {
			exec.Command("daycare", "--workspace", filepath.Dir(filepath.Dir(path)), "stop").Run()
		}
		return nil
	})
}

// home is the folder inside a workspace that daycare keeps its files in.
const home = workspace.Home
