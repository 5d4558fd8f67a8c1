//go:build !race

package main

import (
	"bytes"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"daycare/cmd/daycare/man"
	"daycare/cmd/daycare/term"
	"daycare/engine/lazyregexp"
)

// midRequest is a request of man(7) behind other text of its line, where it is only text.
var midRequest = lazyregexp.New(`(?m)^[^.\n].*[ \t]\.(?:I|B|BR|TP|SH|PP|nf|fi)[ \t]`)

// Manual pages hold no markup that a reader would see, and groff has nothing to say of them.
func TestManPagesAreClean(t *testing.T) {
	t.Parallel()
	root := newRoot(&term.App{Streams: term.Streams{Out: io.Discard, Err: io.Discard}})
	pages := man.Documented(root)
	dir, read := t.TempDir(), []string{"-man", "-Tutf8", "-ww", "-P-c"}
	for _, cmd := range pages {
		page := man.Page(cmd)
		if at := midRequest.FindString(string(page)); at != "" {
			t.Errorf("%s: markup in the middle of a line: %q", cmd.CommandPath(), at)
		}
		path := filepath.Join(dir, strings.ReplaceAll(cmd.CommandPath(), " ", "-"))
		if err := os.WriteFile(path, page, 0o600); err != nil {
			t.Fatal(err)
		}
		read = append(read, path)
	}

	t.Logf("%d pages", len(pages))
	groff, err := exec.LookPath("groff")
	if err != nil {
		t.Skip("NOT TESTED: there is no groff on this machine")
	}
	var text, wrong bytes.Buffer // of all pages, in which groff names the page
	all := exec.Command(groff, read...)
	all.Stdout, all.Stderr = &text, &wrong
	if err := all.Run(); err != nil || wrong.Len() > 0 {
		t.Errorf("groff: %v\n%s", err, &wrong)
	}
	if at := seenMarkup.FindString(text.String()); at != "" {
		t.Errorf("the reader sees markup: %q", at)
	}
}

// seenMarkup is markup in what a reader sees, with what is around it.
var seenMarkup = lazyregexp.New(`.*(?:\.I |\\fI).*`)
