package upkeep

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"

	"github.com/spf13/cobra"

	"daycare/cmd/daycare/plugins"
	"daycare/cmd/daycare/term"
	"daycare/engine/backup"
	"daycare/engine/config"
	"daycare/engine/disk"
	"daycare/engine/fault"
	"daycare/engine/workspace"
)

// Restore puts what Backup wrote in place.
func Restore(c *term.App) *cobra.Command {
	var force bool
	cmd := &cobra.Command{
		Use:   "restore FILE",
		Short: "Restore a backup into this folder or the --workspace folder",
		Long: "Restore a backup into the current folder or the one given with --workspace. Nothing changes until the\n" +
			"whole file has been read and verified. If .daycare has files, --force moves them aside;\n" +
			"nothing is deleted. The daemon must not be running. Agents continue where they were.\n" +
			"Do not run the original as well: both would answer the same chats.",
		Example: "  mkdir work && cd work && daycare restore ~/backups/work.tar.gz",
		Args:    term.Words(0, "a FILE written by backup, or - for standard input"),
		RunE: func(_ *cobra.Command, args []string) error {
			at, err := here(c)
			if err != nil {
				return err
			}
			done, err := restorable(c, at, force)
			if err != nil {
				return err
			}
			defer done()
			from, err := term.OpenInput(c, args[0])
			if err != nil {
				return err
			}
			defer from.Close()

			return restore(c, at, from)
		},
	}
	cmd.Flags().BoolVar(&force, "force", false, "move an existing .daycare aside")

	return cmd
}

// here is the folder of --workspace, else the current one: a .daycare further up is not meant.
func here(c *term.App) (workspace.Place, error) {
	if c.Workspace != "" || c.Data != "" {
		return c.Place()
	}
	dir, err := os.Getwd()
	if err != nil {
		return workspace.Place{}, fmt.Errorf("find workspace: %w", err)
	}
	at := workspace.At(dir)

	return at, at.Encodable()
}

// restorable reports why nothing can be restored here, and keeps daemons from starting in what
// is to be moved aside until done is called.
func restorable(c *term.App, at workspace.Place, force bool) (done func(), err error) {
	done = func() {}
	if err := c.NobodyRuns(at); err != nil {
		return done, err
	}
	home := at.Data
	entries, err := os.ReadDir(home)
	if errors.Is(err, fs.ErrNotExist) {
		return done, nil
	}
	if err != nil {
		return done, fmt.Errorf("restore: %w", err)
	}
	if len(entries) > 0 && !force {
		return done, &term.Problem{Code: fault.ExitFailure, Err: fmt.Errorf("%s already has files", home),
			Do: "restore into another folder, or move these aside with --force"}
	}

	lock, _, err := disk.TryLock(at.Lock(), disk.Holder{PID: os.Getpid()})
	if errors.Is(err, disk.ErrLocked) {
		return done, term.AlreadyRunning(at)
	}
	if err != nil {
		return done, fmt.Errorf("restore: %w", err)
	}

	return func() { lock.Release() }, nil
}

// A restored workspace, in --json.
type restored struct {
	Path string `json:"path"`
	backup.Restored
	Missing []string `json:"missing"` // ids of secrets that the settings need and nobody has
}

func restore(c *term.App, at workspace.Place, from io.Reader) error {
	r, err := backup.Restore(bufio.NewReaderSize(from, 1<<20), at)
	if err != nil {
		return err
	}
	missing := missingSecrets(c, at)
	if c.JSON {
		return c.PrintJSON(restored{at.Dir, r, missing})
	}

	c.Print("restored %s in %s, as of %s\n", term.Plural(r.Files, "file", "files"), at.Dir,
		r.At.Local().Format("2006-01-02 15:04:05"))
	for _, name := range r.Aside {
		c.Print("the previous files are now in %s\n", name)
	}

	for _, what := range r.LeftOut {
		c.Warn("not in the backup: %s", what)
	}

	for _, id := range missing {
		c.Warn("a key is missing; set it with: daycare auth set %s", id)
	}
	if !r.Secrets {
		c.Note("API tokens are not in a backup; create new ones with: daycare auth token create NAME")
	}

	c.Note("check it with: daycare doctor; start it with: daycare start")
	return nil
}

// missingSecrets lists the secrets that the settings of a workspace need and nobody has.
func missingSecrets(c *term.App, at workspace.Place) []string {
	missing := []string{}
	conf, _, err := config.Load(at.Data, os.LookupEnv, plugins.ConnectorChecks...)
	if err != nil {
		c.Warn("check the settings: %v", err)
		return missing
	}

	for _, s := range conf.SecretSources() {
		if s.Missing() && len(s.UsedBy) > 0 {
			missing = append(missing, s.ID)
		}
	}
	for _, k := range conf.Connectors {
		for _, id := range missingOf(conf, k) {
			if !slices.Contains(missing, id) {
				missing = append(missing, id)
			}
		}
	}

	return missing
}

// missingOf lists the secrets that a connector needs and nobody has. Settings that name an
// environment variable for one say so themselves.
func missingOf(conf *config.Config, k config.Connector) (ids []string) {
	kind, ok := plugins.ConnectorKind(k.Type)
	if !ok || kind.Setup == nil || k.Raw == nil {
		return nil
	}
	has := func(key string) bool {
		for i := 0; i < len(k.Raw.Content); i += 2 {
			if k.Raw.Content[i].Value == key {
				return true
			}
		}
		return false
	}
	for _, s := range kind.Setup.Secrets {
		if id := s.ID(k.ID); s.Needed(has) && !has(s.Env) && conf.Secret(id).IsZero() {
			ids = append(ids, id)
		}
	}

	return ids
}
