// Package workspace says how paths inside of a workspace are stored: relative to it, so
// that a workspace which is moved, copied, restored or imported works where it lies, and
// nowhere else. What reads a file resolves the paths in it; in memory they are absolute.
package workspace

import (
	"path/filepath"
	"strings"
)

// Home is the folder inside a workspace that daycare keeps its files in.
const Home = ".daycare"

// Lock returns the path of the lock that the process running a workspace holds.
func Lock(root string) string { return filepath.Join(root, Home, "daycare.lock") }

// Of is the workspace that an agent's folder is in: ROOT/.daycare/agents/ID, or one
// beside agents.
func Of(agentDir string) string {
	if abs, err := filepath.Abs(agentDir); err == nil {
		agentDir = abs
	}
	return filepath.Dir(filepath.Dir(filepath.Dir(agentDir)))
}

// Store is an absolute path as it is written to disk: relative if it is in root. With
// root "", here and below, a path stays as it is.
func Store(root, path string) string {
	if root == "" {
		return path
	}
	if rel, err := filepath.Rel(root, path); err == nil && filepath.IsLocal(rel) {
		return rel
	}

	return path
}

// Resolve is the absolute path of a stored one; "" stays empty.
func Resolve(root, path string) string {
	switch {
	case root == "" || path == "":
		return path
	case filepath.IsAbs(path):
		return filepath.Clean(path)
	}

	return filepath.Join(root, path)
}

// kept is where attachments are in a workspace.
const kept = "/.daycare/files/"

// ResolveFile is Resolve for an attachment. An absolute path, as older versions wrote it,
// may be that of another place where the workspace lay: what is kept in .daycare/files
// is the file of this one.
func ResolveFile(root, path string) string {
	if i := strings.LastIndex(path, kept); root != "" && i >= 0 && filepath.IsAbs(path) {
		return filepath.Join(root, path[i:])
	}
	return Resolve(root, path)
}

// StoreTag and ResolveTag do the same with the path of a permission tag: @read:docs.
func StoreTag(root, tag string) string   { return inTag(tag, root, Store) }
func ResolveTag(root, tag string) string { return inTag(tag, root, Resolve) }

func inTag(tag, root string, change func(root, path string) string) string {
	kind, path, ok := strings.Cut(tag, ":")
	if !ok || kind != "@read" && kind != "@write" {
		return tag
	}
	return kind + ":" + change(root, path)
}
