package ingress

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"time"

	"daycare/engine/lan"
	"daycare/engine/message"
)

// Limits of a request. They bound what a stranger can hold, who has proved nothing
// yet; a service that posts needs milliseconds.
const (
	headerTime = 10 * time.Second
	readTime   = 30 * time.Second
	writeTime  = 60 * time.Second
	idleTime   = 60 * time.Second
	maxHeader  = 16 << 10 // bytes
)

// Grace is how long requests in progress have at the end to be answered.
const Grace = 5 * time.Second

// A Listener takes the requests of one connector.
type Listener struct {
	Name     string // what is served, for errors and the log
	Log      *slog.Logger
	Grace    time.Duration // 0: Grace
	BodyTime time.Duration // how long a body may take; 0: 5 s

	bodies bodies

	mu      sync.Mutex
	address string
}

// Address is where it listens, HOST:PORT; "" while it does not.
func (l *Listener) Address() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.address
}

func (l *Listener) set(address string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.address = address
}

// Serve serves until ctx ends; requests that are in progress then have the grace to
// be answered: their context outlives ctx by it, and Serve returns after the last of
// them. It outlives the connection, too: a service that waited for seconds hangs up, posts the
// same again, and is answered then. listening (nil: nothing) is called once requests are taken;
// its error ends the serving.
func (l *Listener) Serve(ctx context.Context, listen string, handler http.HandlerFunc, listening func(context.Context) error) error {
	listener, err := net.Listen("tcp", listen)
	if err != nil {
		return fmt.Errorf("listen for %s: %w", l.Name, err)
	}
	working, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	var requests sync.WaitGroup
	server := &http.Server{
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			requests.Add(1)
			defer requests.Done()
			handler(w, r.WithContext(working))
		}),
		ReadHeaderTimeout: headerTime, ReadTimeout: readTime, WriteTimeout: writeTime, IdleTimeout: idleTime,
		MaxHeaderBytes: maxHeader,
		ErrorLog:       slog.NewLogLogger(l.Log.Handler(), slog.LevelDebug),
	}
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	l.set(listener.Addr().String())
	defer l.set("")
	l.Log.Info("accepting requests", "for", l.Name, "address", listener.Addr().String())
	if !local(listen) {
		l.Log.Warn("reachable from other machines: requests are authenticated but not encrypted, "+
			"so put a TLS proxy in front", "listen", listen)
	}
	if listening != nil {
		err = listening(ctx)
	}
	if err == nil {
		message.Up(ctx)
		select {
		case err = <-served: // the listener broke
			stop()
			_ = server.Close()
			requests.Wait()
			return fmt.Errorf("serve %s: %w", l.Name, err)
		case <-ctx.Done():
		}
	}

	l.end(server, working, stop)
	<-served
	requests.Wait()
	return err
}

func (l *Listener) end(server *http.Server, working context.Context, stop context.CancelFunc) {
	grace := l.Grace
	if grace == 0 {
		grace = Grace
	}
	patience, cancel := context.WithTimeout(working, grace)
	defer cancel()
	if err := server.Shutdown(patience); err != nil {
		l.Log.Warn("requests cut off at shutdown", "for", l.Name, "err", err)
		stop()
		_ = server.Close()
	}
}

// local reports whether only this machine can reach a listen address.
func local(listen string) bool {
	host, _, err := net.SplitHostPort(listen)
	return err == nil && lan.Loopback(host)
}
