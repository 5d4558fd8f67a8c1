// Command table makes a table of the connectors' contract: which check of the suite
// holds for which connector, and which conversations were held over real servers.
// It reads what `go test -json` writes; .ci/connectors runs the tests and it.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"path"
	"slices"
	"strings"
)

// An event is one line of go test -json.
type event struct {
	Action  string
	Package string
	Test    string
	Output  string
}

func main() {
	t, err := read(os.Stdin)
	if err == nil {
		t.print(os.Stdout)
		if len(t.failed) > 0 {
			err = fmt.Errorf("failed: %s", strings.Join(t.failed, ", "))
		}
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "table:", err)
		os.Exit(1)
	}
}

// suites are the tests that call connectortest.Run, with what their column adds to the name of
// the connector.
var suites = map[string]string{"TestConnector": "", "TestSocketMode": " socket", "TestPostedEvents": " events",
	"TestPolling": " poll", "TestWebhook": " webhook"}

// servers are the tests that need a real server, and what they hold.
var servers = map[string]string{
	"TestIRCServer": "irc over a real IRC server", "TestMailServers": "email over real mail servers",
	"TestMatrixServer": "matrix over a real Matrix server", "TestXMPPServer/chat": "xmpp over a real XMPP server",
	"TestXMPPServer/room": "xmpp in a room of a real XMPP server",
	"TestPeopleOverXMPP":  "xmpp with people of a real XMPP server", "TestPeopleOverMatrix": "matrix with people of a real Matrix server",
	"TestEncryptedRoom":           "matrix in an encrypted room of a real Matrix server",
	"TestPeopleInAnEncryptedRoom": "matrix with people in an encrypted room of a real Matrix server",
}

type table struct {
	columns []string
	checks  []string          // in the order in which they ran
	nights  map[string]string // what was measured of a night offline, by column
	cells   map[string]string // check and column
	real    []string
	failed  []string
}

func read(in io.Reader) (*table, error) {
	t := &table{cells: map[string]string{}, nights: map[string]string{}}
	said := map[string]string{} // by server test
	lines := bufio.NewScanner(in)
	lines.Buffer(nil, 1<<20)

	for lines.Scan() {
		var e event
		if json.Unmarshal(lines.Bytes(), &e) != nil {
			continue // what the go command itself says
		}
		if e.Action == "fail" {
			t.failed = append(t.failed, strings.TrimSpace(e.Package+" "+e.Test))
		}
		if what, ok := servers[e.Test]; ok {
			if _, text, ok := strings.Cut(e.Output, ".go:"); ok && said[e.Test] == "" { // of a failure the first says why
				_, text, _ = strings.Cut(text, ": ")
				said[e.Test] = strings.TrimSpace(text)
			}
			if e.Action == "pass" || e.Action == "skip" || e.Action == "fail" {
				t.real = append(t.real, fmt.Sprintf("%s: %s: %s", what, e.Action, said[e.Test]))
			}
		}

		t.cell(e)
	}

	return t, lines.Err()
}

// cell takes the end of one check of one suite.
func (t *table) cell(e event) {
	test, check, ok := strings.Cut(e.Test, "/")
	column, known := suites[test]
	column = path.Base(e.Package) + column
	if figures := measured(e.Output); check == "a_night_offline" && known && figures != "" {
		t.nights[column] = figures
	}
	mark := map[string]string{"pass": "yes", "skip": "–", "fail": "NO"}[e.Action]
	if !ok || !known || mark == "" {
		return
	}

	check = strings.ReplaceAll(strings.ReplaceAll(check, "_", " "), "/", ": ")
	if !slices.Contains(t.columns, column) {
		t.columns = append(t.columns, column)
		slices.Sort(t.columns)
	}
	if !slices.Contains(t.checks, check) {
		t.checks = append(t.checks, check)
	}

	t.cells[check+"\n"+column] = mark
}

// measured are the figures in a line of a test; "": there are none in it.
func measured(line string) string {
	if _, text, ok := strings.Cut(line, "night.go:"); ok && strings.Contains(text, "in order") {
		_, text, _ = strings.Cut(text, ": ")
		return strings.TrimSpace(text)
	}

	return ""
}

func (t *table) print(out io.Writer) {
	fmt.Fprintf(out, "| check | %s |\n|---|%s\n", strings.Join(t.columns, " | "), strings.Repeat("---|", len(t.columns)))
	for _, check := range t.checks {
		fmt.Fprintf(out, "| %s |", check)
		for _, c := range t.columns {
			mark := t.cells[check+"\n"+c]
			if whole, _, part := strings.Cut(check, ": "); mark == "" && part && t.cells[whole+"\n"+c] == "–" {
				mark = "–"
			}
			if mark == "" {
				mark = "not run"
			}
			fmt.Fprintf(out, " %s |", mark)
		}
		fmt.Fprintln(out)
	}

	fmt.Fprintln(out, "\n– : this platform cannot misbehave like that, or does not tell.")
	if len(t.nights) > 0 {
		fmt.Fprintf(out, "\n| a night offline | messages, memory, time |\n|---|---|\n")
	}
	for _, column := range slices.Sorted(maps.Keys(t.nights)) {
		fmt.Fprintf(out, "| %s | %s |\n", column, t.nights[column])
	}
	for i, line := range t.real {
		if i == 0 {
			fmt.Fprintln(out)
		}
		fmt.Fprintln(out, line)
	}
}
