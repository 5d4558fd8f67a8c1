package prompt

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// maxRead bounds what Load takes into memory of one file. It is more than MaxFile
// so that System can tell how much it left out.
const maxRead = 1 << 20

// Load reads the Files of a workspace, the folder that holds .daycare. A file
// that is not there is empty. One that cannot be read is empty and part of the
// error; the others count all the same.
func Load(workspace string) (Files, error) {
	var f Files
	var errs []error
	for _, want := range []struct {
		path string
		into *string
	}{
		{filepath.Join(workspace, ".daycare", "SOUL.md"), &f.Soul},
		{filepath.Join(workspace, ".daycare", "USER.md"), &f.User},
		{filepath.Join(workspace, ".daycare", "AGENTS.md"), &f.Rules},
		{filepath.Join(workspace, "AGENTS.md"), &f.Agents},
	} {
		text, err := readText(want.path)
		if err != nil {
			errs = append(errs, err)
		}
		*want.into = text
	}
	return f, errors.Join(errs...)
}

// readText reads a regular file. It looks before it opens, because opening a
// named pipe that nobody writes to would hold up the agent.
func readText(path string) (string, error) {
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	if err != nil {
		return "", fmt.Errorf("look at prompt file: %w", err)
	}
	if !info.Mode().IsRegular() {
		return "", fmt.Errorf("read prompt file %s: not a regular file", path)
	}
	f, err := os.Open(path)
	if err != nil {
		return "", fmt.Errorf("open prompt file: %w", err)
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxRead))
	if err != nil {
		return "", fmt.Errorf("read prompt file: %w", err)
	}
	return string(data), nil
}
