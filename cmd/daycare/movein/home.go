package movein

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"unicode/utf8"

	"daycare/agents/prompt"
	"daycare/engine/beneath"
	"daycare/engine/finding"
	"daycare/engine/form"
)

const (
	maxPrompt = prompt.MaxFile
	maxText   = 1 << 20   // bytes of a prompt file or a note
	maxTotal  = 512 << 20 // bytes of all that is read
	maxNames  = 5_000     // names of one folder
	maxDepth  = 4         // folders below each other
)

// A home is the folder of another program. Everything beneath it is opened as hostile: no link
// is followed, nothing but regular files is read, and sizes are bounded. What is refused
// becomes an item that says why.
type home struct {
	dir   string // as the user named it
	root  *os.Root
	items []*item
	left  int64 // how many bytes may still be read
}

func openHome(dir string) (*home, error) {
	full, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	root, err := beneath.Root(full)
	if err != nil {
		return nil, err
	}

	return &home{dir: full, root: root, left: maxTotal}, nil
}

func (h *home) close() { h.root.Close() }

// has reports whether there is something of that name, whatever it is.
func (h *home) has(rel string) bool {
	_, err := h.root.Lstat(rel)
	return err == nil
}

func (h *home) add(i item) { h.items = append(h.items, &i) }

// skip reports something that is not imported, and why.
func (h *home) skip(what, from, why string, args ...any) {
	h.add(item{what: what, from: from, skip: strings.ReplaceAll(fmt.Sprintf(why, args...), "\n", "; ")})
}

// read returns the content of a file. ok is false if there is none, or if it is refused, which
// is then an item.
func (h *home) read(what, rel string, limit int64) (data []byte, ok bool) {
	data, _, err := beneath.Read(h.root, rel, min(limit, h.left))
	h.left -= int64(len(data))
	switch {
	case err == nil:
		return data, true
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ENOTDIR):
	case errors.Is(err, beneath.ErrTooLarge) && h.left <= 0:
		h.skip(what, rel, "the folder has more than %d MiB", maxTotal>>20)
	case errors.Is(err, beneath.ErrTooLarge):
		h.skip(what, rel, "it is too large: more than %d bytes", limit)
	default:
		h.skip(what, rel, "%v", beneath.Reason(err))
	}

	return nil, false
}

// text is read of a file of text.
func (h *home) text(what, rel string, limit int64) (text string, ok bool) {
	data, ok := h.read(what, rel, limit)
	if !ok {
		return "", false
	}
	data = bytes.TrimPrefix(data, []byte("\ufeff"))
	if at := notText(data); at >= 0 {
		h.skip(what, rel, "%s", notTextAt(rel, data, at))
		return "", false
	}

	return string(data), true
}

// notText is where data stops being a text; -1: it is one.
func notText(data []byte) int {
	for at := 0; at < len(data); {
		r, size := utf8.DecodeRune(data[at:])
		if r == utf8.RuneError && size <= 1 || r == 0 {
			return at
		}
		at += size
	}

	return -1
}

func notTextAt(rel string, data []byte, at int) string {
	line, column := finding.Position(data, int64(at))
	return fmt.Sprintf("%s:%d:%d: not UTF-8 text", rel, line, column)
}

// list returns what is in a folder, by name. A folder that is refused is an item; what begins
// with a dot is left out.
func (h *home) list(what, rel string) []fs.DirEntry {
	dir, err := beneath.Sub(h.root, rel)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case errors.Is(err, syscall.ENOTDIR):
		h.skip(what, rel, "it is not a folder")
		return nil
	case err != nil:
		h.skip(what, rel, "%v", beneath.Reason(err))
		return nil
	}
	defer dir.Close()
	all, err := fs.ReadDir(dir.FS(), ".")
	if err != nil {
		h.skip(what, rel, "%v", beneath.Reason(err))
	}

	all = slices.DeleteFunc(all, func(e fs.DirEntry) bool { return strings.HasPrefix(e.Name(), ".") })
	if len(all) > maxNames {
		h.skip(what, rel, "it has %d entries; only the first %d are read", len(all), maxNames)
		all = all[:maxNames]
	}

	return all
}

// markdown lists the Markdown files below a folder, at most depth folders down, as paths
// relative to the home. Links are listed: reading them tells why they are refused.
func (h *home) markdown(what, rel string, depth int) (files []string) {
	for _, e := range h.list(what, rel) {
		below := path.Join(rel, e.Name())
		switch {
		case e.IsDir() && depth > 1:
			files = append(files, h.markdown(what, below, depth-1)...)
		case e.IsDir():
			h.skip(what, below, "it is nested more than %d folders deep", maxDepth)
		case strings.HasSuffix(e.Name(), ".md"), e.Type()&fs.ModeSymlink != 0:
			files = append(files, below)
		}
	}

	return files
}

// prompt takes files as one of the files that are part of every prompt.
func (h *home) prompt(to string, from ...string) {
	var parts, taken []string
	for _, rel := range from {
		text, ok := h.text("prompt", rel, maxText)
		if _, body, marked, err := form.Split([]byte(text)); marked && err == nil {
			text = string(body) // its keys are for the other program
		}
		if text = strings.TrimSpace(text); ok && text != "" {
			parts, taken = append(parts, text), append(taken, rel)
		}
	}

	if len(parts) == 0 {
		return
	}
	content := strings.Join(parts, "\n\n") + "\n"
	i := item{what: "prompt", from: strings.Join(taken, ", "),
		put: file{name: strings.TrimSuffix(to, ".md"), ext: ".md", content: content}}
	if len(content) > maxPrompt {
		i.note = fmt.Sprintf("agents see only its first %d KiB", maxPrompt>>10)
	}

	h.add(i)
}

// heartbeat takes a file as an item of the heartbeat.
func (h *home) heartbeat(rel, name string) {
	text, ok := h.text("heartbeat", rel, maxText)
	if !ok {
		return
	}
	if !hasWork(text) {
		h.skip("heartbeat", rel, "it has no text")
		return
	}
	h.add(item{what: "heartbeat", from: rel, put: beat{name: name, text: strings.TrimSpace(text), enabled: true}})
}

// hasWork reports whether a checklist says more than headings, comments and empty boxes.
func hasWork(text string) bool {
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		comment := strings.HasPrefix(line, "#") || strings.HasPrefix(line, "<!--")
		if !comment && strings.Trim(line, "-*[] ") != "" {
			return true
		}
	}

	return false
}

// memory takes the notes below a folder.
func (h *home) memory(at, to string) {
	for _, rel := range h.markdown("memory", at, maxDepth) {
		h.note(rel, path.Join(to, noteName(strings.TrimPrefix(rel, at+"/"))))
	}
}

// note takes one file as a note. to is relative to .daycare/memory.
func (h *home) note(rel, to string) {
	text, ok := h.text("memory", rel, maxText)
	switch {
	case !ok:
	case strings.TrimSpace(text) == "":
		h.skip("memory", rel, "it is empty")
	case strings.ContainsAny(to, "\\:\n\r\t") || len(to) > 200 || strings.Count(to, "/") > maxDepth:
		h.skip("memory", rel, "a note cannot have this name")
	default:
		h.add(item{what: "memory", from: rel, put: file{dir: path.Join("memory", path.Dir(to)),
			name: strings.TrimSuffix(path.Base(to), ".md"), ext: ".md", content: text, beside: true}})
	}
}
