package disk

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"

	"daycare/engine/workspace"
)

// ErrLink: the file is a symbolic link that is not written through. It is left as it
// is.
var ErrLink = errors.New("it is a link that daycare does not follow for writing")

// Through is where a file that users edit is written: path, or what it is a link to,
// as users have it who keep such files elsewhere. A link is never replaced by a plain
// file. root is .daycare.
//
// ErrLink: it leads to nothing, to something else than a file, to a file of another
// user, or into the workspace, where agents may write: what such a file says would be
// theirs to say.
func Through(root, path string) (string, error) {
	info, err := os.Lstat(path)
	if err != nil || info.Mode()&os.ModeSymlink == 0 {
		return path, nil // whoever opens it reports that it does not exist
	}
	var target os.FileInfo
	to, err := filepath.EvalSymlinks(path)
	if err == nil {
		target, err = os.Stat(to)
	}
	if err != nil {
		return "", fmt.Errorf("%s: %w: %w", path, ErrLink, err)
	}

	no := func(why string) (string, error) { return "", fmt.Errorf("%s: %w: %s %s", path, ErrLink, to, why) }
	if !target.Mode().IsRegular() {
		return no("is not a file")
	}
	if st, ok := target.Sys().(*syscall.Stat_t); ok && int(st.Uid) != os.Geteuid() {
		return no("belongs to another user")
	}
	if root, err = filepath.EvalSymlinks(root); err != nil {
		return "", fmt.Errorf("stat %s: %w", root, err)
	}
	if under(workspace.OfData(root).Dir, to) && !under(root, to) {
		return no("is in the workspace, where agents can write")
	}

	return to, nil
}

// under reports whether path is in the folder dir.
func under(dir, path string) bool {
	rel, err := filepath.Rel(dir, path)
	return err == nil && filepath.IsLocal(rel)
}
