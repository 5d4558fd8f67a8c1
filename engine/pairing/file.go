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

// file is what it holds.
type file struct {
	Requests []Request `json:"requests" check:"required"`
}

// FileType is the form of the file.
func FileType() reflect.Type { return reflect.TypeFor[file]() }

// kind is how it is read.
var kind = form.Kind{ID: "pairing", Max: maxFile,
	Remedy: "Nobody can be paired until it is right. Removing it forgets the codes; who asks again gets a new one."}

// place is where the file is; not in the workspace, where agents write.
func place(root string) (string, error) { return disk.Through(root, filepath.Join(root, Name)) }

// read reads all requests, or none.
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
