package daemon

import (
	"os"
	"path/filepath"

	"daycare/agents/prompt"
	ws "daycare/engine/workspace"
	"daycare/tools/skills"
)

// SkillFolders are where skills are looked for: the workspace's own, daycare's, the
// user's. Of two with one name the first counts. Where no agent writes, a skill may be
// a link to another such place.
func SkillFolders(at ws.Place, agentsWrite func(path string) bool) []skills.Folder {
	own := func(to string) bool { return !agentsWrite(to) }
	folders := []skills.Folder{{Root: at.Dir, Path: filepath.Join(".agents", "skills")},
		{Root: at.Data, Path: "skills", Links: own}}
	home, err := os.UserHomeDir()
	if err != nil {
		return folders
	}

	theirs := skills.Folder{Root: home, Path: filepath.Join(".agents", "skills")}
	if path := filepath.Join(theirs.Root, theirs.Path); !agentsWrite(path) {
		theirs = skills.Folder{Root: path, Path: ".", Links: own}
	}

	return append(folders, theirs)
}

// newSkills returns the active skills; problems of their files are reported.
func (r workbench) newSkills() *skills.Set {
	return skills.NewSet(func() []skills.Folder { return SkillFolders(r.at, r.folders.Writable) }, r.texts.Use, r.readShared)
}

// knownSkills returns the skills for the system prompt.
func (r factory) knownSkills() []prompt.Skill {
	list := r.skills.List()
	told := make([]prompt.Skill, len(list))
	for i, s := range list {
		told[i] = prompt.Skill{Name: s.Name, Description: s.Description}
	}

	return told
}
