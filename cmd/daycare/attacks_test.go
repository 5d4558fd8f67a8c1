package main

import (
	"cmp"
	"maps"
	"os"
	"os/exec"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"daycare/cmd/daycare/term"
	"daycare/engine/attacktest"
)

// module is the path of this module, whatever go.mod says.
var module = strings.TrimSuffix(reflect.TypeFor[term.App]().PkgPath(), "/cmd/daycare/term")

// attackTests are the tests that try attacks, by the packages that they are in.
var attackTests = map[string]string{
	"tools/shell": "TestEscapes|TestGitOfThePersonRunsNothing|TestWhatGitsConfigurationNamesIsKept|TestWhatRunsLaterIsPutAside|" +
		"TestNoFileWithOtherRightsIsLeftBehind|TestNoCommandReachesTheMemoryOfOthers|" +
		"TestNothingSurvivesAtAnyLevel|TestForkBomb|TestReplacedFolder|TestRulesHoldForEverySegment|TestRedirectToAFileIsAsked|" +
		"TestRuleOfTheBeginningCoversNothingElse",
	"tools/files": "TestEscapes|TestWritingWhatRunsLaterAsks|TestWritingWhatGitsConfigurationNamesAsks|" +
		"TestSecretsAreNotReadThroughAWiderRight|TestReplacedFolderIsNotTheGrantedOne",
	"tools/fetch":        "TestSSRF|TestRedirects",
	"tools/skills":       "TestHostileSkills",
	"tools/memory":       "TestHostileNotes",
	"agents/prompt":      "TestPromptFilesAreNoWayOut",
	"engine/unseen":      "TestWhatACommandChangedWaits",
	"engine/permission":  "TestChangedByHandIsRefused|TestEveryInvisibleCharacterIsNamed",
	"connectors/webhook": "TestForged",
	"cmd/daycare/daemon": "TestAttemptsToWidenRights|TestAnApprovalIsForExactlyOneRequest",
}

// TestAttackTable tries every attack and prints how many were held, by class, by level of
// the sandbox and user, and by what held them. DAYCARE_ATTACKS says of which packages, "."
// of all; otherwise each of these tests is run where it is. It takes some minutes:
//
//	DAYCARE_ATTACKS=. go test ./cmd/daycare -run TestAttackTable -v -timeout 1h
func TestAttackTable(t *testing.T) {
	pattern := os.Getenv("DAYCARE_ATTACKS")
	if pattern == "" {
		t.Skip("DAYCARE_ATTACKS=. prints the table; it runs the tests of other packages")
	}
	of, err := regexp.Compile(pattern)
	if err != nil {
		t.Fatal(err)
	}

	var rows []attacktest.Row
	for _, folder := range slices.Sorted(maps.Keys(attackTests)) {
		if !of.MatchString(folder) {
			continue
		}
		cmd := exec.Command("go", "test", "-count=1", "-timeout=30m", "-v", "-run", "^("+attackTests[folder]+")$", module+"/"+folder)
		out, err := cmd.CombinedOutput()
		found := attacktest.Rows(string(out))
		if err != nil || len(found) == 0 {
			t.Errorf("%s: %v, %d attacks\n%s", folder, err, len(found), notable(string(out)))
		}
		rows = append(rows, found...)
	}

	different := map[[2]string]bool{}
	for _, r := range rows {
		different[[2]string{r.Class, r.Name}] = true
	}
	print := func(title string, key func(attacktest.Row) string) {
		counts := map[string]int{}
		for _, r := range rows {
			counts[key(r)]++
		}
		t.Logf("%s:", title)
		for _, k := range slices.SortedFunc(maps.Keys(counts),
			func(a, b string) int { return cmp.Or(-cmp.Compare(counts[a], counts[b]), cmp.Compare(a, b)) }) {
			t.Logf("%6d  %s", counts[k], k)
		}
	}
	print("attacks by class, level and user", func(r attacktest.Row) string { return strings.TrimSuffix(r.Class+", "+r.Level, ", ") })
	print("held by", func(r attacktest.Row) string { return r.How })
	t.Logf("%d different attacks, held in %d tries", len(different), len(rows))
	if len(different) < 250 {
		t.Errorf("only %d different attacks were tried", len(different))
	}
}

// notable are the lines of a test's output that say what went wrong.
func notable(out string) string {
	var b strings.Builder
	for line := range strings.Lines(out) {
		if len(attacktest.Rows(line)) == 0 && !strings.HasPrefix(line, "=== ") && !strings.Contains(line, "--- PASS") {
			b.WriteString(line)
		}
	}
	return term.OneLine(strings.ToValidUTF8(b.String(), "?"), 8000)
}
