package beneath

import "path/filepath"

// Real resolves the symbolic links of as much of a path as exists, now. It says what a path
// means; what is opened is what the walk finds.
func Real(path string) string {
	path = filepath.Clean(path)
	if real, err := filepath.EvalSymlinks(path); err == nil {
		return real
	}
	if dir := filepath.Dir(path); dir != path {
		return filepath.Join(Real(dir), filepath.Base(path))
	}

	return path
}
