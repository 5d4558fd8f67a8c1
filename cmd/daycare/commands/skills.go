package commands

import (
	"cmp"
	"fmt"
	"path/filepath"

	"github.com/spf13/cobra"

	"daycare/cmd/daycare/term"
	"daycare/engine/control"
)

// Skills lists the skills that agents can read.
func Skills(c *term.App) *cobra.Command {
	return term.Group("skills", "List the skills of agents", "  daycare skills ls", skillsLs(c))
}

func skillsLs(c *term.App) *cobra.Command {
	return &cobra.Command{
		Use:   "ls",
		Short: "List active skills, with the hash of their content",
		Long: "List active skills: folders with a SKILL.md in .agents/skills of the workspace, in\n" +
			".daycare/skills and in .agents/skills of your home, and built-in ones. If two have the same name, daycare\n" +
			"uses the first.",
		Example: "  daycare skills ls --json",
		Args:    term.Words(0),
		RunE: term.List(c, term.Listing[control.SkillInfo]{Key: "skills", Get: (*control.Client).Skills,
			Table: func(list []control.SkillInfo) (t term.Table, _ error) {
				at, err := c.Place()
				if err != nil {
					return nil, err
				}
				t.Row("NAME", "FROM", "SHA256", "DESCRIPTION")

				for _, s := range list {
					t.Row(s.Name, cmp.Or(within(at.Dir, s.File), "built in"), fmt.Sprintf("%.12s", s.SHA256),
						term.OneLine(s.Description, 60))
				}
				return t, nil
			}}),
	}
}

// within is a path as it is named from the workspace, if it is in it.
func within(root, path string) string {
	if rel, err := filepath.Rel(root, path); path != "" && err == nil && filepath.IsLocal(rel) {
		return rel
	}
	return path
}
