package openapi

import (
	"encoding/json"
	"flag"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/jsonschema-go/jsonschema"

	"daycare/engine/control"
	"daycare/engine/fault"
)

var update = flag.Bool("update", false, "write comments.json anew")

// The document is what the OpenAPI Initiative's own schema of OpenAPI 3.1 documents allows
// (https://spec.openapis.org/oas/3.1/schema/2022-10-07, in testdata), every schema in it is one of
// JSON Schema 2020-12, and every reference leads somewhere.
func TestTheDocumentIsValid(t *testing.T) {
	data, err := Document()
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile("testdata/openapi-3.1.schema.json")
	if err != nil {
		t.Fatal(err)
	}

	check := resolved(t, text)
	var d map[string]any
	if err := json.Unmarshal(data, &d); err != nil {
		t.Fatal(err)
	}
	if err := check.Validate(d); err != nil {
		t.Error(err)
	}

	d["openapi"] = "3.0.3"
	if check.Validate(d) == nil {
		t.Error("the schema lets anything pass")
	}
	_, b := describeAll()
	all, err := json.Marshal(map[string]any{"$defs": b.schemas, "$ref": "#/$defs/ErrorBody"})
	if err != nil {
		t.Fatal(err)
	}

	resolved(t, []byte(strings.ReplaceAll(string(all), "#/components/schemas/", "#/$defs/")))
	refs := regexp.MustCompile(`"\$ref": "#/components/(\w+)/(\w+)"`).FindAllSubmatch(data, -1)
	for _, m := range refs {
		part := d["components"].(map[string]any)[string(m[1])].(map[string]any)
		if part[string(m[2])] == nil {
			t.Errorf("%s leads nowhere", m[0])
		}
	}

	t.Logf("%d bytes, %d references", len(data), len(refs))
}

func resolved(t *testing.T, text []byte) *jsonschema.Resolved {
	t.Helper()
	var s jsonschema.Schema
	if err := json.Unmarshal(text, &s); err != nil {
		t.Fatal(err)
	}
	r, err := s.Resolve(nil)
	if err != nil {
		t.Fatal(err)
	}

	return r
}

// Every operation is described with its parameters, body, answer, scope and errors, and what is
// named is there.
func TestTheDocumentIsComplete(t *testing.T) {
	d, b := describeAll()
	seen := 0
	for _, o := range control.Operations() {
		op, ok := d.Paths[o.Path][strings.ToLower(o.Method)]
		if !ok || op.ID != o.Name || op.Security[0]["bearer"][0] != string(o.Scope) {
			t.Errorf("%s: %+v", o.Pattern(), op)
			continue
		}
		seen++
		params := control.Params(o.In)
		if op.RequestBody != nil {
			params = params[:len(params)-1]
		}
		if len(op.Parameters) != len(params) {
			t.Errorf("%s has %d parameters, takes %d", o.Name, len(op.Parameters), len(params))
		}

		for _, p := range op.Parameters {
			if p.Description == "" {
				t.Errorf("%s: nothing is said of %s", o.Name, p.Name)
			}
		}
	}

	for name, s := range b.schemas {
		if strings.Contains(name, "[") || s.Type != "object" {
			t.Errorf("component %s: %+v", name, s)
		}
	}

	for _, f := range fault.All {
		if f.Code != "" && !strings.Contains(d.Components.Responses["Error"].Description, "`"+f.Code+"`") {
			t.Errorf("the errors do not say %s", f.Code)
		}
	}
	t.Logf("%d operations, %d schemas", seen, len(b.schemas))
}

// comments.json has the comments of the types as they are in the source.
func TestCommentsAreThoseOfTheSource(t *testing.T) {
	_, b := describeAll()
	want, sources := map[string]string{}, sources{}
	for _, of := range b.types {
		sources.collect(t, of, want)
	}
	if *update {
		data, err := json.MarshalIndent(want, "", "  ")
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile("comments.json", append(data, '\n'), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if diff := cmp.Diff(want, comments()); diff != "" || len(want) < 50 {
		t.Errorf("write it with: go test ./engine/control/openapi -update (- source, + comments.json):\n%s", diff)
	}
}

// sources are the files of packages, by the folder, each read once.
type sources map[string][]*ast.File

// of returns the files of a package, without tests.
func (s sources) of(t *testing.T, dir string) []*ast.File {
	t.Helper()
	if files, ok := s[dir]; ok {
		return files
	}
	names, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil || len(names) == 0 {
		t.Fatalf("no source in %s: %v", dir, err)
	}
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		s[dir] = append(s[dir], file)
	}

	return s[dir]
}

// collect finds the comments of a type and its members in the source of its package.
func (s sources) collect(t *testing.T, of reflect.Type, into map[string]string) {
	t.Helper()
	module := strings.TrimSuffix(reflect.TypeFor[control.Client]().PkgPath(), "engine/control")
	key := path.Base(of.PkgPath()) + "." + of.Name()
	for _, file := range s.of(t, filepath.Join("../../..", strings.TrimPrefix(of.PkgPath(), module))) {
		for _, decl := range file.Decls {
			types, ok := decl.(*ast.GenDecl)
			if !ok || types.Tok != token.TYPE {
				continue
			}

			for _, spec := range types.Specs {
				if spec := spec.(*ast.TypeSpec); spec.Name.Name == of.Name() {
					put(into, key, spec.Doc, types.Doc)
					members(into, key, spec)
				}
			}
		}
	}
}

func members(into map[string]string, key string, spec *ast.TypeSpec) {
	body, ok := spec.Type.(*ast.StructType)
	if !ok {
		return
	}
	for _, f := range body.Fields.List {
		for _, name := range f.Names {
			put(into, key+"."+name.Name, f.Doc, f.Comment)
		}
	}
}

// put keeps the first comment that there is, on one line.
func put(into map[string]string, key string, groups ...*ast.CommentGroup) {
	for _, g := range groups {
		if text := strings.Join(strings.Fields(g.Text()), " "); text != "" {
			into[key] = text
			return
		}
	}
}
