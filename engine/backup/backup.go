package backup

import (
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path"
	"path/filepath"
	"strings"
	"time"

	"daycare/engine/tarball"
	"daycare/engine/workspace"
)

// Names of the files that are about the backup itself.
const (
	headName = "daycare-backup.json"
	sumsName = "daycare-backup.sha256"
	// failName is the last file of a backup that could not be finished: it says why.
	failName = "daycare-backup.error"
)

// format is the version of the format: a newer one is not read.
const format = 1

// home is what the folder of daycare's own files is called in a backup.
const home = workspace.Home

// A Head says what a backup is.
type Head struct {
	Format    int       `json:"format"`
	Version   string    `json:"version"` // of the daycare that wrote it
	At        time.Time `json:"at"`      // the moment that it shows
	Workspace string    `json:"workspace"`
	Secrets   bool      `json:"secrets"` // keys and tokens are in it
	Files     int       `json:"files"`
	Bytes     int64     `json:"bytes"`             // of all files
	LeftOut   []string  `json:"leftOut,omitempty"` // what could not be copied, and why
}

// Options say what a backup contains.
type Options struct {
	Place   workspace.Place
	Version string
	Secrets bool // with keys and tokens
	// Named are files in the workspace that the settings name, relative to it. What
	// leads out of it is left out.
	Named []string
	// Private are files that have keys or tokens in them, relative to the workspace.
	Private []string
	// Scrub takes secrets out of settings.yaml; it is not called with Secrets.
	Scrub func(content []byte) ([]byte, error)
}

// Write writes a backup. An error before the first byte leaves to empty; after a later one
// the archive ends with a file that says so, and cannot be restored.
func Write(ctx context.Context, to io.Writer, o Options) error {
	s, err := take(o)
	if err != nil {
		return fmt.Errorf("back up %s: %w", o.Place.Dir, err)
	}
	defer s.spool.Close()
	zip, _ := gzip.NewWriterLevel(to, gzip.BestSpeed) // the level is a good one
	w := tarball.NewWriter(zip)
	if err := s.write(ctx, w); err != nil {
		why := err.Error()
		_ = w.Add(tarball.Entry{Name: failName, Mode: 0o600, Size: int64(len(why))}, strings.NewReader(why))
		return errors.Join(fmt.Errorf("back up %s: %w", o.Place.Dir, err), w.Close(), zip.Close())
	}

	return errors.Join(w.Close(), zip.Close())
}

// write writes what was seen.
func (s *snapshot) write(ctx context.Context, w tarball.Writer) error {
	head, _ := json.MarshalIndent(s.head(), "", "  ") // it can always be encoded
	var sums strings.Builder
	add := func(e tarball.Entry, content io.Reader) error {
		if err := ctx.Err(); err != nil {
			return context.Cause(ctx)
		}
		sum := sha256.New()
		err := w.Add(e, io.TeeReader(content, sum))
		fmt.Fprintf(&sums, "%s  %s\n", hex.EncodeToString(sum.Sum(nil)), e.Name)

		return err
	}
	meta := func(name, text string) tarball.Entry {
		return tarball.Entry{Name: name, Mode: 0o600, Size: int64(len(text)), ModTime: s.at}
	}
	if err := add(meta(headName, string(head)), strings.NewReader(string(head))); err != nil {
		return err
	}

	for _, f := range s.files {
		content, closing, err := s.open(f)
		if err != nil {
			return err
		}
		if err := errors.Join(add(f.Entry, content), closing()); err != nil {
			return err
		}
	}

	return w.Add(meta(sumsName, sums.String()), strings.NewReader(sums.String()))
}

func (s *snapshot) head() Head {
	h := Head{Format: format, Version: s.opts.Version, At: s.at.UTC(), Workspace: filepath.Base(s.opts.Place.Dir),
		Secrets: s.opts.Secrets, Files: len(s.files), LeftOut: s.leftOut}
	for _, f := range s.files {
		h.Bytes += f.Size
	}

	return h
}

// passing are files of .daycare that mean nothing elsewhere.
func passing(name string) bool {
	rel := strings.TrimPrefix(name, home+"/")
	switch rel {
	case "daycare.sock", "daycare.lock", ".ballast", "agents.index", "logs", workspace.FileName:
		return true
	}

	return strings.HasPrefix(path.Base(rel), spoolPrefix)
}
