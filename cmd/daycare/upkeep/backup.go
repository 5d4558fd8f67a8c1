package upkeep

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"daycare/cmd/daycare/term"
	"daycare/engine/backup"
	"daycare/engine/control"
	"daycare/engine/disk"
	"daycare/engine/fault"
	"daycare/engine/workspace"
)

// Backup writes an archive of the workspace.
func Backup(c *term.App) *cobra.Command {
	var secrets, force bool
	cmd := &cobra.Command{
		Use:   "backup FILE",
		Short: "Back up the workspace to one file, with the daemon running or not",
		Long: "Back up .daycare, and the files of the workspace that the settings name, to one file\n" +
			"(tar.gz). The backup is a snapshot of one moment; a running daemon keeps working. Keys, tokens and logs\n" +
			"are left out. daycare verifies the file before giving it its name.\n" +
			"Other files of the workspace are not included.",
		Example: "  daycare backup ~/backups/work.tar.gz\n  daycare backup - | ssh other 'cat > work.tar.gz'",
		Args:    term.Words(0, "the FILE to write, or - for standard output"),
		RunE: func(cmd *cobra.Command, args []string) error {
			at, err := c.MadePlace()
			if err != nil {
				return err
			}
			client, err := reader(cmd.Context(), c, at)
			if err != nil {
				return err
			}
			defer client.Close()
			archive, err := client.Backup(cmd.Context(), secrets)
			if err != nil {
				return fmt.Errorf("back up %s: %w", at.Dir, err)
			}
			defer archive.Close()
			if args[0] == "-" {
				return backupToStdout(c, archive)
			}

			return backupToFile(c, at, args[0], archive, force)
		},
	}
	cmd.Flags().BoolVar(&secrets, "secrets", false, "include keys and tokens; anyone who can read the file has them")
	cmd.Flags().BoolVar(&force, "force", false, "replace an existing FILE")

	return cmd
}

// reader is a client of the daemon, which may be about to start; else of the files.
func reader(ctx context.Context, c *term.App, at workspace.Place) (*control.Client, error) {
	client, err := c.JoinStarting(ctx, at)
	if client == nil && err == nil {
		client, err = c.Offline(at, c.Warn)
	}

	return client, err
}

func backupToStdout(c *term.App, archive io.Reader) error {
	if err := c.TakesArchive(); err != nil {
		return err
	}
	out := bufio.NewWriterSize(c.Out, 1<<20)
	head, err := backup.Verify(io.TeeReader(archive, out))
	if err = errors.Join(err, out.Flush()); err == nil {
		leftOut(c, head)
	}

	return term.Wrap(err, "back up")
}

// A made backup, in --json.
type made struct {
	File string `json:"file"`
	Size int64  `json:"size"`
	backup.Head
}

func backupToFile(c *term.App, at workspace.Place, path string, archive io.Reader, force bool) error {
	full, err := filepath.Abs(path)
	if err != nil {
		return fmt.Errorf("back up: %w", err)
	}
	if within(at.Data, full) {
		return &term.Problem{Code: fault.ExitUsage, Err: fmt.Errorf("%s is in the folder to back up", path),
			Do: "choose a file elsewhere"}
	}
	if term.Exists(full) && !force {
		return &term.Problem{Code: fault.ExitFailure, Err: fmt.Errorf("%s exists", path),
			Do: "choose another file, or replace it with --force"}
	}

	size, head, err := writeVerified(full, archive)
	if err != nil {
		return fmt.Errorf("back up: %w", err)
	}
	if c.JSON {
		return c.PrintJSON(made{path, size, head})
	}

	c.Print("backed up %s to %s: %s, %s\n", at.Dir, path, term.Plural(head.Files, "file", "files"), term.Size(size))
	leftOut(c, head)
	return nil
}

// within reports whether a path is a folder or is below it, whatever links lead there.
func within(dir, path string) bool {
	if real, err := filepath.EvalSymlinks(dir); err == nil {
		dir = real
	}
	if real, err := filepath.EvalSymlinks(filepath.Dir(path)); err == nil {
		path = filepath.Join(real, filepath.Base(path))
	}
	rel, err := filepath.Rel(dir, path)

	return err == nil && filepath.IsLocal(rel)
}

// writeVerified writes an archive beside its place and reads it as it comes; one that is whole
// gets its name.
func writeVerified(path string, archive io.Reader) (size int64, head backup.Head, err error) {
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+"-")
	if err != nil {
		return 0, head, err
	}
	defer func() {
		if err != nil {
			os.Remove(f.Name())
		}
	}()

	out := bufio.NewWriterSize(f, 1<<20)
	head, err = backup.Verify(io.TeeReader(archive, out))
	if err = errors.Join(err, out.Flush()); err == nil {
		err = f.Sync()
	}

	info, serr := f.Stat()
	if err = errors.Join(err, serr, f.Close()); err != nil {
		return 0, head, err
	}

	return info.Size(), head, place(f.Name(), path)
}

// place gives a synced file its name, so that a power cut cannot take it away again: the
// folder is synced, too, where the file system can do that.
func place(temp, path string) error {
	if err := os.Rename(temp, path); err != nil {
		return err
	}
	_, err := disk.SyncsFolders(filepath.Dir(path))
	return err
}

func leftOut(c *term.App, head backup.Head) {
	for _, what := range head.LeftOut {
		c.Warn("not in the backup: %s", strings.ReplaceAll(what, "\n", " "))
	}
	if !head.Secrets {
		c.Note("keys and tokens are not included")
	}
}
