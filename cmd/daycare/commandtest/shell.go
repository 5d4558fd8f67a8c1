package commandtest

import (
	"bytes"
	"context"
	"os"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"daycare/cmd/daycare/term"
	"daycare/engine/control"
	"daycare/engine/workspace"
)

// A Shell is a session of the command line without a terminal, in a workspace of its own.
type Shell struct {
	*term.App
	Stdout, Stderr bytes.Buffer

	root     string
	commands []func(*term.App) *cobra.Command
}

// NewShell serves h as the engine in this process, and as the files. Its command line has
// the commands.
func NewShell(t *testing.T, h *Server, stdin string, commands ...func(*term.App) *cobra.Command) *Shell {
	t.Helper()
	s := &Shell{root: t.TempDir(), commands: commands}
	if err := os.Mkdir(workspace.At(s.root).Data, 0o700); err != nil {
		t.Fatal(err)
	}

	s.App = &term.App{
		Offline: func(workspace.Place, func(string, ...any)) (*control.Client, error) { return h.Client(), nil },
		InProcess: func(context.Context, workspace.Place) (*control.Client, func() error, error) {
			return h.Client(), func() error { return nil }, nil
		},
		Streams: term.Streams{In: strings.NewReader(stdin), Out: &s.Stdout, Err: &s.Stderr},
	}

	return s
}

// Do runs a command line and returns its exit code.
func (s *Shell) Do(args ...string) int {
	s.Stdout.Reset()
	s.Stderr.Reset()
	cmd := &cobra.Command{Use: "daycare"}
	s.Attach(cmd)
	for _, command := range s.commands {
		cmd.AddCommand(command(s.App))
	}

	cmd.SetArgs(append([]string{"--workspace", s.root}, args...))

	return s.Report(cmd.ExecuteContext(context.Background()))
}
