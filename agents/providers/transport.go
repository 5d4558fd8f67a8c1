package providers

import (
	"context"
	"io"
	"net"
	"net/http"
	"sync"
	"time"
)

// Times of a connection to a model service.
const (
	connectTimeout = 10 * time.Second
	// HeaderTimeout is how long a service may think before its first byte. Local
	// servers that load a model or read a long prompt first may need more.
	HeaderTimeout = 60 * time.Second
	// IdleTimeout is how long a stream may be silent; pings and comments count.
	IdleTimeout = 120 * time.Second
)

// NewTransport returns the connections for providers; one for all of them is
// best. Of the environment it takes HTTP_PROXY, HTTPS_PROXY and NO_PROXY and
// nothing else. header bounds the wait for an answer to begin; 0 takes
// HeaderTimeout.
func NewTransport(header time.Duration) *http.Transport {
	if header == 0 {
		header = HeaderTimeout
	}
	dialer := &net.Dialer{Timeout: connectTimeout, KeepAlive: 30 * time.Second}
	return &http.Transport{
		Proxy: http.ProxyFromEnvironment,
		DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
			c, err := dialer.DialContext(ctx, network, address)
			if err != nil {
				return nil, err
			}
			return conn{c}, nil
		},
		TLSHandshakeTimeout:   connectTimeout,
		ResponseHeaderTimeout: header,
		IdleConnTimeout:       90 * time.Second,
		MaxIdleConnsPerHost:   64, // as many conversations at once need no new connection for each call
		ForceAttemptHTTP2:     true,
		// A connection that died without a word is found by pings, not by the
		// next agent that uses it.
		HTTP2: &http.HTTP2Config{SendPingTimeout: 30 * time.Second, PingTimeout: 15 * time.Second},
		// Compressed streams arrive in lumps.
		DisableCompression: true,
		// Bodies are long: the default of 4 KiB is a system call every 4 KiB.
		WriteBufferSize: writeBuffer,
	}
}

const writeBuffer = 64 << 10

// A conn shares the buffers through which bodies are written. Without it net allocates one of up to 32 KiB for each body.
type conn struct{ net.Conn }

var buffers = sync.Pool{New: func() any { return new([writeBuffer]byte) }}

// ReadFrom writes what r has; see io.ReaderFrom.
func (c conn) ReadFrom(r io.Reader) (int64, error) {
	b := buffers.Get().(*[writeBuffer]byte)
	defer buffers.Put(b)
	return io.CopyBuffer(struct{ io.Writer }{c.Conn}, r, b[:])
}
