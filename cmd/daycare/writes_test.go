//go:build !race

package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"maps"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
)

// changes are the functions and methods that make, change, rename or remove a file or
// make it durable. What is durable in .daycare is decided in engine/disk: a call of one
// of these elsewhere has no failpoint, does not fail the volume, and is not in the
// picture of what a power cut leaves.
var changes = map[string][]string{
	"os": {"Rename", "WriteFile", "Remove", "RemoveAll", "Create", "CreateTemp", "MkdirTemp", "OpenFile", "Truncate", "Link",
		"Symlink", "Mkdir", "MkdirAll", "Chtimes", "CopyFS"},
	"os.Root": {"Rename", "WriteFile", "Remove", "RemoveAll", "Create", "OpenFile", "Link", "Symlink", "Mkdir", "MkdirAll", "Chtimes"},
	"os.File": {"Sync", "Truncate"},
	"syscall": {"Rename", "Unlink", "Fsync", "Fdatasync", "Ftruncate", "Truncate", "Link", "Symlink", "Mkdir", "Rmdir"},
	"golang.org/x/sys/unix": {"Rename", "Renameat", "Renameat2", "Unlink", "Unlinkat", "Fsync", "Fdatasync", "Ftruncate", "Link", "Linkat",
		"Symlink", "Mkdir", "Mkdirat", "Rmdir"},
}

// exempt are the packages that these rules are not for: the place itself, the failpoints
// and the power cut it is tried with, what only tests and measures, and the sandbox, which
// makes the views of commands and tries them, and writes nothing that lasts.
var exempt = []string{"engine/disk", "engine/crash", "cmd/daycare/chaos", "cmd/daycare/chaos/machines", "cmd/daycare/bench",
	"agents/providers/providertest", "tools/shell/sandbox", "tools/shell/sandbox/probe", "engine/attacktest", "engine/cluster/clustertest",
	"engine/freeport", "tools/mcp/mcptest"}

// An excuse says for which calls a file has one, without the name of their package, and
// why they do not go through engine/disk.
type excuse struct{ calls, why string }

// mostExcuses is how many calls are excused. It may only become lower, but for a command
// that writes files outside of .daycare.
const mostExcuses = 96

// TestWritesGoThroughTheDisk finds every place outside of engine/disk that changes files
// by itself. Each has an excuse that says why, or goes through engine/disk. The list of
// excuses may only become shorter: one that is no longer needed fails the test, too.
func TestWritesGoThroughTheDisk(t *testing.T) {
	t.Parallel()
	found := map[string]map[string]bool{}
	for _, p := range packagesWithTypes(t) {
		p.changes(t, func(file, call string) {
			if slices.Contains(exempt, path.Dir(file)) {
				return
			}
			if found[file] == nil {
				found[file] = map[string]bool{}
			}
			found[file][call] = true
		})
	}
	excused := 0
	for file, e := range excuses {
		for call := range strings.FieldsSeq(e.calls) {
			excused++
			elsewhere := strings.HasSuffix(file, "_linux.go") && runtime.GOOS != "linux"
			if !found[file][call] && !elsewhere {
				t.Errorf("%s has an excuse for %s and does not call it: shorten the list", file, call)
			}
			delete(found[file], call)
		}
		if strings.TrimSpace(e.why) == "" {
			t.Errorf("%s: an excuse says why", file)
		}
	}
	for _, file := range slices.Sorted(maps.Keys(found)) {
		for call := range found[file] {
			t.Errorf("%s calls %s: use engine/disk, which syncs names, has failpoints and fails the volume", file, call)
		}
	}
	if excused != mostExcuses {
		t.Errorf("%d calls are excused, and mostExcuses is %d: it may only become lower", excused, mostExcuses)
	}
}

// reading are the flags of an OpenFile that changes nothing.
func readsOnly(info *types.Info, call *ast.CallExpr) bool {
	if len(call.Args) < 2 {
		return false
	}
	value := info.Types[call.Args[1]].Value
	if value == nil {
		return false
	}
	const writing = os.O_WRONLY | os.O_RDWR | os.O_CREATE | os.O_TRUNC | os.O_APPEND
	var flags int
	_, err := fmt.Sscan(value.ExactString(), &flags)
	return err == nil && flags&writing == 0
}

// A typed is a package with its types.
type typed struct {
	ImportPath, Dir, Export string
	GoFiles                 []string
	files                   []*ast.File
	set                     *token.FileSet
	info                    *types.Info
}

// changes calls each with the file and the name of every call of changes in a package.
func (p *typed) changes(t *testing.T, each func(file, call string)) {
	for _, file := range p.files {
		for node := range ast.Preorder(file) {
			call, ok := node.(*ast.CallExpr)
			if !ok {
				continue
			}
			sel, ok := call.Fun.(*ast.SelectorExpr)
			if !ok {
				continue
			}
			f, ok := p.info.Uses[sel.Sel].(*types.Func)
			if !ok || f.Pkg() == nil {
				continue
			}
			of := f.Pkg().Path()
			if recv := f.Signature().Recv(); recv != nil {
				of = strings.TrimPrefix(recv.Type().String(), "*")
			}
			if !slices.Contains(changes[of], f.Name()) || f.Name() == "OpenFile" && readsOnly(p.info, call) {
				continue
			}
			file, err := filepath.Rel(repository(t), p.set.Position(call.Pos()).Filename)
			if err != nil {
				t.Fatal(err)
			}
			name := f.Name()
			if _, method, ok := strings.Cut(of, "."); ok && strings.HasPrefix(of, "os.") {
				name = method + "." + name
			}
			each(filepath.ToSlash(file), name)
		}
	}
}

func repository(t *testing.T) string {
	t.Helper()
	root, err := filepath.Abs(filepath.Join("..", ".."))
	if err != nil {
		t.Fatal(err)
	}
	return root
}

// packagesWithTypes reads the packages of the module, without tests, with the types that
// the compiler has exported for what they import.
func packagesWithTypes(t *testing.T) (all []*typed) {
	t.Helper()
	cmd := exec.Command("go", "list", "-export", "-deps", "-json=ImportPath,Dir,Export,GoFiles", "./...")
	cmd.Dir = repository(t)
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	exports, set := map[string]string{}, token.NewFileSet()
	for dec := json.NewDecoder(bytes.NewReader(out)); ; {
		p := &typed{set: set, info: &types.Info{Types: map[ast.Expr]types.TypeAndValue{}, Uses: map[*ast.Ident]types.Object{}}}
		if err := dec.Decode(p); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		exports[p.ImportPath] = p.Export
		if strings.HasPrefix(p.ImportPath, module+"/") {
			all = append(all, p)
		}
	}

	// One importer for all reads what they import once.
	conf := types.Config{Importer: importer.ForCompiler(set, "gc",
		func(path string) (io.ReadCloser, error) { return os.Open(exports[path]) })}
	for _, p := range all {
		for _, name := range p.GoFiles {
			file, err := parser.ParseFile(set, filepath.Join(p.Dir, name), nil, parser.SkipObjectResolution)
			if err != nil {
				t.Fatal(err)
			}
			p.files = append(p.files, file)
		}
		if _, err := conf.Check(p.ImportPath, set, p.files, p.info); err != nil {
			t.Fatal(err)
		}
	}
	return all
}

var excuses = map[string]excuse{
	// Caches, drafts and hints: after a power cut they are made again.
	"agents/budget/append.go": {"MkdirAll OpenFile", "a cache of sums that are counted again from the histories"},
	"engine/record/draft.go":  {"Remove", "a draft is a hint of an answer under way; a stale one is overwritten"},
	"tools/shell/capture.go": {"CreateTemp MkdirAll Remove Rename",
		"the whole output of a command; what the model was told is in the history"},
	"tools/shell/confine.go":          {"MkdirAll", "a home for commands, made again for each"},
	"tools/shell/joblog.go":           {"File.Truncate OpenFile", "the output of a process that a power cut ends"},
	"tools/shell/jobs.go":             {"MkdirAll Remove Rename WriteFile", "about processes that a power cut ends"},
	"tools/shell/guard/repository.go": {"Root.Mkdir Root.Rename", "in the folders of a person: what a command left there is put aside"},
	"tools/shell/proxy.go":            {"MkdirTemp RemoveAll", "the folder of a socket"},
	"tools/memory/store.go":           {"Root.MkdirAll", "followed by a sync of each folder"},
	"tools/files/write.go":            {"Root.Remove", "a file of the workspace; followed by a sync of its folder"},

	// Folders of agents in the making, and what is deleted.
	"engine/address/create.go": {"Mkdir Remove RemoveAll",
		"a folder that the next start removes, until its rename; Mkdir has its failpoint"},
	"engine/folders/archive.go": {"MkdirTemp RemoveAll Rename",
		"unpacks into a folder that the next start removes; everything is synced before it gets its name"},
	"engine/tarball/tarball.go": {"Root.MkdirAll Root.OpenFile Root.Chtimes",
		"unpacks; whoever calls it syncs before anything gets its name"},
	"engine/backup/restore.go": {"Root.Mkdir Root.MkdirAll Root.RemoveAll Root.Rename",
		"no daemon runs; everything is synced before the first name, and once more after the last"},
	"engine/backup/snapshot.go": {"CreateTemp Remove", "a temporary file without a name"},
	"cmd/daycare/doctor/fix.go": {"RemoveAll", "what a crash left; doctor finds it again"},
	"cmd/daycare/setup/init.go": {"MkdirAll OpenFile", "the first files of a workspace; init can be run again"},

	// Sockets and logs.
	"connectors/terminal/memory.go":      {"MkdirAll OpenFile Rename WriteFile", "what was typed, for the arrow keys"},
	"engine/control/unix.go":             {"MkdirTemp Remove RemoveAll Symlink", "the socket, which lives as long as the process"},
	"cmd/daycare/commands/background.go": {"MkdirAll OpenFile", "the log; nothing waits for it"},
	"cmd/daycare/logfile/logfile.go":     {"MkdirAll OpenFile Rename", "the log; nothing waits for it"},

	// Not in .daycare.
	"cmd/daycare/upkeep/backup.go":        {"CreateTemp File.Sync Remove Rename", "the file of a backup, where the user wants it"},
	"cmd/daycare/upkeep/update.go":        {"CreateTemp File.Sync Link Remove", "this program"},
	"cmd/daycare/upkeep/uninstall.go":     {"Remove", "this program, its completions and its manual pages"},
	"cmd/daycare/commands/agentfiles.go":  {"MkdirAll MkdirTemp RemoveAll", "a copy of an agent of another machine, outside of .daycare"},
	"cmd/daycare/commands/agentedit.go":   {"MkdirTemp RemoveAll WriteFile", "a temporary file for an editor"},
	"cmd/daycare/commands/agentexport.go": {"OpenFile Remove", "a file of the user, which can be exported again"},
	"cmd/daycare/commandtest/shell.go":    {"Mkdir", "a folder of a test"},
	"cmd/daycare/man/man.go":              {"MkdirAll WriteFile", "manual pages"},
	"cmd/daycare/lab/throwaway.go":        {"MkdirAll MkdirTemp RemoveAll WriteFile", "the workspace of a test, which goes with it"},
	"cmd/daycare/lab/double.go":           {"Chtimes", "the workspace of a simulation, which goes with it"},
	"cmd/daycare/lab/junit.go":            {"WriteFile", "a report, where the user wants it"},
	"cmd/daycare/doctor/schema.go":        {"MkdirAll WriteFile", "schemas"},
	"cmd/daycare/setup/service.go":        {"MkdirAll Remove WriteFile", "the unit of the service manager, and the folder of logs"},
	"cmd/daycare/setup/servicesystem.go":  {"MkdirAll Remove WriteFile", "the unit of systemd, and the file of its environment"},
	"connectors/terminal/shell.go":        {"CreateTemp Remove", "a temporary file for an editor"},
	"engine/changes/carry.go":             {"Root.Remove", "a file of the workspace; followed by a sync of its folder"},
	"engine/changes/copy.go": {"Mkdir RemoveAll Rename Root.Mkdir Root.OpenFile Root.Symlink WriteFile",
		"the copy of a dry run, in the state folder of the user, which can be made again"},
	"cmd/daycare/cluster/cluster.go": {"MkdirAll", "the folder of an export, where the user wants it"},
}
