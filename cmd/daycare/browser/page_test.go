//go:build !race

package browser

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/accessibility"
	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/dom"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// A tab is a page in the browser, with cookies and storage of its own.
type tab struct {
	t      *testing.T
	ctx    context.Context
	window *window
	origin string // scheme, host and port of the page

	mu       sync.Mutex
	problems []string
	expected []*regexp.Regexp
}

// newTab opens an empty tab. When the test ends, everything that the console reported and the
// test did not expect is an error.
func newTab(t *testing.T) *tab {
	t.Helper()
	w, err := chromium.window()
	if err != nil {
		t.Fatalf("chromium does not start: %v", err)
	}
	p := &tab{t: t, ctx: w.ctx, window: w}
	w.mu.Lock()
	w.tab = p
	w.mu.Unlock()
	t.Cleanup(func() {
		p.picture(t.Failed())
		if err := chromium.release(w); err != nil {
			t.Error(err)
		}
		p.mu.Lock()
		defer p.mu.Unlock()
		for _, problem := range p.problems {
			t.Errorf("the console of the page: %s", problem)
		}
	})
	return p
}

// visit opens a tab and logs in with a new token of the workspace, at the address of a view. Scripts run before those of the
// page.
func (w *workspace) visit(path string, scripts ...string) *tab {
	w.t.Helper()
	p := newTab(w.t)
	p.onNew(scripts...)
	p.login(w, path)
	return p
}

// login shows a view with a new token, which daycare web prints.
func (p *tab) login(w *workspace, path string) {
	p.t.Helper()
	u := w.address()
	p.origin = u.Scheme + "://" + u.Host
	p.goTo(path + "#" + u.Fragment)
}

// report keeps what the console says is wrong.
func (p *tab) report(m chromedp.ConsoleMessage) {
	if m.Type != chromedp.ConsoleError && m.Type != chromedp.ConsoleException && m.Source != "security" {
		return
	}
	said := fmt.Sprintf("%s (%s)", m, m.URL)
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, e := range p.expected {
		if e.MatchString(said) {
			return
		}
	}
	p.problems = append(p.problems, said)
}

// expect allows messages of the console, from now on.
func (p *tab) expect(pattern string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.expected = append(p.expected, regexp.MustCompile(pattern))
}

// do runs actions and fails the test if one fails.
func (p *tab) do(what string, actions ...chromedp.Action[chromedp.Void]) {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.ctx, patience)
	defer cancel()
	if err := chromedp.Do(ctx, actions...); err != nil {
		p.t.Fatalf("%s: %v", what, err)
	}
}

// call sends a command of the DevTools protocol.
func call[P, R any](p *tab, command cdp.Command[P, R], params P) R {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.ctx, patience)
	defer cancel()
	result, err := chromedp.Call(ctx, command, params)
	if err != nil {
		p.t.Fatalf("%s: %v", command.Method, err)
	}
	return result
}

// eval runs JavaScript in the page; a promise is awaited.
func eval[T any](p *tab, expression string) T {
	p.t.Helper()
	v, err := tryEval[T](p, expression)
	if err != nil {
		p.t.Fatalf("%v in\n%s", err, expression)
	}
	return v
}

func tryEval[T any](p *tab, expression string) (T, error) {
	ctx, cancel := context.WithTimeout(p.ctx, patience)
	defer cancel()
	return chromedp.Run(ctx, chromedp.Evaluate[T](expression, chromedp.EvalAwaitPromise))
}

// whenScript looks in the page whether an expression is true, whenever the page changes and five times a second. After
// two seconds it gives up.
const whenScript = `new Promise((done, fail) => {
	let soon, looks = 0;
	const end = (result, what) => { seen.disconnect(); [soon, late].forEach(clearTimeout); clearInterval(often); result(what); };
	const look = () => { soon = 0; looks++; try { if (%s) end(done, true); } catch (err) { end(fail, err); } };
	const seen = new MutationObserver(() => { soon ||= setTimeout(look, 20); });
	seen.observe(document, { subtree: true, childList: true, characterData: true, attributes: true });
	const often = setInterval(look, 200), late = setTimeout(() => end(done, false), 2000);
	look();
})`

// wait waits until an expression is true. A page that is on its way to another one is asked
// again.
func (p *tab) wait(expression, what string) {
	p.t.Helper()
	var err error
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); {
		var holds bool
		if holds, err = tryEval[bool](p, fmt.Sprintf(whenScript, expression)); holds {
			return
		}
		if err != nil {
			time.Sleep(30 * time.Millisecond)
		}
	}
	p.t.Fatalf("waited %v until %s: %v\nthe page shows:\n%s", patience, what, err, p.text())
}

// changes waits until the page has changed, or for a fifth of a second.
func (p *tab) changes() {
	if _, err := tryEval[bool](p, fmt.Sprintf(whenScript, "looks > 1")); err != nil {
		time.Sleep(30 * time.Millisecond)
	}
}

// text is what the page shows, as text.
func (p *tab) text() string {
	text, _ := tryEval[string](p, "document.body ? document.body.innerText : ''")
	return text
}

// sees waits until the page shows a text.
func (p *tab) sees(text string) {
	p.t.Helper()
	p.wait(fmt.Sprintf("document.body.innerText.includes(%s)", quote(text)), "the page shows "+quote(text))
}

// toldScript keeps the short messages of the page, which are shown for some seconds only.
const toldScript = `addEventListener("DOMContentLoaded", () => {
	const messages = document.getElementById("toast");
	window.told = [];
	if (messages) new MutationObserver(() => told.push(messages.textContent)).observe(messages, { childList: true });
})`

// askedScript is a browser whose user has not decided yet whether it may notify. The headless shell denies it.
const askedScript = `globalThis.Notification && Object.defineProperty(Notification, "permission", { value: "default", configurable: true })`

// told waits until the page has shown a short message.
func (p *tab) told(text string) {
	p.t.Helper()
	p.wait(fmt.Sprintf("told.some(t => t.includes(%s))", quote(text)), "the page has said "+quote(text))
}

// seesNot waits until the page shows a text no longer.
func (p *tab) seesNot(text string) {
	p.t.Helper()
	p.wait(fmt.Sprintf("!document.body.innerText.includes(%s)", quote(text)), "the page does not show "+quote(text))
}

// quote makes a JavaScript string.
func quote(text string) string {
	data, _ := json.Marshal(text)
	return string(data)
}

// open loads an address.
func (p *tab) open(address string) {
	p.t.Helper()
	u, err := url.Parse(address)
	if err != nil {
		p.t.Fatal(err)
	}
	p.window.origins[u.Scheme+"://"+u.Host] = true
	p.do("open "+address, chromedp.Navigate(address))
}

// goTo shows a view by its address.
func (p *tab) goTo(path string) {
	p.t.Helper()
	p.open(p.origin + path)
	p.wait("document.readyState === 'complete' && document.querySelector('main h1, main textarea') && "+
		"!document.querySelector('[aria-busy=true]')", "the view "+path+" is shown")
}

// A control is an element as a screen reader announces it.
type control struct {
	role, name string
	node       cdp.BackendNodeID
}

// controls returns the elements that have a role and a name; an empty one fits all.
func (p *tab) controls(role, name string) (list []control, err error) {
	ctx, cancel := context.WithTimeout(p.ctx, patience)
	defer cancel()
	document, err := chromedp.Run(ctx, chromedp.Evaluate[*runtime.RemoteObject]("document"))
	if err != nil {
		return nil, err
	}
	tree, err := chromedp.Call(ctx, accessibility.QueryAXTree,
		accessibility.QueryAXTreeParams{ObjectID: document.ObjectID, Role: role, AccessibleName: name})
	if err != nil {
		return nil, err
	}
	for _, n := range tree.Nodes {
		if !n.Ignored {
			list = append(list, control{said(n.Role), said(n.Name), n.BackendDOMNodeID})
		}
	}
	return list, nil
}

// said is a value of the accessibility tree as text.
func said(v *accessibility.Value) string {
	if v == nil {
		return ""
	}
	var text string
	if json.Unmarshal(v.Value, &text) != nil {
		return ""
	}
	return text
}

// find waits for an element with a role and a name. A name that ends in … is the
// beginning of one.
func (p *tab) find(role, name string) control {
	p.t.Helper()
	start, partly := strings.CutSuffix(name, "…")
	exact := name
	if partly {
		exact = ""
	}

	var err error
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); p.changes() {
		var list []control
		if list, err = p.controls(role, exact); err != nil {
			continue
		}
		at := slices.IndexFunc(list, func(c control) bool { return !partly || strings.HasPrefix(c.name, start) })
		if at >= 0 {
			return list[at]
		}
	}

	var there []string
	list, _ := p.controls(role, "")
	for _, c := range list {
		there = append(there, quote(c.name))
	}
	p.t.Fatalf("no %s is named %q (%v); there are: %s", role, name, err, strings.Join(there, ", "))
	return control{}
}

// click clicks an element with the mouse, where a user would see it.
func (p *tab) click(role, name string) {
	p.t.Helper()
	var err error
	for range 5 { // what is drawn anew while it is found is found again
		c := p.find(role, name)
		if err = p.clickAt(c.node); err == nil {
			return
		}
		time.Sleep(50 * time.Millisecond)
	}
	p.t.Fatalf("click %s %q: %v", role, name, err)
}

func (p *tab) clickAt(node cdp.BackendNodeID) error {
	ctx, cancel := context.WithTimeout(p.ctx, patience)
	defer cancel()
	if _, err := chromedp.Call(ctx, dom.ScrollIntoViewIfNeeded, dom.ScrollIntoViewIfNeededParams{BackendNodeID: node}); err != nil {
		return err
	}
	quads, err := chromedp.Call(ctx, dom.GetContentQuads, dom.GetContentQuadsParams{BackendNodeID: node})
	if err != nil {
		return err
	}
	if len(quads.Quads) == 0 {
		return errors.New("it is not visible")
	}
	q := quads.Quads[0]
	return chromedp.Do(ctx, chromedp.MouseClickXY((q[0]+q[4])/2, (q[1]+q[5])/2))
}

// focus puts the focus on a field without clicking it.
func (p *tab) focus(role, name string) {
	p.t.Helper()
	call(p, dom.Focus, dom.FocusParams{BackendNodeID: p.find(role, name).node})
}

// types enters text where the focus is, as a paste would.
func (p *tab) types(text string) {
	p.t.Helper()
	call(p, input.InsertText, input.InsertTextParams{Text: text})
}

// fill replaces the text of a field.
func (p *tab) fill(role, name, text string) {
	p.t.Helper()
	p.focus(role, name)
	p.press("Control+a")
	p.types(text)
}

// named are keys with more than a letter.
var named = map[string]string{
	"Enter": kb.Enter, "Escape": kb.Escape, "Tab": kb.Tab, "ArrowDown": kb.ArrowDown, "ArrowUp": kb.ArrowUp, "Home": kb.Home,
	"End": kb.End, "Delete": kb.Delete, "Backspace": kb.Backspace, "PageUp": kb.PageUp, "PageDown": kb.PageDown, "Space": " ",
}

var modifiers = map[string]chromedp.Modifier{
	"Control": chromedp.ModifierCtrl, "Shift": chromedp.ModifierShift, "Alt": chromedp.ModifierAlt,
}

// press presses keys, one after the other: "g", "h", "Control+k".
func (p *tab) press(keys ...string) {
	p.t.Helper()
	for _, key := range keys {
		var options []chromedp.KeyOption
		parts := strings.Split(key, "+")
		for _, m := range parts[:len(parts)-1] {
			options = append(options, chromedp.KeyModifiers(modifiers[m]))
		}
		last := parts[len(parts)-1]
		if text, ok := named[last]; ok {
			last = text
		}
		p.do("press "+key, chromedp.KeyEvent(last, options...))
	}
}

// jump goes to a page by its letter. A g counts for a moment only, so on a busy machine both keys are pressed again.
func (p *tab) jump(letter, path string) {
	p.t.Helper()
	for range 10 {
		p.press("g", letter)
		if at := eval[string](p, "location.pathname"); at == path || strings.HasPrefix(at, path+"/") {
			p.wait("document.querySelector('main h1')", "a view is shown")
			return
		}
	}
	p.t.Fatalf("g %s does not lead to %s", letter, path)
}

// size sets the size of the window; less than 760 is a phone.
func (p *tab) size(width, height int64) {
	p.t.Helper()
	var options []chromedp.EmulateViewportOption
	if width < 760 {
		options = append(options, chromedp.EmulateMobile, chromedp.EmulateTouch)
	}
	p.do(fmt.Sprintf("resize to %d×%d", width, height), chromedp.EmulateViewport(width, height, options...))
}

// scheme makes the system light or dark; still asks for reduced motion.
func (p *tab) scheme(colours string) {
	p.t.Helper()
	call(p, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{
		{Name: "prefers-color-scheme", Value: colours}, {Name: "prefers-reduced-motion", Value: "reduce"}}})
}

// onNew runs scripts before those of every page that is opened from now on.
func (p *tab) onNew(scripts ...string) {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.ctx, patience)
	defer cancel()
	for _, script := range scripts {
		if err := p.window.onNew(ctx, script); err != nil {
			p.t.Fatal(err)
		}
	}
}

// screenshot returns the window as PNG.
func (p *tab) screenshot() []byte {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.ctx, patience)
	defer cancel()
	png, err := chromedp.Run(ctx, chromedp.CaptureScreenshot())
	if err != nil {
		p.t.Fatal(err)
	}
	return png
}

// picture writes what the page shows, if the test failed and DAYCARE_PICTURES says where.
func (p *tab) picture(failed bool) {
	dir := os.Getenv("DAYCARE_PICTURES")
	if !failed || dir == "" {
		return
	}
	ctx, cancel := context.WithTimeout(p.ctx, patience)
	defer cancel()
	png, err := chromedp.Run(ctx, chromedp.CaptureScreenshot())
	if err != nil {
		p.t.Log(err)
		return
	}
	name := filepath.Join(dir, strings.ReplaceAll(p.t.Name(), "/", "-")+".png")
	if err := os.WriteFile(name, png, 0o644); err != nil {
		p.t.Log(err)
	}
	p.t.Logf("%s shows the page\n%s", name, p.text())
}
