package fit

import (
	"os"
	"strings"
	"testing"
)

const help = `Take back what the tools of an agent wrote, in the part of the
conversation that was rewound.

A second paragraph with…
short lines:
  ID        the agent

Examples:
  daycare agents undo 0/ --all --merge                # all of them, with merges

Flags:
      --all     take back all files that nobody else changed since then
  -h, --help    help for undo
      --a-flag-with-a-name-of-its-own DIR   the folder that is meant
`

const narrow = `Take back what the tools of an agent wrote, in the
part of the conversation that was rewound.

A second paragraph with…
short lines:
  ID        the agent

Examples:
  daycare agents undo 0/ --all --merge                # all of them, with merges

Flags:
      --all     take back all files that nobody
                else changed since then
  -h, --help    help for undo
      --a-flag-with-a-name-of-its-own DIR   the folder that is meant
`

func TestHelp(t *testing.T) {
	for width, want := range map[int]string{0: help, leastWidth - 1: help, 50: narrow, 200: help} {
		if got := Help(help, width); got != want {
			t.Errorf("%d columns:\n%s\nwant\n%s", width, got, want)
		}
	}
	word := strings.Repeat("x", 50)
	if got := Help("  "+word+"  ", 40); got != "  "+word+"  " {
		t.Errorf("blanks at the end of a line: %q", got)
	}
	if got, want := Help("a "+word+" b", 40), "a\n"+word+"\nb"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

func TestWidthOfWhatIsNoTerminal(t *testing.T) {
	f, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if got := Width(f); got != 0 {
		t.Errorf("%d columns", got)
	}
}
