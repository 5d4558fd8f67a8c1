package prompt

import (
	"errors"
	"io/fs"
	"path/filepath"
	"strings"

	"daycare/engine/beneath"
	"daycare/engine/disk"
	"daycare/engine/finding"
	"daycare/engine/unseen"
	"daycare/engine/workspace"
)

// maxRead bounds what Load takes into memory of one file. It is more than MaxFile
// so that System can tell how much it left out.
const maxRead = 1 << 20

// Paths are where Load finds the Files of a workspace.
func Paths(at workspace.Place) []string {
	return []string{filepath.Join(at.Data, "SOUL.md"), filepath.Join(at.Data, "USER.md"), filepath.Join(at.Data, "AGENTS.md"),
		filepath.Join(at.Dir, "AGENTS.md"), filepath.Join(at.Dir, claudeFile)}
}

// claudeFile is what another program calls AGENTS.md. It is used where that is not there.
const claudeFile = "CLAUDE.md"

// Load reads the Files of a workspace. A file that is missing is empty. One that cannot be
// used is empty and among found; the others apply all the same.
//
// use, if not nil, is asked which text of a file is to be used: see unseen.Texts.
func Load(at workspace.Place, use Use) (f Files, found []finding.Finding) {
	into := []*string{&f.Soul, &f.User, &f.Rules, &f.Agents, &f.Claude}
	before := false // the file before is there: AGENTS.md, for CLAUDE.md
	for i, path := range Paths(at) {
		text, there, wrong := readText(at.Dir, path, use)
		if before && filepath.Base(path) == claudeFile {
			continue // it was read all the same: use knows then who changed it
		}
		found, before = append(found, wrong...), there
		*into[i] = string(text)
	}

	return f, found
}

// readText reads one of the Files. What is there and cannot be used is there, and empty.
func readText(workspace, path string, use Use) (text []byte, there bool, found []finding.Finding) {
	read := ownText
	if filepath.Dir(path) == workspace {
		read = sharedText
	}
	text, info, err := read(filepath.Dir(path), filepath.Base(path))
	if errors.Is(err, beneath.ErrTooLarge) {
		err = nil // a note in its place says what is left out
	}

	unread := err != nil && !errors.Is(err, fs.ErrNotExist)
	if unread {
		found = append(found, unusable(path, err))
	}
	there = info != nil
	if use != nil {
		var waits *unseen.Change
		if text, there, waits = use(path, text, info); waits != nil {
			found = append(found, waits.Finding(path))
		}
	}

	return text, there || unread, found
}

// A Use says which text of a file to use; info is nil if the file does not exist.
type Use = func(path string, data []byte, info fs.FileInfo) (text []byte, there bool, waits *unseen.Change)

func unusable(path string, err error) finding.Finding {
	f := finding.Finding{ID: "prompt-file-unusable", Severity: finding.Error, File: path,
		Reason: beneath.Reason(err).Error() + "; agents work without it",
		Remedy: "Check who owns the file and its mode."}
	switch {
	case errors.Is(err, beneath.ErrLink), errors.Is(err, beneath.ErrNames), errors.Is(err, disk.ErrLink):
		f.Remedy = "Put a copy of the text in its place, unless an agent made it: then delete it."
	case errors.Is(err, beneath.ErrKind):
		f.Remedy = "Delete it, and write the text into a file."
	}

	return f
}

// sharedText reads a file of a folder that agents write to. It is no link, but for one
// to another Markdown file beside it, as users have it who keep one text for several
// programs.
func sharedText(dir, name string) ([]byte, fs.FileInfo, error) {
	root, err := beneath.Root(dir)
	if err != nil {
		return nil, nil, err
	}
	defer root.Close()
	data, info, err := beneath.Read(root, name, maxRead)
	if !errors.Is(err, beneath.ErrLink) {
		return data, info, err
	}
	if to, lerr := root.Readlink(name); lerr == nil && filepath.Base(to) == to && strings.EqualFold(filepath.Ext(to), ".md") {
		return beneath.Read(root, to, maxRead)
	}

	return nil, nil, err
}

// ownText reads a file of .daycare, where no agent writes. It may be a link that its
// owner made, to wherever no agent writes.
func ownText(dir, name string) ([]byte, fs.FileInfo, error) {
	path, err := disk.Through(dir, filepath.Join(dir, name))
	if err != nil {
		return nil, nil, err
	}
	root, err := beneath.Root(filepath.Dir(path))
	if err != nil {
		return nil, nil, err
	}
	defer root.Close()

	return beneath.Read(root, filepath.Base(path), maxRead)
}
