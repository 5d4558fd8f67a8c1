//go:build !race

package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// placed are the files that may speak of a folder by the name that daycare's own has in a workspace, and why that is
// not a way to the folder of the workspace that is worked on: this is workspace.Place.Data, wherever it is.
var placed = map[string]string{
	"agents/trial/file.go":           "the name of a file in a test, whose workspace is a throwaway",
	"cmd/daycare/daemon/backup.go":   "what a file is called in a backup",
	"cmd/daycare/daemon/folders.go":  "the folder around it, where its name is",
	"cmd/daycare/daemon/factory.go":  "a name that no folder of an agent may have",
	"cmd/daycare/lab/try.go":         "the name of a file in a test, whose workspace is a throwaway",
	"cmd/daycare/machine/machine.go": "what a user typed at the end of a workspace",
	"cmd/daycare/movein/daycare.go":  "in the folder of another workspace, which is imported",
	"cmd/daycare/term/workspace.go":  "how a workspace is found from a folder in it",
	"engine/backup/backup.go":        "what the folder is called in a backup",
	"engine/changes/copy.go":         "a name that no copy has",
	"engine/backup/restore.go":       "the folder around it, where a backup is unpacked",
	"engine/folders/elsewhere.go":    "in a path that an older version wrote whole",
	"engine/schedule/changes.go":     "a name that is not watched",
	"engine/sensitive/sensitive.go":  "a name that no agent reaches, wherever it is",
	"engine/workspace/workspace.go":  "the one place",
	"tools/files/reach.go":           "a name that no agent reaches, wherever it is",
	"tools/shell/guard/tree.go":      "a name that no agent reaches, wherever it is",
	"tools/shell/workdir.go":         "a name that no agent reaches, wherever it is",
	"cmd/daycare/movein/command.go":  "what is printed of a plan",
	"tools/files/outside.go":         "the folders around a path, one by one",
}

// TestTheDataFolderIsFoundInOnePlace finds code that joins .daycare to a path, or takes the folder around daycare's own
// for the workspace.
func TestTheDataFolderIsFoundInOnePlace(t *testing.T) {
	t.Parallel()
	found := findings(t, waysToData)

	for _, file := range slices.Sorted(maps.Keys(found)) {
		if placed[file] == "" {
			t.Errorf("%s: %s\nthe folder may be anywhere: pass a workspace.Place and use its Data and Dir", file,
				strings.Join(found[file], ", "))
		}
	}
	for file := range placed {
		if found[file] == nil {
			t.Errorf("%s has an excuse and does not need it: shorten the list", file)
		}
	}
}

// waysToData are the uses of the folder's name in a file that are more than prose, and where the folder around it is used.
func waysToData(name string) (uses []string, err error) {
	set := token.NewFileSet()
	file, err := parser.ParseFile(set, name, nil, parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	for node := range ast.Preorder(file) {
		at := func(what string) { uses = append(uses, strconv.Itoa(set.Position(node.Pos()).Line)+" "+what) }
		switch n := node.(type) {
		case *ast.BasicLit:
			text, _ := strconv.Unquote(n.Value)
			if n.Kind == token.STRING && (text == ".daycare" || strings.HasSuffix(text, "/.daycare") || text == ".daycare/") {
				at(n.Value)
			}
		case *ast.SelectorExpr:
			of, ok := n.X.(*ast.Ident)
			if ok && slices.Contains([]string{"workspace.Home", "ws.Home", "sensitive.Data"}, of.Name+"."+n.Sel.Name) {
				at(of.Name + "." + n.Sel.Name)
			}
		case *ast.CallExpr:
			if what := aroundData(n); what != "" {
				at(what)
			}
		}
	}

	return uses, nil
}

// aroundData is a call of filepath.Dir with a folder of daycare's own files, by the name of its variable; else "".
func aroundData(call *ast.CallExpr) string {
	fun, ok := call.Fun.(*ast.SelectorExpr)
	if !ok || fun.Sel.Name != "Dir" || len(call.Args) != 1 {
		return ""
	}
	if of, ok := fun.X.(*ast.Ident); !ok || of.Name != "filepath" {
		return ""
	}
	name := ""
	switch arg := call.Args[0].(type) {
	case *ast.Ident:
		name = arg.Name
	case *ast.SelectorExpr:
		name = arg.Sel.Name
	}
	if slices.Contains([]string{"home", "data", "Home", "Data"}, name) || strings.EqualFold(name, "root") {
		return "filepath.Dir(" + name + ")"
	}
	return ""
}
