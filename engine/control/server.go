package control

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"time"
)

// grace is how long requests in progress may take to finish when the server ends.
const grace = 5 * time.Second

// Serve serves all listeners until ctx ends; then streams end at once and other requests within 5
// s, and everything that was started has ended when it returns. If one listener fails, all end. The
// listeners are always closed.
func Serve(ctx context.Context, h http.Handler, log *slog.Logger, listeners ...*Listener) error {
	return ServeLater(ctx, h, log, nil, listeners...)
}

// ServeLater is Serve that also answers on what comes from later, from then on.
func ServeLater(ctx context.Context, h http.Handler, log *slog.Logger, later <-chan *Listener, listeners ...*Listener) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()

	// Requests do not end with ctx but after it: base outlives it.
	base := withClosing(context.WithoutCancel(ctx), ctx.Done())
	errs, fresh := make(chan error), &freshConns{}
	var servers []*http.Server
	start := func(l *Listener) {
		s := newServer(base, h, log, l)
		s.ConnState = fresh.note
		servers = append(servers, s)
		go func() {
			err := s.Serve(l.Listener)
			if errors.Is(err, http.ErrServerClosed) {
				err = nil
			} else {
				err = fmt.Errorf("serve on %s: %w", l.Addr(), err)
			}
			cancel()
			errs <- err
		}()
	}

	for _, l := range listeners {
		start(l)
	}
	for ctx.Err() == nil {
		select {
		case l := <-later:
			start(l)
		case <-ctx.Done():
		}
	}

	fresh.close()
	shutdown(base, servers)
	var all []error
	for range servers {
		all = append(all, <-errs)
	}

	return errors.Join(all...)
}

func newServer(base context.Context, h http.Handler, log *slog.Logger, l *Listener) *http.Server {
	s := &http.Server{
		Handler:           l.guard(h),
		ReadHeaderTimeout: 10 * time.Second,
		ReadTimeout:       bodyTimeout, // net/http waits for the rest of a body before it answers, even with 401
		IdleTimeout:       2 * time.Minute,
		MaxHeaderBytes:    64 << 10,
		BaseContext:       func(net.Listener) context.Context { return WithCaller(base, l.caller) },
	}
	if log != nil {
		s.ErrorLog = slog.NewLogLogger(log.Handler(), slog.LevelDebug)
	}

	return s
}

// shutdown ends servers in parallel: gracefully, then at once.
func shutdown(base context.Context, servers []*http.Server) {
	ctx, cancel := context.WithTimeout(base, grace)
	defer cancel()
	var wg sync.WaitGroup
	for _, s := range servers {
		wg.Go(func() {
			if s.Shutdown(ctx) != nil {
				s.Close() // whoever is still there has had its time
			}
		})
	}

	wg.Wait()
}

// freshConns are the connections that have not sent a request yet. http.Server.Shutdown
// waits 5 s for one, in case that it is about to; but clients open some that they never
// use, and a request that nobody has read yet is one that the caller sends again.
type freshConns struct {
	mu    sync.Mutex
	conns map[net.Conn]bool
	ended bool
}

func (f *freshConns) note(c net.Conn, state http.ConnState) {
	f.mu.Lock()
	defer f.mu.Unlock()
	switch {
	case state != http.StateNew:
		delete(f.conns, c)
	case f.ended:
		c.Close()
	default:
		if f.conns == nil {
			f.conns = map[net.Conn]bool{}
		}
		f.conns[c] = true
	}
}

func (f *freshConns) close() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.ended = true
	for c := range f.conns {
		c.Close()
	}
}
