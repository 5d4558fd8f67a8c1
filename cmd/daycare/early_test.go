package main

import (
	"bytes"
	"os"
	"os/exec"
	"strings"
	"testing"

	"daycare/cmd/daycare/early"
	"daycare/engine/fault"
	"daycare/tools/shell/sandbox"
)

// TestEarlyAnswers compares what package early answers with what the commands would.
func TestEarlyAnswers(t *testing.T) {
	if *update {
		var help bytes.Buffer
		execute([]string{"--help"}, strings.NewReader(""), &help, &help)
		if err := os.WriteFile("early/help.txt", help.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
		early.Help = help.String()
	}

	for _, word := range []string{"version", "--version", "-v", "help", "--help", "-h"} {
		var out, errs bytes.Buffer
		code := execute([]string{word}, strings.NewReader(""), &out, &errs)
		if got := early.Answer([]string{"daycare", word}); got != out.String() || code != fault.ExitOK || errs.Len() > 0 {
			t.Errorf("%s: the answer is not the command's; write it with: "+
				"go test ./cmd/daycare -run TestEarlyAnswers -update\n%s", word, got)
		}
	}

	for _, args := range [][]string{{"daycare"}, {"daycare", "version", "--json"}, {"daycare", "help", "chat"}, {"daycare", "chat"}} {
		if got := early.Answer(args); got != "" {
			t.Errorf("%q is answered by package early: %q", args, got)
		}
	}
}

// TestVersionInitialisesNoLibraries: the answer comes before the packages that take time are
// initialised. The process is a test of this package, which links more of them.
func TestVersionInitialisesNoLibraries(t *testing.T) {
	t.Parallel()
	for word, libraries := range map[string]bool{"version": false, "--help": false, "completion": true} {
		cmd := exec.Command(os.Args[0])
		cmd.Args = []string{"daycare", word}
		cmd.Env = append(os.Environ(), "GODEBUG=inittrace=1")
		var trace bytes.Buffer
		cmd.Stderr = &trace
		out, _ := cmd.Output() // completion needs a shell's name and fails
		if !strings.HasPrefix(trace.String(), "init ") || !libraries && len(out) == 0 {
			t.Fatalf("%s: no trace, or no answer: %q, %s", word, out, trace.String())
		}
		for _, library := range []string{"net/http", "encoding/gob", "github.com/yuin/goldmark/parser", "github.com/spf13/cobra"} {
			if strings.Contains(trace.String(), "init "+library+" ") != libraries {
				t.Errorf("%s: initialised: %v, want %v: %s", word, !libraries, libraries, library)
			}
		}
	}
}

// TestHelpersInitialiseFewLibraries: each command starts two or three helpers, so they begin before most libraries.
func TestHelpersInitialiseFewLibraries(t *testing.T) {
	t.Parallel()
	for mode, libraries := range map[string]bool{"restrict": false, "view": false, "supervise": false, "probe": true} {
		cmd := exec.Command(os.Args[0])
		cmd.Args = []string{"daycare", "__sandbox", mode}
		cmd.Env = append(os.Environ(), "GODEBUG=inittrace=1")
		var trace bytes.Buffer
		cmd.Stderr = &trace
		if _ = cmd.Run(); cmd.ProcessState.ExitCode() != sandbox.Failed {
			t.Fatalf("%s without arguments: %s, %s", mode, cmd.ProcessState, trace.String())
		}
		for _, library := range []string{"net", "text/template", "vendor/golang.org/x/net/dns/dnsmessage"} {
			if strings.Contains(trace.String(), "init "+library+" ") && !libraries {
				t.Errorf("%s: initialised: %s", mode, library)
			}
		}
		if libraries && !strings.Contains(trace.String(), "init net ") {
			t.Errorf("%s does not initialise net: this test says nothing", mode)
		}
	}
}
