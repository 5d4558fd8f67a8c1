// Package version says which source and tools this binary was made from. It imports only what is
// initialised before all libraries, so that package early can use it.
package version

import (
	goruntime "runtime"
	_ "unsafe" // for go:linkname
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

// modinfo is what debug.ReadBuildInfo reads. That one comes in a package which is initialised after many libraries.
//
//go:linkname modinfo runtime/debug.modinfo
func modinfo() string

// This describes the running binary.
func This() build {
	b := build{Version: Number, Revision: revision, Go: goruntime.Version(), OS: goruntime.GOOS, Arch: goruntime.GOARCH}
	info := modinfo()
	if rev := setting(info, "vcs.revision"); rev != "" {
		b.Revision = rev
	}
	b.Modified = setting(info, "vcs.modified") == "true"

	return b
}

// setting is one of the settings that the program was built with; "" where Go recorded none.
func setting(info, key string) string {
	line := "\nbuild\t" + key + "="
	for i := 0; i+len(line) <= len(info); i++ {
		if info[i:i+len(line)] != line {
			continue
		}
		end := i + len(line)
		for end < len(info) && info[end] != '\n' {
			end++
		}
		return info[i+len(line) : end]
	}

	return ""
}

// String leaves out an unknown revision: Go records it only in a clone, not in a worktree, an unpacked archive, or
// with -buildvcs=false.
func (b build) String() string {
	made := b.Go + ", " + b.OS + "/" + b.Arch
	if b.Revision != "" {
		rev := b.Revision[:min(len(b.Revision), 12)]
		if b.Modified {
			rev += " modified"
		}
		made = rev + ", " + made
	}

	return "daycare " + b.Version + " (" + made + ")"
}

// Where releases are and the key that signs them, for daycare update; a release sets them with
// -ldflags -X. Without them both are given by flags.
var ReleaseURL, ReleaseKey string
