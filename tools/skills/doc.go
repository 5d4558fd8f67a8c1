// Package skills reads Agent Skills (agentskills.io): a folder with a SKILL.md that
// says how to do something, and whatever files that takes.
//
//	skills/pdf-forms/SKILL.md      front matter (name, description, …) and the how-to
//	skills/pdf-forms/scripts/…     what it refers to
//
// A model sees only the name and description of each skill; the tool skill gives
// it the rest when it wants it. Files are read at each use (Set), so an edit counts
// at once.
//
// Loading is lenient, as the specification asks of those who use skills: a skill is
// left out only if it has no name or no description, and everything else that is
// wrong is a Finding.
package skills
