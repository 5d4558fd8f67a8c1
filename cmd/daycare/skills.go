package main

import (
	"os"
	"path/filepath"

	"daycare/agents/prompt"
	"daycare/tools/skills"
)

// skillFolders are where skills are looked for: the workspace's own, daycare's, the
// user's. Of two with one name the first counts.
func skillFolders(root string) []string {
	folders := []string{filepath.Join(filepath.Dir(root), ".agents", "skills"), filepath.Join(root, "skills")}
	if home, err := os.UserHomeDir(); err == nil {
		folders = append(folders, filepath.Join(home, ".agents", "skills"))
	}
	return folders
}

// newShelf makes the skills in force, told of what is wrong with their files.
func (r *runtimeParts) newShelf() *skills.Shelf {
	return skills.NewShelf(func() []string { return skillFolders(r.root) }, r.readShared)
}

// knownSkills is what the system prompt says of them.
func (r *runtimeParts) knownSkills() []prompt.Skill {
	list := r.shelf.List()
	told := make([]prompt.Skill, len(list))
	for i, s := range list {
		told[i] = prompt.Skill{Name: s.Name, Description: s.Description}
	}
	return told
}

// within is a path as it is named from the workspace, if it lies in it.
func within(root, path string) string {
	if rel, err := filepath.Rel(root, path); path != "" && err == nil && filepath.IsLocal(rel) {
		return rel
	}
	return path
}
