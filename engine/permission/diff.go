package permission

import "slices"

// Diff returns the changes that turn a into b, one per line: "+@web:example.com", "-@exec:git
// push", "workingDir /a → /b". It is empty if both allow the same.
func Diff(a, b Set) (lines []string) {
	if a.WorkingDir != b.WorkingDir {
		lines = append(lines, "workingDir "+orNone(a.WorkingDir)+" → "+orNone(b.WorkingDir))
	}
	if a.Profile != b.Profile {
		lines = append(lines, "profile "+orNone(string(a.Profile))+" → "+orNone(string(b.Profile)))
	}
	was, is := a.tags(), b.tags()
	for _, tag := range is {
		if !slices.Contains(was, tag) {
			lines = append(lines, "+"+tag)
		}
	}
	for _, tag := range was {
		if !slices.Contains(is, tag) {
			lines = append(lines, "-"+tag)
		}
	}

	return lines
}

// Added returns the folders of b that a does not contain.
func Added(a, b Set) (added []Access) {
	for _, path := range append([]string{b.WorkingDir}, b.WriteDirs...) {
		if path != a.WorkingDir && !slices.Contains(a.WriteDirs, path) {
			added = append(added, Write{path})
		}
	}
	for _, path := range b.ReadDirs {
		if !slices.Contains(a.ReadDirs, path) {
			added = append(added, Read{path})
		}
	}

	return added
}

func orNone(path string) string {
	if path == "" {
		return "(none)"
	}
	return path
}

// tags are all rights of a set but its working folder. Paths are as they were
// written: a user who edits a file is shown its content.
func (s Set) tags() (tags []string) {
	for _, path := range s.ReadDirs {
		tags = append(tags, Read{path}.Tag())
	}
	for _, path := range s.WriteDirs {
		tags = append(tags, Write{path}.Tag())
	}
	if s.Web {
		tags = append(tags, Web{}.Tag())
	}
	for _, host := range s.Hosts {
		tags = append(tags, Web{host}.Tag())
	}
	for _, address := range s.Lan {
		tags = append(tags, "@lan:"+address)
	}
	for _, prefix := range s.Exec {
		tags = append(tags, Exec{prefix}.Tag())
	}
	for _, entry := range s.MCP {
		tags = append(tags, mcpKind+":"+entry)
	}
	for _, host := range s.A2A {
		tags = append(tags, A2A{host}.Tag())
	}
	for _, g := range s.Grants {
		if g.SHA256 != "" { // the others are in the lists
			tags = append(tags, g.Tag+" (one exact request)")
		}
	}

	return tags
}
