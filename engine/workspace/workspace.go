// Package workspace says where a workspace and daycare's own files about it are, and how paths in
// both are stored: relative to the workspace, with .daycare in place of the folder of the own
// files, wherever that is. So a workspace that is moved, copied, restored or imported works where
// it lies, and nowhere else. What reads a file resolves the paths in it; in memory they are absolute.
package workspace

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"unicode/utf8"
)

// Home is the name of the folder inside a workspace that daycare keeps its own files in.
const Home = ".daycare"

// A Place is where a workspace is: the folder that agents work in, and the one of daycare's own
// files about it. Both are absolute.
type Place struct {
	Dir  string // "": not known; paths then stay as they are
	Data string
}

// At is the workspace in the folder dir.
func At(dir string) Place { return Place{dir, filepath.Join(dir, Home)} }

// FileName is the file in a data folder outside of its workspace that says where that is:
//
//	{"workspace": "/home/anna/work"}
const FileName = "workspace.json"

// owner is the content of FileName.
type owner struct {
	Workspace string `json:"workspace"` // absolute
}

// Recorded reads which workspace a data folder belongs to. "": it does not say.
func Recorded(data string) (dir string, err error) {
	path := filepath.Join(data, FileName)
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	if err != nil {
		return "", fmt.Errorf("find the workspace of a data folder: %w", err)
	}
	var o owner
	err = json.Unmarshal(text, &o)
	if err == nil && !filepath.IsAbs(o.Workspace) {
		err = errors.New("workspace is not an absolute path")
	}
	if err != nil {
		return "", fmt.Errorf("read %s: %w\ncorrect it: {\"workspace\": \"/the/path\"}", path, err)
	}

	return filepath.Clean(o.Workspace), nil
}

// Record is the content of FileName for the workspace.
func (p Place) Record() []byte {
	text, _ := json.Marshal(owner{p.Dir}) // a text
	return append(text, '\n')
}

// OfData is the workspace whose own files are in the folder data, which is called .daycare in a
// workspace, and not so elsewhere. Dir is "" if it is elsewhere and does not say whose it is.
func OfData(data string) Place {
	if filepath.Base(data) == Home {
		return At(filepath.Dir(data))
	}
	dir, _ := Recorded(data) // what opens the workspace reads it first, and reports a mistake
	return Place{dir, data}
}

// Encodable reports whether the files of daycare, which are JSON, can say where the place is. In one with a name in another
// encoding than UTF-8, two folders would have one name in permissions, and commands would look for a folder that is not there.
func (p Place) Encodable() error {
	for _, path := range []string{p.Dir, p.Data} {
		if !utf8.ValidString(path) {
			return fmt.Errorf("the path %+q is not UTF-8, so daycare's files cannot name what is in it\nrename the folder", path)
		}
	}

	return nil
}

// Check reports whether the place can be used: Encodable, and whether the own files, where they are elsewhere, belong to
// the workspace.
func (p Place) Check() error {
	if err := p.Encodable(); err != nil || !p.Elsewhere() {
		return err
	}
	dir, err := Recorded(p.Data)
	switch {
	case err != nil:
		return err
	case dir == "":
		return fmt.Errorf("%s does not say which workspace it belongs to\n"+
			"if it is that of %s: daycare --workspace %[2]s --data %[1]s init", p.Data, p.Dir)
	case dir != p.Dir:
		return fmt.Errorf("%s belongs to the workspace %s\neach workspace has its own data folder; if this one was moved to %s, "+
			"write that into %s", p.Data, dir, p.Dir, filepath.Join(p.Data, FileName))
	}

	return nil
}

// Elsewhere reports whether the own files are outside of the workspace.
func (p Place) Elsewhere() bool { return p.Data != At(p.Dir).Data }

// Key is the folder that tells it from all other places of this machine.
func (p Place) Key() string {
	if p.Elsewhere() {
		return p.Data
	}
	return p.Dir
}

// Of is the workspace that an agent's folder is in: DATA/agents/ID, or one beside agents.
func Of(agentDir string) Place {
	if abs, err := filepath.Abs(agentDir); err == nil {
		agentDir = abs
	}
	return OfData(filepath.Dir(filepath.Dir(agentDir)))
}

// Lock returns the path of the lock that the process running the workspace holds.
func (p Place) Lock() string { return filepath.Join(p.Data, "daycare.lock") }

// Shown is how a path is named to users: from the workspace, if it is in there.
func (p Place) Shown(path string) string {
	if rel, ok := inside(p.Dir, path); ok {
		return rel
	}
	return path
}

// inside is a path relative to a folder that it is in, or is; ok is false if it is not.
func inside(dir, path string) (rel string, ok bool) {
	rel, err := filepath.Rel(dir, path)
	return rel, dir != "" && err == nil && filepath.IsLocal(rel)
}

// Store is an absolute path as it is written to disk: relative if it is in the workspace, and from
// .daycare if it is among the own files.
func (p Place) Store(path string) string {
	if rel, ok := inside(p.Data, path); ok && p.Dir != "" {
		return filepath.Join(Home, rel)
	}
	if rel, ok := inside(p.Dir, path); ok && !own(rel) {
		return rel
	}

	return path
}

// own reports whether a relative path is one of the own files.
func own(rel string) bool {
	first, _, _ := strings.Cut(rel, string(filepath.Separator))
	return first == Home
}

// Resolve is the absolute path of a stored one; "" stays empty.
func (p Place) Resolve(path string) string {
	switch {
	case p.Dir == "" || path == "":
		return path
	case filepath.IsAbs(path):
		return filepath.Clean(path)
	}
	if path = filepath.Clean(path); own(path) && p.Data != "" {
		return filepath.Join(p.Data, strings.TrimPrefix(path, Home))
	}

	return filepath.Join(p.Dir, path)
}

// kept is where attachments are in a workspace.
const kept = "/" + Home + "/files/"

// ResolveFile is Resolve for an attachment. An absolute path, as older versions wrote it, may point to an earlier
// place of the workspace: a path into .daycare/files then means the file in this one.
func (p Place) ResolveFile(path string) string {
	if i := strings.LastIndex(path, kept); p.Dir != "" && i >= 0 && filepath.IsAbs(path) {
		return p.Resolve(path[i+1:])
	}
	return p.Resolve(path)
}

// StoreTag and ResolveTag do the same with the path of a permission tag: @read:docs.
func (p Place) StoreTag(tag string) string   { return inTag(tag, p.Store) }
func (p Place) ResolveTag(tag string) string { return inTag(tag, p.Resolve) }

func inTag(tag string, change func(path string) string) string {
	kind, path, ok := strings.Cut(tag, ":")
	if !ok || kind != "@read" && kind != "@write" {
		return tag
	}

	return kind + ":" + change(path)
}
