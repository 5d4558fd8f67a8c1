package daemon

import (
	"context"
	"fmt"
	"io"
	"os"

	"daycare/cmd/daycare/plugins"
	"daycare/cmd/daycare/version"
	"daycare/engine/apitoken"
	"daycare/engine/backup"
	"daycare/engine/config"
	"daycare/engine/disk"
	ws "daycare/engine/workspace"
)

// backups copy the workspace of a daemon, or of nobody.
type backups struct{ *Daemon }

// Backup writes a backup of the workspace. Without the lock it takes it until the copy is made, so that no daemon
// starts before that. Errors: disk.ErrLocked.
func (r backups) Backup(ctx context.Context, to io.Writer, secrets bool) error {
	if r.lock == nil {
		lock, _, err := disk.TryLock(r.at.Lock(),
			disk.Holder{PID: os.Getpid(), StartedAt: disk.StampOf(r.startAt)})
		if err != nil {
			return err
		}
		defer lock.Release()
	}

	conf, _, err := config.Load(r.at.Data, os.LookupEnv, plugins.ConnectorChecks...)
	switch {
	case err != nil && !secrets:
		return fmt.Errorf("keys and tokens cannot be left out, because the settings are broken: %w\n"+
			"repair them, or back them up as they are with --secrets", err)
	case err != nil:
		conf = r.settings.Current()
	}

	named, private := conf.Named(r.at)
	for _, name := range []string{config.AuthName, apitoken.Name} {
		private = append(private, ws.Home+"/"+name)
	}
	return backup.Write(ctx, to, backup.Options{Place: r.at, Version: version.Number, Secrets: secrets,
		Named: named, Private: private, Scrub: conf.Scrub})
}
