package permission

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"sync"

	"daycare/engine/beneath"
	"daycare/engine/disk"
	"daycare/engine/finding"
)

// A store is the folder of the requests: one file each, and the log of those that were
// answered.
type store struct {
	vol     *disk.Volume // nil: for looking only
	dir     string
	log     *disk.Log
	logging sync.Mutex // of appends: one of them may have to open the log anew
}

func (s *store) path(token string) string { return filepath.Join(s.dir, token+".json") }

func (s *store) logPath() string { return filepath.Join(s.dir, logName) }

func readRequest(path string) (Pending, error) {
	data, _, err := beneath.Own(path, maxRequest)
	if err != nil {
		return Pending{}, err
	}

	return parse(path, data)
}

// maxRequest bounds the file of a request, in bytes.
const maxRequest = 8 << 20

// parse reads a request from the file of its name.
func parse(path string, data []byte) (Pending, error) {
	p, err := decode(path, data)
	if err == nil && filepath.Base(path) != p.Token+".json" {
		err = finding.Finding{ID: "permission-file", Severity: finding.Error, File: path,
			Reason: "the file name differs from the token in it", Remedy: "remove the file; it is not a pending request"}
	}

	return p, err
}

// CheckFile returns what is wrong with the content of a request file at that path; nil: nothing.
func CheckFile(path string, content []byte) *finding.Finding {
	var f finding.Finding
	if _, err := parse(path, content); errors.As(err, &f) {
		return &f
	}

	return nil
}

// record writes a settled request into the log, durably.
func (s *store) record(p Pending) error {
	line, err := encode(p, "")
	if err == nil {
		err = s.append(line)
	}
	if err != nil {
		return fmt.Errorf("log decision on %s: %w", p.Token, err)
	}

	return nil
}

// append writes one line to the log. A user may have edited the log or moved
// it away; it is a record for users, so what stands there now is continued with.
func (s *store) append(line []byte) error {
	s.logging.Lock()
	_, err := s.log.Append(line)
	if errors.Is(err, disk.ErrChanged) {
		var release func()
		if release, err = s.reopen(); err == nil {
			_, err = s.log.Append(line)
		}
		release()
	}
	s.logging.Unlock()
	if err != nil {
		return err
	}

	return s.log.Barrier()
}

// reopen takes the file that is there now, or a new one. Other programs open it after release.
func (s *store) reopen() (release func(), err error) {
	_, release, err = s.log.Reload()
	if errors.Is(err, fs.ErrNotExist) {
		if err = s.vol.WriteFile("permission", s.logPath(), nil); err == nil {
			_, release, err = s.log.Reload()
		}
	}

	return release, err
}

func (s *store) wrong(p Pending, reason string) error {
	return finding.Finding{ID: "permission-edit", Severity: finding.Error, File: s.path(p.Token), Reason: reason,
		Remedy: "change only decision; the original request is still pending"}
}
