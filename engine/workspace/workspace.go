// Package workspace says how paths inside of a workspace are stored: relative to it, so
// that a workspace which is moved, copied, restored or imported works where it lies, and
// nowhere else. What reads a file resolves the paths in it; in memory they are absolute.
package workspace

import (
	"path/filepath"
	"strings"
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

// OfData is the workspace whose own files are in the folder data.
func OfData(data string) Place { return Place{filepath.Dir(data), data} }

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
	if rel, err := filepath.Rel(p.Dir, path); err == nil && filepath.IsLocal(rel) {
		return rel
	}
	return path
}

// Store is an absolute path as it is written to disk: relative if it is in the workspace.
func (p Place) Store(path string) string {
	if p.Dir == "" {
		return path
	}
	return p.Shown(path)
}

// Resolve is the absolute path of a stored one; "" stays empty.
func (p Place) Resolve(path string) string {
	switch {
	case p.Dir == "" || path == "":
		return path
	case filepath.IsAbs(path):
		return filepath.Clean(path)
	}

	return filepath.Join(p.Dir, path)
}

// kept is where attachments are in a workspace.
const kept = "/" + Home + "/files/"

// ResolveFile is Resolve for an attachment. An absolute path, as older versions wrote it,
// may be that of another place where the workspace lay: what is kept in .daycare/files
// is the file of this one.
func (p Place) ResolveFile(path string) string {
	if i := strings.LastIndex(path, kept); p.Dir != "" && i >= 0 && filepath.IsAbs(path) {
		return filepath.Join(p.Dir, path[i:])
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
