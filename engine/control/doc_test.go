package control

import (
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"net/http/httptest"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"daycare/engine/apitoken"
	"daycare/engine/event"
)

var update = flag.Bool("update", false, "write the table of routes in docs/api.md anew")

// TestDocumentation: docs/api.md has every type of event. Package fault compares its errors.
func TestDocumentation(t *testing.T) {
	page, err := os.ReadFile("../../docs/api.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, typ := range event.Types {
		if !strings.Contains(string(page), "`"+string(typ)+"`") {
			t.Errorf("docs/api.md does not say `%s`", typ)
		}
	}
}

// TestDocumentHasTheTable: docs/api.md has every operation with its scope, and no other.
func TestDocumentHasTheTable(t *testing.T) {
	const path, head = "../../docs/api.md", "| route | scope | |\n|---|---|---|\n"
	page, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var want strings.Builder
	for _, o := range Operations() {
		scope := string(o.Scope)
		if o.AllAgents() {
			scope += "*"
		}
		if o.NeedsDaemon() {
			scope += "†"
		}
		fmt.Fprintf(&want, "| `%s` | %s | %s |\n", o.Pattern(), scope, o.About)
	}

	rows := regexp.MustCompile(regexp.QuoteMeta(head) + `((?:\|.*\n)*)`).FindSubmatchIndex(page)
	if rows == nil {
		t.Fatalf("%s has no table of routes", path)
	}
	if got := string(page[rows[2]:rows[3]]); got != want.String() {
		if !*update {
			t.Fatalf("docs/api.md does not have the table; write it with: go test ./engine/control -run TestDocumentHasTheTable "+
				"-update\n%s",
				cmp.Diff(want.String(), got))
		}
		page = slices.Concat(page[:rows[2]], []byte(want.String()), page[rows[3]:])
		if err := os.WriteFile(path, page, 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// TestEveryOperationIsServed: every Op that is declared is a row, every row is registered, and
// nothing else is.
func TestEveryOperationIsServed(t *testing.T) {
	file, err := parser.ParseFile(token.NewFileSet(), "ops.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	declared := 0
	ast.Inspect(file, func(n ast.Node) bool {
		if lit, ok := n.(*ast.CompositeLit); ok {
			if kind, ok := lit.Type.(*ast.IndexListExpr); ok && kind.X.(*ast.Ident).Name == "Op" {
				declared++
			}
		}
		return true
	})

	names, patterns := map[string]bool{}, map[string]bool{"/": true}
	mux := (&api{}).serve(tableOf(whole(&pair{fake: &fake{}})))
	for _, o := range Operations() {
		if o.Name == "" || names[o.Name] || o.About == "" || o.Scope == "" || o.Reach == 0 || patterns[o.Pattern()] {
			t.Errorf("%+v is there twice, or says too little", o.Route)
		}
		names[o.Name], patterns[o.Pattern()] = true, true
		method, path := filled(o.Pattern(), "x")
		if _, got := mux.Handler(httptest.NewRequest(method, path, nil)); got != o.Pattern() {
			t.Errorf("%s is served by %q", o.Pattern(), got)
		}

		for _, p := range Params(o.In) {
			if p.In == "path" && !strings.Contains(o.Path, "{"+p.Name+"}") {
				t.Errorf("%s has no {%s} in its path", o.Name, p.Name)
			}
		}
		if strings.Count(o.Path, "{") != pathParams(o.In) {
			t.Errorf("%s does not take all of its path", o.Name)
		}
	}

	if declared != len(names) || declared < 50 {
		t.Errorf("%d operations are declared, %d are served", declared, len(names))
	}
	for _, source := range []string{"handler.go", "table.go", "server.go", "op.go"} {
		text, err := os.ReadFile(source)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range regexp.MustCompile(`mux\.Handle(?:Func)?\((.*)`).FindAllSubmatch(text, -1) {
			if got := string(m[1]); got != "row.Pattern(), a.permit(row))" && got != `"/", a.noRoute(mux))` {
				t.Errorf("%s registers a route beside the table: %s", source, got)
			}
		}
	}

	t.Logf("%d operations", declared)
}

func pathParams(in reflect.Type) (n int) {
	for _, p := range Params(in) {
		if p.In == "path" {
			n++
		}
	}
	return n
}

// TestWithoutADaemon: where there is none, exactly the operations that need it say so, and nothing
// reaches the backend.
func TestWithoutADaemon(t *testing.T) {
	f := &fake{}
	b := whole(&pair{fake: f})
	b.Offline = true
	h := as(Handler(b, Options{}), apitoken.Everything)
	refused := 0
	for _, o := range Operations() {
		method, path := filled(o.Pattern(), alpha)
		if o.Name == "revoke" {
			path += "?permission=@web"
		}
		status, e, text := call(t, h, method, path, bodies[o.Pattern()])
		if got := e.Code == "not_running"; got != o.NeedsDaemon() {
			t.Errorf("%s: %d %s; needs the daemon: %v", o.Pattern(), status, text, o.NeedsDaemon())
		} else if got {
			refused++
		}
	}

	if len(f.calls) > 0 || refused < 20 {
		t.Errorf("%d are refused; the backend did %v", refused, f.calls)
	}
}
