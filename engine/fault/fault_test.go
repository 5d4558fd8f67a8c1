package fault

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the tables of errors and exit codes in docs anew")

// The documents have the tables that the lists say.
func TestDocumentsHaveTheList(t *testing.T) {
	var errs, exits strings.Builder
	listed := slices.Clone(All)
	slices.SortStableFunc(listed, func(a, b *Fault) int { return cmp.Compare(a.Status, b.Status) })
	for _, f := range listed {
		if f.Code != "" {
			fmt.Fprintf(&errs, "| %d | `%s` | %d | %s |\n", f.Status, f.Code, f.Exit, cmp.Or(f.About, f.Text))
		}
	}

	for _, e := range Exits {
		fmt.Fprintf(&exits, "| %d | %s |\n", e.Code, e.Means)
	}
	table(t, "../../docs/api.md", "| status | code | exit | |\n|---|---|---|---|\n", errs.String())
	table(t, "../../docs/troubleshooting.md", "## Exit codes\n\n| code | |\n|---|---|\n", exits.String())
}

// table compares the rows behind a head in a document, or writes them.
func table(t *testing.T, path, head, want string) {
	t.Helper()
	page, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	rows := regexp.MustCompile(regexp.QuoteMeta(head) + `((?:\|.*\n)*)`)
	found := rows.FindSubmatchIndex(page)
	if found == nil {
		t.Fatalf("%s has no table %q", path, head)
	}
	if got := string(page[found[2]:found[3]]); got != want {
		if !*update {
			t.Errorf("%s does not have the list; write it with: go test ./engine/fault -update\ngot:\n%s\nwant:\n%s", path, got, want)
			return
		}
		page = slices.Concat(page[:found[2]], []byte(want), page[found[3]:])
		if err := os.WriteFile(path, page, 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// Every fault of the package is on the list, once, complete, with a code of its own.
func TestTheListIsComplete(t *testing.T) {
	file, err := parser.ParseFile(token.NewFileSet(), "faults.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	declared := 0
	ast.Inspect(file, func(n ast.Node) bool {
		if lit, ok := n.(*ast.UnaryExpr); ok && lit.Op == token.AND {
			declared++
		}
		return true
	})

	codes := map[string]bool{}
	for _, f := range All {
		if f.Text == "" || f.Exit == ExitOK || ExitName(f.Exit) == Internal {
			t.Errorf("%+v lacks a text or an exit code", f)
		}
		if f.Code != "" && (codes[f.Code] || http.StatusText(f.Status) == "") {
			t.Errorf("%s is there twice or has no status", f.Code)
		}
		codes[f.Code] = true
		if f.Code != "" && f.Code != Internal && ByCode(f.Code) != f {
			t.Errorf("ByCode(%q) is another fault", f.Code)
		}
	}

	if declared != len(All) || declared < 35 {
		t.Errorf("%d faults are declared, the list has %d", declared, len(All))
	}
	t.Logf("%d faults, %d codes", len(All), len(codes))
}

// Find looks through wrapping, takes the outermost fault, and knows those of the standard library.
func TestFind(t *testing.T) {
	for _, c := range []struct {
		err  error
		want *Fault
	}{
		{InboxFull, InboxFull},
		{fmt.Errorf("deliver: %w", UnknownAgent), UnknownAgent},
		{fmt.Errorf("stream turn: %w: %w", Cut, NotRunning), Cut},
		{TooLarge.Says("over %d bytes", 7), TooLarge},
		{fmt.Errorf("wait: %w", context.DeadlineExceeded), Timeout},
		{fmt.Errorf("call: %w: %w", context.Canceled, NotRunning), NotRunning},
		{errors.New("something broke"), unlisted},
	} {
		if got := Find(c.err); got != c.want {
			t.Errorf("%v is %q, want %q", c.err, got.Text, c.want.Text)
		}
		if c.want != unlisted && !errors.Is(c.err, c.want.Sentinel()) {
			t.Errorf("%v is not %v", c.err, c.want.Sentinel())
		}
	}

	if got := TooLarge.Says("over %d bytes", 7).Error(); got != "over 7 bytes" {
		t.Errorf("the text is %q", got)
	}
	advised := Scope.Advises("create a token")
	if advised.Hint != "create a token" || Scope.Hint != "" || advised.Code != Scope.Code {
		t.Errorf("Advises: %+v of %+v", advised, Scope)
	}
}
