package commands

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"daycare/cmd/daycare/term"
)

// agentsExport writes an agent as a tar, from its files; agentsImport makes an agent of one.
func agentsExport(c *term.App) *cobra.Command {
	var out string
	cmd := &cobra.Command{
		Use: "export ID", Short: "Export an agent with its files as a tar; works without the daemon",
		Example: "  daycare agents export 0/ -o ops.tar\n  daycare agents export 0/ | ssh other 'cd work && daycare agents import -'",
		Args:    term.Words(0, "the ID of an agent"), ValidArgsFunction: c.Refs,
		RunE: func(cmd *cobra.Command, args []string) error {
			client, err := c.Reader(cmd.Context())
			if err != nil {
				return err
			}
			a, err := client.Agent(cmd.Context(), args[0])
			if err != nil {
				return term.About(err, "find agent", args[0])
			}
			write := func(to io.Writer) error { return client.Folders().Export(cmd.Context(), a.ID, to) }
			if out == "" || out == "-" {
				if err := c.TakesArchive(); err != nil {
					return err
				}
				return write(c.Out)
			}

			bytes, err := exportTo(write, out)
			if err != nil {
				return err
			}
			if c.JSON {
				return c.PrintJSON(exported{Agent: a.ID, File: out, Bytes: bytes})
			}

			c.Print("exported %s to %s, %s\n", args[0], out, term.Size(bytes))
			return nil
		},
	}
	cmd.Flags().StringVarP(&out, "output", "o", "", "the `FILE` to write; it must not exist yet (default: standard output)")

	return cmd
}

// exported is the result of an export to a file in --json.
type exported struct {
	Agent string `json:"agent"`
	File  string `json:"file"`
	Bytes int64  `json:"bytes"`
}

// exportTo has an agent written to a new file and returns its size in bytes.
func exportTo(write func(to io.Writer) error, path string) (bytes int64, err error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return 0, fmt.Errorf("export agent: %w", err)
	}
	defer func() {
		if err = errors.Join(err, f.Close()); err != nil {
			os.Remove(path)
		}
	}()

	w := bufio.NewWriterSize(f, 1<<20)
	if err := errors.Join(write(w), w.Flush()); err != nil {
		return 0, err
	}
	info, err := f.Stat()
	if err != nil {
		return 0, fmt.Errorf("export agent: %w", err)
	}

	return info.Size(), nil
}

func agentsImport(c *term.App) *cobra.Command {
	var name string
	cmd := &cobra.Command{
		Use: "import FILE", Short: "Import an exported agent with its permissions",
		Example: "  daycare agents import ops.tar --name Ops",
		Args:    term.Words(0, "a FILE written by export, or - for standard input"),
		ValidArgsFunction: func(*cobra.Command, []string, string) ([]cobra.Completion, cobra.ShellCompDirective) {
			return []cobra.Completion{"tar"}, cobra.ShellCompDirectiveFilterFileExt
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			from, err := term.OpenInput(c, args[0])
			if err != nil {
				return err
			}
			defer from.Close()
			client, err := c.Daemon(cmd.Context())
			if err != nil {
				return err
			}

			a, err := client.Folders().Import(cmd.Context(), from, name)
			if err != nil {
				return fmt.Errorf("import agent: %w", err)
			}
			if c.JSON {
				return c.PrintJSON(a)
			}

			c.Print("%s  %s\n", a.Handle, a.ID)
			s, err := lookAt(cmd.Context(), c, client, a.ID)
			if err == nil {
				showRights(c, s.Permissions) // they came with the file: whoever imports sees them
			}

			return err
		},
	}
	cmd.Flags().StringVar(&name, "name", "", "its name in this workspace")

	return cmd
}
