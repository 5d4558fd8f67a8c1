package control

import (
	"context"
	"io"
	"net/http"
	"os"
	"os/user"
	"strconv"
	"sync"

	"daycare/engine/apitoken"
)

// Local returns a transport to a handler in the same process, for a program that is its own server:
// `daycare chat` without a daemon, commands that read files. Responses stream: each byte can be
// read while the handler still runs. Close the body of each response; this ends the request's
// context and waits for the handler.
func Local(h http.Handler) http.RoundTripper {
	return LocalAs(h, Caller{Name: osUser(), Local: true, Rights: apitoken.Everything})
}

// LocalAs is Local for a caller with its own name and rights.
func LocalAs(h http.Handler, caller Caller) http.RoundTripper { return local{h, caller} }

type local struct {
	handler http.Handler
	caller  Caller
}

func (l local) RoundTrip(r *http.Request) (*http.Response, error) {
	ctx, cancel := context.WithCancel(WithCaller(r.Context(), l.caller))
	body, pipe := io.Pipe()
	w := &pipeWriter{pipe: pipe, header: http.Header{}, started: make(chan struct{})}
	in := r.Clone(ctx)
	if in.Body == nil {
		in.Body = http.NoBody
	}

	done := make(chan struct{})
	go func() {
		defer close(done)
		defer in.Body.Close()
		l.handler.ServeHTTP(w, in)
		w.WriteHeader(http.StatusOK) // if nothing was
		pipe.Close()
	}()

	end := func() {
		cancel()
		body.Close() // a handler that writes gets an error
		<-done
	}

	select {
	case <-w.started:
	case <-ctx.Done():
	}
	if err := r.Context().Err(); err != nil { // also when an answer began in the same moment
		end()
		return nil, err
	}

	return &http.Response{
		Status: strconv.Itoa(w.status) + " " + http.StatusText(w.status), StatusCode: w.status,
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: w.sent, Body: &localBody{PipeReader: body, end: sync.OnceFunc(end)}, ContentLength: -1, Request: r,
	}, nil
}

// A localBody ends the handler when it is closed.
type localBody struct {
	*io.PipeReader
	end func()
}

func (b *localBody) Close() error {
	b.end()
	return nil
}

// A pipeWriter is the ResponseWriter of one request, used by one goroutine.
type pipeWriter struct {
	pipe    *io.PipeWriter
	header  http.Header
	sent    http.Header // header as it was when the status was written
	status  int
	started chan struct{}
}

func (w *pipeWriter) Header() http.Header { return w.header }

func (w *pipeWriter) WriteHeader(status int) {
	if w.status != 0 {
		return
	}
	w.status, w.sent = status, w.header.Clone()
	close(w.started)
}

func (w *pipeWriter) Write(p []byte) (int, error) {
	w.WriteHeader(http.StatusOK)
	return w.pipe.Write(p)
}

// FlushError does nothing: a pipe holds nothing back.
func (w *pipeWriter) FlushError() error {
	w.WriteHeader(http.StatusOK)
	return nil
}

// osUser is the name of the user that the process runs as.
func osUser() string {
	u, err := user.Current()
	if err != nil {
		return strconv.Itoa(os.Getuid())
	}

	return u.Username
}
