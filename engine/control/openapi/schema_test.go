package openapi

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"daycare/engine/control"
	"daycare/engine/disk"
	"daycare/engine/event"
	"daycare/engine/finding"
)

// A sample has a member of every kind that the API's types have.
type sample struct {
	Base
	Other    Base `json:"other"`
	hidden   string
	Out      string             `json:"-"`
	Name     string             `json:"name,omitempty" allow:"b|a"`
	Need     *Base              `json:"need"`
	May      *Base              `json:"may,omitempty"`
	Next     *sample            `json:"next,omitzero"`
	When     time.Time          `json:"when"`
	Stamp    disk.Stamp         `json:"stamp"`
	Raw      json.RawMessage    `json:"raw,omitempty"`
	Bytes    []byte             `json:"bytes"`
	Map      map[string]bool    `json:"map"`
	List     []float64          `json:"list"`
	Any      any                `json:"any"`
	Count    int                `json:"count"`
	State    event.State        `json:"state"`
	Mine     Finding            `json:"mine"`
	Theirs   finding.Finding    `json:"theirs"`
	MineToo  Finding            `json:"mineToo"`
	Severity []finding.Severity `json:"severity"`
}

// Base is embedded in one place and a member in others.
type Base struct {
	ID string `json:"id"`
}

// Finding has the name of a type of another package.
type Finding struct{}

// A Go type is described as encoding/json writes it: what is left out when it is empty is not required,
// what may be null says so, and types of one name have different names in the document.
func TestSchemaOfAType(t *testing.T) {
	b := builder{schemas: map[string]*schema{}, types: map[string]reflect.Type{}}
	if top := b.of(reflect.TypeFor[*sample]()); top.Ref != "#/components/schemas/Sample" || (sample{}).hidden != "" {
		t.Errorf("it is %+v", top)
	}
	golden(t, "sample.json", b.schemas)
}

// Operations of each kind, as the document has them: what is in the path, in the query and in headers, values of a
// closed set, bounds and defaults, bodies of JSON and of bytes, and answers of JSON, text, events and archives.
func TestOperationsInTheDocument(t *testing.T) {
	d, _ := describeAll()
	some := map[string]operation{}
	for _, o := range control.Operations() {
		switch o.Name {
		case "metrics", "removeAgent", "writeFile", "history", "attachment", "backup", "cost", "logs", "postToAgent",
			"permissions", "importAgent":
			some[o.Name] = d.Paths[o.Path][strings.ToLower(o.Method)]
		}
	}
	golden(t, "operations.json", some)
	golden(t, "head.json", map[string]any{
		"info": d.Info, "servers": d.Servers, "security": d.Security, "schemes": d.Components.SecuritySchemes,
	})
}

// golden compares a value, as JSON, with a file of testdata; -update writes it.
func golden(t *testing.T, name string, value any) {
	t.Helper()
	data, err := json.MarshalIndent(value, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, append(data, '\n'), 0o644); err != nil {
			t.Fatal(err)
		}
	}

	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(bytes.Join([][]byte{data, []byte("\n")}, nil))); diff != "" {
		t.Errorf("%s (-want +got), go test -update writes it anew:\n%s", name, diff)
	}
}
