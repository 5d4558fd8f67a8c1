package chat

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"sync"
	"time"

	"daycare/engine/message"
)

// Files that come with messages: fetched once, within bounds of time and size.

const (
	maxFile = 20 << 20 // bytes: what the file store keeps of one
	// fetchTries is how often a file is asked for before the message continues
	// without it: one broken picture must not block a chat forever.
	fetchTries = 4
	// A file that comes too slowly is not asked for again: others wait behind its message.
	fetchTime = time.Minute
	stallTime = 30 * time.Second // without a byte
)

// notKept is why a file will not come.
type notKept struct{ reason string }

func (e *notKept) Error() string { return e.reason }

// TooLarge is what a File's Open returns for one that the platform does not hand
// out.
var TooLarge error = &notKept{"it is over 20 MB"}

// errGone is why a file is not asked for any more.
var errGone error = &notKept{"it could not be fetched"}

// A fetcher keeps the files that come with messages.
type fetcher struct {
	store Files
	log   *slog.Logger

	mu     sync.Mutex
	failed map[attached]int // how often it could not be fetched, until its message is done with
}

// attached is a file of a message: the key of the message, and which of its files.
type attached struct {
	key string
	n   int
}

func (g *fetcher) keep(ctx context.Context, of attached, f File) (message.File, error) {
	if g.store == nil {
		return message.File{}, &notKept{"files are not accepted here"}
	}
	if f.Size > maxFile {
		return message.File{}, TooLarge
	}
	if g.failures(of, 0) >= fetchTries {
		return message.File{}, errGone
	}
	ctx, w := newWatched(ctx)
	defer w.end(nil)
	kept, err := g.fetch(ctx, w, f)
	if err == nil {
		return kept, nil
	}
	var lost *notKept
	if errors.As(context.Cause(ctx), &lost) { // whatever reading it then failed with
		g.log.Warn("cannot fetch a file", "name", f.Name, "err", lost)
		err = lost
	}
	if errors.As(err, &lost) {
		return message.File{}, lost
	}
	if g.failures(of, 1) >= fetchTries {
		g.log.Warn("cannot fetch a file", "name", f.Name, "err", err)
		return message.File{}, errGone
	}

	return message.File{}, fmt.Errorf("fetch file %s: %w", f.Name, err)
}

// fetch reads a file into the file store.
func (g *fetcher) fetch(ctx context.Context, w *watched, f File) (kept message.File, err error) {
	body, err := f.Open(ctx)
	if err != nil {
		return kept, err
	}
	defer body.Close()
	w.from = body
	limited := &io.LimitedReader{R: w, N: maxFile + 1}
	kept, err = g.store.Put(f.Name, limited)
	if err != nil && limited.N == 0 {
		return kept, TooLarge
	}

	return kept, err
}

// watched ends the reading of a file that takes too long, or of which nothing comes.
type watched struct {
	from    io.Reader
	end     context.CancelCauseFunc
	stalled *time.Timer
}

// newWatched begins to watch; its end stops that.
func newWatched(parent context.Context) (context.Context, *watched) {
	ctx, end := context.WithCancelCause(parent)
	w := &watched{end: end, stalled: time.AfterFunc(stallTime, func() { end(&notKept{"no data arrived for 30 s"}) })}
	slow := time.AfterFunc(fetchTime, func() { end(&notKept{"it took longer than a minute"}) })
	context.AfterFunc(ctx, func() {
		w.stalled.Stop()
		slow.Stop()
	})
	return ctx, w
}

func (w *watched) Read(p []byte) (int, error) {
	n, err := w.from.Read(p)
	if n > 0 {
		w.stalled.Reset(stallTime)
	}

	return n, err
}

// failures counts more failures of a file and returns how many there were.
func (g *fetcher) failures(of attached, more int) int {
	g.mu.Lock()
	defer g.mu.Unlock()
	if more > 0 {
		g.failed[of] += more
	}

	return g.failed[of]
}

// forget forgets the failures of a message whose files are there or given up.
func (g *fetcher) forget(key string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	maps.DeleteFunc(g.failed, func(of attached, _ int) bool { return of.key == key })
}
