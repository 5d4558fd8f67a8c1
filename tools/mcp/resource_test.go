package mcp

import (
	"strings"
	"testing"

	"daycare/engine/permission"
	"daycare/tools"
	"daycare/tools/toolstest"
)

func TestResourcesAreListedAndRead(t *testing.T) {
	w := newWorld(t, "resources", "plain")
	read := w.all()[resourceTool]
	for args, want := range map[string]string{
		`{"server":"a"}`:                        "note://one  note://one (text/plain): A no[U+200B]te!",
		`{"server":"a","uri":"note://one"}`:     "[resource note://one]\ncall Anna",
		`{"server":"a","uri":"note://picture"}`: "[resource note://picture]",
		`{"server":"a","uri":"note://file"}`:    "kept as /files/a-resource-1.zip",
	} {
		res := w.call(t.Context(), read, args, nil)
		if res.Status != "" || !strings.Contains(res.Text, want) || res.Source != "the MCP server a" {
			t.Errorf("%s: %+v", args, res)
		}
		for line := range strings.SplitSeq(res.Text, "\n") {
			if len(line) > 2*maxAbout+100 {
				t.Errorf("%s: a line of %d bytes", args, len(line))
			}
		}
		if strings.Contains(args, "picture") && (len(res.Blocks) != 1 || res.Blocks[0].Type != "image") {
			t.Errorf("the picture is not shown: %+v", res)
		}
	}
	for args, want := range map[string]string{
		`{"server":"a","uri":"note://gone"}`:   "did not give it",
		`{"server":"a","uri":"file:///etc/x"}`: "did not give it",
		`{"server":"b"}`:                       "it has no resources",
		`{"server":"c"}`:                       "there are: a, b",
	} {
		res := w.call(t.Context(), read, args, nil)
		if res.Status != tools.Failed || !strings.Contains(res.Text, want) || (want == "did not give it") != (res.Source != "") {
			t.Errorf("%s: %+v", args, res)
		}
	}
}

// Resources need a permission of their own, which one for the whole server covers.
func TestResourcesNeedAPermission(t *testing.T) {
	w := newWorld(t, "resources")
	read := w.all()[resourceTool]
	need, err := read.(tools.Asks).Needs(tools.Call{Arguments: []byte(`{"server":"a","uri":"note://one"}`)})
	if err != nil || need.Tag != "@mcp:a/resources/read" || need.Detail.Call != "a: read note://one" {
		t.Fatalf("%+v, %v", need, err)
	}
	for entry, want := range map[string]bool{"a": true, "a/resources/read": true, "a/resources": false, "b": false} {
		access, err := permission.Parse(need.Tag)
		if err != nil {
			t.Fatal(err)
		}
		if set := (permission.Set{MCP: []string{entry}}); set.Allows(access) != want {
			t.Errorf("%s covers it: %v", entry, !want)
		}
	}
	if (Definition{Name: resourceRight, Schema: []byte(`{"type":"object"}`)}).usable() == nil {
		t.Error("a tool of a server can have the name of the permission")
	}
	toolstest.Run(t, read, toolstest.Options{Access: permission.Default(t.TempDir()), Good: []string{`{"server":"a"}`},
		Bad: []string{`{"server":"none"}`}})
}
