package irc

import (
	"flag"
	"log/slog"
	"os"
	"strings"
	"testing"

	"daycare/connectors/chat"
	"daycare/connectors/format"
)

var update = flag.Bool("update", false, "write testdata anew from what the code gives now")

// TestLongAnswerOnIRC is what users see of one long answer with tables and code: a
// golden file to look at, beside those of the other platforms in connectors/format.
func TestLongAnswerOnIRC(t *testing.T) {
	source, err := os.ReadFile("../format/testdata/long.md")
	if err != nil {
		t.Fatal(err)
	}
	c, err := New(Options{Settings: chat.Settings{ID: "irc"}, Server: "irc.example:6697", Nick: "daybot"}, "", chat.Host{},
		slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}

	var b strings.Builder
	for i, part := range c.Split(string(source)) {
		all := lines(format.Plain(part), maxLine)
		if len(all) > linesAPart {
			t.Errorf("part %d has %d lines, want at most %d", i, len(all), linesAPart)
		}

		for _, line := range all {
			if len(line) > maxLine {
				t.Errorf("a line has %d bytes: %s", len(line), line)
			}
			b.WriteString("<daybot> " + line + "\n")
		}
	}

	const path = "testdata/long.golden"
	if *update {
		if err := os.WriteFile(path, []byte(b.String()), 0o600); err != nil {
			t.Fatal(err)
		}
	}

	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if b.String() != string(want) {
		t.Errorf("what is shown has changed; if it is meant: go test -update\n%s", b.String())
	}
}
