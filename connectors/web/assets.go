package web

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"fmt"
	"io/fs"
	"net/http"
	"path"
	"slices"
	"strconv"
	"strings"
	"sync"

	"daycare/engine/control"
)

//go:embed page
var page embed.FS

const (
	// index is the file that every address of a view gets.
	index = "index.html"
	// filesAt is where the other files are; behind it comes the hash of all of them, so that a
	// browser keeps them for ever and never mixes those of two versions.
	filesAt = "/page/"
)

// types are the files that are served; others, such as a README, are not.
var types = map[string]string{
	".html": "text/html; charset=utf-8", ".css": "text/css; charset=utf-8", ".js": "text/javascript; charset=utf-8",
	".svg": "image/svg+xml", ".png": "image/png", ".ico": "image/x-icon", ".webmanifest": "application/manifest+json",
}

// programs are the paths that belong to programs, not to the page.
var programs = []string{"v1", "mcp", "a2a", ".well-known", "healthz", "metrics"}

// A file of the page, as it is sent.
type file struct {
	kind           string
	plain, zipped  []byte
	tag, immutable string // ETag, Cache-Control
}

// An assets is the files of the page, made ready when the first one is asked for.
type assets struct {
	files map[string]file // by path; index.html by ""
}

var load = sync.OnceValue(func() *assets {
	a, err := loadFrom(page)
	if err != nil {
		panic(fmt.Sprintf("the page in this program cannot be read: %v", err)) // embed has whole files
	}
	return a
})

// loadFrom reads the folder page of a file system.
func loadFrom(from fs.FS) (*assets, error) {
	contents := map[string][]byte{}
	err := fs.WalkDir(from, "page", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || types[path.Ext(name)] == "" {
			return err
		}
		data, err := fs.ReadFile(from, name)
		contents[strings.TrimPrefix(name, "page/")] = data
		return err
	})
	if err != nil {
		return nil, err
	}

	hash := hashOf(contents)
	a := &assets{map[string]file{}}
	zips, _ := gzip.NewWriterLevel(nil, gzip.BestCompression) // one for all: it is larger than most files
	for name, data := range contents {
		f := file{kind: types[path.Ext(name)], plain: data, tag: `"` + hash + `"`, immutable: "public, max-age=31536000, immutable"}
		at := filesAt + hash + "/" + name
		if name == index {
			f.plain = bytes.ReplaceAll(data, []byte(`"`+filesAt), []byte(`"`+filesAt+hash+"/"))
			f.immutable, at = "no-cache", ""
		}
		f.zipped = zip(zips, f.plain)
		a.files[at] = f
	}

	return a, nil
}

// hashOf is a hash of all names and contents.
func hashOf(contents map[string][]byte) string {
	var names []string
	for name := range contents {
		names = append(names, name)
	}
	slices.Sort(names)
	h := sha256.New()
	for _, name := range names {
		fmt.Fprintf(h, "%s %d\n", name, len(contents[name]))
		h.Write(contents[name])
	}

	return hex.EncodeToString(h.Sum(nil))[:12]
}

func zip(w *gzip.Writer, data []byte) []byte {
	var b bytes.Buffer
	w.Reset(&b)
	_, _ = w.Write(data) // into memory
	_ = w.Close()
	return b.Bytes()
}

// policy lets the page load nothing but its own files and speak to nobody but its own server. No
// script and no style stands in its HTML, and no text becomes HTML beside the one function that
// takes what the server made safe.
const policy = "default-src 'self'; img-src 'self' data:; base-uri 'none'; form-action 'self'; frame-ancestors 'none'; " +
	"object-src 'none'; require-trusted-types-for 'script'; trusted-types daycare"

// isOurs reports whether a path belongs to the page: the address of a view, or one of its files.
func isOurs(r *http.Request) bool {
	if r.Method != http.MethodGet && r.Method != http.MethodHead || r.Header.Get("Authorization") != "" {
		return false
	}
	first, _, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
	return !slices.Contains(programs, first)
}

// ServeHTTP serves a file of the page; every address that is not one of a file is that of a view.
func (d *Door) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("Content-Security-Policy", policy)
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Permissions-Policy", "camera=(), geolocation=(), microphone=(), payment=(), usb=()")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Vary", "Accept-Encoding")
	a := load()
	f, ok := a.files[r.URL.Path]
	if !ok && (strings.HasPrefix(r.URL.Path, filesAt) || path.Ext(r.URL.Path) == ".ico") {
		http.Error(w, "no such file of the page; after an update, load it again", http.StatusNotFound)
		return
	}
	if !ok {
		f = a.files[""]
	}

	h.Set("Content-Type", f.kind)
	h.Set("Cache-Control", f.immutable)
	h.Set("ETag", f.tag)
	if strings.Contains(r.Header.Get("If-None-Match"), f.tag) {
		w.WriteHeader(http.StatusNotModified)
		return
	}
	data := f.plain
	if control.Unzips(r) {
		h.Set("Content-Encoding", "gzip")
		data = f.zipped
	}

	h.Set("Content-Length", strconv.Itoa(len(data)))
	if r.Method != http.MethodHead {
		_, _ = w.Write(data)
	}
}
