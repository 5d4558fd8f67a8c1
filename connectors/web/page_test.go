package web

import (
	"bytes"
	"compress/gzip"
	"io/fs"
	"path"
	"regexp"
	"runtime"
	"strings"
	"testing"
)

// How many bytes the page may have, compressed, as it is read over a telephone as well: all of it, and what
// Home needs.
const (
	maxPage  = 150_000
	maxFirst = 60_000
)

// maxModule is how many lines a module may have.
const maxModule = 410

// sources are the files of the page that a browser gets, by name.
func sources(t *testing.T, exts ...string) map[string]string {
	t.Helper()
	found := map[string]string{}
	err := fs.WalkDir(page, "page", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || types[path.Ext(name)] == "" {
			return err
		}
		for _, ext := range exts {
			if path.Ext(name) == ext {
				data, err := fs.ReadFile(page, name)
				found[strings.TrimPrefix(name, "page/")] = string(data)
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(found) == 0 {
		t.Fatalf("the page has no %v", exts)
	}
	return found
}

// TestPageSetsHTMLInOnePlace: text of agents enters the page as text. Only setRendered may set HTML, which
// the server made and sanitised.
func TestPageSetsHTMLInOnePlace(t *testing.T) {
	html := regexp.MustCompile(`innerHTML|outerHTML|insertAdjacentHTML|setHTMLUnsafe|document\.write|DOMParser|createContextualFragment|` +
		`srcdoc|\beval\(|new Function|javascript:`)
	for name, text := range sources(t, ".js") {
		for i, line := range strings.Split(text, "\n") {
			code := strings.TrimSpace(line)
			if strings.HasPrefix(code, "//") || !html.MatchString(code) {
				continue
			}
			if name == "dom.js" && code == "node.innerHTML = policy ? policy.createHTML(html) : html;" {
				continue
			}
			t.Errorf("%s:%d: %s\nset texts with h or textContent, and HTML of the server with setRendered", name, i+1, code)
		}
	}
}

// TestPageHasNothingInline: the Content-Security-Policy refuses inline scripts and styles, and everything
// from elsewhere.
func TestPageHasNothingInline(t *testing.T) {
	inline := regexp.MustCompile(`(?i)<style|<script[^>]*>[^<]|\sstyle=|\son[a-z]+="|href="javascript:`)
	for name, text := range sources(t, ".html") {
		if found := inline.FindString(text); found != "" {
			t.Errorf("%s: inline %q", name, found)
		}
	}
	style := regexp.MustCompile(`[{,]\s*style:\s|setAttribute\('style'`)
	for name, text := range sources(t, ".js") {
		if found := style.FindString(text); found != "" {
			t.Errorf("%s: %q: use node.style.setProperty, or attributes of SVG", name, found)
		}
	}
	away := regexp.MustCompile(`(?:https?:)?//[a-z0-9.-]+\.[a-z]{2,}/?`)
	for name, text := range sources(t, ".js", ".css", ".html") {
		for _, found := range away.FindAllString(text, -1) {
			if !strings.HasSuffix(found, "www.w3.org/") {
				t.Errorf("%s names %s: the page reads nothing from elsewhere", name, found)
			}
		}
	}
}

// TestPageImportsWhatExists: a module that is missing leaves a view empty, and is found by nothing else.
func TestPageImportsWhatExists(t *testing.T) {
	modules := sources(t, ".js")
	imports := regexp.MustCompile(`(?:from |import\()'(\.[^']+)'`)
	for name, text := range modules {
		for _, m := range imports.FindAllStringSubmatch(text, -1) {
			if at := path.Join(path.Dir(name), m[1]); modules[at] == "" {
				t.Errorf("%s imports %s, which does not exist", name, at)
			}
		}
		if lines := strings.Count(text, "\n"); lines > maxModule {
			t.Errorf("%s has %d lines, allowed: %d", name, lines, maxModule)
		}
	}
	index := sources(t, ".html")["index.html"]
	used := map[string]bool{"app.js": true}
	for name, text := range modules {
		for _, m := range imports.FindAllStringSubmatch(text, -1) {
			used[path.Join(path.Dir(name), m[1])] = true
		}
	}
	for name := range modules {
		if !used[name] && path.Dir(name) != "views" { // app.js imports those by the names that router.js has
			t.Errorf("nothing imports %s", name)
		}
	}
	all := sources(t, ".js", ".css", ".svg")
	for _, m := range regexp.MustCompile(`"/page/([^"]+)"`).FindAllStringSubmatch(index, -1) {
		if all[m[1]] == "" {
			t.Errorf("index.html names %s, which does not exist", m[1])
		}
	}
}

// TestPageIsSmall: all of it together, and what index.html names, compressed.
func TestPageIsSmall(t *testing.T) {
	index := sources(t, ".html")["index.html"]
	total, first := 0, 0
	for name, text := range sources(t, ".js", ".css", ".html", ".svg") {
		n := compressed(t, text)
		total += n
		if name == "index.html" || strings.Contains(index, `"/page/`+name+`"`) {
			first += n
		}
	}
	t.Logf("compressed: %d bytes, of them %d for Home", total, first)
	if total > maxPage || first > maxFirst {
		t.Errorf("the page has %d bytes compressed and Home needs %d, allowed: %d and %d", total, first, maxPage, maxFirst)
	}
}

func compressed(t *testing.T, text string) int {
	t.Helper()
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	if _, err := z.Write([]byte(text)); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Len()
}

// The first visit makes the page ready in a few megabytes: once, each file had a compressor of its own, and it took 53.
func TestPageIsReadySoon(t *testing.T) {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	if _, err := loadFrom(page); err != nil {
		t.Fatal(err)
	}
	runtime.ReadMemStats(&after)
	if made := after.TotalAlloc - before.TotalAlloc; made > 8_000_000 {
		t.Errorf("%d bytes are allocated to make the page ready, want at most 8 million", made)
	}
}
