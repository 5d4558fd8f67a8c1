package main

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"daycare/engine/fault"
	"daycare/engine/lazyregexp"
)

// consoles are the transcripts of a document: what is typed stands behind "$ ", what
// comes back below it. "…" stands for any text, a line of it for any lines.
var (
	consoles = lazyregexp.New("(?ms)^```console\n(.*?)^```")
	ttys     = lazyregexp.New("(?ms)^```tty\n(.*?)^```")
)

// serverInDocs is where the documents say that a model server of this machine is.
const serverInDocs = "http://127.0.0.1:8080/v1"

// likeness is a text with gaps as an expression.
func likeness(want string) *regexp.Regexp {
	var lines []string
	for _, line := range strings.Split(strings.TrimRight(want, "\n "), "\n") {
		switch line {
		case "…":
			lines = append(lines, `(?:.*\n?)*?`)
		default:
			lines = append(lines, strings.ReplaceAll(regexp.QuoteMeta(strings.TrimRight(line, " ")), "…", ".*")+` *(?:\n|$)`)
		}
	}

	return regexp.MustCompile(`^` + strings.Join(lines, "") + `$`)
}

// typeAlong runs `daycare init` on a terminal and types what the transcript has behind
// each question.
func typeAlong(t *testing.T, dir, transcript, url string) {
	t.Helper()
	typed := regexp.MustCompile(`(?m)^(Number \[\d\]: |Server address \[[^\]]*\]: |Key, .*: |Model \[[^\]]*\]: )(.*)$`)
	first, rest, _ := strings.Cut(transcript, "\n")
	if first != "$ daycare init" {
		t.Fatalf("the first command in the document is %q", first)
	}

	r := onTerminal(t, dir, "init")
	for _, m := range typed.FindAllStringSubmatch(rest, -1) {
		r.types(m[1], strings.ReplaceAll(strings.TrimSpace(m[2]), serverInDocs, url))
	}
	code, screen := r.ends()

	// The address may be typed, or be what is offered.
	screen = strings.ReplaceAll(screen, url, serverInDocs)
	if code != fault.ExitOK || !likeness(rest).MatchString(strings.TrimRight(screen, "\n ")) {
		t.Fatalf("exit code %d; the screen was\n%s\nand in docs/quickstart.md stands\n%s", code, screen, rest)
	}
	fmt.Fprintln(t.Output(), "the questions of init are as in the document")
}
