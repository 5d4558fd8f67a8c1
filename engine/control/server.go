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

// grace is how long requests under way may take to finish when the server ends.
const grace = 5 * time.Second

// Serve answers on all listeners until ctx ends; then streams end at once, other
// requests within 5 s, and all that was started has ended when it returns. One
// listener that fails ends all. The listeners are closed in any case.
func Serve(ctx context.Context, h http.Handler, log *slog.Logger, listeners ...*Listener) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	// Requests do not end with ctx but after it: base outlives it.
	base := withClosing(context.WithoutCancel(ctx), ctx.Done())
	errs := make(chan error, len(listeners))
	servers := make([]*http.Server, len(listeners))
	for i, l := range listeners {
		servers[i] = newServer(base, h, log, l)
	}
	for i, l := range listeners {
		go func() {
			err := servers[i].Serve(l.Listener)
			if errors.Is(err, http.ErrServerClosed) {
				err = nil
			} else {
				err = fmt.Errorf("serve on %s: %w", l.Addr(), err)
			}
			cancel()
			errs <- err
		}()
	}
	<-ctx.Done()
	shutdown(base, servers)
	var all []error
	for range listeners {
		all = append(all, <-errs)
	}
	return errors.Join(all...)
}

func newServer(base context.Context, h http.Handler, log *slog.Logger, l *Listener) *http.Server {
	s := &http.Server{
		Handler:           l.guard(h),
		ReadHeaderTimeout: 10 * time.Second,
		IdleTimeout:       2 * time.Minute,
		MaxHeaderBytes:    64 << 10,
		BaseContext:       func(net.Listener) context.Context { return WithCaller(base, l.caller) },
	}
	if log != nil {
		s.ErrorLog = slog.NewLogLogger(log.Handler(), slog.LevelDebug)
	}
	return s
}

// shutdown ends servers beside each other: gently, then for good.
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
