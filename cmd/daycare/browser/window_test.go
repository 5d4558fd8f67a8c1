//go:build !race

package browser

import (
	"context"
	"fmt"
	"sync"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/storage"
	"github.com/chromedp/chromedp"
)

// A window is one of the browser, with cookies and storage of its own. Tests use it one after the other, as a new one takes
// as long as half a test. Between two of them it is emptied: nothing of the first one is left for the second one.
type window struct {
	ctx   context.Context
	close context.CancelFunc

	scripts []page.ScriptIdentifier
	origins map[string]bool // that it showed
	drained chan struct{}   // gets a value when the console has said endOfConsole

	mu  sync.Mutex
	tab *tab // of the test that uses it; nil between two
}

const endOfConsole = "everything that the console has said is read"

// window returns one that no test uses.
func (p *process) window() (*window, error) {
	root, err := p.start()
	if err != nil {
		return nil, err
	}
	p.mu.Lock()
	if last := len(p.free) - 1; last >= 0 {
		w := p.free[last]
		p.free = p.free[:last]
		p.mu.Unlock()
		return w, nil
	}
	p.mu.Unlock()

	ctx, end := chromedp.NewContext(root, chromedp.WithNewBrowserContext(), chromedp.WithNewWindow(true))
	w := &window{ctx: ctx, origins: map[string]bool{}, drained: make(chan struct{}, 1)}
	if err := chromedp.Do(ctx); err != nil {
		end()
		return nil, fmt.Errorf("open a window: %w", err)
	}
	listening := make(chan struct{})
	messages := chromedp.Console(ctx)
	go func() {
		defer close(listening)
		for m, err := range messages {
			if err != nil {
				return
			}
			w.said(m)
		}
	}()
	w.close = func() {
		end()
		<-listening
	}
	return w, w.prepare()
}

// release empties a window for the next test. One that cannot be emptied is closed.
func (p *process) release(w *window) error {
	if err := w.empty(); err != nil {
		w.close()
		return fmt.Errorf("empty a window: %w", err)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.free = append(p.free, w)
	return nil
}

// prepare makes an empty window what every test begins with.
func (w *window) prepare() error {
	ctx, cancel := context.WithTimeout(w.ctx, patience)
	defer cancel()
	for _, script := range []string{toldScript, askedScript} {
		if err := w.onNew(ctx, script); err != nil {
			return err
		}
	}
	// What is not in front is not drawn.
	if err := run(ctx, emulation.SetFocusEmulationEnabled, emulation.SetFocusEmulationEnabledParams{Enabled: true}); err != nil {
		return err
	}
	// What moves is drawn sixty times a second. That it moves is tested in TestReducedMotion.
	still := emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{{Name: "prefers-reduced-motion", Value: "reduce"}}}
	if err := run(ctx, emulation.SetEmulatedMedia, still); err != nil {
		return err
	}
	return chromedp.Do(ctx, chromedp.EmulateViewport(1440, 900))
}

// empty takes everything out of a window that a test left in it.
func (w *window) empty() error {
	ctx, cancel := context.WithTimeout(w.ctx, patience)
	defer cancel()
	if err := w.heard(ctx); err != nil {
		return err
	}
	w.mu.Lock()
	w.tab = nil
	w.mu.Unlock()
	for _, id := range w.scripts {
		gone := page.RemoveScriptToEvaluateOnNewDocumentParams{Identifier: id}
		if err := run(ctx, page.RemoveScriptToEvaluateOnNewDocument, gone); err != nil {
			return err
		}
	}
	w.scripts = nil
	if err := chromedp.Do(ctx, chromedp.Navigate("about:blank")); err != nil {
		return err
	}

	for origin := range w.origins {
		all := storage.ClearDataForOriginParams{Origin: origin, StorageTypes: "all"}
		if err := run(ctx, storage.ClearDataForOrigin, all); err != nil {
			return err
		}
	}
	clear(w.origins)
	if err := run(ctx, page.ResetNavigationHistory, cdp.Empty{}); err != nil {
		return err
	}
	if err := w.heard(ctx); err != nil {
		return err
	}
	return w.prepare()
}

// heard waits until everything that the console has said is reported.
func (w *window) heard(ctx context.Context) error {
	if err := chromedp.Do(ctx, chromedp.Evaluate[chromedp.Void]("console.debug("+quote(endOfConsole)+")")); err != nil {
		return err
	}
	select {
	case <-w.drained:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// said passes on what the console says to the test that uses the window.
func (w *window) said(m chromedp.ConsoleMessage) {
	if m.Text == endOfConsole {
		w.drained <- struct{}{}
		return
	}
	w.mu.Lock()
	p := w.tab
	w.mu.Unlock()
	if p != nil {
		p.report(m)
	}
}

// onNew runs a script before those of every page that is opened from now on.
func (w *window) onNew(ctx context.Context, script string) error {
	added, err := chromedp.Call(ctx, page.AddScriptToEvaluateOnNewDocument, page.AddScriptToEvaluateOnNewDocumentParams{Source: script})
	w.scripts = append(w.scripts, added.Identifier)
	return err
}

// run sends a command whose result is empty.
func run[P any](ctx context.Context, command cdp.Command[P, cdp.Empty], params P) error {
	_, err := chromedp.Call(ctx, command, params)
	return err
}
