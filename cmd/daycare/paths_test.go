//go:build !race

package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// opens are the calls that find a file by its path; those that change one are the business of
// TestWritesGoThroughTheDisk. Agents write in workspaces: what is
// found there may be a link, a pipe, or something else than it was a moment ago.
var opens = map[string]string{
	"os":       "Open OpenFile OpenRoot ReadFile ReadDir DirFS Stat Lstat Readlink",
	"filepath": "EvalSymlinks Glob Walk WalkDir",
	"unix":     "Open Openat Openat2 Stat Lstat", "syscall": "Open Stat Lstat",
}

// A pass is how many such calls a file, or all files of a folder, may have, and why they
// are safe.
type pass struct {
	most int
	why  string
}

const (
	daycares = "in .daycare, where no agent writes"
	keptFile = "an attachment as it was kept, in .daycare/files"
	walking  = "this is the walk that everybody else uses, or it opens what the walk found beneath an open folder"
	machines = "of the machine, not of a workspace"
	persons  = "what a person at the terminal names, or their own files"
)

// passes are the only places that may open by a path. It may only shrink: a file that
// needs less gets a smaller number, and what opens something in a workspace uses package
// beneath or permission.Folders.
var passes = map[string]pass{
	"agents/budget":                         {4, daycares},
	"agents/providers/scripted/scripted.go": {1, "the script that the settings name, for tests"},
	"agents/subagent":                       {3, daycares},
	"cmd/daycare/commands":                  {9, daycares + "; or " + persons},
	"cmd/daycare/talk":                      {1, persons},
	"cmd/daycare/daemon":                    {6, daycares + "; or " + machines},
	"cmd/daycare/doctor":                    {19, daycares},
	"cmd/daycare/follow":                    {2, daycares},
	"cmd/daycare/logfile":                   {1, daycares},
	"cmd/daycare/models":                    {1, daycares},
	"cmd/daycare/setup":                     {9, daycares + "; or " + persons + "; or " + machines},
	"cmd/daycare/upkeep":                    {8, persons},
	"cmd/daycare/term":                      {5, daycares + "; or " + persons},
	"connectors/acp":                        {2, "the editor's folder and the workspace, which are compared and not opened"},
	"connectors/terminal":                   {6, persons},
	"engine":                                {4, daycares},
	"engine/attacktest":                     {2, "the program of a test, for the test"},
	"engine/address":                        {9, daycares},
	"engine/apitoken":                       {2, daycares},
	"engine/cluster":                        {8, daycares},
	"engine/backup":                         {7, daycares + ", read through os.Root; links are kept as links"},
	"engine/beneath":                        {10, walking + "; or it looks and opens nothing but a regular file"},
	"engine/config":                         {1, daycares},
	"engine/control":                        {2, daycares},
	"engine/control/files.go":               {5, daycares + "; what a person attaches from elsewhere"},
	"engine/disk":                           {43, daycares + "; a process in /proc"},
	"engine/folders":                        {5, daycares},
	"engine/inbox":                          {7, daycares},
	"engine/permission/folders.go":          {3, walking},
	"engine/record":                         {11, daycares},
	"engine/slash":                          {1, daycares},
	"engine/schedule":                       {10, daycares},
	"engine/sensitive/git.go":               {4, "whether there is a repository, or a file that it names; nothing is read"},
	"engine/sensitive/sensitive.go":         {3, machines},
	"engine/watch":                          {2, "nothing is read: it only has the system watch a folder"},
	"tools/mcp":                             {1, daycares},
	"tools/mcp/mcptest":                     {2, "the program of a test, for the test"},
	"tools/files/place.go":                  {2, walking},
	"tools/files/outside.go":                {1, "which folder of a path is there; it is opened as all are, and compared with that path"},
	"tools/files/reach.go":                  {2, walking},
	"tools/shell":                           {8, daycares + "; or " + machines},
	"tools/shell/scripts.go": {4,
		"a script that a command names: only a regular file, opened without blocking, bounded; only its hash is used"},
	"tools/shell/confine.go": {3,
		"the folders of git and PATH; what a view grants is located by Folders and checked inside"},
	"engine/workspace": {1, daycares},
	"tools/shell/guard": {8,
		"what appeared is looked at, without following links; what is changed is found beneath the open granted folder"},
	"tools/shell/sandbox":                   {20, machines},
	"tools/shell/sandbox/probe":             {7, "of its own folder"},
	"tools/shell/sandbox/restrict_linux.go": {3, "without links, beneath what is pinned"},
	"tools/shell/sandbox/view.go": {6,
		"pinned paths are not resolved, and are checked where they can no longer change (View.check)"},
	"tools/shell/workdir.go": {3, "compared with what Folders located; the sandbox enters it inside the view"},
	"tools/skills/folder.go": {1, "links in folders where no agent writes"},
}

// findings are what find finds in the sources of the houses, without tests and harnesses, by file.
func findings(t *testing.T, find func(path string) ([]string, error)) map[string][]string {
	t.Helper()
	found := map[string][]string{}
	for _, top := range []string{"engine", "tools", "agents", "connectors", "cmd"} {
		err := filepath.WalkDir(filepath.Join("..", "..", top), func(name string, d fs.DirEntry, err error) error {
			file := filepath.ToSlash(strings.TrimPrefix(name, filepath.Join("..", "..")+string(filepath.Separator)))
			if err != nil || d.IsDir() || !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go") || harness(file) {
				return err
			}
			list, err := find(name)
			if len(list) > 0 {
				found[file] = list
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}

	return found
}

// TestPathsAreOpenedInOnePlace finds calls that open, list or change files by their paths,
// beside those that have a pass.
func TestPathsAreOpenedInOnePlace(t *testing.T) {
	t.Parallel()
	found := findings(t, openings)
	count := map[string]int{}
	for file, calls := range found {
		key := file
		if _, ok := passes[key]; !ok {
			key = path.Dir(file)
		}
		if count[key] += len(calls); passes[key].why == "" && (count[key] > 1 || !ofPlatform(key)) {
			t.Errorf("%s opens by a path: %s\nuse package engine/beneath, or permission.Folders. If no agent can change "+
				"the path, add it to passes with the reason", file, strings.Join(calls, ", "))
		}
	}
	for _, key := range slices.Sorted(maps.Keys(passes)) {
		switch e := passes[key]; {
		case count[key] > e.most:
			t.Errorf("%s has %d calls that open by a path, %d have a pass (%s)\nuse package engine/beneath, or permission.Folders", key,
				count[key], e.most, e.why)
		case count[key] < e.most:
			t.Errorf("%s has %d calls that open by a path and has a pass for %d: write %d, so that it only shrinks",
				key, count[key], e.most, count[key])
		}
	}
}

// ofPlatform reports whether a folder is that of a connector, which opens the file that it keeps
// in .daycare/connectors.
func ofPlatform(folder string) bool { return path.Dir(folder) == "connectors" }

// harness reports a file that is no part of a running daemon.
func harness(file string) bool {
	for _, dir := range []string{"cmd/daycare/bench/", "cmd/daycare/chaos/", "engine/crash/",
		"agents/providers/providertest/", "connectors/connectortest/", "engine/inbox/inboxtest/"} {
		if strings.HasPrefix(file, dir) {
			return true
		}
	}
	return false
}

// openings are the calls of a file, as "Name (line)".
func openings(name string) (calls []string, err error) {
	set := token.NewFileSet()
	f, err := parser.ParseFile(set, name, nil, 0)
	if err != nil {
		return nil, err
	}
	ast.Inspect(f, func(n ast.Node) bool {
		sel, ok := n.(*ast.SelectorExpr)
		if !ok {
			return true
		}
		if x, ok := sel.X.(*ast.Ident); ok && slices.Contains(strings.Fields(opens[x.Name]), sel.Sel.Name) {
			calls = append(calls, x.Name+"."+sel.Sel.Name+" ("+
				set.Position(sel.Pos()).String()[strings.LastIndex(set.Position(sel.Pos()).String(), ".go:")+4:]+")")
		}
		return true
	})
	return calls, nil
}
