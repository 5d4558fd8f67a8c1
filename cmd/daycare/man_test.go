//go:build !race

package main

import (
	"bytes"
	"io"
	"os/exec"
	"regexp"
	"strings"
	"testing"

	"daycare/cmd/daycare/man"
	"daycare/cmd/daycare/term"
)

// midRequest is a request of man(7) behind other text of its line, where it is only text.
var midRequest = regexp.MustCompile(`(?m)^[^.\n].*[ \t]\.(?:I|B|BR|TP|SH|PP|nf|fi)[ \t]`)

// Manual pages hold no markup that a reader would see, and groff has nothing to say of them.
func TestManPagesAreClean(t *testing.T) {
	t.Parallel()
	root := newRoot(&term.App{Streams: term.Streams{Out: io.Discard, Err: io.Discard}})
	groff, _ := exec.LookPath("groff")
	pages := man.Documented(root)
	for _, cmd := range pages {
		t.Run(cmd.CommandPath(), func(t *testing.T) {
			page := man.Page(cmd)
			if at := midRequest.Find(page); at != nil {
				t.Errorf("markup in the middle of a line: %q", at)
			}
			if groff == "" {
				t.Skip("NOT TESTED: there is no groff on this machine")
			}

			read := exec.Command(groff, "-man", "-Tutf8", "-ww", "-P-c")
			read.Stdin = bytes.NewReader(page)
			var text, wrong bytes.Buffer
			read.Stdout, read.Stderr = &text, &wrong
			if err := read.Run(); err != nil || wrong.Len() > 0 {
				t.Errorf("groff: %v\n%s", err, &wrong)
			}
			if strings.Contains(text.String(), ".I ") || strings.Contains(text.String(), `\fI`) {
				t.Error("the reader sees markup")
			}
		})
	}

	t.Logf("%d pages", len(pages))
}
