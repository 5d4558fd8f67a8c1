package schedule

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"hash"
	"io"
	"io/fs"

	"github.com/bmatcuk/doublestar/v4"

	"daycare/engine/beneath"
	"daycare/engine/workspace"
)

// maxWatched bounds the files that one look takes in; those beyond are not seen.
const maxWatched = 20_000

// digest hashes the state of what is looked at: names, sizes and times of files,
// texts, outputs of commands. Whether two looks saw the same is all it says.
type digest struct{ hash.Hash }

func newDigest() digest { return digest{sha256.New()} }

func (d digest) text(kind, text string) {
	fmt.Fprintf(d, "%s %d\n", kind, len(text))
	_, _ = io.WriteString(d, text) // a hash takes everything
}

func (d digest) sum() string { return hex.EncodeToString(d.Sum(nil)[:16]) }

// files adds what is known of the files beneath root that fit a pattern. What
// daycare and version control write by themselves is not looked at.
func (d digest) files(root string, patterns []string) {
	dir, err := beneath.Root(root)
	if err != nil {
		return // it went away; nothing in it changes
	}
	defer dir.Close()
	n := 0
	_ = fs.WalkDir(dir.FS(), ".", func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return nil // it went away meanwhile, or is not ours to read
		}
		name := e.Name()
		if e.IsDir() {
			if path != "." && (name == workspace.Home || name == ".git" || name == "node_modules") {
				return fs.SkipDir
			}
			return nil
		}
		if !fits(patterns, path) {
			return nil
		}
		if n++; n > maxWatched {
			return fs.SkipAll
		}
		if info, err := e.Info(); err == nil {
			d.text("file", fmt.Sprintf("%s %d %d", path, info.Size(), info.ModTime().UnixNano()))
		}

		return nil
	})
}

func fits(patterns []string, path string) bool {
	for _, p := range patterns {
		if ok, _ := doublestar.Match(p, path); ok {
			return true
		}
	}

	return false
}
