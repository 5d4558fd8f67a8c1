package main

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"daycare/agents/providers/catalogue"
	"daycare/engine/config"
	"daycare/engine/control"

	"github.com/spf13/cobra"
)

// offers is the part of the API that says what there is to choose from.
type offers struct{ parts *runtimeParts }

// Models are the providers of the settings with the model that each is set to, and
// behind them what else a vendor's own service has.
func (o offers) Models(context.Context) ([]control.ModelInfo, error) {
	m := o.parts.models.Load()
	list := make([]control.ModelInfo, 0, len(m.settings))
	set := map[string]bool{}
	for i, p := range m.settings {
		known, _ := m.catalogue.Find(p.ID, p.Model)
		one := offered(p, known)
		one.Choice, one.Model, one.Default = p.ID, cmp.Or(p.Model, known.ID), i == 0
		list, set[p.ID+"/"+known.ID] = append(list, one), true
	}
	for _, p := range m.settings {
		if p.BaseURL != "" || p.Type == "scripted" {
			continue // nobody knows what else it has
		}
		for _, known := range m.catalogue.All() {
			one := offered(p, known)
			one.Choice, one.Model = p.ID+"/"+known.ID, known.ID
			if known.Vendor == p.Type && !set[one.Choice] {
				list, set[one.Choice] = append(list, one), true
			}
		}
	}
	return list, nil
}

func offered(p config.Provider, m catalogue.Model) control.ModelInfo {
	price := m.PriceAt(time.Now(), 0)
	return control.ModelInfo{Provider: p.ID, Window: m.Window, Images: m.Images, Input: price.Input, Output: price.Output}
}

// Skills are those in force.
func (o offers) Skills(context.Context) ([]control.SkillInfo, error) {
	list := o.parts.shelf.List()
	infos := make([]control.SkillInfo, len(list))
	for i, s := range list {
		infos[i] = control.SkillInfo{Name: s.Name, Description: s.Description, Icon: s.Metadata["icon"],
			Tools: s.AllowedTools, File: s.File, SHA256: s.SHA256}
	}
	return infos, nil
}

func (c *cli) skillsCommand() *cobra.Command {
	return group("skills", "The skills that agents have", "  daycare skills ls", c.skillsLs())
}

func (c *cli) skillsLs() *cobra.Command {
	return &cobra.Command{
		Use:     "ls",
		Aliases: []string{"list"},
		Short:   "List the skills in force, with the hash of what they say",
		Long: "List the skills in force: folders with a SKILL.md in .agents/skills of the workspace, in\n" +
			".daycare/skills and in .agents/skills of your home, and those built in. Of two with one\n" +
			"name the first counts.",
		Example: "  daycare skills ls --json",
		Args:    words(0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			client, err := c.reader(cmd.Context())
			if err != nil {
				return err
			}
			list, err := client.Skills(cmd.Context())
			if err != nil {
				return fmt.Errorf("list skills: %w", err)
			}
			if c.json {
				return c.printJSON(struct {
					Skills []control.SkillInfo `json:"skills"`
				}{append([]control.SkillInfo{}, list...)})
			}
			root, err := c.root()
			if err != nil {
				return err
			}
			var t table
			t.row("NAME", "FROM", "SHA256", "DESCRIPTION")
			for _, s := range list {
				t.row(s.Name, orElse(within(root, s.File), "built in"), fmt.Sprintf("%.12s", s.SHA256), oneLine(s.Description, 60))
			}
			return t.write(c.stdout, c.data())
		},
	}
}
