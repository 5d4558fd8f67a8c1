package pairing

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"reflect"

	"daycare/engine/beneath"
	"daycare/engine/disk"
	"daycare/engine/finding"
	"daycare/engine/form"
)

// Name is the file in a .daycare directory.
const Name = "pairing.json"

// maxFile bounds it, in bytes.
const maxFile = 1 << 20

// file is the content of the file.
type file struct {
	Requests []Request `json:"requests" check:"required"`
}

// FileType returns the type that the file decodes into.
func FileType() reflect.Type { return reflect.TypeFor[file]() }

// kind says how to read the file.
var kind = form.Kind{ID: "pairing", Max: maxFile,
	Remedy: "Pairing does not work until you correct it. If you remove it, pending codes are lost, and users get new ones."}

// place returns the path of the file. A link into the workspace, where agents write, is an error.
func place(root string) (string, error) { return disk.Through(root, filepath.Join(root, Name)) }

// read reads all requests.
func read(root string) ([]Request, error) {
	path, err := place(root)
	var data []byte
	if err == nil {
		data, _, err = beneath.Own(path, maxFile)
	}
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read pairing requests: %w", err)
	}

	all, found := parse(path, data)
	return all, finding.Join(found)
}

// Check finds what is wrong in the content of the file.
func Check(path string, content []byte) ([]finding.Finding, error) {
	_, found := parse(path, content)
	return found, nil
}

func parse(path string, data []byte) ([]Request, []finding.Finding) {
	f := kind.JSON(path, data)
	var all file
	f.Read(&all)
	if f.Failed() {
		return nil, f.Found
	}

	return all.Requests, f.Found
}
