//go:build !race

package browser

import (
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
)

// A page with everything that looks and tour are to find; each line of want is in it once.
const flawed = `<!doctype html><html><head><title></title><style>
	body { background: #fff; color: #000; font: 13px sans-serif } :focus { outline: none } #a { outline: 2px solid }
	.pale { color: #aaa } .wide { width: 3000px; height: 1px } .tiny { width: 10px; height: 10px; padding: 0; border: 0 }
	</style></head><body><main><h2>Two</h2><h4>Four</h4><p class=pale>pale</p><div class=wide></div>
	<button id=a>first</button><button id=a>second</button><button class=tiny aria-label=tiny></button>
	<button><svg width=30 height=30></svg></button>
	<nav>somewhere</nav><input aria-describedby=nothing></main></body></html>`

// The checks find what they are for.
func TestChecksFindFlaws(t *testing.T) {
	t.Parallel()
	needsChromium(t)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.Write([]byte(flawed)) }))
	t.Cleanup(server.Close)
	p := newTab(t)
	p.expect("favicon")
	p.open(server.URL)
	found := strings.Join(append(eval[[]string](p, looksScript), p.nameless()...), "\n")
	for _, want := range []string{
		"html has no lang", "the page has no title", "0 elements h1 in main", "a heading of level 4 after one of level 2",
		"has a contrast of 2.32", "scrolls sideways", "ends at 3", "its id is there twice", "a target of 10×10",
		"a landmark without a name",
		"aria-describedby names nothing", "a button without a name", "a textbox without a name",
	} {
		if !strings.Contains(found, want) {
			t.Errorf("the checks do not find %q; they find:\n%s", want, found)
		}
	}

	visited := p.tour()
	if want := []string{"button first", "button second", "button tiny", "button ", "input "}; !slices.Equal(names(visited), want) {
		t.Errorf("Tab leads to %q, want %q", names(visited), want)
	}
	if seen := slices.IndexFunc(visited, func(w where) bool { return !w.Seen }); seen != 2 {
		t.Errorf("the first focus that cannot be seen is number %d, want 2: %+v", seen, visited)
	}
}

// Nothing of a test is left in its window for the next one.
func TestWindowsAreEmptied(t *testing.T) {
	t.Parallel()
	needsChromium(t)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Write([]byte(`<!doctype html><link rel=icon href="data:,"><meta name=viewport content="width=device-width">
			<main id=main style="height: 100px"></main>`))
	}))
	t.Cleanup(server.Close)
	p := newTab(t)
	type left struct {
		Cookie, Local, Session, Script, Hover string
		Dark, Still                           bool
		Width, History                        int
	}
	const look = `({ Cookie: document.cookie, Local: localStorage.left ?? "", Session: sessionStorage.left ?? "", Script: window.left ?? "",
		Hover: document.querySelector("main:hover")?.id ?? "", Dark: matchMedia("(prefers-color-scheme: dark)").matches,
		Still: matchMedia("(prefers-reduced-motion)").matches, Width: innerWidth, History: history.length })`
	p.open(server.URL)
	before := eval[left](p, look)
	if want := (left{Still: true, Width: 1440, History: 2}); before != want {
		t.Errorf("a window begins with %+v, want %+v", before, want)
	}

	p.onNew("window.left = 'yes'")
	p.scheme("dark")
	p.size(390, 844)
	p.open(server.URL + "/second")
	eval[string](p, "document.cookie = localStorage.left = sessionStorage.left = 'left=yes'")
	p.do("point at it", chromedp.MouseEvent("mouseMoved", 10, 10))
	if got := eval[left](p, look); got.Cookie == "" || got.Local == "" || got.Session == "" || got.Script == "" || got.Hover == "" ||
		!got.Dark || got.Width != 390 {
		t.Fatalf("the test leaves nothing: %+v", got)
	}
	if err := p.window.empty(); err != nil {
		t.Fatal(err)
	}
	p.open(server.URL)
	p.drawn()
	if after := eval[left](p, look); after != before {
		t.Errorf("the next test has %+v, want %+v", after, before)
	}
}
