// Package version says which source and tools this binary was made from.
package version

import (
	goruntime "runtime"
	"runtime/debug"
	"strings"
)

// Number is the release that this source becomes. Only the linker changes it, for tests of an
// update.
var Number = "0.1.0"

// revision is set by .ci/release, which builds without looking at the repository.
var revision string

// A build is which source and tools this binary was made from.
type build struct {
	Version  string `json:"version"`
	Revision string `json:"revision"` // "" when it is not known
	Modified bool   `json:"modified"` // the source differed from the revision
	Go       string `json:"go"`
	OS       string `json:"os"`
	Arch     string `json:"arch"`
}

// This describes the running binary.
func This() build {
	b := build{Version: Number, Revision: revision, Go: goruntime.Version(), OS: goruntime.GOOS, Arch: goruntime.GOARCH}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return b
	}

	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			b.Revision = s.Value
		case "vcs.modified":
			b.Modified = s.Value == "true"
		}
	}

	return b
}

// String leaves the revision out where nobody knows it: Go records it only in a clone,
// not in a worktree, an unpacked archive, or with -buildvcs=false.
func (b build) String() string {
	parts := []string{b.Go, b.OS + "/" + b.Arch}
	if b.Revision != "" {
		rev := b.Revision[:min(len(b.Revision), 12)]
		if b.Modified {
			rev += " modified"
		}
		parts = append([]string{rev}, parts...)
	}

	return "daycare " + b.Version + " (" + strings.Join(parts, ", ") + ")"
}

// Where releases are and the key that signs them, for daycare update; a release sets them with
// -ldflags -X. Without them both are given by flags.
var ReleaseURL, ReleaseKey string
