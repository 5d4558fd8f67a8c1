package doctor

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"

	"daycare/cmd/daycare/term"
	"daycare/engine/changes"
	"daycare/engine/finding"
)

// checkCopies looks for copies of dry runs that nobody can apply any more, and for lists of written files
// that cannot be read.
func checkCopies(d *doctor) error {
	shelf, err := changes.List(d.at)
	if err != nil {
		d.report(finding.Warning, "copy-unreadable", "", 0, "dry runs cannot be shown or applied: "+err.Error(),
			"Set HOME, or XDG_STATE_HOME, to a folder that this user can read.")
	}
	for _, broken := range shelf.Broken {
		file := ""
		if path, ok := errors.AsType[*fs.PathError](broken); ok {
			file = path.Path
		}
		d.report(finding.Warning, "copy-unreadable", file, 0, "a dry run cannot be shown or applied: "+broken.Error(),
			"Check what is in its folder, tree, then remove the folder.")
	}
	for _, one := range shelf.Copies {
		if term.Exists(filepath.Join(d.at.Data, "agents", one.Agent)) {
			continue
		}
		d.report(finding.Info, "copy-orphaned", one.Dir, 0, fmt.Sprintf("the agent of the dry run of %s from %s is gone", one.Of,
			one.At.Local().Format("2006-01-02 15:04")),
			"Apply what you need with: daycare changes. Then remove it with: daycare changes drop   (daycare gc also removes it later)")
	}
	for _, half := range shelf.Halves {
		d.report(finding.Info, "copy-unfinished", half, 0, "a copy for a dry run was not finished, or is being made now",
			"daycare gc deletes it later.")
	}

	return nil
}
