package control

import (
	"context"
	"io"
	"net/http"
	"time"

	"daycare/engine/fault"
)

// Backups archives the workspace.
type Backups interface {
	// Backup writes an archive of the workspace as it is at one moment, with keys and
	// tokens if secrets.
	Backup(ctx context.Context, to io.Writer, secrets bool) error
}

type backupIn struct {
	Secrets bool `query:"secrets"`
}

// Archive is a response with a gzipped tar.
type Archive struct{}

// backupTime bounds how long a client may take to receive a backup.
const backupTime = 6 * time.Hour

// sendBackup makes the handler that sends an archive. One that fails after its first byte says
// so in its last file.
func sendBackup(a *api, b Backups) func(http.ResponseWriter, *http.Request, backupIn) {
	return func(w http.ResponseWriter, r *http.Request, in backupIn) {
		if in.Secrets && !callerOf(r.Context()).Local {
			a.fail(w, r, refuse(fault.Forbidden, "make it on that machine: daycare backup FILE --secrets",
				"keys and tokens are backed up on the machine itself only"))
			return
		}

		a.sendArchive(w, r, "application/gzip", func(to io.Writer) error { return b.Backup(r.Context(), to, in.Secrets) })
	}
}

// sendArchive answers with what write writes.
func (a *api) sendArchive(w http.ResponseWriter, r *http.Request, kind string, write func(to io.Writer) error) {
	_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(backupTime)) // only a socket has deadlines
	w.Header().Set("Content-Type", kind)
	w.Header().Set("Cache-Control", "no-store")
	out := &counted{w: w}
	if err := write(out); err != nil && out.n == 0 {
		a.fail(w, r, err)
	} else if err != nil {
		a.log.Warn("an archive was not finished", "path", r.URL.Path, "err", err)
	}
}

// counted is a writer that knows whether anything was written.
type counted struct {
	w io.Writer
	n int64
}

func (c *counted) Write(p []byte) (int, error) {
	n, err := c.w.Write(p)
	c.n += int64(n)
	return n, err
}

// Backup returns an archive of the workspace, which the caller closes. Only its end shows whether
// it is complete.
func (c daemonCalls) Backup(ctx context.Context, secrets bool) (io.ReadCloser, error) {
	resp, err := backup.send(ctx, c.wire, backupIn{secrets}, "")
	if err != nil {
		return nil, err
	}

	return resp.Body, nil
}
