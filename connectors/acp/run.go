package acp

import (
	"context"
	"io"
	"log/slog"
	"time"

	acp "github.com/coder/acp-go-sdk"
)

// lastWords is how long responses may take at the end: perhaps no one reads them.
const lastWords = 5 * time.Second

// Run serves an editor on in and out until the input or ctx ends. Agents work on.
func Run(ctx context.Context, o Options, in io.Reader, out io.Writer) error {
	w, lines := newWire(in, out)
	d := &Door{o: o, link: &link{o: o}, wire: w, sessions: map[acp.SessionId]*session{}}
	w.cancel = func(id string) { _ = d.Cancel(ctx, acp.CancelNotification{SessionId: acp.SessionId(id)}) } // nothing runs where it fails
	d.conn = acp.NewAgentSideConnection(d, w, lines)
	d.conn.SetLogger(slog.New(slog.DiscardHandler)) // what it would say is answered by the wire
	go w.read()

	select {
	case <-d.gone():
	case <-ctx.Done():
		w.feed.CloseWithError(ctx.Err())
		<-d.gone()
	}
	d.mu.Lock()
	for _, s := range d.sessions {
		s.end()
	}
	d.mu.Unlock()
	last, cancel := context.WithTimeout(context.Background(), lastWords)
	defer cancel()
	w.settled(last)
	d.wg.Wait()
	d.link.forget()

	return ctx.Err()
}
