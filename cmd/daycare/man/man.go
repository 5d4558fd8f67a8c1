// Package man writes manual pages from the help of the commands.
package man

import (
	"bytes"
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"daycare/cmd/daycare/term"
	"daycare/cmd/daycare/version"
	"daycare/engine/fault"
)

// Command writes the pages to a folder.
func Command(c *term.App) *cobra.Command {
	return &cobra.Command{
		Use:   "man DIR",
		Short: "Write manual pages, one per command",
		Long: "Write the manual pages to DIR, one per command: daycare.1, daycare-chat.1 and so on.\n" +
			"Their content is the same as --help.",
		Example: "  daycare man ~/.local/share/man/man1 && man daycare-chat",
		Args:    term.Words(0, "the DIR to write them to"),
		ValidArgsFunction: func(*cobra.Command, []string, string) ([]cobra.Completion, cobra.ShellCompDirective) {
			return nil, cobra.ShellCompDirectiveFilterDirs
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := os.MkdirAll(args[0], 0o755); err != nil {
				return fmt.Errorf("make folder: %w", err)
			}
			n := 0
			for _, cmd := range Documented(cmd.Root()) {
				name := strings.ReplaceAll(cmd.CommandPath(), " ", "-") + ".1"
				if err := os.WriteFile(filepath.Join(args[0], name), Page(cmd), 0o644); err != nil {
					return fmt.Errorf("write manual page: %w", err)
				}
				n++
			}

			if c.JSON {
				return c.PrintJSON(struct {
					Dir   string `json:"dir"`
					Pages int    `json:"pages"`
				}{args[0], n})
			}

			c.Print("wrote %s to %s\n", term.Plural(n, "page", "pages"), args[0])
			return nil
		},
	}
}

// Documented are a command and all below it that users use, in the order of help.
func Documented(cmd *cobra.Command) []*cobra.Command {
	all := []*cobra.Command{cmd}
	for _, sub := range cmd.Commands() {
		if sub.IsAvailableCommand() {
			all = append(all, Documented(sub)...)
		}
	}

	return all
}

// Page is the page of a command in the language of man(7). It has no date, so that
// the same source gives the same bytes.
func Page(cmd *cobra.Command) []byte {
	cmd.InitDefaultHelpFlag()
	var b bytes.Buffer
	name := strings.ReplaceAll(cmd.CommandPath(), " ", "-")
	fmt.Fprintf(&b, ".TH %q 1 \"\" %q \"daycare manual\"\n", strings.ToUpper(name), "daycare "+version.Number)
	fmt.Fprintf(&b, ".SH NAME\n%s \\- %s\n", roff(name), roff(cmd.Short))
	fmt.Fprintf(&b, ".SH SYNOPSIS\n.B %s\n", roff(cmd.UseLine()))
	fmt.Fprintf(&b, ".SH DESCRIPTION\n%s\n", paragraphs(cmp.Or(cmd.Long, cmd.Short+".")))
	writeFlags(&b, "OPTIONS", cmd.NonInheritedFlags())
	writeFlags(&b, "GLOBAL OPTIONS", cmd.InheritedFlags())
	if cmd.Example != "" {
		fmt.Fprintf(&b, ".SH EXAMPLES\n.nf\n%s\n.fi\n", roff(cmd.Example))
	}
	if !cmd.HasParent() {
		b.WriteString(".SH EXIT STATUS\n")
		for _, e := range fault.Exits {
			fmt.Fprintf(&b, ".TP\n%d\n%s\n", e.Code, roff(e.Means))
		}
		b.WriteString(".SH FILES\n.TP\n.I .daycare/\neverything that daycare stores about the folder it is in, as " +
			"plain files; see \\fI.daycare/README.md\\fR\n")
	}

	writeSeeAlso(&b, cmd)
	return b.Bytes()
}

func writeFlags(b *bytes.Buffer, title string, flags *pflag.FlagSet) {
	if !flags.HasAvailableFlags() {
		return
	}
	fmt.Fprintf(b, ".SH %s\n", title)
	flags.VisitAll(func(f *pflag.Flag) {
		if f.Hidden {
			return
		}
		word, use := pflag.UnquoteUsage(f)
		short := ""
		if f.Shorthand != "" {
			short = `\fB\-` + f.Shorthand + `\fR, `
		}
		fmt.Fprintf(b, ".TP\n%s\\fB\\-\\-%s\\fR %s\n%s\n", short, roff(f.Name), roff(word), roff(use+usual(f)))
	})
}

// usual is the value that a flag has by itself, where that says something.
func usual(f *pflag.Flag) string {
	switch f.DefValue {
	case "", "false", "0", "0s", "[]":
		return ""
	}

	return " (default: " + f.DefValue + ")"
}

func writeSeeAlso(b *bytes.Buffer, cmd *cobra.Command) {
	var names []string
	if cmd.HasParent() {
		names = append(names, cmd.Parent().CommandPath())
	}

	for _, sub := range Documented(cmd)[1:] {
		if sub.Parent() == cmd {
			names = append(names, sub.CommandPath())
		}
	}

	if len(names) == 0 {
		return
	}

	b.WriteString(".SH SEE ALSO\n")
	for i, name := range names {
		end := ","
		if i == len(names)-1 {
			end = ""
		}
		fmt.Fprintf(b, ".BR %s (1)%s\n", roff(strings.ReplaceAll(name, " ", "-")), end)
	}
}

// roff is text that man(7) takes as it is.
func roff(s string) string {
	s = strings.NewReplacer(`\`, `\e`, "-", `\-`, "…", "...", "’", "'").Replace(s)
	lines := strings.Split(s, "\n")
	for i, line := range lines {
		if strings.HasPrefix(line, ".") || strings.HasPrefix(line, "'") {
			lines[i] = `\&` + line
		}
	}

	return strings.Join(lines, "\n")
}

// paragraphs is text whose empty lines end paragraphs.
func paragraphs(s string) string { return strings.ReplaceAll(roff(s), "\n\n", "\n.PP\n") }
