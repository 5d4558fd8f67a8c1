package control

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"daycare/engine/disk"
)

// Refer writes the FileReference of a content that lies in the store of a .daycare
// directory, where a crash or an accident left it without one. content is the name
// of the file, <id>__<name>.
func Refer(vol *disk.Volume, root, content string) error {
	id, name, ok := strings.Cut(content, "__")
	if !ok || !isID(id) {
		return fmt.Errorf("%s does not have a name of the form <id>__<name>", content)
	}
	dir := filepath.Join(root, "files")
	path := filepath.Join(dir, content)
	info, err := os.Lstat(path)
	if err != nil {
		return fmt.Errorf("make reference of %s: %w", content, err)
	}
	if !info.Mode().IsRegular() || info.Size() > MaxFileBytes {
		return fmt.Errorf("%s is not a regular file of at most %d bytes", path, MaxFileBytes)
	}

	data, err := os.ReadFile(path)
	if err != nil {
		return fmt.Errorf("make reference of %s: %w", content, err)
	}
	line, err := json.MarshalIndent(reference{ID: id, Name: name, MimeType: mimeOf(name, data), Size: int64(len(data))}, "", "  ")
	if err != nil {
		return fmt.Errorf("encode reference of %s: %w", content, err)
	}

	return vol.WriteFile("files.reference", filepath.Join(dir, id+".json"), append(line, '\n'))
}
