//go:build !race

package browser

import (
	"context"
	"os"
	"os/exec"
	"sync"
	"testing"

	"github.com/chromedp/chromedp"
)

// chromium is the browser of all tests: one process, in which every window has cookies and
// storage of its own.
var chromium process

type process struct {
	once  sync.Once
	err   error
	ctx   context.Context
	stops []context.CancelFunc

	mu   sync.Mutex
	free []*window // that no test uses
}

// programs are the names that chromium has. The headless shell comes first: it draws pages as the others do, but no
// windows around them, which takes half as much of a processor.
var programs = []string{"chromium-headless-shell", "chrome-headless-shell",
	"chromium", "chromium-browser", "google-chrome", "google-chrome-stable"}

// needsChromium skips the test where there is no browser.
func needsChromium(t *testing.T) {
	t.Helper()
	if testing.Short() {
		t.Skip("SKIPPED: browser tests are not run with -short")
	}
	if program() == "" {
		t.Skip("SKIPPED: the page is not tested in a browser: none of chromium, google-chrome is installed " +
			"(Debian: apt-get install --no-install-recommends chromium-headless-shell)")
	}
}

func program() string {
	for _, name := range programs {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	return ""
}

// start starts the browser, once.
func (p *process) start() (context.Context, error) {
	p.once.Do(func() {
		options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(program()), chromedp.WindowSize(1440, 900),
			chromedp.Flag("font-render-hinting", "none"), chromedp.Flag("hide-scrollbars", true), chromedp.WSURLReadTimeout(patience),
			chromedp.DisableGPU) // a graphics card would be imitated
		if os.Getuid() == 0 {
			options = append(options, chromedp.NoSandbox) // chromium refuses to sandbox for root
		}
		allocator, stop := chromedp.NewExecAllocator(context.Background(), options...)
		ctx, end := chromedp.NewContext(allocator)
		p.ctx, p.stops = ctx, []context.CancelFunc{end, stop}
		p.err = chromedp.Do(ctx)
	})
	return p.ctx, p.err
}

func (p *process) close() {
	for _, stop := range p.stops {
		stop()
	}
}
