package main

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"daycare/cmd/daycare/term"
)

var shells = []cobra.Completion{"bash", "zsh", "fish", "powershell"}

func completionCommand(c *term.App) *cobra.Command {
	return &cobra.Command{
		Use:   "completion SHELL",
		Short: "Print the completion script for a shell",
		Long: "Print a script that lets your shell complete commands, flags and the names of agents,\n" +
			"tasks, providers and models. SHELL is bash, zsh, fish or powershell.",
		Example: "  source <(daycare completion bash)                                   # in this shell\n" +
			"  daycare completion bash > ~/.local/share/bash-completion/completions/daycare\n" +
			"  daycare completion zsh > \"${fpath[1]}/_daycare\"\n" +
			"  daycare completion fish > ~/.config/fish/completions/daycare.fish",
		Args: term.Words(0, "a SHELL: "+strings.Join(shells, ", ")),
		ValidArgsFunction: func(_ *cobra.Command, args []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
			if len(args) > 0 {
				return nil, cobra.ShellCompDirectiveNoFileComp
			}
			return shells, cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			var script bytes.Buffer
			err := writeCompletion(cmd, args[0], &script)
			if err != nil {
				return err
			}
			c.Print("%s", script.String())

			return nil
		},
	}
}

func writeCompletion(cmd *cobra.Command, shell string, to *bytes.Buffer) error {
	switch root := cmd.Root(); shell {
	case "bash":
		err := root.GenBashCompletionV2(to, true)
		to.WriteString(bashWords)
		return err
	case "zsh":
		return root.GenZshCompletion(to)
	case "fish":
		return root.GenFishCompletion(to, true)
	case "powershell":
		return root.GenPowerShellCompletionWithDesc(to)
	}

	return term.Usage(cmd, "there is no completion for %q, only for %s", shell, strings.Join(shells, ", "))
}

// bashWords takes the place of a function of the script that needs the package
// bash-completion, which not every system has. Without it, what bash splits at = and :
// is put together here.
const bashWords = `
__daycare_init_completion()
{
    COMPREPLY=()
    if declare -F _get_comp_words_by_ref >/dev/null; then
        _get_comp_words_by_ref "$@" cur prev words cword
        return
    fi
    local i n=-1 open=
    words=() cword=0
    for ((i = 0; i < ${#COMP_WORDS[@]}; i++)); do
        if [[ n -ge 0 && ( -n $open || ${COMP_WORDS[i]} == [=:]* ) ]]; then
            words[n]+=${COMP_WORDS[i]}
        else
            words[++n]=${COMP_WORDS[i]}
        fi
        open=
        [[ ${COMP_WORDS[i]} == *[=:] ]] && open=1
        ((i == COMP_CWORD)) && cword=$n
    done
    cur=${words[cword]}
    prev=
    ((cword > 0)) && prev=${words[cword-1]}
    return 0
}
`

// helpCommand is help COMMAND; what is not a command is an error, as everywhere.
func helpCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "help [COMMAND]",
		Short:   "Help about any command",
		Example: "  daycare help agents tail",
		ValidArgsFunction: func(cmd *cobra.Command, args []string, typed string) ([]cobra.Completion, cobra.ShellCompDirective) {
			var out []cobra.Completion
			if at, _, err := cmd.Root().Find(args); err == nil {
				for _, sub := range at.Commands() {
					if sub.IsAvailableCommand() && strings.HasPrefix(sub.Name(), typed) {
						out = append(out, cobra.CompletionWithDesc(sub.Name(), sub.Short))
					}
				}
			}

			return out, cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			at := cmd.Root()
			for _, word := range args {
				i := slices.IndexFunc(at.Commands(), func(sub *cobra.Command) bool { return sub.Name() == word || sub.HasAlias(word) })
				if i < 0 {
					return term.NoSuchCommand(at, []string{word})
				}
				at = at.Commands()[i]
			}

			at.InitDefaultHelpFlag() // it is there otherwise only once the command runs
			if err := at.Help(); err != nil {
				return fmt.Errorf("show help: %w", err)
			}
			return nil
		},
	}
}
