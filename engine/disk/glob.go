package disk

import (
	"errors"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
)

// Glob returns the paths below root that match a pattern of path.Match, sorted. Unlike
// filepath.Glob it takes root as it is, whose name may have brackets in it, and reports
// folders that cannot be read: what was not seen is not missing. A folder that is not
// there has nothing in it.
func Glob(root, pattern string) (paths []string, err error) {
	first, rest, deeper := strings.Cut(pattern, "/")
	entries, err := os.ReadDir(root)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}

	for _, e := range entries {
		ok, err := path.Match(first, e.Name())
		if err != nil {
			return nil, err
		}
		if !ok {
			continue
		}

		found := []string{filepath.Join(root, e.Name())}
		if deeper {
			if found, err = Glob(found[0], rest); err != nil {
				return nil, err
			}
		}

		paths = append(paths, found...)
	}

	slices.Sort(paths)
	return paths, nil
}
