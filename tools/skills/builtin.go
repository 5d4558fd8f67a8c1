package skills

import (
	"embed"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"sync"
)

// builtin are the skills that come with daycare. Any other of the same name counts
// instead.
//
//go:embed builtin
var builtin embed.FS

// Builtin are the skills that come with daycare. Their Dir is empty.
func Builtin() []Skill { return slices.Clone(readBuiltin()) }

// readBuiltin reads them when they are first asked for.
var readBuiltin = sync.OnceValue(func() []Skill {
	entries, err := fs.ReadDir(builtin, "builtin")
	if err != nil {
		panic("skills: what is built in cannot be listed: " + err.Error())
	}
	var list []Skill
	for _, e := range entries {
		file := path.Join("builtin", e.Name(), "SKILL.md")
		data, err := builtin.ReadFile(file)
		s, found, ok := Parse(file, data)
		if err != nil || !ok || len(found) > 0 {
			panic(fmt.Sprintf("skills: %s is not a good one: %v %v", file, err, found))
		}
		s.Dir, s.File = "", ""
		list = append(list, s)
	}

	return list
})
