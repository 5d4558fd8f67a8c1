package doctor

import (
	"errors"
	"io/fs"
	"path/filepath"
	"slices"

	"daycare/cmd/daycare/daemon"
	"daycare/engine/beneath"
	"daycare/engine/event"
	"daycare/engine/finding"
	"daycare/engine/folders"
	"daycare/engine/inbox"
)

// OfAgent returns the warnings and errors of the files in an agent's folder.
func OfAgent(dir string) ([]event.File, error) {
	all, err := inbox.Check(dir)
	for _, name := range []string{"descriptor.json", "state.json", "history.jsonl"} {
		path := filepath.Join(dir, name)
		data, rerr := beneath.Whole(path)
		if rerr != nil {
			if name == "descriptor.json" || !errors.Is(rerr, fs.ErrNotExist) {
				all = append(all, finding.Finding{Severity: finding.Error, File: path, Reason: rerr.Error()})
			}
			continue
		}

		found, cerr := folders.CheckFile(path, data)
		all, err = append(all, found...), errors.Join(err, cerr)
	}

	return daemon.Problems(slices.DeleteFunc(all, func(f finding.Finding) bool { return f.Severity == finding.Info })), err
}
