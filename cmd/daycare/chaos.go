package main

import (
	"os"

	"daycare/cmd/daycare/chaos"

	"github.com/spf13/cobra"
)

func (c *cli) chaosCommand() *cobra.Command {
	var o chaos.Options
	cmd := &cobra.Command{
		Use:   "chaos",
		Short: "Kill daycare in every way it can die, and show that nothing is lost",
		Args:  words(0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			self, err := os.Executable()
			if err != nil {
				return err
			}
			o.Binary = self
			r, err := chaos.Run(cmd.Context(), o)
			if err != nil {
				return err
			}
			if err := r.Print(c.stdout); err != nil {
				return err
			}
			if !r.OK() {
				return errSilent
			}
			return nil
		},
	}
	cmd.Flags().StringVar(&o.Scenario, "scenario", "", "")
	cmd.Flags().StringVar(&o.Kill, "kill", "", "")
	return cmd
}
