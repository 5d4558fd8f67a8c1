package mcp

import (
	"context"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// lastAnswers bounds how long requests under way go on after the client has said its last word.
// One that writes all it wants and closes, as a script does, gets its answers; one that is gone
// keeps its process no longer than this.
const lastAnswers = 30 * time.Second

// A patient transport reports the end of the client's words when they are answered: the SDK
// cancels what is under way then.
type patient struct{ sdk.Transport }

// Connect connects.
func (t patient) Connect(ctx context.Context) (sdk.Connection, error) {
	c, err := t.Transport.Connect(ctx)
	if err != nil {
		return nil, err
	}

	return &conversation{Connection: c, asked: map[jsonrpc.ID]bool{}, answered: make(chan struct{}, 1), closed: make(chan struct{})}, nil
}

// A conversation knows which requests have no answer yet.
type conversation struct {
	sdk.Connection
	answered chan struct{} // has a word after an answer
	closed   chan struct{}
	once     sync.Once

	mu    sync.Mutex
	asked map[jsonrpc.ID]bool
}

// Read reads the next message, or the end when nothing is left to answer.
func (c *conversation) Read(ctx context.Context) (jsonrpc.Message, error) {
	m, err := c.Connection.Read(ctx)
	if r, ok := m.(*jsonrpc.Request); ok && r.IsCall() {
		c.mu.Lock()
		c.asked[r.ID] = true
		c.mu.Unlock()
	}
	if err != nil { // the end, or a line that is no message: the SDK reads no further
		c.finish(ctx)
	}

	return m, err
}

// finish waits until everything is answered.
func (c *conversation) finish(ctx context.Context) {
	over := time.NewTimer(lastAnswers)
	defer over.Stop()
	for c.open() > 0 {
		select {
		case <-c.answered:
		case <-over.C:
			return
		case <-c.closed:
			return
		case <-ctx.Done():
			return
		}
	}
}

func (c *conversation) open() int {
	c.mu.Lock()
	defer c.mu.Unlock()

	return len(c.asked)
}

// Write writes a message.
func (c *conversation) Write(ctx context.Context, m jsonrpc.Message) error {
	err := c.Connection.Write(ctx, m)
	if r, ok := m.(*jsonrpc.Response); ok {
		c.mu.Lock()
		delete(c.asked, r.ID)
		c.mu.Unlock()
		select {
		case c.answered <- struct{}{}:
		default:
		}
	}

	return err
}

// Close closes the connection.
func (c *conversation) Close() error {
	c.once.Do(func() { close(c.closed) })
	return c.Connection.Close()
}
