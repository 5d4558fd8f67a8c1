package main

import (
	"bytes"
	"cmp"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"daycare/cmd/daycare/term"
	"daycare/engine/fault"
)

var update = flag.Bool("update", false, "write docs/commands.md anew from the help of the commands")

// TestCommandsDocument holds docs/commands.md against what --help says.
func TestCommandsDocument(t *testing.T) {
	const path = "../../docs/commands.md"
	want := commandsDocument(newRoot(&term.App{}))
	if *update {
		if err := os.WriteFile(path, want, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := os.ReadFile(path); err != nil || !bytes.Equal(got, want) {
		t.Errorf("docs/commands.md is not what the help says (%v); write it with: go test ./cmd/daycare -run TestCommandsDocument -update", err)
	}
}

func commandsDocument(root *cobra.Command) []byte {
	var b bytes.Buffer
	b.WriteString("# Commands\n\nWritten from the help of the commands; do not edit it here.\n\n```text\ndaycare " +
		"[-C DIR] [--json] [--no-input] COMMAND\n```\n\n" +
		"Data goes to stdout, talk to stderr. `--json` gives stable objects, one a line for streams; an error is one object on stderr,\n" +
		"`{\"error\":{\"code\":…,\"message\":…,\"hint\":…,\"exit\":…}}`. `daycare --version` prints the version. Commands about agents may leave out\n" +
		"`agents`: `daycare ls` (or `ps`, `list`), `show` (`inspect`, `view`), `new` (`create`), `rm` (`remove`, `delete`); `daycare approve` is\n" +
		"`permissions allow`, `daycare ask` and `run` are `chat`, `daycare prune` is `gc`. An ID is looked up as an exact id, a\n" +
		"handle (`0/1`), a name, or the beginning of an id from four letters on.\n\n| exit code | |\n|---|---|\n")
	for _, e := range fault.Exits {
		fmt.Fprintf(&b, "| %d | %s |\n", e.Code, e.Means)
	}
	for _, cmd := range documented(root) {
		cmd.InitDefaultHelpFlag()
		fmt.Fprintf(&b, "\n%s %s\n\n", strings.Repeat("#", min(4, 2+strings.Count(cmd.CommandPath(), " "))), cmd.CommandPath())
		fmt.Fprintf(&b, "%s\n\n```text\n%s\n```\n", cmp.Or(cmd.Long, cmd.Short+"."), cmd.UseLine())
		if flags := strings.TrimRight(cmd.LocalFlags().FlagUsages(), "\n"); cmd.HasAvailableLocalFlags() && strings.Count(flags, "\n") > 0 {
			fmt.Fprintf(&b, "\n```text\n%s\n```\n", flags)
		}
		if cmd.Example != "" {
			fmt.Fprintf(&b, "\n```sh\n%s\n```\n", strings.ReplaceAll("\n"+cmd.Example, "\n  ", "\n")[1:])
		}
	}
	return b.Bytes()
}

// overstruck is how groff prints bold and underlined letters.
var overstruck = regexp.MustCompile(".\x08")

// Every command has its manual page, and a reader of manuals takes them without a word.
func TestManPages(t *testing.T) {
	dir := t.TempDir()
	var out bytes.Buffer
	if code := execute([]string{"man", dir}, strings.NewReader(""), &out, &out); code != fault.ExitOK {
		t.Fatalf("exit code %d: %s", code, out.String())
	}
	pages, err := filepath.Glob(filepath.Join(dir, "*.1"))
	if err != nil || len(pages) != len(documented(newRoot(&term.App{}))) || len(pages) < 60 {
		t.Fatalf("%d pages, %v", len(pages), err)
	}
	groff, err := exec.LookPath("groff")
	if err != nil {
		t.Skip("SKIPPED: there is no groff to read the pages with")
	}
	warned, err := exec.Command(groff, append([]string{"-man", "-Tutf8", "-ww", "-z"}, pages...)...).CombinedOutput()
	if err != nil || len(warned) > 0 {
		t.Errorf("groff: %v\n%s", err, warned[:min(len(warned), 2000)])
	}
	text, err := exec.Command(groff, "-man", "-Tascii", filepath.Join(dir, "daycare-send.1")).CombinedOutput()
	for _, want := range []string{"--file", "SEE ALSO", "EXAMPLES"} {
		if !strings.Contains(overstruck.ReplaceAllString(string(text), ""), want) {
			t.Errorf("the page of send has no %q (%v):\n%s", want, err, text)
		}
	}
}
